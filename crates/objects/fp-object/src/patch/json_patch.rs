//! JSON patch (RFC 6902), with the habits of `evanphx/json-patch` v4 that clients may lean on:
//! `replace` also adds a member, `copy` and `test` take an absent member for null, indices may be
//! negative, an absent `value` is null, and what stands before a path's first slash is ignored.

use super::{COPIED_BYTES_MAX, Error, OPERATIONS_MAX, Patched};
use crate::{Object, Value, go, json};

/// Applies a JSON patch, all of it or nothing.
pub fn json_patch(object: Object, body: &[u8]) -> Result<Patched, Error> {
    let malformed = |e: String| Error::Malformed(format!("error decoding patch: {e}"));
    let (patch, duplicates) = json::decode_value(body).map_err(|e| malformed(e.to_string()))?;
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => {
            let got = json::type_name(&other);
            return Err(malformed(format!(
                "json: cannot unmarshal {got} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(Error::TooManyOperations(operations.len()));
    }
    let mut strict: Vec<String> =
        duplicates.into_iter().map(|e| format!("json patch {e}")).collect();
    let mut doc = Value::Object(object);
    let mut copied_bytes = 0;
    for (at, operation) in operations.into_iter().enumerate() {
        let operation = Operation::read(operation, at, &mut strict).map_err(malformed)?;
        operation.apply(&mut doc, &mut copied_bytes).map_err(Error::Rejected)?;
    }
    match doc {
        Value::Object(object) => Ok(Patched { object, strict }),
        other => Err(Error::NotObject {
            patched: json::to_go_string(&other),
            detail: format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json::type_name(&other)
            ),
        }),
    }
}

struct Operation {
    /// `unknown` when absent.
    op: String,
    path: Option<String>,
    from: Option<String>,
    /// Absent is null.
    value: Value,
}

impl Operation {
    fn read(operation: Value, at: usize, strict: &mut Vec<String>) -> Result<Self, String> {
        let mut members = match operation {
            Value::Object(members) => members,
            Value::Null => Object::new(),
            other => {
                let got = json::type_name(&other);
                return Err(format!(
                    "json: cannot unmarshal {got} into Go value of type handlers.jsonPatchOp"
                ));
            }
        };
        let mut text = |key: &str| match members.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                let got = json::type_name(&other);
                Err(format!(
                    "json: cannot unmarshal {got} into Go struct field jsonPatchOp.{key} of type string"
                ))
            }
        };
        let (op, path, from) = (text("op")?, text("path")?, text("from")?);
        let value = members.remove("value").unwrap_or(Value::Null);
        strict.extend(
            members
                .keys()
                .map(|k| format!("json patch unknown field {}", go::quote(&format!("[{at}].{k}")))),
        );
        Ok(Self { op: op.unwrap_or_else(|| "unknown".into()), path, from, value })
    }

    fn apply(mut self, doc: &mut Value, copied_bytes: &mut usize) -> Result<(), String> {
        let value = std::mem::take(&mut self.value);
        let op = self.op.as_str();
        match op {
            "add" => {
                check_depth(self.path()?, &value)?;
                add_at(op, doc, self.path()?, value)
            }
            "remove" => remove_at(op, doc, self.path()?).map(drop),
            "replace" => self.replace(doc, value),
            "move" => {
                let value = remove_at(op, doc, self.from()?)?;
                check_depth(self.path()?, &value)?;
                add_at(op, doc, self.path()?, value)
            }
            "copy" => {
                let value = get_at(op, doc, self.from()?)?;
                check_depth(self.path()?, value)?;
                *copied_bytes += json::length(value);
                if *copied_bytes > COPIED_BYTES_MAX {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding the limit {COPIED_BYTES_MAX}"
                    ));
                }
                let value = value.clone();
                add_at(op, doc, self.path()?, value)
            }
            "test" => {
                let path = self.path()?;
                let is_equal = match path {
                    "" => *doc == value,
                    _ => *get_at(op, doc, path)? == value,
                };
                if is_equal {
                    Ok(())
                } else {
                    Err(format!("testing value {path} failed: test failed"))
                }
            }
            _ => Err(format!("Unexpected kind: {op}")),
        }
    }

    fn replace(&self, doc: &mut Value, value: Value) -> Result<(), String> {
        let path = self.path()?;
        check_depth(path, &value)?;
        if path.is_empty() {
            if !(value.is_object() || value.is_array()) {
                return Err("replace operation value must be object or array".into());
            }
            *doc = value;
            return Ok(());
        }
        let (parent, key) = parent_at(&self.op, doc, path)?;
        match parent {
            Value::Object(map) => drop(map.insert(key, value)),
            _ => *item(parent, &key).map_err(|e| at_path(&self.op, path, &e))? = value,
        }
        Ok(())
    }

    fn path(&self) -> Result<&str, String> {
        let missing = || format!("{} operation failed to decode path: missing value", self.op);
        self.path.as_deref().ok_or_else(missing)
    }

    fn from(&self) -> Result<&str, String> {
        let missing = || format!("{} operation failed to decode from: missing value", self.op);
        self.from.as_deref().ok_or_else(missing)
    }
}

