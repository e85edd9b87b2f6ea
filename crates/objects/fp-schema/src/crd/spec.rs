//! `spec` of a CRD apart from its schemas (`apiextensions/validation/validation.go`).

use std::collections::BTreeSet;

use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::{Object, Value, go, names as forms, object_meta};
use serde_json::json;

use super::field_path::{self, valid_field_path};
use super::schema::{Status, validate_schema};
use crate::structural::Rules;

/// kcp: groups that Kubernetes itself serves may come as CRDs too.
const KUBERNETES_GROUPS: [&str; 19] = [
    "admissionregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
    "",
];

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// How many `selectableFields` a version may have.
const SELECTABLE_MAX: usize = 8;

/// A version, or what all versions have in common, as Kubernetes' internal form has it.
#[derive(Clone, Copy, Default)]
struct Parts<'a> {
    /// `{openAPIV3Schema}`.
    validation: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: &'a [Value],
    selectable: &'a [Value],
}

impl<'a> Parts<'a> {
    fn of(version: &'a Value) -> Self {
        let list = |key: &str| version[key].as_array().map_or(&[][..], Vec::as_slice);
        Self {
            validation: version.get("schema").filter(|v| v.is_object()),
            subresources: version.get("subresources").filter(|v| v.is_object()),
            columns: list("additionalPrinterColumns"),
            selectable: list("selectableFields"),
        }
    }

    fn schema(&self) -> Option<&'a Value> {
        self.validation?.get("openAPIV3Schema").filter(|v| v.is_object())
    }

    fn has_status(&self) -> bool {
        self.subresources.is_some_and(|s| s["status"].is_object())
    }
}

/// What all versions share moves to the top and leaves the versions.
fn hoist<'a>(versions: &mut [Parts<'a>]) -> Parts<'a> {
    let mut top = Parts::default();
    let Some(first) = versions.first().copied() else { return top };
    if versions.iter().all(|v| v.validation == first.validation) {
        top.validation = first.validation;
        versions.iter_mut().for_each(|v| v.validation = None);
    }
    if versions.iter().all(|v| v.subresources == first.subresources) {
        top.subresources = first.subresources;
        versions.iter_mut().for_each(|v| v.subresources = None);
    }
    if versions.iter().all(|v| v.columns == first.columns) {
        top.columns = first.columns;
        versions.iter_mut().for_each(|v| v.columns = &[]);
    }
    if versions.iter().all(|v| v.selectable == first.selectable) {
        top.selectable = first.selectable;
        versions.iter_mut().for_each(|v| v.selectable = &[]);
    }
    top
}

pub fn validate(crd: &Object, rules: Rules<'_>) -> Vec<FieldError> {
    let empty = Object::new();
    let spec = crd.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let path = Path::Root.child("spec");
    let mut errors = Vec::new();
    group_and_scope(spec, &path, &mut errors);

    let list = super::versions(crd);
    let mut versions: Vec<Parts<'_>> = list.iter().map(Parts::of).collect();
    let top = hoist(&mut versions);
    let versions_path = path.child("versions");
    if top.schema().is_none() {
        for (i, _) in versions.iter().enumerate().filter(|(_, v)| v.schema().is_none()) {
            let at = versions_path.index(i);
            let at = at.child("schema");
            errors.push(FieldError::required(at.child("openAPIV3Schema"), ""));
        }
    }
    let per_version_status = versions.iter().any(|v| v.subresources.is_some());
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (i, (version, parts)) in list.iter().zip(&versions).enumerate() {
        let at = versions_path.index(i);
        let name = version["name"].as_str().unwrap_or("");
        unique &= seen.insert(name);
        complain(forms::is_dns1035_label(name), &at.child("name"), name, &mut errors);
        let status = if per_version_status { parts.has_status() } else { top.has_status() };
        version_parts(version, parts, status, &at, rules, &mut errors);
    }
    counts(list, unique, &versions_path, &mut errors);
    required_names(spec, &path, &mut errors);

    let any_status = top.has_status() || versions.iter().any(Parts::has_status);
    if let Some(schema) = top.schema() {
        let at = path.child("validation");
        let at = at.child("openAPIV3Schema");
        errors.extend(validate_schema(schema, Status { enabled: any_status }, &at, rules));
    }
    subresources(top.subresources, &path.child("subresources"), &mut errors);
    columns(top.columns, &path, &mut errors);
    if !top.selectable.is_empty() {
        match top.schema() {
            None => errors.push(FieldError::invalid(
                path.child("selectableFields"),
                "",
                "may only be set when validations.schema is included",
            )),
            Some(schema) => selectable(top.selectable, schema, &path, &mut errors),
        }
    }
    conversion(spec, &path.child("conversion"), &mut errors);
    errors
}

