//! CustomResourceDefinitions (`apiextensions.k8s.io/v1`): validation in Kubernetes' words, the
//! conditions of their names, and what serves their objects. Their defaults are fp-builtin's.
//!
//! Kubernetes validates its internal form, in which what all versions have in common stands at the
//! top, so that a CRD of one version hears of `spec.validation.openAPIV3Schema`; so do we.
//!
//! Deliberately absent: CEL beyond rules whose function is known, conversion webhooks, and the
//! leniency that Kubernetes shows to CRDs stored before a rule existed.

mod defaults;
mod field_path;
pub mod info;
pub mod names;
mod schema;
mod spec;
mod structurality;

use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::{Object, Value, names as forms, object_meta};

use crate::Sub;
use crate::structural::{Rules, size};

pub use info::{Error, from_crd};
pub use schema::{Status, unrecognized_formats, validate_schema};
pub use spec::validate_names;

/// A CRD of `system:bound-crds`: its name is its schema's uid.
const BOUND_CRD: &str = "apis.kcp.io/bound-crd";
/// Kubernetes has no limit; each version costs a compiled schema and its discovery.
const VERSIONS_MAX: usize = 100;
const API_APPROVED: &str = "api-approved.kubernetes.io";

/// The part that is missing when a CRD asks for it: its create or update answers 501.
pub fn not_built(crd: &Object) -> Option<&'static str> {
    let webhook = crd.text(&["spec", "conversion", "strategy"]) == Some("Webhook");
    webhook.then_some("conversion webhooks")
}

/// What is too large or too deep to look at any closer: too many versions, or a version's schema.
pub fn oversized(crd: &Object) -> Option<FieldError> {
    let up = Path::Root.child("spec");
    let up = up.child("versions");
    let n_versions = versions(crd).len();
    if n_versions > VERSIONS_MAX {
        let why = format!("must have at most {VERSIONS_MAX} items");
        return Some(FieldError::invalid(up, n_versions, why));
    }
    versions(crd).iter().enumerate().find_map(|(at, version)| {
        let why = size(version.get("schema")?.get("openAPIV3Schema")?).err()?;
        let version = up.index(at);
        Some(FieldError::invalid(version.child("schema").child("openAPIV3Schema"), "", why))
    })
}

/// Validates a CRD to create. `rules` knows the CEL rules that can be enforced.
pub fn validate(crd: &Object, rules: Rules<'_>) -> Vec<FieldError> {
    let metadata = Path::Root.child("metadata");
    let mut errors = object_meta::validate(crd, false, forms::name_is_dns_subdomain, metadata);
    if crd.annotation(BOUND_CRD).is_none() {
        let group = crd.text(&["spec", "group"]).filter(|g| !g.is_empty()).unwrap_or("core");
        let plural = crd.text(&["spec", "names", "plural"]).unwrap_or("");
        if !crd.name().is_empty() && crd.name() != format!("{plural}.{group}") {
            let why = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid(metadata.child("name"), crd.name(), why));
        }
    }
    errors.extend(spec::validate(crd, rules));
    validate_status(crd, &mut errors);
    validate_approval(crd, None, &mut errors);
    validate_preserving(crd, &mut errors);
    errors
}

/// Validates a CRD to update.
pub fn validate_update(crd: &Object, old: &Object, sub: Sub, rules: Rules<'_>) -> Vec<FieldError> {
    let mut errors = object_meta::validate_update(crd, old, Path::Root.child("metadata"));
    if sub == Sub::Status {
        let accepted = crd.at(&["status", "acceptedNames"]).and_then(Value::as_object);
        let status = Path::Root.child("status");
        errors.extend(
            accepted.map(|n| validate_names(n, &status.child("acceptedNames"))).unwrap_or_default(),
        );
        return errors;
    }
    errors.extend(spec::validate(crd, rules));
    spec::validate_immutable(crd, old, &mut errors);
    validate_status(crd, &mut errors);
    validate_approval(crd, Some(old), &mut errors);
    if old.at(&["spec", "preserveUnknownFields"]) != Some(&Value::Bool(true)) {
        validate_preserving(crd, &mut errors);
    }
    errors
}

