//! JSON merge patch (RFC 7386), as `evanphx/json-patch` v4 applies it.

use super::{Error, Patched, decode_object};
use crate::{Object, Value};

/// Applies a merge patch: null removes, objects merge, all else replaces.
pub fn merge_patch(mut object: Object, body: &[u8]) -> Result<Patched, Error> {
    let patch = decode_object(body)?;
    merge(&mut object, patch.object);
    Ok(Patched { object, strict: patch.strict })
}

fn merge(target: &mut Object, patch: Object) {
    for (key, mut value) in patch {
        match (target.get_mut(&key), &mut value) {
            (_, Value::Null) => {
                target.remove(&key);
            }
            (Some(Value::Object(map)), Value::Object(patch)) => merge(map, std::mem::take(patch)),
            // An object that something else replaces keeps the nulls of its successor.
            (Some(slot @ Value::Object(_)), _) => *slot = value,
            _ => {
                prune_nulls(&mut value);
                target.insert(key, value);
            }
        }
    }
}

/// Drops null members of objects, also within lists; null items of lists stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    /// Cases of RFC 7386 and what evanphx adds.
    #[test]
    fn merges() {
        for (object, patch, want) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null,"z":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            (r#"{}"#, r#"{"a":[{"x":null},null]}"#, r#"{"a":[{},null]}"#),
            (r#"{"a":{}}"#, r#"{"a":[{"x":null}]}"#, r#"{"a":[{"x":null}]}"#),
            (r#"{"a":null}"#, r#"{"a":{"x":null,"y":1}}"#, r#"{"a":{"y":1}}"#),
            ("{}", r#"{"a":1,"a":2}"#, r#"{"a":2} duplicate field "a""#),
            ("{}", "null", "Invalid JSON Patch"),
            (
                "{}",
                "[]",
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            ("{}", "{", "error decoding patch: unexpected end of JSON input"),
        ] {
            let object = json::decode(object.as_bytes()).expect("an object").object;
            let got = match merge_patch(object, patch.as_bytes()) {
                Ok(p) => [vec![json::to_string(&p.object)], p.strict].concat().join(" "),
                Err(e) => e.to_string(),
            };
            assert_eq!(got, want, "{patch}");
        }
    }
}
