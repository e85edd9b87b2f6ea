//! What a Workspace needs next: a shard and a cluster, its LogicalCluster, its phase, its end.
//!
//! Rules: kcp `pkg/reconciler/tenancy/workspace` (surface 5.2 and 5.7). kcp makes one write a
//! pass; here a pass makes every write that is due, in the same order.

use std::time::Duration;

use fp_base::ClusterName;
use fp_kcp::api::{self, Phase, UserInfo, WorkspaceSpec};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition};
use fp_kcp::{conditions as cond, hash};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use crate::action::{self, Action, Plan, Target};
use crate::logical_cluster::plan::begin;
use crate::world::{cluster_scoped, gvr};

/// A LogicalCluster that is missing for longer makes its Workspace unavailable.
const DISAPPEARED_AFTER_SECS: i64 = 60;

/// A Shard that may be chosen.
#[derive(Clone, Debug)]
pub struct ShardView {
    pub name: String,
    pub external_url: String,
    pub labels: Vec<(String, String)>,
}

/// What the type of a Workspace asks for.
#[derive(Clone, Debug, Default)]
pub struct TypeView {
    pub initializers: Vec<String>,
    pub terminators: Vec<String>,
}

/// Everything a pass looks at.
pub struct Snapshot<'a> {
    pub workspace: &'a Object,
    pub cluster: ClusterName,
    /// The LogicalCluster of the cluster that holds the Workspace.
    pub parent: Option<&'a Object>,
    /// The LogicalCluster of the Workspace, if it has a cluster and that is there.
    pub child: Option<&'a Object>,
    /// Shards that may be chosen: schedulable and selected.
    pub candidates: &'a [ShardView],
    /// The shard that was chosen, if it exists.
    pub shard: Option<&'a ShardView>,
    /// Why the type cannot be resolved, else what it asks for.
    pub kind: Result<TypeView, String>,
    /// A cluster name nobody has: used when one is due.
    pub fresh_name: ClusterName,
    /// A number to choose a shard by.
    pub dice: usize,
    /// RFC 3339, seconds, and as seconds since 1970.
    pub now: &'a str,
    pub now_secs: i64,
    /// Since when the Workspace exists, in seconds since 1970.
    pub since_secs: i64,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    let spec: WorkspaceSpec = api::part(s.workspace, "spec");
    if spec.mount.is_some() {
        return Plan::none();
    }
    let mut new = s.workspace.clone();
    let (mut plan, mut child) = (Plan::none(), None);
    if s.workspace.is_deleting() {
        plan = end(s, &spec, &mut new, plan);
    } else {
        child = schedule(s, &spec, &mut new);
    }
    if child.is_none() {
        plan = advance(s, &mut new, plan);
    }
    metadata(s, &mut new);
    let at = cluster_scoped(&s.cluster, gvr::workspaces());
    let update = action::update(at, s.workspace, new);
    // The cluster's name is written down before anything has it.
    plan.then(update.into_iter().collect()).then(child.into_iter().collect())
}

/// The label and annotations that follow from other fields.
fn metadata(s: &Snapshot<'_>, new: &mut Object) {
    let phase = Phase::of(new);
    new.set_label(names::PHASE_LABEL, phase.as_str());
    new.map_mut(&["status"]).insert("phase".into(), phase.as_str().into());
    if let Some(shard) = new.annotation(names::SHARD).map(hash::shard_hash) {
        new.set_annotation(names::WORKSPACE_SHARD_HASH, &shard);
    }
    if phase == Phase::Ready && s.workspace.annotation(names::OWNER).is_some() {
        trim_owner(new);
    }
}

/// Once Ready, the owner annotation keeps the user's name only.
pub fn trim_owner(object: &mut Object) {
    let Some(owner) = object.annotation(names::OWNER) else { return };
    match serde_json::from_str::<UserInfo>(owner) {
        Ok(info) => {
            let name_only = UserInfo { username: info.username, ..UserInfo::default() };
            object.set_annotation(names::OWNER, &name_only.to_json());
        }
        Err(_) => drop(object.remove_at(&["metadata", "annotations", names::OWNER])),
    }
}

