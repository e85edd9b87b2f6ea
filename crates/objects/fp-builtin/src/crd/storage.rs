//! The stored form of a CRD: JSON of `apiextensions.k8s.io/v1beta1`, members in Go's order
//! (`apiextensions/v1/conversion.go`, `apiextensions/v1beta1/defaults.go`).
//!
//! What all versions share (schema, columns, subresources, selectable fields) stands at the top of
//! `spec` there, and the webhook's members stand beside the conversion strategy.

use fp_object::meta::Meta;
use fp_object::{Object, Value, json as json_text, proto};
use serde_json::json;

use crate::rules;
use crate::tables::{apiextensions, apiextensions_v1beta1};

const V1: &str = "apiextensions.k8s.io/v1";
const V1BETA1: &str = "apiextensions.k8s.io/v1beta1";

/// The member of a version and the member of `spec` that stands for all versions.
const SHARED: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Why stored bytes are no CRD.
#[derive(Debug)]
pub enum Error {
    Json(json_text::Error),
    Shape(proto::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("decode stored CustomResourceDefinition")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Shape(error) => Some(error),
        }
    }
}

/// The bytes that Kubernetes would store for a v1 CRD.
///
/// # Errors
/// A member of another type than the Go field has.
pub fn encode_stored(crd: &Object) -> Result<Vec<u8>, Error> {
    let stored = to_storage(crd)?;
    let mut bytes = proto::to_json(&apiextensions_v1beta1::CUSTOM_RESOURCE_DEFINITION, &stored);
    bytes.push(b'\n');
    Ok(bytes)
}

/// The v1 CRD of stored bytes.
///
/// # Errors
/// Bytes that are no JSON object, or a member of another type than the Go field has.
pub fn decode_stored(bytes: &[u8]) -> Result<Object, Error> {
    from_storage(&json_text::decode(bytes).map_err(Error::Json)?.object)
}

/// A v1 CRD in its v1beta1 form.
pub fn to_storage(crd: &Object) -> Result<Object, Error> {
    let mut out = crd.clone();
    out.insert("apiVersion".into(), V1BETA1.into());
    let spec = out.map_mut(&["spec"]);
    if let Some(first) = rules::list(spec, &["versions"]).first() {
        let name = first.get("name").cloned().unwrap_or_default();
        spec.insert("version".into(), name);
    }
    for (of_version, of_spec) in SHARED {
        hoist(spec, of_version, of_spec);
    }
    rename_column_paths(spec, "jsonPath", "JSONPath");
    if let Some(conversion) = rules::object_mut(spec, "conversion")
        && let Some(Value::Object(mut webhook)) = conversion.remove("webhook")
    {
        move_member(&mut webhook, "clientConfig", conversion, "webhookClientConfig");
        let versions = "conversionReviewVersions";
        move_member(&mut webhook, versions, conversion, versions);
    }
    rules::set_default(spec, "preserveUnknownFields", false);
    proto::conform(&apiextensions_v1beta1::CUSTOM_RESOURCE_DEFINITION, &out, &mut Vec::new())
        .map_err(Error::Shape)
}

/// A v1beta1 CRD, with v1beta1's defaults, in its v1 form.
pub fn from_storage(stored: &Object) -> Result<Object, Error> {
    let mut out = stored.clone();
    out.insert("apiVersion".into(), V1.into());
    let spec = out.map_mut(&["spec"]);
    default_v1beta1(spec);
    spec.remove("version");
    for (of_version, of_spec) in SHARED {
        let Some(shared) = spec.remove(of_spec).filter(|v| !v.is_null()) else { continue };
        for version in rules::objects_mut(spec, "versions") {
            version.insert(of_version.into(), shared.clone());
        }
    }
    rename_column_paths(spec, "JSONPath", "jsonPath");
    if let Some(conversion) = rules::object_mut(spec, "conversion") {
        let mut webhook = Object::new();
        move_member(conversion, "webhookClientConfig", &mut webhook, "clientConfig");
        move_member(
            conversion,
            "conversionReviewVersions",
            &mut webhook,
            "conversionReviewVersions",
        );
        if !webhook.is_empty() {
            conversion.insert("webhook".into(), webhook.into());
        }
    }
    proto::conform(&apiextensions::CUSTOM_RESOURCE_DEFINITION, &out, &mut Vec::new())
        .map_err(Error::Shape)
}

fn default_v1beta1(spec: &mut Object) {
    super::default_names(spec);
    rules::set_default(spec, "scope", "Namespaced");
    let version = rules::text(spec, &["version"]).to_owned();
    if rules::list(spec, &["versions"]).is_empty() && !version.is_empty() {
        let only = json!([{"name": version, "storage": true, "served": true}]);
        spec.insert("versions".into(), only);
    }
    rules::set_default(spec, "conversion", json!({"strategy": "None"}));
    rules::set_default(spec, "preserveUnknownFields", true);
    let Some(conversion) = rules::object_mut(spec, "conversion") else { return };
    if conversion.get("strategy").is_some_and(|s| s == "Webhook") {
        rules::set_default(conversion, "conversionReviewVersions", json!(["v1beta1"]));
    }
    let service = conversion.get_mut("webhookClientConfig").and_then(|c| c.get_mut("service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        rules::set_default(service, "port", 443);
    }
}

/// Moves a member that is the same in all versions to `spec`. Absent equals empty, as in
/// Kubernetes' semantic equality.
fn hoist(spec: &mut Object, of_version: &str, of_spec: &str) {
    let held = |version: &Value| -> Option<Value> {
        let value = version.get(of_version)?;
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        (!is_empty).then(|| value.clone())
    };
    let versions = rules::list(spec, &["versions"]);
    let Some(first) = versions.first().map(held) else { return };
    if !versions[1..].iter().all(|version| held(version) == first) {
        return;
    }
    for version in rules::objects_mut(spec, "versions") {
        version.remove(of_version);
    }
    if let Some(shared) = first {
        spec.insert(of_spec.into(), shared);
    }
}

fn rename_column_paths(spec: &mut Object, from: &str, to: &str) {
    fn rename(holder: &mut Object, from: &str, to: &str) {
        for column in rules::objects_mut(holder, "additionalPrinterColumns") {
            if let Some(path) = column.remove(from) {
                column.insert(to.into(), path);
            }
        }
    }
    rename(spec, from, to);
    for version in rules::objects_mut(spec, "versions") {
        rename(version, from, to);
    }
}

fn move_member(from: &mut Object, name: &str, to: &mut Object, new_name: &str) {
    if let Some(value) = from.remove(name).filter(|v| !v.is_null()) {
        to.insert(new_name.into(), value);
    }
}
