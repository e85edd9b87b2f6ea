//! The index and documents of OpenAPI v3 in root, and the list of paths, as lines with digests.

use it::Server;
use serde_json::Value;

use super::normal::digest_of;
use super::{facts, get, lines_differ};

pub fn differences(server: &Server) -> Vec<String> {
    let mut ours = Vec::new();
    let index = get(server, "root", "/openapi/v3");
    for path in index["paths"].as_object().expect("an index").keys() {
        ours.push(format!("index {path}"));
        let mut document = get(server, "root", &format!("/openapi/v3/{path}"));
        strip(&mut document);
        lines(path, document, &mut ours);
    }
    ours.sort();
    ours.dedup();
    let theirs = facts("openapi.txt").lines().map(str::to_owned).collect();
    let mut out = lines_differ("openapi", ours, theirs);

    let paths = get(server, "system:admin", "/");
    let paths = paths["paths"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let theirs = facts("paths.txt").lines().map(str::to_owned).collect();
    out.extend(lines_differ("path", paths.map(str::to_owned).collect(), theirs));
    out
}

fn lines(path: &str, mut document: Value, out: &mut Vec<String>) {
    let mut take = |key: &str| document.as_object_mut().and_then(|map| map.remove(key));
    let (paths, components) = (take("paths"), take("components"));
    out.push(format!("head {path} {}", digest_of(&document)));
    for (at, operations) in paths.as_ref().and_then(Value::as_object).into_iter().flatten() {
        out.push(format!("path {at} {}", digest_of(operations)));
    }
    let schemas = components.as_ref().and_then(|c| c["schemas"].as_object());
    let names: Value = schemas.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let n_names = names.as_array().map_or(0, Vec::len);
    out.push(format!("schemas {path} {n_names} {}", digest_of(&names)));
    for (name, schema) in schemas.into_iter().flatten() {
        out.push(format!("schema {name} {}", digest_of(schema)));
    }
}

/// The facts have no descriptions and no member `managedFields`.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                key != "managedFields" && (key != "description" || !value.is_string())
            });
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}