fn canonical_path(s: &Snapshot<'_>) -> String {
    let parent = s.parent.and_then(|p| p.annotation(names::PATH)).unwrap_or(s.cluster.as_str());
    format!("{parent}:{}", s.workspace.name())
}

fn unschedulable(s: &Snapshot<'_>, new: &mut Object, why: String) {
    let condition =
        Condition::new_false(condition::WORKSPACE_SCHEDULED, "Unschedulable", "Error", why);
    conditions::set(new, s.now, condition);
}

/// Chooses a shard and a cluster; answers the LogicalCluster to make, when that is missing.
fn schedule(s: &Snapshot<'_>, spec: &WorkspaceSpec, new: &mut Object) -> Option<Action> {
    // The parent's LogicalCluster comes by its own event.
    s.parent?;
    let chosen = match (s.workspace.annotation(names::SHARD), s.shard) {
        (Some(_), Some(shard)) => shard,
        (Some(name), None) => {
            unschedulable(s, new, format!("chosen shard {name:?} does not exist anymore"));
            return None;
        }
        (None, _) if s.candidates.is_empty() => {
            unschedulable(s, new, "No available shards to schedule the workspace".into());
            return None;
        }
        (None, _) => &s.candidates[s.dice % s.candidates.len()],
    };
    let url = format!("{}/clusters/{}", chosen.external_url, canonical_path(s));
    if spec.url.is_empty() || spec.cluster.is_empty() {
        match place(s, chosen, new) {
            Place::Ready(cluster) => {
                new.map_mut(&["spec"]).insert("cluster".into(), cluster.as_str().into());
            }
            Place::Wait => return None,
            Place::Create(action) => return Some(action),
        }
    }
    new.map_mut(&["spec"]).insert("URL".into(), url.into());
    cond::set(new, s.now, Condition::new_true(condition::WORKSPACE_SCHEDULED));
    if Phase::of(new) == Phase::Scheduling {
        new.map_mut(&["status"]).insert("phase".into(), Phase::Initializing.as_str().into());
    }
    None
}

/// Where a Workspace without a cluster stands.
enum Place {
    /// The LogicalCluster is there and may be entered.
    Ready(ClusterName),
    /// Something was written down, or another controller is due.
    Wait,
    Create(Action),
}

/// Finds or makes the LogicalCluster. Its name is told only once it has left its first phase: whoever
/// reads it from the Workspace may use it at once.
fn place(s: &Snapshot<'_>, chosen: &ShardView, new: &mut Object) -> Place {
    reserve(s, chosen, new);
    let name = new.annotation(names::WORKSPACE_CLUSTER).unwrap_or("");
    let Ok(cluster) = ClusterName::parse(name) else { return Place::Wait };
    let kind = match &s.kind {
        Ok(kind) => kind,
        Err(why) => {
            unschedulable(s, new, format!("workspace type cannot be resolved: {why}"));
            return Place::Wait;
        }
    };
    let object = logical_cluster(s, &chosen.name, kind);
    let Some(child) = s.child else {
        let at = cluster_scoped(&cluster, gvr::logical_clusters());
        let object = begin(object, &cluster, &chosen.name, &chosen.external_url);
        return Place::Create(Action::Create { at, object });
    };
    if child.at(&["spec", "owner"]) != object.at(&["spec", "owner"]) {
        // The name belongs to somebody else: the next pass takes another.
        new.remove_at(&["metadata", "annotations", names::WORKSPACE_CLUSTER]);
        return Place::Wait;
    }
    if Phase::of(child) == Phase::Scheduling {
        return Place::Wait;
    }
    Place::Ready(cluster)
}

