//! Roles and bindings (`pkg/apis/rbac/validation`). Names need only be path segments.

use fp_object::field::{FieldError, Path};
use fp_object::names::{name_is_dns_subdomain, name_is_path_segment};
use fp_object::selector::validate_label_selector;
use fp_object::{Object, Value};
use fp_schema::{Strategy, Sub};
use serde_json::json;

use crate::resources::PLAIN;
use crate::rules;

pub const GROUP: &str = "rbac.authorization.k8s.io";

const BASE: Strategy = Strategy { allow_create_on_update: true, ..PLAIN };

pub const ROLE: Strategy = Strategy {
    validate: |object| validate_role(object, true),
    validate_update: |object, old, sub| update(object, old, sub, |o| validate_role(o, true)),
    ..BASE
};

pub const CLUSTER_ROLE: Strategy = Strategy {
    validate: |object| validate_role(object, false),
    validate_update: |object, old, sub| update(object, old, sub, |o| validate_role(o, false)),
    ..BASE
};

pub const ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object| validate_binding(object, true),
    validate_update: |object, old, sub| update(object, old, sub, |o| validate_binding(o, true)),
    ..BASE
};

pub const CLUSTER_ROLE_BINDING: Strategy = Strategy {
    default: default_binding,
    validate: |object| validate_binding(object, false),
    validate_update: |object, old, sub| update(object, old, sub, |o| validate_binding(o, false)),
    ..BASE
};

fn default_binding(object: &mut Object) {
    if let Some(role) = rules::object_mut(object, "roleRef") {
        rules::set_default(role, "apiGroup", GROUP);
    }
    for subject in rules::objects_mut(object, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            rules::set_default(subject, "apiGroup", GROUP);
        }
    }
}

fn update(
    object: &Object,
    old: &Object,
    _sub: Sub,
    validate: fn(&Object) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = validate(object);
    errors.extend(rules::meta_update(object, old));
    if object.get("roleRef") != old.get("roleRef") {
        // Go prints the internal type, whose members have no JSON names.
        let role = |member| rules::text(object, &["roleRef", member]);
        let bad = json!({"APIGroup": role("apiGroup"), "Kind": role("kind"), "Name": role("name")});
        errors.push(FieldError::invalid("roleRef", bad, "cannot change roleRef"));
    }
    errors
}

fn validate_role(object: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = rules::meta(object, namespaced, name_is_path_segment);
    let path = Path::Root.child("rules");
    for (at, rule) in rules::list(object, &["rules"]).iter().enumerate() {
        if let Some(rule) = rule.as_object() {
            validate_rule(rule, namespaced, path.index(at), &mut errors);
        }
    }
    let Some(aggregation) = object.get("aggregationRule").and_then(Value::as_object) else {
        return errors;
    };
    let selectors = rules::list(aggregation, &["clusterRoleSelectors"]);
    let path = Path::Root.child("aggregationRule");
    let path = path.child("clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, detail));
    }
    for (at, selector) in selectors.iter().enumerate() {
        if let Some(selector) = selector.as_object() {
            errors.extend(validate_label_selector(selector, path.index(at)));
        }
    }
    errors
}

fn validate_rule(rule: &Object, namespaced: bool, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let has = |member: &str| !rules::list(rule, &[member]).is_empty();
    if !has("verbs") {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(path.child("verbs"), detail));
    }
    if has("nonResourceURLs") {
        let (urls, path) = (&rule["nonResourceURLs"], path.child("nonResourceURLs"));
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(path, urls.clone(), detail));
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(path, urls.clone(), detail));
        }
        return;
    }
    if !has("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(path.child("apiGroups"), detail));
    }
    if !has("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(path.child("resources"), detail));
    }
}

fn validate_binding(object: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = rules::meta(object, namespaced, name_is_path_segment);
    let role = |member| rules::text(object, &["roleRef", member]);
    if role("apiGroup") != GROUP {
        errors.push(FieldError::not_supported("roleRef.apiGroup", role("apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&role("kind")) {
        errors.push(FieldError::not_supported("roleRef.kind", role("kind"), kinds));
    }
    if role("name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    } else {
        for message in name_is_path_segment(role("name"), false) {
            errors.push(FieldError::invalid("roleRef.name", role("name"), message));
        }
    }
    let path = Path::Root.child("subjects");
    for (at, subject) in rules::list(object, &["subjects"]).iter().enumerate() {
        if let Some(subject) = subject.as_object() {
            validate_subject(subject, namespaced, path.index(at), &mut errors);
        }
    }
    errors
}

fn validate_subject(
    subject: &Object,
    namespaced: bool,
    path: Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let of = |member| rules::text(subject, &[member]);
    let (name, group) = (of("name"), of("apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    let group_path = path.child("apiGroup");
    match of("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                for message in name_is_dns_subdomain(name, false) {
                    errors.push(FieldError::invalid(path.child("name"), name, message));
                }
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(group_path, group, &[""]));
            }
            if !namespaced && of("namespace").is_empty() {
                errors.push(FieldError::required(path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(group_path, group, &[GROUP]));
            }
        }
        kind => {
            let supported = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(path.child("kind"), kind, &supported));
        }
    }
}
