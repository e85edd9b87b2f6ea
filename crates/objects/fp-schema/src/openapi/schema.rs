//! The components of a custom resource: its kind and its list.

use fp_object::{Object, Value};
use serde_json::json;

use super::{component_name, meta_v1, reference};
use crate::{ResourceInfo, VersionInfo};

pub fn insert(
    info: &ResourceInfo,
    version: &VersionInfo,
    schema: Option<&Value>,
    into: &mut Object,
) {
    let group = &*info.gr.group;
    let name = component_name(group, &version.name, &info.kind);
    let gvk = |kind: &str| json!([{"group": group, "kind": kind, "version": &*version.name}]);
    let list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [meta_v1("ListMeta")]},
            "items": {"type": "array", "items": reference(&name)},
        },
        "x-kubernetes-group-version-kind": gvk(&info.list_kind),
    });
    into.insert(component_name(group, &version.name, &info.list_kind), list);

    let mut root = match schema {
        Some(schema) => published(schema, true),
        // Without properties, so that clients do not take what is not listed as forbidden.
        None => json!({"type": "object"}),
    };
    if let Some(object) = root.as_object_mut() {
        object.insert("x-kubernetes-group-version-kind".into(), gvk(&info.kind));
        if !version.selectable.is_empty() {
            let field = |path: &String| json!({"fieldPath": path.trim_start_matches('.')});
            let fields = version.selectable.iter().map(field).collect();
            object.insert("x-kubernetes-selectable-fields".into(), fields);
        }
    }
    into.insert(name, root);
}

/// A schema as it is published: resources have their metadata, and `int-or-string` says so in
/// plain OpenAPI too.
fn published(schema: &Value, resource: bool) -> Value {
    let Some(schema) = schema.as_object() else { return json!({}) };
    let mut out = Object::new();
    for (key, value) in schema {
        let value = match (&**key, value) {
            ("properties", Value::Object(map)) => map
                .iter()
                .map(|(name, child)| (name.clone(), published(child, false)))
                .collect::<Object>()
                .into(),
            ("items" | "additionalProperties" | "not", Value::Object(_)) => published(value, false),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    // Older clients know a list's key only by this name.
    if let Some(key) = schema.get("x-kubernetes-list-map-keys").and_then(|keys| keys.get(0)) {
        out.insert("x-kubernetes-patch-merge-key".into(), key.clone());
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        int_or_string(&mut out);
    }
    let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if resource || embedded {
        let properties = out.entry("properties").or_insert_with(|| json!({}));
        properties["apiVersion"] = json!({"type": "string"});
        properties["kind"] = json!({"type": "string"});
        properties["metadata"] = json!({"allOf": [meta_v1("ObjectMeta")]});
    }
    if embedded {
        require(&mut out, "kind");
        require(&mut out, "apiVersion");
    }
    Value::Object(out)
}

fn int_or_string(schema: &mut Object) {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    let in_all_of = schema.get("allOf").is_some_and(|all| all[0]["anyOf"] == types);
    match schema.get("anyOf") {
        Some(any) if *any == types => {}
        _ if in_all_of => {}
        None | Some(Value::Null) => {
            schema.insert("anyOf".into(), types);
        }
        Some(_) => {
            let all = schema.entry("allOf").or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.insert(0, json!({"anyOf": types}));
            }
        }
    }
}

fn require(schema: &mut Object, name: &str) {
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut().filter(|r| !r.contains(&name.into())) {
        required.push(name.into());
    }
}