/// The first half of the two-phase commit: shard, cluster name and finalizer are written before
/// anything is made elsewhere.
fn reserve(s: &Snapshot<'_>, chosen: &ShardView, new: &mut Object) {
    if s.workspace.annotation(names::SHARD).is_none() {
        new.set_annotation(names::SHARD, &chosen.name);
        new.map_mut(&["metadata", "labels"]).remove(names::REGION_LABEL);
        if let Some((_, region)) = chosen.labels.iter().find(|(k, _)| k == names::REGION_LABEL) {
            new.set_label(names::REGION_LABEL, region);
        }
    }
    if s.workspace.annotation(names::WORKSPACE_CLUSTER).is_none() {
        new.set_annotation(names::WORKSPACE_CLUSTER, s.fresh_name.as_str());
    }
    if !s.workspace.finalizers().contains(&names::WORKSPACE_FINALIZER) {
        let mut finalizers: Vec<Value> =
            s.workspace.finalizers().iter().map(|f| Value::from(*f)).collect();
        finalizers.push(names::WORKSPACE_FINALIZER.into());
        new.set_meta("finalizers", finalizers);
    }
}

fn logical_cluster(s: &Snapshot<'_>, shard: &str, kind: &TypeView) -> Object {
    let spec: WorkspaceSpec = api::part(s.workspace, "spec");
    let mut object = json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {"name": names::LOGICAL_CLUSTER},
        "spec": {"owner": {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "resource": "workspaces",
            "name": s.workspace.name(),
            "cluster": s.cluster.as_str(),
            "uid": s.workspace.uid(),
        }},
    });
    let object = object.as_object_mut().expect("made an object just above");
    object.set_annotation(names::LOGICAL_CLUSTER_TYPE, &spec.kind.unwrap_or_default().to_string());
    object.set_annotation(names::SHARD, shard);
    object.set_annotation(names::PATH, &canonical_path(s));
    if let Some(owner) = s.workspace.annotation(names::OWNER) {
        object.set_annotation(names::OWNER, owner);
        if let Ok(user) = serde_json::from_str::<UserInfo>(owner) {
            let user = serde_json::to_value(user).expect("a user is plain data");
            object.map_mut(&["spec"]).insert("createdBy".into(), user);
        }
    }
    if let Some(groups) = s.workspace.annotation(names::REQUIRED_GROUPS) {
        object.set_annotation(names::REQUIRED_GROUPS, groups);
    }
    for (key, list) in [("initializers", &kind.initializers), ("terminators", &kind.terminators)] {
        if !list.is_empty() {
            object.map_mut(&["spec"]).insert(key.into(), list.clone().into());
        }
    }
    std::mem::take(object)
}

/// Copies what the LogicalCluster says into the phase and conditions.
fn advance(s: &Snapshot<'_>, new: &mut Object, plan: Plan) -> Plan {
    let phase = Phase::of(new);
    match phase {
        Phase::Initializing if !s.workspace.is_deleting() => return initialize(s, new, plan),
        Phase::Unavailable if s.child.is_some() => {
            let gone = cond::get(new, condition::WORKSPACE_INITIALIZED);
            if gone.is_some_and(|c| c.status == "False" && c.reason == "WorkspaceDisappeared") {
                cond::set(new, s.now, Condition::new_true(condition::WORKSPACE_INITIALIZED));
            }
        }
        Phase::Ready | Phase::Terminating | Phase::Deleting if s.workspace.is_deleting() => {
            return terminate(s, new, plan);
        }
        _ => {}
    }
    availability(new);
    plan
}

fn copy_list(from: Option<&Object>, key: &str, to: &mut Object) -> Vec<String> {
    let list = from.and_then(|o| o.at(&["status", key])).cloned().unwrap_or_default();
    let texts = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if list.as_array().is_some_and(|l| !l.is_empty()) {
        to.map_mut(&["status"]).insert(key.into(), list);
    } else {
        to.remove_at(&["status", key]);
    }
    texts
}

