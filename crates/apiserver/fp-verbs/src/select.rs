//! Label and field selectors of a request, applied to entries.
//!
//! Labels and `metadata.name`/`namespace` are read from the entry; only other fields make the body
//! parse. Sources: apimachinery's `runtime/conversion.go` (field labels), apiextensions'
//! `registry/customresource/strategy.go`.

use std::borrow::Cow;
use std::sync::Arc;

use fp_informer::Entry;
use fp_object::meta::Meta;
use fp_object::selector::{FieldSelector, LabelSelector};
use fp_object::status::Status;
use fp_object::{Object, Value};
use fp_schema::{ResourceInfo, VersionInfo};

use crate::target::Target;

/// What a list, watch or deletecollection selects.
pub struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    info: Arc<ResourceInfo>,
    /// Some field is not part of the key.
    needs_body: bool,
}

impl Selection {
    pub fn parse(
        info: &Arc<ResourceInfo>,
        version: &VersionInfo,
        labels: &str,
        fields: &str,
    ) -> Result<Self, Status> {
        let labels =
            LabelSelector::parse(labels).map_err(|e| Status::bad_request(e.to_string()))?;
        let fields =
            FieldSelector::parse(fields).map_err(|e| Status::bad_request(e.to_string()))?;
        let mut needs_body = false;
        for term in fields.terms() {
            needs_body |= !is_key(&term.field);
            check_field(info, version, &term.field)?;
        }
        Ok(Self { labels, fields, info: info.clone(), needs_body })
    }

    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The same request in the one namespace that the selection leaves.
    pub fn narrow<'a>(&'a self, target: Target<'a>) -> Target<'a> {
        match self.fields.requires_exact("metadata.namespace") {
            Some(namespace)
                if target.namespace.is_empty()
                    && target.info.namespaced()
                    && !namespace.is_empty() =>
            {
                Target { namespace, ..target }
            }
            _ => target,
        }
    }

    pub fn matches(&self, entry: &Entry) -> bool {
        if !self.labels.matches(&entry.labels) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let object = self.needs_body.then(|| entry.object());
        self.fields.matches(|label| match label {
            "metadata.name" => Cow::Borrowed(&*entry.key.name),
            "metadata.namespace" => Cow::Borrowed(&*entry.key.namespace),
            other => {
                Cow::Owned(object.as_ref().map(|o| field(&self.info, o, other)).unwrap_or_default())
            }
        })
    }
}

fn is_key(label: &str) -> bool {
    matches!(label, "metadata.name" | "metadata.namespace")
}

/// A field label that the resource does not know is a 400.
fn check_field(info: &ResourceInfo, version: &VersionInfo, label: &str) -> Result<(), Status> {
    let known = match info.strategy {
        Some(strategy) => is_key(label) || strategy.field_labels.contains(&label),
        None => {
            label == "metadata.name"
                || (label == "metadata.namespace" && info.namespaced())
                || version.selectable.iter().any(|path| path.trim_start_matches('.') == label)
        }
    };
    match info.strategy {
        _ if known => Ok(()),
        Some(strategy) if strategy.field_labels.is_empty() => Err(Status::bad_request(format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ))),
        _ => Err(Status::bad_request(format!("field label not supported: {label}"))),
    }
}

fn field(info: &ResourceInfo, object: &Object, label: &str) -> String {
    if let Some(strategy) = info.strategy {
        return (strategy.field_value)(object, label);
    }
    // A selectable field of a CRD is a plain path to a scalar (apiextensions' validation).
    let path: Vec<&str> = label.split('.').collect();
    match object.at(&path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(s)) => s.clone(),
        Some(other) => other.to_string(),
    }
}