/// What names the resource and its storage never changes; the rest not once it is served.
pub fn validate_immutable(crd: &Object, old: &Object, errors: &mut Vec<FieldError>) {
    let established = super::names::is_true(old, "Established");
    let always: [&[&str]; 2] = [&["spec", "group"], &["spec", "names", "plural"]];
    let served: [&[&str]; 2] = [&["spec", "scope"], &["spec", "names", "kind"]];
    let fields = served.into_iter().filter(|_| established).chain(always);
    for field in fields {
        let new = crd.text(field).unwrap_or("");
        if new != old.text(field).unwrap_or("") {
            errors.push(FieldError::invalid(field.join("."), new, object_meta::IMMUTABLE));
        }
    }
}

/// `spec.names`, `status.acceptedNames`: their forms, where they are given.
pub fn validate_names(names: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |key: &str| names.text(&[key]).unwrap_or("");
    for key in ["plural", "singular"] {
        if !text(key).is_empty() {
            complain(forms::is_dns1035_label(text(key)), &path.child(key), text(key), &mut errors);
        }
    }
    for key in ["kind", "listKind"] {
        let why = forms::is_dns1035_label(&text(key).to_lowercase());
        if !text(key).is_empty() && !why.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", why.join(","));
            errors.push(FieldError::invalid(path.child(key), text(key), why));
        }
    }
    let list = |key: &str, errors: &mut Vec<FieldError>| {
        let up = path.child(key);
        let items = names.get(key).and_then(Value::as_array).into_iter().flatten();
        for (i, item) in items.enumerate() {
            let item = item.as_str().unwrap_or("");
            complain(forms::is_dns1035_label(item), &up.index(i), item, errors);
        }
    };
    list("shortNames", &mut errors);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.child("listKind"), text("listKind"), why));
    }
    list("categories", &mut errors);
    errors
}

fn complain(why: Vec<String>, path: &Path<'_>, value: &str, errors: &mut Vec<FieldError>) {
    if !why.is_empty() {
        errors.push(FieldError::invalid(path, value, why.join(",")));
    }
}

fn group_and_scope(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let group = spec.text(&["group"]).unwrap_or("");
    if !KUBERNETES_GROUPS.contains(&group) {
        let why = forms::is_dns1123_subdomain(group);
        if !why.is_empty() {
            errors.push(FieldError::invalid(path.child("group"), group, why.join(",")));
        } else if !group.contains('.') {
            let why = "should be a domain with at least one dot";
            errors.push(FieldError::invalid(path.child("group"), group, why));
        }
    }
    match spec.text(&["scope"]).unwrap_or("") {
        "" => errors.push(FieldError::required(path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported(path.child("scope"), other, &supported));
        }
    }
}