fn initialize(s: &Snapshot<'_>, new: &mut Object, plan: Plan) -> Plan {
    let Some(child) = s.child else {
        let age = s.now_secs - s.since_secs;
        if s.shard.is_some() && age < DISAPPEARED_AFTER_SECS {
            return plan.after(Duration::from_secs(1));
        }
        let spec: WorkspaceSpec = api::part(new, "spec");
        let why = format!("LogicalCluster {} not found", spec.cluster);
        let gone = Condition::new_false(
            condition::WORKSPACE_INITIALIZED,
            "WorkspaceDisappeared",
            "Error",
            why,
        );
        cond::set(new, s.now, gone);
        availability(new);
        return plan;
    };
    copy_list(Some(child), "terminators", new);
    let waits = |why: String| {
        Condition::new_false(condition::WORKSPACE_INITIALIZED, "InitializerExists", "Info", why)
    };
    if Phase::of(child) == Phase::Scheduling {
        cond::set(new, s.now, waits("LogicalCluster is not initializing yet".into()));
        return plan;
    }
    let left = copy_list(Some(child), "initializers", new);
    if !left.is_empty() {
        cond::set(new, s.now, waits(format!("Initializers still exist: [{}]", left.join(" "))));
        return plan;
    }
    new.map_mut(&["status"]).insert("phase".into(), Phase::Ready.as_str().into());
    cond::set(new, s.now, Condition::new_true(condition::WORKSPACE_INITIALIZED));
    plan
}

fn terminate(s: &Snapshot<'_>, new: &mut Object, plan: Plan) -> Plan {
    let Some(child) = s.child else {
        cond::set(new, s.now, Condition::new_true(condition::WORKSPACE_CONTENT_DELETED));
        return plan;
    };
    let left = copy_list(Some(child), "terminators", new);
    let phase = if left.is_empty() { Phase::Deleting } else { Phase::Terminating };
    new.map_mut(&["status"]).insert("phase".into(), phase.as_str().into());
    if let Some(condition) = cond::get(child, condition::WORKSPACE_CONTENT_DELETED) {
        cond::set(new, s.now, condition);
    }
    plan
}

/// Ready and Unavailable follow the conditions whose type begins with `Workspace`.
fn availability(object: &mut Object) {
    let bad =
        cond::list(object).iter().any(|c| c.status == "False" && c.kind.starts_with("Workspace"));
    let phase = match (Phase::of(object), bad) {
        (Phase::Ready, true) => Phase::Unavailable,
        (Phase::Unavailable, false) => Phase::Ready,
        _ => return,
    };
    object.map_mut(&["status"]).insert("phase".into(), phase.as_str().into());
}

/// Deletes the LogicalCluster, and lets go of the Workspace when that is gone.
fn end(s: &Snapshot<'_>, spec: &WorkspaceSpec, new: &mut Object, plan: Plan) -> Plan {
    let finalizers = s.workspace.finalizers();
    if finalizers.len() > 1 || !finalizers.contains(&names::WORKSPACE_FINALIZER) {
        return plan;
    }
    let cluster = if spec.cluster.is_empty() {
        s.workspace.annotation(names::WORKSPACE_CLUSTER).unwrap_or("")
    } else {
        &spec.cluster
    };
    match (s.child, ClusterName::parse(cluster)) {
        (Some(child), Ok(cluster)) if !child.is_deleting() => {
            let at: Target = cluster_scoped(&cluster, gvr::logical_clusters());
            let (name, uid) = (names::LOGICAL_CLUSTER.to_owned(), child.uid().to_owned());
            plan.then(vec![Action::Delete { at, name, uid }])
        }
        (Some(_), _) => plan,
        (None, _) => {
            new.set_meta("finalizers", Value::Array(Vec::new()));
            plan
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