/// Warnings for a create, or an update when `old` is given: formats that nobody enforces.
pub fn warnings(crd: &Object, old: Option<&Object>) -> Vec<String> {
    let of = |crd: &Object| -> Vec<String> {
        let versions =
            crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten();
        let schemas = versions.filter_map(|v| v.get("schema")?.get("openAPIV3Schema"));
        let mut found: Vec<String> = Vec::new();
        for format in schemas.flat_map(unrecognized_formats) {
            if !found.contains(&format) {
                found.push(format);
            }
        }
        found
    };
    let known = old.map(of).unwrap_or_default();
    let fresh = of(crd).into_iter().filter(|format| !known.contains(format));
    fresh.map(|format| format!("unrecognized format {}", fp_object::go::quote(&format))).collect()
}

fn stored_versions(crd: &Object) -> Vec<&str> {
    let list = crd.at(&["status", "storedVersions"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn versions(crd: &Object) -> &[Value] {
    crd.at(&["spec", "versions"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn validate_status(crd: &Object, errors: &mut Vec<FieldError>) {
    let status = Path::Root.child("status");
    if let Some(names) = crd.at(&["status", "acceptedNames"]).and_then(Value::as_object) {
        errors.extend(validate_names(names, &status.child("acceptedNames")));
    }
    let path = status.child("storedVersions");
    let stored = stored_versions(crd);
    let shown = crd.at(&["status", "storedVersions"]).cloned().unwrap_or_default();
    if stored.is_empty() {
        errors.push(FieldError::invalid(
            path,
            Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    let names: Vec<&str> = versions(crd).iter().filter_map(|v| v["name"].as_str()).collect();
    for version in versions(crd).iter().filter(|v| v["storage"] == true) {
        let name = version["name"].as_str().unwrap_or("");
        if !stored.contains(&name) {
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(path, shown.clone(), why));
        }
    }
    for (at, name) in stored.iter().enumerate().filter(|(_, name)| !names.contains(name)) {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in \
             spec.versions until a storage migration ensures no data remains persisted in {name} and \
             removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(path.index(at), *name, why));
    }
}

/// Whether the approval annotation allows a group of the Kubernetes community.
#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval(crd: &Object) -> Approval {
    match crd.annotation(API_APPROVED).unwrap_or("") {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text => {
            let host = text
                .split_once("://")
                .map(|(scheme, rest)| (scheme, rest.split('/').next().unwrap_or("")));
            let is_url = host.is_some_and(|(scheme, host)| !scheme.is_empty() && !host.is_empty());
            if is_url && !text.contains(' ') { Approval::Approved } else { Approval::Invalid }
        }
    }
}

fn validate_approval(crd: &Object, old: Option<&Object>, errors: &mut Vec<FieldError>) {
    let group = crd.text(&["spec", "group"]).unwrap_or("");
    let within = |parent: &str| group == parent || group.ends_with(&format!(".{parent}"));
    if !within("k8s.io") && !within("kubernetes.io") {
        return;
    }
    let state = approval(crd);
    if old.is_some_and(|old| approval(old) == state) {
        return;
    }
    let up = Path::Root.child("metadata");
    let up = up.child("annotations");
    let path = up.key(API_APPROVED);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Missing => {
            let why =
                format!("protected groups must have approval annotation \"{API_APPROVED}\", {see}");
            errors.push(FieldError::required(path, why));
        }
        Approval::Invalid => {
            let why = format!(
                "protected groups must have approval annotation \"{API_APPROVED}\" with either a URL or \
                 a reason starting with \"unapproved\", {see}"
            );
            errors.push(FieldError::invalid(path, crd.annotation(API_APPROVED).unwrap_or(""), why));
        }
        Approval::Bypassed | Approval::Approved => {}
    }
}

fn validate_preserving(crd: &Object, errors: &mut Vec<FieldError>) {
    if crd.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
}

#[cfg(test)]
mod tests;
