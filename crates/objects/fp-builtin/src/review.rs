//! The access reviews (`pkg/apis/authorization/validation`): requests that are answered, not stored.

use fp_object::field::FieldError;
use fp_object::{Object, Value};
use fp_schema::Strategy;
use serde_json::json;

use crate::resources::PLAIN;
use crate::rules;

pub const BASE: Strategy = Strategy { virtual_only: true, ..PLAIN };

pub const TOKEN: Strategy = Strategy { create_not_built: Some("Token review"), ..BASE };

pub const SUBJECT: Strategy = Strategy {
    validate: |object| {
        let mut errors = attributes(object, true);
        empty_metadata(object, false, &mut errors);
        errors
    },
    ..BASE
};

pub const SELF_SUBJECT: Strategy = Strategy {
    validate: |object| {
        let mut errors = attributes(object, false);
        empty_metadata(object, false, &mut errors);
        errors
    },
    ..BASE
};

pub const LOCAL_SUBJECT: Strategy = Strategy { validate: local_subject, ..BASE };

fn local_subject(object: &Object) -> Vec<FieldError> {
    let mut errors = attributes(object, true);
    empty_metadata(object, true, &mut errors);
    if object.get("spec").is_some_and(|s| s.get("resourceAttributes").is_some()) {
        let namespace = rules::text(object, &["spec", "resourceAttributes", "namespace"]);
        if namespace != rules::text(object, &["metadata", "namespace"]) {
            let path = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(path, namespace, "must match metadata.namespace"));
        }
    }
    if let Some(other) = non_resource(object) {
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", other, detail));
    }
    errors
}

/// `spec.nonResourceAttributes` as Go prints it: the internal type's members have no JSON names.
fn non_resource(object: &Object) -> Option<Value> {
    let spec = object.get("spec")?.get("nonResourceAttributes")?.as_object()?;
    let of = |member| rules::text(spec, &[member]);
    Some(json!({"Path": of("path"), "Verb": of("verb")}))
}

fn attributes(object: &Object, names_subject: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(spec) = object.get("spec").and_then(Value::as_object) else { return errors };
    let resource = spec.get("resourceAttributes").and_then(Value::as_object);
    match (resource, non_resource(object)) {
        (Some(_), Some(other)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", other, detail));
        }
        (None, None) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid("spec.resourceAttributes", Value::Null, detail));
        }
        _ => {}
    }
    if names_subject
        && rules::text(spec, &["user"]).is_empty()
        && rules::list(spec, &["groups"]).is_empty()
    {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", "", detail));
    }
    for member in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = resource.and_then(|r| r.get(member)).and_then(Value::as_object) {
            validate_selector(member, selector, &mut errors);
        }
    }
    errors
}

fn validate_selector(member: &str, selector: &Object, errors: &mut Vec<FieldError>) {
    let path = format!("spec.resourceAttributes.{member}");
    let raw = rules::text(selector, &["rawSelector"]);
    match (raw.is_empty(), rules::list(selector, &["requirements"]).is_empty()) {
        (false, false) => {
            let detail = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{path}.rawSelector"), raw, detail));
        }
        (true, true) => {
            let detail =
                format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{path}.requirements"), detail));
        }
        _ => {}
    }
}

fn empty_metadata(object: &Object, allow_namespace: bool, errors: &mut Vec<FieldError>) {
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return };
    let allowed = |key: &str| key == "managedFields" || allow_namespace && key == "namespace";
    let is_zero = |value: &Value| value.is_null() || value.as_str() == Some("");
    if metadata.iter().any(|(key, value)| !allowed(key) && !is_zero(value)) {
        let detail =
            if allow_namespace { "must be empty except for namespace" } else { "must be empty" };
        errors.push(FieldError::invalid("metadata", metadata.clone(), detail));
    }
}
