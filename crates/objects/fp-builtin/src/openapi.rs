//! OpenAPI v3 schemas of the built-in kinds, by component name.
//!
//! The data file holds facts of the published API (types, required members, list types, patch
//! strategies, group-version-kinds) without descriptions.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fp_object::{Object, Value};

static COMPONENTS: LazyLock<Object> = LazyLock::new(|| {
    let text = include_str!("../data/openapi.json");
    serde_json::from_str(text).expect("the data file is a JSON object: a test reads it")
});

const REF_PREFIX: &str = "#/components/schemas/";

/// The schema of a component, such as `io.k8s.api.core.v1.ConfigMap`.
pub fn component(name: &str) -> Option<&'static Value> {
    COMPONENTS.get(name)
}

/// The component and all that it refers to, by name.
pub fn component_refs(name: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&'static str> =
        COMPONENTS.get_key_value(name).map(|(k, _)| k.as_str()).into_iter().collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            note_refs(&COMPONENTS[name], &mut open);
        }
    }
    found
}

fn note_refs(schema: &'static Value, out: &mut Vec<&'static str>) {
    match schema {
        Value::Object(map) => {
            if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                out.extend(target.strip_prefix(REF_PREFIX).filter(|n| COMPONENTS.contains_key(*n)));
            }
            map.values().for_each(|child| note_refs(child, out));
        }
        Value::Array(items) => items.iter().for_each(|child| note_refs(child, out)),
        _ => {}
    }
}