/// Operations put values into each other; the document stays as deep as a body may be.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let levels = path.bytes().filter(|b| *b == b'/').count() + json::depth(value);
    if levels <= json::MAX_DEPTH { Ok(()) } else { Err(json::Error::TooDeep.to_string()) }
}

fn at_path(op: &str, path: &str, error: &str) -> String {
    format!("error in {op} for path: '{path}': {error}")
}

fn parent_at<'a>(
    op: &str,
    doc: &'a mut Value,
    path: &str,
) -> Result<(&'a mut Value, String), String> {
    find(doc, path).ok_or_else(|| {
        format!("{op} operation does not apply: doc is missing path: {path}: missing value")
    })
}

fn add_at(op: &str, doc: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, key) = parent_at(op, doc, path)?;
    add(parent, &key, value).map_err(|e| at_path(op, path, &e))
}

fn remove_at(op: &str, doc: &mut Value, path: &str) -> Result<Value, String> {
    let (parent, key) = parent_at(op, doc, path)?;
    remove(parent, &key).map_err(|e| at_path(op, path, &e))
}

/// The value at a path; an absent member reads as null.
fn get_at<'a>(op: &str, doc: &'a mut Value, path: &str) -> Result<&'a Value, String> {
    match parent_at(op, doc, path)? {
        (Value::Object(map), key) => Ok(map.get(&key).unwrap_or(&Value::Null)),
        (parent, key) => item(parent, &key).map(|v| &*v).map_err(|e| at_path(op, path, &e)),
    }
}

/// The container that a path leads into and the last key; None where the way is not there.
fn find<'a>(doc: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (_, steps) = path.split_once('/')?;
    let (way, last) = steps.rsplit_once('/').map_or((None, steps), |(way, last)| (Some(way), last));
    let mut at = doc;
    for step in way.into_iter().flat_map(|w| w.split('/')) {
        at = child(at, &unescape(step))?;
    }
    (at.is_object() || at.is_array()).then(|| (at, unescape(last)))
}

fn child<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match parent {
        Value::Object(map) => map.get_mut(key),
        _ => item(parent, key).ok(),
    }
}

fn add(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(map) => {
            map.insert(key.into(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = parse_index(key)
                .map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            // Negative indices count from past the end here.
            let at = in_bounds(index, items.len() + 1)?;
            items.insert(at, value);
        }
        _ => return Err("invalid state detected".into()),
    }
    Ok(())
}

fn remove(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(map) => map
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => {
            let at = in_bounds(parse_index(key)?, items.len())?;
            Ok(items.remove(at))
        }
        _ => Err("invalid state detected".into()),
    }
}

/// The item of a list.
fn item<'a>(list: &'a mut Value, key: &str) -> Result<&'a mut Value, String> {
    let items = list.as_array_mut().ok_or("invalid state detected")?;
    let at = in_bounds(parse_index(key)?, items.len())?;
    Ok(&mut items[at])
}

fn parse_index(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(key)))
}

