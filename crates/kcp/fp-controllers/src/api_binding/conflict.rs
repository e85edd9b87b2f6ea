//! Whether a schema's names are taken in a cluster.
//!
//! Rules: kcp `pkg/reconciler/apis/apibinding/conflict_checker.go`.

use std::sync::Arc;

use fp_object::meta::Meta;
use fp_object::{Object, Value};

/// Another definition in the cluster.
pub struct Other {
    pub crd: Arc<Object>,
    /// The binding that brings it, with its export's path and name; `None` for a CRD of the
    /// cluster itself.
    pub binding: Option<(String, String, String)>,
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.text(path).unwrap_or("")
}

fn short_names(names: Option<&Value>) -> Vec<&str> {
    let list = names.and_then(|n| n.get("shortNames")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Why `schema` cannot be bound by `binding`.
pub fn check(binding: &str, schema: &Object, others: &[Other]) -> Option<String> {
    let mut sorted: Vec<&Other> = others.iter().collect();
    sorted.sort_by(|a, b| a.crd.uid().cmp(b.crd.uid()));
    sorted.into_iter().filter(|o| o.binding.as_ref().is_none_or(|b| b.0 != binding)).find_map(
        |other| {
            let details = names_conflict(&other.crd, schema)?;
            Some(match &other.binding {
                None => format!(
                    "naming conflict with CustomResourceDefinition {:?}: {details}",
                    other.crd.name()
                ),
                Some((name, path, export)) => {
                    let to = if path.is_empty() {
                        format!("local APIExport {export:?}")
                    } else {
                        format!("APIExport {path}:{export}")
                    };
                    format!("naming conflict with APIBinding {name:?} bound to {to}: {details}")
                }
            })
        },
    )
}

fn names_conflict(existing: &Object, incoming: &Object) -> Option<String> {
    if text(existing, &["spec", "group"]) != text(incoming, &["spec", "group"]) {
        return None;
    }
    let taken = |key: &str| text(existing, &["status", "acceptedNames", key]);
    let wants = |key: &str| text(incoming, &["spec", "names", key]);
    let mut resources = vec![taken("plural"), taken("singular")];
    resources.extend(short_names(existing.at(&["status", "acceptedNames"])));
    let kinds = [taken("kind"), taken("listKind")];
    for key in ["plural", "singular"] {
        if resources.contains(&wants(key)) {
            return Some(format!("spec.names.{key}={} is forbidden", wants(key)));
        }
    }
    let short = short_names(incoming.at(&["spec", "names"]));
    if short.iter().any(|s| resources.contains(s)) {
        return Some(format!("spec.names.shortNames=[{}] is forbidden", short.join(" ")));
    }
    ["kind", "listKind"]
        .into_iter()
        .find(|key| kinds.contains(&wants(key)))
        .map(|key| format!("spec.names.{key}={} is forbidden", wants(key)))
}
