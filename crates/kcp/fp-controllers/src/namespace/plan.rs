//! What a namespace that is being emptied says of itself.

use fp_base::ClusterName;
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use crate::action::Target;
use crate::content::Content;
use crate::world::{cluster_scoped, gvr};

const FINALIZER: &str = "kubernetes";

pub fn target(cluster: &ClusterName) -> Target {
    cluster_scoped(cluster, gvr::namespaces())
}

/// The namespace with conditions for what is left, if they say anything new. An empty namespace
/// needs none: it is gone at once.
pub fn conditions(namespace: &Object, left: &Content, now: &str) -> Option<Object> {
    if left.is_empty() {
        return None;
    }
    let mut new = namespace.clone();
    let mut changed = false;
    let facts = [
        ("NamespaceContentRemaining", "SomeResourcesRemain", left.resources_message()),
        ("NamespaceFinalizersRemaining", "SomeFinalizersRemain", left.finalizers_message()),
    ];
    for (kind, reason, message) in facts.into_iter().filter_map(|(k, r, m)| Some((k, r, m?))) {
        let status = new.map_mut(&["status"]);
        let list = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { continue };
        if list.iter().any(|c| c["type"] == kind && c["message"] == message.as_str()) {
            continue;
        }
        list.retain(|c| c["type"] != kind);
        list.push(json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
        }));
        changed = true;
    }
    changed.then_some(new)
}

/// The namespace without the finalizer that stands for its content.
pub fn without_finalizer(namespace: &Object) -> Object {
    let mut new = namespace.clone();
    let spec = new.map_mut(&["spec"]);
    if let Some(Value::Array(list)) = spec.get_mut("finalizers") {
        list.retain(|f| f != FINALIZER);
    }
    new
}