fn counts(list: &[Value], unique: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // The internal form's names of the members, those that matter here.
    let shown = || match list {
        [] => Value::Null,
        list => list
            .iter()
            .map(|v| json!({"Name": v["name"], "Served": v["served"], "Storage": v["storage"]}))
            .collect(),
    };
    if !unique {
        errors.push(FieldError::invalid(path, shown(), "must contain unique version names"));
    }
    if list.iter().filter(|v| v["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path, shown(), why));
    }
}

fn required_names(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("names");
    for key in ["plural", "singular", "kind", "listKind"] {
        if spec.text(&["names", key]).unwrap_or("").is_empty() {
            errors.push(FieldError::required(path.child(key), ""));
        }
    }
    if let Some(names) = spec.get("names").and_then(Value::as_object) {
        errors.extend(validate_names(names, &path));
    }
}

fn version_parts(
    version: &Value,
    parts: &Parts<'_>,
    status: bool,
    path: &Path<'_>,
    rules: Rules<'_>,
    errors: &mut Vec<FieldError>,
) {
    let warning = version.get("deprecationWarning").and_then(Value::as_str);
    for why in deprecation(version["deprecated"] == true, warning) {
        let shown = warning.unwrap_or("");
        errors.push(FieldError::invalid(path.child("deprecationWarning"), shown, why));
    }
    if let Some(schema) = parts.schema() {
        let at = path.child("schema");
        errors.extend(validate_schema(
            schema,
            Status { enabled: status },
            &at.child("openAPIV3Schema"),
            rules,
        ));
    }
    subresources(parts.subresources, &path.child("subresources"), errors);
    columns(parts.columns, path, errors);
    if !parts.selectable.is_empty() {
        match parts.schema() {
            None => errors.push(FieldError::invalid(
                path.child("selectableFields"),
                "",
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            )),
            Some(schema) => selectable(parts.selectable, schema, path, errors),
        }
    }
}

fn deprecation(deprecated: bool, warning: Option<&str>) -> Vec<String> {
    let Some(warning) = warning else { return Vec::new() };
    if !deprecated {
        return vec!["can only be set for deprecated versions".into()];
    }
    let mut out = Vec::new();
    if warning.len() > 256 {
        out.push("must be <= 256 characters long".into());
    }
    if warning.is_empty() {
        out.push("must not be an empty string".into());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !go::is_print(*c)) {
        out.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
    out
}

fn subresources(value: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = value.and_then(|s| s.get("scale")).and_then(Value::as_object) else { return };
    let text = |key: &str| scale.text(&[key]).unwrap_or("");
    for (key, under) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let name = format!("scale.{key}");
        let at = path.child(&name);
        if text(key).is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !text(key).starts_with('.') {
            errors.push(FieldError::invalid(
                at,
                text(key),
                "must be a simple json path starting with .",
            ));
        } else if !text(key).starts_with(&format!("{under}.")) {
            errors.push(FieldError::invalid(
                at,
                text(key),
                format!("should be a json path under {under}"),
            ));
        }
    }
    let selector = text("labelSelectorPath");
    let at = path.child("scale.labelSelectorPath");
    if selector.is_empty() {
    } else if !selector.starts_with('.') {
        errors.push(FieldError::invalid(
            at,
            selector,
            "must be a simple json path starting with .",
        ));
    } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        errors.push(FieldError::invalid(
            at,
            selector,
            "should be a json path under either .spec or .status",
        ));
    }
}

fn columns(list: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let up = path.child("additionalPrinterColumns");
    for (i, column) in list.iter().enumerate() {
        let at = up.index(i);
        let text = |key: &str| column[key].as_str().unwrap_or("");
        if text("name").is_empty() {
            errors.push(FieldError::required(at.child("name"), ""));
        }
        let types = || format!("must be one of {}", COLUMN_TYPES.join(","));
        if text("type").is_empty() {
            errors.push(FieldError::required(at.child("type"), types()));
        } else if !COLUMN_TYPES.contains(&text("type")) {
            errors.push(FieldError::invalid(at.child("type"), text("type"), types()));
        }
        if !text("format").is_empty() && !COLUMN_FORMATS.contains(&text("format")) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(at.child("format"), text("format"), why));
        }
        if text("jsonPath").is_empty() {
            errors.push(FieldError::required(at.child("JSONPath"), ""));
        } else if !text("jsonPath").starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(at.child("JSONPath"), text("jsonPath"), why));
        }
    }
}

fn selectable(list: &[Value], schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let up = path.child("selectableFields");
    let mut seen = BTreeSet::new();
    for (i, field) in list.iter().enumerate() {
        let at = up.index(i);
        let at = at.child("jsonPath");
        let text = field["jsonPath"].as_str().unwrap_or("");
        if text.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match valid_field_path(text, schema, field_path::Arrays::Forbidden) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(at, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if found.path.first().is_some_and(|first| first == "metadata") {
            errors.push(FieldError::invalid(at, text, "must not point to fields in metadata"));
        }
        if !matches!(found.schema["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and \
                       strings with formats are allowed.";
            errors.push(FieldError::invalid(at, text, why));
        }
        if !seen.insert(found.path) {
            errors.push(FieldError::duplicate(at, text));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(up, seen.len(), SELECTABLE_MAX));
    }
}

fn conversion(spec: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(conversion) = spec.get("conversion").and_then(Value::as_object) else { return };
    let strategy = path.child("strategy");
    match conversion.text(&["strategy"]).unwrap_or("") {
        "" => errors.push(FieldError::required(strategy, "")),
        "None" => {}
        "Webhook" => {
            let why = "conversion webhooks are not served by this version of Ferroplane";
            errors.push(FieldError::forbidden(strategy, why));
            return;
        }
        other => errors.push(FieldError::not_supported(strategy, other, &["None", "Webhook"])),
    }
    let why = "should not be set when strategy is not set to Webhook";
    let set = |key: &str| {
        conversion.at(&["webhook", key]).is_some_and(|v| !v.is_null() && *v != json!([]))
    };
    if set("clientConfig") {
        errors.push(FieldError::forbidden(path.child("webhookClientConfig"), why));
    }
    if set("conversionReviewVersions") {
        errors.push(FieldError::forbidden(path.child("conversionReviewVersions"), why));
    }
}
