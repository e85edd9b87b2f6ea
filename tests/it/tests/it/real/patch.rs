//! JSON patch (RFC 6902) as far as the records use it: add, remove and replace.

use serde_json::Value;

/// `object` with all operations applied.
pub fn apply(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    for operation in patch.as_array().expect("a list of operations") {
        one(&mut object, operation);
    }
    object
}

fn one(object: &mut Value, operation: &Value) {
    let value = operation["value"].clone();
    let path = operation["path"].as_str().expect("a path");
    let Some((parent, last)) = path.rsplit_once('/') else {
        *object = value;
        return;
    };
    let key = last.replace("~1", "/").replace("~0", "~");
    let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}"));
    let what = operation["op"].as_str().expect("an operation");
    match (parent, what) {
        (Value::Object(map), "remove") => {
            map.remove(&key).unwrap_or_else(|| panic!("no {path}"));
        }
        (Value::Object(map), "add" | "replace") => {
            map.insert(key, value);
        }
        (Value::Array(list), "add") if key == "-" => list.push(value),
        (Value::Array(list), what) => {
            let at: usize = key.parse().expect("an index");
            match what {
                "remove" => drop(list.remove(at)),
                "add" => list.insert(at, value),
                _ => list[at] = value,
            }
        }
        (other, what) => panic!("{what} of {key} in {other}"),
    }
}
