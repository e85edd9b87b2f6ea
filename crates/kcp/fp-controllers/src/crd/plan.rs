//! What a CRD's status says, and the lock it takes in its workspace.

use std::collections::BTreeMap;

use fp_base::ClusterName;
use fp_kcp::api::{self, ResourceLock};
use fp_kcp::names;
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use fp_schema::crd::names as crd_names;

use crate::action::{self, Plan};
use crate::world::{cluster_scoped, gvr};

/// What keeps a CRD until its objects are gone.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub struct Snapshot<'a> {
    pub crd: &'a Object,
    pub cluster: &'a ClusterName,
    /// The other CRDs of the cluster.
    pub others: &'a [Object],
    pub logical_cluster: Option<&'a Object>,
    pub now: &'a str,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    let group = s.crd.text(&["spec", "group"]).unwrap_or("");
    let taken = crd_names::Taken::of(group, s.others);
    let decided = crd_names::decide(s.crd, &taken);
    let mut new = s.crd.clone();
    crd_names::apply(&mut new, &decided, s.now);
    let at = cluster_scoped(s.cluster, gvr::crds());
    let mut writes: Vec<action::Action> = action::update(at, s.crd, new).into_iter().collect();
    writes.extend(lock(s));
    Plan::none().then(writes)
}

/// Notes in the LogicalCluster that the resource is the workspace's own.
fn lock(s: &Snapshot<'_>) -> Option<action::Action> {
    let logical_cluster =
        s.logical_cluster.filter(|lc| !lc.is_deleting() && !s.cluster.is_system())?;
    let mut locks: BTreeMap<String, ResourceLock> = api::resource_locks(logical_cluster).ok()?;
    if locks.contains_key(s.crd.name()) || s.crd.is_deleting() {
        return None;
    }
    locks.insert(s.crd.name().to_owned(), ResourceLock { crd: true, ..ResourceLock::default() });
    let mut new = logical_cluster.clone();
    new.set_annotation(
        names::RESOURCE_BINDINGS,
        &serde_json::to_string(&locks).expect("locks are plain data"),
    );
    action::update(cluster_scoped(s.cluster, gvr::logical_clusters()), logical_cluster, new)
}

pub fn has_finalizer(crd: &Object) -> bool {
    crd.finalizers().contains(&FINALIZER)
}

/// The CRD with the condition Terminating, if it has none yet.
pub fn terminating(crd: &Object, now: &str) -> Option<Object> {
    if crd_names::is_true(crd, "Terminating") {
        return None;
    }
    let mut new = crd.clone();
    let condition = crd_names::Condition {
        status: true,
        reason: "InstanceDeletionInProgress".into(),
        message: "CustomResource deletion is in progress".into(),
    };
    crd_names::set_condition(&mut new, "Terminating", &condition, now);
    Some(new)
}

pub fn without_finalizer(crd: &Object) -> Object {
    let mut new = crd.clone();
    let kept: Vec<Value> =
        crd.finalizers().into_iter().filter(|f| *f != FINALIZER).map(Value::from).collect();
    new.set_meta("finalizers", kept);
    new
}
