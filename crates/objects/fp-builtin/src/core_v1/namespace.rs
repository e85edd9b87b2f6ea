//! Namespace (`pkg/registry/core/namespace`). Its deletion, which waits for `spec.finalizers`, is
//! the write path's.

use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::{Object, Value, names};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

/// The finalizer that every namespace is created with.
pub const FINALIZER: &str = "kubernetes";
/// The label that always holds the namespace's own name.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Finalizers without a domain that Kubernetes knows (`IsStandardFinalizerName`).
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

pub const STRATEGY: Strategy = Strategy {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    field_labels: &["status.phase"],
    field_value: |object, _| rules::text(object, &["status", "phase"]).to_owned(),
    subresources: &["finalize"],
    ..PLAIN
};

fn default(object: &mut Object) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.set_label(NAME_LABEL, &name);
    }
    rules::set_default(object.map_mut(&["status"]), "phase", "Active");
}

fn prepare_create(object: &mut Object) {
    object.insert("status".into(), serde_json::json!({"phase": "Active"}));
    let spec = object.map_mut(&["spec"]);
    match spec.get_mut("finalizers") {
        Some(Value::Array(list)) => {
            if !list.iter().any(|f| f == FINALIZER) {
                list.push(FINALIZER.into());
            }
        }
        _ => drop(spec.insert("finalizers".into(), serde_json::json!([FINALIZER]))),
    }
}

fn prepare_update(object: &mut Object, old: &Object, sub: Sub) {
    match sub {
        Sub::Status => rules::keep(object, old, "spec"),
        Sub::Other("finalize") => rules::keep(object, old, "status"),
        _ => {
            rules::keep(object, old, "status");
            let kept = old.at(&["spec", "finalizers"]).cloned();
            let spec = object.map_mut(&["spec"]);
            match kept {
                Some(list) => drop(spec.insert("finalizers".into(), list)),
                None => drop(spec.remove("finalizers")),
            }
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = rules::meta(object, false, names::name_is_dns_label);
    for finalizer in rules::list(object, &["spec", "finalizers"]) {
        validate_finalizer(finalizer, "spec.finalizers", &mut errors);
    }
    errors
}

fn validate_update(object: &Object, old: &Object, sub: Sub) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if sub == Sub::Main {
        errors.extend(validate(object));
    }
    errors.extend(rules::meta_update(object, old));
    match sub {
        Sub::Status => {
            let phase = rules::text(object, &["status", "phase"]);
            let (want, detail) = if object.is_deleting() {
                ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
            } else {
                ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
            };
            if phase != want {
                errors.push(FieldError::invalid("status.Phase", phase, detail));
            }
        }
        Sub::Other("finalize") => {
            let path = Path::Root.child("spec");
            let path = path.child("finalizers");
            for (at, finalizer) in rules::list(object, &["spec", "finalizers"]).iter().enumerate() {
                validate_finalizer(finalizer, path.index(at), &mut errors);
            }
        }
        _ => {}
    }
    errors
}

fn validate_finalizer(
    finalizer: &Value,
    path: impl std::fmt::Display + Copy,
    errors: &mut Vec<FieldError>,
) {
    let name = finalizer.as_str().unwrap_or("");
    for message in names::is_qualified_name(name) {
        errors.push(FieldError::invalid(path, name, message));
    }
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
}
