//! Validation of `metadata` (`apimachinery/pkg/api/validation/objectmeta.go`). Maps are visited in
//! the order of their keys, where Go's order is random.

use std::collections::BTreeSet;

use crate::field::{Bad, ErrorType, FieldError, Path};
use crate::meta::Meta;
use crate::names::{self, NameFn};
use crate::{Object, Value, go, json, time};

/// All annotations of an object together, in bytes.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The longest subresource in `managedFields`, in bytes.
const SUBRESOURCE_MAX: usize = 256;

/// Metadata of an object to create, its name generated already. `path` is usually `metadata`.
pub fn validate(
    object: &Object,
    namespaced: bool,
    name_fn: NameFn,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut out = Vec::new();
    let generate_name = object.text(&["metadata", "generateName"]).unwrap_or("");
    if !generate_name.is_empty() {
        let errors = name_fn(generate_name, true).into_iter();
        out.extend(
            errors.map(|m| FieldError::invalid(path.child("generateName"), generate_name, m)),
        );
    }
    if object.name().is_empty() {
        out.push(FieldError::required(path.child("name"), "name or generateName is required"));
    } else {
        let errors = name_fn(object.name(), false).into_iter();
        out.extend(errors.map(|m| FieldError::invalid(path.child("name"), object.name(), m)));
    }
    let (namespace, namespace_path) = (object.namespace(), path.child("namespace"));
    match (namespaced, namespace.is_empty()) {
        (true, true) => out.push(FieldError::required(namespace_path, "")),
        (true, false) => {
            let errors = names::name_is_dns_label(namespace, false).into_iter();
            out.extend(errors.map(|m| FieldError::invalid(namespace_path, namespace, m)));
        }
        (false, true) => {}
        (false, false) => {
            out.push(FieldError::forbidden(namespace_path, "not allowed on this type"))
        }
    }
    if object.generation() < 0 {
        out.push(FieldError::invalid(
            path.child("generation"),
            object.generation(),
            "must be greater than or equal to 0",
        ));
    }
    validate_maps_and_owners(object, path, &mut out);
    validate_finalizers(&object.finalizers(), path.child("finalizers"), &mut out);
    validate_managed_fields(object, path.child("managedFields"), &mut out);
    out
}