fn in_bounds(index: i64, len: usize) -> Result<usize, String> {
    let positive = if index < 0 { index.saturating_add(len as i64) } else { index };
    let at = usize::try_from(positive).ok().filter(|at| *at < len);
    at.ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

fn unescape(step: &str) -> String {
    // One pass, as `~01` is `~1`.
    let mut out = String::with_capacity(step.len());
    let mut rest = step;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (c, len) = match rest.as_bytes().get(at + 1) {
            Some(b'0') => ('~', 2),
            Some(b'1') => ('/', 2),
            _ => ('~', 1),
        };
        out.push(c);
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(object: &str, patch: &str) -> String {
        let object = json::decode(object.as_bytes()).expect("an object").object;
        match json_patch(object, patch.as_bytes()) {
            Ok(p) => [vec![json::to_string(&p.object)], p.strict].concat().join(" "),
            Err(Error::Rejected(e)) => format!("rejected: {e}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn applies() {
        let doc = r#"{"a":[1,2],"b":{"c":"d","n":null},"x/y":{"~":0}}"#;
        for (patch, want) in [
            (r#"[]"#, doc),
            ("null", doc),
            (
                r#"[{"op":"add","path":"/a/1","value":9}]"#,
                r#"{"a":[1,9,2],"b":{"c":"d","n":null},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"add","path":"/a/-","value":9}]"#,
                r#"{"a":[1,2,9],"b":{"c":"d","n":null},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"add","path":"/a/-1","value":9}]"#,
                r#"{"a":[1,2,9],"b":{"c":"d","n":null},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"add","path":"/b/e"}]"#,
                r#"{"a":[1,2],"b":{"c":"d","e":null,"n":null},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"remove","path":"/a/-1"},{"op":"remove","path":"/x~1y/~0"}]"#,
                r#"{"a":[1],"b":{"c":"d","n":null},"x/y":{}}"#,
            ),
            (
                r#"[{"op":"replace","path":"/b/new","value":{}}]"#,
                r#"{"a":[1,2],"b":{"c":"d","n":null,"new":{}},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"replace","path":"/a/0","value":"z"}]"#,
                r#"{"a":["z",2],"b":{"c":"d","n":null},"x/y":{"~":0}}"#,
            ),
            (r#"[{"op":"replace","path":"","value":{"q":1}}]"#, r#"{"q":1}"#),
            (
                r#"[{"op":"move","from":"/b/c","path":"/a/0"}]"#,
                r#"{"a":["d",1,2],"b":{"n":null},"x/y":{"~":0}}"#,
            ),
            (
                r#"[{"op":"copy","from":"/b/none","path":"/z"}]"#,
                r#"{"a":[1,2],"b":{"c":"d","n":null},"x/y":{"~":0},"z":null}"#,
            ),
            (
                r#"[{"op":"test","path":"/b","value":{"n":null,"c":"d"}},{"op":"test","path":"/b/none","value":null}]"#,
                doc,
            ),
            (r#"[{"op":"test","path":"/b/n"}]"#, doc),
            (r#"[{"op":"remove","path":"ignored/b"}]"#, r#"{"a":[1,2],"x/y":{"~":0}}"#),
        ] {
            assert_eq!(show(doc, patch), want, "{patch}");
        }
    }

    #[test]
    fn refuses() {
        let doc = r#"{"a":[1,2],"b":{"c":"d","n":null}}"#;
        for (patch, want) in [
            (
                r#"[{"op":"test","path":"/b/c","value":"x"}]"#,
                "rejected: testing value /b/c failed: test failed",
            ),
            (
                r#"[{"op":"test","path":"/a/0","value":1.0}]"#,
                "rejected: testing value /a/0 failed: test failed",
            ),
            (
                r#"[{"op":"add","path":"","value":1}]"#,
                "rejected: add operation does not apply: doc is missing path: : missing value",
            ),
            (
                r#"[{"op":"add","path":"/b/n/x","value":1}]"#,
                "rejected: add operation does not apply: doc is missing path: /b/n/x: missing value",
            ),
            (
                r#"[{"op":"add","path":"/a/3","value":1},{}]"#,
                "rejected: error in add for path: '/a/3': Unable to access invalid index: 3: invalid index referenced",
            ),
            (
                r#"[{"op":"add","path":"/a/x","value":1}]"#,
                "rejected: error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                r#"[{"op":"remove","path":"/b/x"}]"#,
                "rejected: error in remove for path: '/b/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                r#"[{"op":"remove","path":"/a/2"}]"#,
                "rejected: error in remove for path: '/a/2': Unable to access invalid index: 2: invalid index referenced",
            ),
            (
                r#"[{"op":"move","from":"/b/x","path":"/y"}]"#,
                "rejected: error in move for path: '/b/x': Unable to remove nonexistent key: x: missing value",
            ),
            (
                r#"[{"op":"replace","path":"","value":1}]"#,
                "rejected: replace operation value must be object or array",
            ),
            (r#"[{"op":"add"}]"#, "rejected: add operation failed to decode path: missing value"),
            (r#"[{"op":"frob","path":"/a"}]"#, "rejected: Unexpected kind: frob"),
            ("[{}]", "rejected: Unexpected kind: unknown"),
            (
                r#"[{"op":"replace","path":"","value":[1]}]"#,
                "json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                "{}",
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                "[1]",
                "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
            ),
            (
                r#"[{"op":1}]"#,
                "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            ),
            ("[", "error decoding patch: unexpected end of JSON input"),
        ] {
            assert_eq!(show(doc, patch), want, "{patch}");
        }
        let strict = r#"[{"op":"test","op":"remove","path":"/a","foo":1}]"#;
        assert_eq!(
            show(doc, strict),
            r#"{"b":{"c":"d","n":null}} json patch duplicate field "[0].op" json patch unknown field "[0].foo""#
        );
    }

    #[test]
    fn limits() {
        let many =
            format!("[{}]", vec![r#"{"op":"test","path":"/x"}"#; OPERATIONS_MAX + 1].join(","));
        assert_eq!(
            show("{}", &many),
            "The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
        let doubling: Vec<&str> = vec![r#"{"op":"copy","from":"/a","path":"/a/-"}"#; 40];
        let got = show(r#"{"a":["xxxxxxxx"]}"#, &format!("[{}]", doubling.join(",")));
        assert!(got.starts_with("rejected: Unable to complete the copy"), "{got:.200}");
    }
}
