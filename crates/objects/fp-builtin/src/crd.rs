//! CustomResourceDefinition: defaults and update rules
//! (`apiextensions-apiserver/pkg/registry/customresourcedefinition`), and its stored form.
//!
//! What a CRD may say is `fp_schema`'s to check.

mod storage;

pub use storage::{Error, decode_stored, encode_stored, from_storage, to_storage};

use fp_object::meta::Meta;
use fp_object::{Object, Value};
use fp_schema::{Strategy, Sub};
use serde_json::json;

use crate::resources::PLAIN;
use crate::rules;

/// Refuses every CEL rule: who knows the functions of some puts another validation in its place.
pub const STRATEGY: Strategy = Strategy {
    default,
    prepare_create,
    prepare_update,
    validate: |object| fp_schema::crd::validate(object, &|_| None),
    validate_update: |object, old, sub| {
        fp_schema::crd::validate_update(object, old, sub, &|_| None)
    },
    allow_unconditional_update: false,
    ..PLAIN
};

fn default(object: &mut Object) {
    let spec = object.map_mut(&["spec"]);
    default_names(spec);
    rules::set_default(spec, "conversion", json!({"strategy": "None"}));
    let service = spec
        .get_mut("conversion")
        .and_then(|c| c.get_mut("webhook"))
        .and_then(|w| w.get_mut("clientConfig"))
        .and_then(|c| c.get_mut("service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        rules::set_default(service, "port", 443);
    }
    if rules::list(object, &["status", "storedVersions"]).is_empty() {
        store_version(object);
    }
}

fn default_names(spec: &mut Object) {
    let Some(names) = rules::object_mut(spec, "names") else { return };
    let kind = rules::text(names, &["kind"]).to_owned();
    if !kind.is_empty() {
        rules::set_default(names, "singular", kind.to_lowercase());
        rules::set_default(names, "listKind", format!("{kind}List"));
    }
}

/// Adds the storage version's name to `status.storedVersions`.
fn store_version(object: &mut Object) {
    let versions = rules::list(object, &["spec", "versions"]);
    let Some(storage) = versions.iter().find(|v| v.get("storage") == Some(&Value::Bool(true)))
    else {
        return;
    };
    let Some(name) = storage.get("name").cloned() else { return };
    let status = object.map_mut(&["status"]);
    match status.get_mut("storedVersions") {
        Some(Value::Array(list)) if list.contains(&name) => {}
        Some(Value::Array(list)) => list.push(name),
        _ => drop(status.insert("storedVersions".into(), json!([name]))),
    }
}

/// A status as Go prints it when nothing is set.
fn empty_status() -> Value {
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null})
}

fn prepare_create(object: &mut Object) {
    object.insert("status".into(), empty_status());
    object.set_meta("generation", 1);
    store_version(object);
}

fn prepare_update(object: &mut Object, old: &Object, sub: Sub) {
    if sub == Sub::Status {
        rules::keep(object, old, "spec");
        return;
    }
    rules::keep(object, old, "status");
    rules::bump_generation(object, old, "spec");
    store_version(object);
}