/// Metadata of an object to update, against the stored one.
pub fn validate_update(new: &Object, old: &Object, path: Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if old.is_deleting() {
        let old_finalizers: BTreeSet<&str> = old.finalizers().into_iter().collect();
        let new_finalizers: BTreeSet<&str> = new.finalizers().into_iter().collect();
        let extra: Vec<String> =
            new_finalizers.difference(&old_finalizers).map(|f| go::quote(f)).collect();
        if !extra.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                extra.join(", ")
            );
            out.push(FieldError::forbidden(path.child("finalizers"), detail));
        }
    }
    if new.resource_version().is_empty() {
        out.push(FieldError::invalid(
            path.child("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    if new.generation() < old.generation() {
        out.push(FieldError::invalid(
            path.child("generation"),
            new.generation(),
            "must not be decremented",
        ));
    }
    for key in ["name", "namespace", "uid"] {
        let (new, old) = (
            new.text(&["metadata", key]).unwrap_or(""),
            old.text(&["metadata", key]).unwrap_or(""),
        );
        if new != old {
            out.push(FieldError::invalid(path.child(key), new, IMMUTABLE));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let new = new.at(&["metadata", key]).unwrap_or(&Value::Null);
        let old = old.at(&["metadata", key]).unwrap_or(&Value::Null);
        if new != old && !same_time(new, old) {
            out.push(FieldError::invalid(path.child(key), new.clone(), IMMUTABLE));
        }
    }
    validate_maps_and_owners(new, path, &mut out);
    validate_managed_fields(new, path.child("managedFields"), &mut out);
    out
}

/// The message for a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// Whether two RFC 3339 texts name one instant.
fn same_time(a: &Value, b: &Value) -> bool {
    let parse = |v: &Value| v.as_str().and_then(time::parse);
    parse(a).is_some_and(|a| parse(b) == Some(a))
}

fn validate_maps_and_owners(object: &Object, path: Path<'_>, out: &mut Vec<FieldError>) {
    if let Some(labels) = object.at(&["metadata", "labels"]).and_then(Value::as_object) {
        validate_labels(labels, path.child("labels"), out);
    }
    if let Some(annotations) = object.at(&["metadata", "annotations"]).and_then(Value::as_object) {
        validate_annotations(annotations, path.child("annotations"), out);
    }
    if let Some(owners) = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array) {
        validate_owners(owners, path.child("ownerReferences"), out);
    }
}

/// Keys and values of a map of labels. The path names the map, not the entry, as in Kubernetes.
pub fn validate_labels(labels: &Object, path: Path<'_>, out: &mut Vec<FieldError>) {
    for (key, value) in labels {
        out.extend(
            names::is_qualified_name(key)
                .into_iter()
                .map(|m| FieldError::invalid(path, key.as_str(), m)),
        );
        let value = value.as_str().unwrap_or("");
        out.extend(
            names::is_label_value(value).into_iter().map(|m| FieldError::invalid(path, value, m)),
        );
    }
}

/// Keys of annotations (case does not matter) and their size in total.
pub fn validate_annotations(annotations: &Object, path: Path<'_>, out: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations {
        let errors = names::is_qualified_name(&key.to_lowercase()).into_iter();
        out.extend(errors.map(|m| FieldError::invalid(path, key.as_str(), m)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        out.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
}

fn validate_owners(owners: &[Value], path: Path<'_>, out: &mut Vec<FieldError>) {
    let mut first_controller: Option<String> = None;
    for owner in owners {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or("");
        let api_version = text("apiVersion");
        // `a/b/c` is no version at all to Go's parser.
        let version = match api_version.split('/').collect::<Vec<_>>()[..] {
            [version] | [_, version] => version,
            _ => "",
        };
        if version.is_empty() {
            out.push(FieldError::invalid(
                path.child("apiVersion"),
                api_version,
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                out.push(FieldError::invalid(path.child(key), text(key), "must not be empty"));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            out.push(invalid_owner(path, owner_json(owner), detail));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text("kind"), text("name"));
            match &first_controller {
                Some(first) => {
                    let list: Vec<String> = owners.iter().map(owner_json).collect();
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    out.push(invalid_owner(path, format!("[{}]", list.join(",")), &detail));
                }
                None => first_controller = Some(name),
            }
        }
    }
}

fn invalid_owner(path: Path<'_>, owner: String, detail: &str) -> FieldError {
    FieldError {
        kind: ErrorType::Invalid,
        field: path.to_string(),
        bad: Bad::Text(owner),
        detail: detail.into(),
    }
}

/// An owner reference in the order of its Go struct.
fn owner_json(owner: &Value) -> String {
    let keys = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let members =
        keys.iter().filter_map(|k| Some(format!("\"{k}\":{}", json::to_go_string(owner.get(*k)?))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn validate_finalizers(finalizers: &[&str], path: Path<'_>, out: &mut Vec<FieldError>) {
    const ORPHAN: &str = "orphan";
    const FOREGROUND: &str = "foregroundDeletion";
    for finalizer in finalizers {
        out.extend(
            names::is_qualified_name(finalizer)
                .into_iter()
                .map(|m| FieldError::invalid(path, *finalizer, m)),
        );
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let list: Value = finalizers.iter().copied().collect();
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        out.push(FieldError::invalid(path, list, detail));
    }
}

fn validate_managed_fields(object: &Object, path: Path<'_>, out: &mut Vec<FieldError>) {
    let Some(entries) = object.at(&["metadata", "managedFields"]).and_then(Value::as_array) else {
        return;
    };
    for (at, entry) in entries.iter().enumerate() {
        let path = path.index(at);
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or("");
        if !matches!(text("operation"), "Apply" | "Update") {
            out.push(FieldError::invalid(
                path.child("operation"),
                text("operation"),
                "must be `Apply` or `Update`",
            ));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            out.push(FieldError::invalid(
                path.child("fieldsType"),
                text("fieldsType"),
                "must be `FieldsV1`",
            ));
        }
        out.extend(names::field_manager_errors(text("manager"), path.child("manager")));
        if text("subresource").len() > SUBRESOURCE_MAX {
            out.push(FieldError::too_long(path.child("subresource"), SUBRESOURCE_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn object(metadata: Value) -> Object {
        Object::from_iter([("metadata".to_owned(), metadata)])
    }

    fn lines(errors: &[FieldError]) -> String {
        errors.iter().map(|e| format!("{e}\n")).collect()
    }

    fn check(metadata: Value, namespaced: bool, want: Expect) {
        let path = Path::Root.child("metadata");
        want.assert_eq(&lines(&validate(
            &object(metadata),
            namespaced,
            names::name_is_dns_subdomain,
            path,
        )));
    }

    fn check_update(new: Value, old: Value, want: Expect) {
        want.assert_eq(&lines(&validate_update(
            &object(new),
            &object(old),
            Path::Root.child("metadata"),
        )));
    }

    #[test]
    fn on_create() {
        check(
            json!({"name": "a.b", "namespace": "ns", "labels": {"a/b": "c"}, "annotations": {"A.b/C": "any text"},
                "finalizers": ["a/b"], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
                "managedFields": [{"operation": "Apply", "manager": "m"}]}),
            true,
            expect![[""]],
        );
        check(
            json!({}),
            true,
            expect![[r#"
            metadata.name: Required value: name or generateName is required
            metadata.namespace: Required value
        "#]],
        );
        check(
            json!({"name": "A", "generateName": "_", "namespace": "ns", "generation": -1}),
            false,
            expect![[r#"
                metadata.generateName: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                metadata.namespace: Forbidden: not allowed on this type
                metadata.generation: Invalid value: -1: must be greater than or equal to 0
            "#]],
        );
        check(
            json!({"name": "a", "namespace": "a.b", "labels": {"-": "-"}, "annotations": {"a b": "x".repeat(ANNOTATIONS_MAX)},
                "finalizers": ["a b", "orphan", "foregroundDeletion"]}),
            true,
            expect![[r#"
                metadata.namespace: Invalid value: "a.b": must not contain dots
                metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                metadata.annotations: Too long: may not be more than 262144 bytes
                metadata.finalizers: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                metadata.finalizers: Invalid value: ["a b","orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set
            "#]],
        );
        check(
            json!({"name": "a", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "u", "controller": true},
                {"apiVersion": "a/", "kind": "K", "name": "k", "controller": true}],
                "managedFields": [{"operation": "x", "fieldsType": "y", "manager": "\u{7}", "subresource": "s".repeat(257)}]}),
            false,
            expect![[r#"
                metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true}: /v1, Kind=Event is disallowed from being an owner
                metadata.ownerReferences.apiVersion: Invalid value: "a/": version must not be empty
                metadata.ownerReferences.uid: Invalid value: "": must not be empty
                metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Event","name":"e","uid":"u","controller":true},{"apiVersion":"a/","kind":"K","name":"k","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/e and K/k
                metadata.managedFields[0].operation: Invalid value: "x": must be `Apply` or `Update`
                metadata.managedFields[0].fieldsType: Invalid value: "y": must be `FieldsV1`
                metadata.managedFields[0].manager: Invalid value: "\a": invalid character U+0007 (at position 0)
                metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes
            "#]],
        );
    }

    #[test]
    fn on_update() {
        let old = json!({"name": "a", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 2});
        let with = |changes: Value| {
            let mut new = old.clone();
            new["resourceVersion"] = "1".into();
            for (key, value) in changes.as_object().expect("an object") {
                new[key] = value.clone();
            }
            new
        };
        check_update(
            with(json!({"creationTimestamp": "2026-01-02T04:04:05+01:00"})),
            old.clone(),
            expect![[""]],
        );
        check_update(
            with(
                json!({"name": "b", "namespace": "n", "uid": "", "creationTimestamp": null, "generation": 1,
                "resourceVersion": "", "deletionGracePeriodSeconds": 3, "labels": {"a b": ""}}),
            ),
            old.clone(),
            expect![[r#"
                metadata.resourceVersion: Invalid value: "": must be specified for an update
                metadata.generation: Invalid value: 1: must not be decremented
                metadata.name: Invalid value: "b": field is immutable
                metadata.namespace: Invalid value: "n": field is immutable
                metadata.uid: Invalid value: "": field is immutable
                metadata.creationTimestamp: Invalid value: null: field is immutable
                metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable
                metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            "#]],
        );
        let mut deleting = old.clone();
        deleting["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        deleting["finalizers"] = json!(["a/b"]);
        check_update(
            with(
                json!({"finalizers": ["a/b", "x/z", "x/y"], "deletionTimestamp": "2026-01-02T03:04:05Z"}),
            ),
            deleting,
            expect![[r#"
                metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/y", "x/z"}
            "#]],
        );
    }
}
