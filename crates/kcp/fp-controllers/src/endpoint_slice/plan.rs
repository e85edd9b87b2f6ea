//! What an APIExportEndpointSlice says.
//!
//! Rules: kcp `pkg/reconciler/apis/apiexportendpointslice` and `...urls` (surface 9.4).

use fp_base::ClusterName;
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::condition;
use fp_object::meta::Meta;
use fp_object::selector::LabelSelector;
use fp_object::{Object, Value};
use serde_json::json;

use crate::action::{self, Plan};
use crate::world::{cluster_scoped, gvr};

pub struct Snapshot<'a> {
    pub slice: &'a Object,
    pub cluster: &'a ClusterName,
    /// The export's path, the slice's own cluster when it gives none.
    pub path: &'a str,
    /// The export's cluster, if the export exists.
    pub export: Option<&'a ClusterName>,
    /// The partition that the slice names, if it names one, and if that exists.
    pub partition: Option<Option<&'a Object>>,
    pub shard_labels: &'a [(Box<str>, Box<str>)],
    pub virtual_workspace_url: &'a str,
    /// This shard has a binding to the export.
    pub has_bindings: bool,
    pub now: &'a str,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    let mut new = s.slice.clone();
    if let Some(selector) = conditions_of(s, &mut new) {
        // A selector of everything prints as nothing, which Go leaves out.
        match selector.to_string() {
            text if text.is_empty() => new.remove_at(&["status", "shardSelector"]),
            text => new.map_mut(&["status"]).insert("shardSelector".into(), text.into()),
        };
        endpoint(s, &selector, &mut new);
    }
    let at = cluster_scoped(s.cluster, gvr::endpoint_slices());
    Plan::none().then(action::update(at, s.slice, new).into_iter().collect())
}

/// Says whether the references hold; the selector when they do.
fn conditions_of(s: &Snapshot<'_>, new: &mut Object) -> Option<LabelSelector> {
    let name = s.slice.text(&["spec", "export", "name"]).unwrap_or("");
    if s.export.is_none() {
        new.remove_at(&["status", "endpoints"]);
        let why = format!("Error getting APIExport {}|{name}", s.path);
        conditions::set(
            new,
            s.now,
            Condition::new_false(condition::API_EXPORT_VALID, "APIExportNotFound", "Error", why),
        );
        return None;
    }
    conditions::set(new, s.now, Condition::new_true(condition::API_EXPORT_VALID));
    let invalid = |new: &mut Object, why: String| {
        let bad = Condition::new_false(
            condition::PARTITION_VALID,
            "PartitionInvalidReference",
            "Error",
            why,
        );
        conditions::set(new, s.now, bad);
        None
    };
    let selector = match s.partition {
        None => LabelSelector::everything(),
        Some(None) => {
            new.remove_at(&["status", "endpoints"]);
            let partition = s.slice.text(&["spec", "partition"]).unwrap_or("");
            return invalid(new, format!("partition.topology.kcp.io {partition:?} not found"));
        }
        Some(Some(partition)) => {
            let given = partition.at(&["spec", "selector"]).cloned().unwrap_or_else(|| json!({}));
            match LabelSelector::from_object(Some(&given)) {
                Ok(selector) => selector,
                Err(error) => return invalid(new, error.to_string()),
            }
        }
    };
    conditions::set(new, s.now, Condition::new_true(condition::PARTITION_VALID));
    Some(selector)
}

/// This shard's endpoint: there while the shard is selected and has a binding.
fn endpoint(s: &Snapshot<'_>, selector: &LabelSelector, new: &mut Object) {
    let Some(export) = s.export else { return };
    let name = s.slice.text(&["spec", "export", "name"]).unwrap_or("");
    let url = format!("{}/services/apiexport/{export}/{name}", s.virtual_workspace_url);
    let list =
        new.at(&["status", "endpoints"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut endpoints: Vec<Value> = list;
    let has = endpoints.iter().any(|e| e["url"] == url.as_str());
    match (s.has_bindings, selector.matches(s.shard_labels)) {
        (true, true) if !has => endpoints.push(json!({"url": url})),
        (false, _) if has => endpoints.retain(|e| e["url"] != url.as_str()),
        _ => return,
    }
    if endpoints.is_empty() {
        new.remove_at(&["status", "endpoints"]);
    } else {
        new.map_mut(&["status"]).insert("endpoints".into(), endpoints.into());
    }
}
