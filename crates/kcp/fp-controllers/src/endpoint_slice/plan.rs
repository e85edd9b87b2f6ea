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
    /// That of every shard, as it stands in its object.
    pub shard_urls: &'a [String],
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

/// This shard's endpoint: there while the shard is selected and has a binding. A shard that was
/// started at another address leaves an endpoint that is nobody's; Go's apply takes it away with
/// the fields that it owns.
fn endpoint(s: &Snapshot<'_>, selector: &LabelSelector, new: &mut Object) {
    let Some(export) = s.export else { return };
    let name = s.slice.text(&["spec", "export", "name"]).unwrap_or("");
    let below = format!("/services/apiexport/{export}/{name}");
    let own = format!("{}{below}", s.virtual_workspace_url);
    let list =
        new.at(&["status", "endpoints"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut endpoints: Vec<Value> = list;
    endpoints.retain(|e| {
        let base = e["url"].as_str().and_then(|url| url.strip_suffix(&below));
        base.is_some_and(|base| {
            base == s.virtual_workspace_url || s.shard_urls.iter().any(|u| u == base)
        })
    });
    let has = endpoints.iter().any(|e| e["url"] == own.as_str());
    match (s.has_bindings, selector.matches(s.shard_labels)) {
        (true, true) if !has => endpoints.push(json!({"url": own})),
        (false, _) => endpoints.retain(|e| e["url"] != own.as_str()),
        _ => {}
    }
    if endpoints.is_empty() {
        new.remove_at(&["status", "endpoints"]);
    } else {
        new.map_mut(&["status"]).insert("endpoints".into(), endpoints.into());
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::action::Action;

    /// The status that a pass writes into a slice with these endpoints, at `https://new`.
    fn check(endpoints: &[&str], has_bindings: bool, shard_urls: &[&str], want: Expect) {
        let of = |base: &&str| json!({"url": format!("{base}/services/apiexport/root/x")});
        let endpoints: Vec<Value> = endpoints.iter().map(of).collect();
        let slice = json!({
            "metadata": {"name": "x"},
            "spec": {"export": {"name": "x"}},
            "status": {"shardSelector": "", "endpoints": endpoints},
        });
        let root = ClusterName::root();
        let plan = plan(&Snapshot {
            slice: slice.as_object().expect("an object"),
            cluster: &root,
            path: "root",
            export: Some(&root),
            partition: None,
            shard_labels: &[],
            virtual_workspace_url: "https://new",
            shard_urls: &shard_urls.iter().map(|u| (*u).to_owned()).collect::<Vec<_>>(),
            has_bindings,
            now: "now",
        });
        let Some(Action::Update { object, .. }) = plan.stages.first().and_then(|s| s.first())
        else {
            panic!("no update: {plan:?}");
        };
        let status = &object["status"];
        let urls = status["endpoints"].as_array().into_iter().flatten();
        let urls: Vec<&str> = urls.filter_map(|e| e["url"].as_str()).collect();
        let keys: Vec<&String> = status.as_object().expect("a status").keys().collect();
        want.assert_eq(&format!("{keys:?} {urls:?}"));
    }

    #[test]
    fn endpoints_are_those_of_shards_that_there_are() {
        check(
            &[],
            true,
            &["https://new"],
            expect![[r#"["conditions", "endpoints"] ["https://new/services/apiexport/root/x"]"#]],
        );
        check(
            &["https://old", "https://other"],
            true,
            &["https://new", "https://other"],
            expect![[
                r#"["conditions", "endpoints"] ["https://other/services/apiexport/root/x", "https://new/services/apiexport/root/x"]"#
            ]],
        );
        check(
            &["https://old", "https://new"],
            false,
            &["https://new"],
            expect![[r#"["conditions"] []"#]],
        );
    }
}
