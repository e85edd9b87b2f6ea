//! What a LogicalCluster needs next: its phase and what follows from it, the objects that its type
//! promises, and its owner's rights.
//!
//! Rules: kcp's `core/logicalcluster`, `tenancy/logicalcluster`, `tenancy/bootstrap`,
//! `tenancy/initialization` and `tenancy/defaultapibindinglifecycle` (surface 5.2). kcp has a
//! controller for each, which meet at this one object; here one pass makes one write of it.

use fp_base::ClusterName;
use fp_kcp::api::{self, LogicalClusterSpec, Phase};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use super::bindings::{self, Promised};
use crate::action::{self, Action, Plan};
use crate::workspace::plan::trim_owner;
use crate::world::{cluster_scoped, gvr};

/// The initializer of `root:universal`, which this server acts for.
pub const UNIVERSAL: &str = "root:universal";
/// The namespaces of a universal workspace.
const NAMESPACES: [&str; 2] = ["default", "kube-system"];

/// Everything a pass looks at.
pub struct Snapshot<'a> {
    pub cluster: ClusterName,
    pub object: &'a Object,
    pub shard_name: &'a str,
    pub external_url: &'a str,
    /// Names of the namespaces there are.
    pub namespaces: &'a [String],
    /// The ClusterRoleBinding `workspace-admin` exists.
    pub has_admin: bool,
    /// What the type's default bindings need; `None` without a type.
    pub promised: Option<Promised<'a>>,
    pub now: &'a str,
    /// Older than this, waiting is worth telling.
    pub waited_long: bool,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    let mut new = s.object.clone();
    phase(s, &mut new);
    let mut made = Vec::new();
    if !s.object.is_deleting() {
        made.extend(admin(s));
        let mut left = initializers(&new);
        if left.iter().any(|i| i == UNIVERSAL) {
            let missing = universal(s);
            if missing.is_empty() {
                left.retain(|i| i != UNIVERSAL);
            }
            made.extend(missing);
        }
        if let Some(promised) = &s.promised {
            bindings::plan(s, promised, &mut new, &mut left, &mut made);
        }
        set_initializers(&mut new, &left);
        ready(s, &mut new);
    }
    metadata(s, &mut new);
    let at = cluster_scoped(&s.cluster, gvr::logical_clusters());
    // What is made counts once it is seen, so nothing has to wait for it here.
    made.extend(action::update(at, s.object, new));
    Plan::none().then(made)
}

/// A LogicalCluster to create, with what follows from its spec: it begins as Initializing.
pub fn begin(object: Object, cluster: &ClusterName, shard: &str, external_url: &str) -> Object {
    let snapshot = Snapshot {
        cluster: cluster.clone(),
        object: &object,
        shard_name: shard,
        external_url,
        namespaces: &[],
        has_admin: false,
        promised: None,
        now: "",
        waited_long: false,
    };
    let mut new = object.clone();
    phase(&snapshot, &mut new);
    metadata(&snapshot, &mut new);
    new
}

fn set_phase(object: &mut Object, phase: Phase) {
    object.map_mut(&["status"]).insert("phase".into(), phase.as_str().into());
}

/// The entries of `status.initializers`.
pub fn initializers(object: &Object) -> Vec<String> {
    let list = object.at(&["status", "initializers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn set_initializers(object: &mut Object, left: &[String]) {
    if left.is_empty() {
        object.remove_at(&["status", "initializers"]);
    } else {
        object.map_mut(&["status"]).insert("initializers".into(), left.into());
    }
}

fn terminators(object: &Object) -> Vec<String> {
    let list = object.at(&["status", "terminators"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn inactive(object: &Object) -> bool {
    [names::INACTIVE, names::INACTIVE_LEGACY].iter().any(|a| object.annotation(a) == Some("true"))
}

/// The transitions that depend on nothing else. Scheduling to Initializing takes over what the
/// spec lists, as admission does.
fn phase(s: &Snapshot<'_>, new: &mut Object) {
    let old = Phase::of(new);
    if s.object.is_deleting() {
        let next = if terminators(new).is_empty() { Phase::Deleting } else { Phase::Terminating };
        set_phase(new, next);
        return;
    }
    match old {
        Phase::Scheduling => {
            let spec: LogicalClusterSpec = api::part(new, "spec");
            set_initializers(new, &spec.initializers);
            if !spec.terminators.is_empty() {
                new.map_mut(&["status"]).insert("terminators".into(), spec.terminators.into());
            }
            set_phase(new, Phase::Initializing);
        }
        Phase::Ready if inactive(new) => set_phase(new, Phase::Inactive),
        Phase::Inactive if !inactive(new) => set_phase(new, Phase::Ready),
        _ => {}
    }
}

/// Initializing to Ready, when nobody has anything left to do.
fn ready(s: &Snapshot<'_>, new: &mut Object) {
    if Phase::of(new) != Phase::Initializing {
        return;
    }
    let left = initializers(new);
    if left.is_empty() {
        set_phase(new, Phase::Ready);
        conditions::set(new, s.now, Condition::new_true(condition::WORKSPACE_INITIALIZED));
    } else if s.waited_long {
        let why = format!("Initializers still exist: [{}]", left.join(" "));
        let waits = Condition::new_false(
            condition::WORKSPACE_INITIALIZED,
            "InitializerExists",
            "Info",
            why,
        );
        conditions::set(new, s.now, waits);
    }
}

/// Labels, annotations, finalizer and URL that follow from the rest.
fn metadata(s: &Snapshot<'_>, new: &mut Object) {
    let phase = Phase::of(new);
    new.set_label(names::PHASE_LABEL, phase.as_str());
    let mut wanted: Vec<(String, String)> = Vec::new();
    wanted.extend(initializers(new).iter().map(|i| fp_kcp::hash::initializer_label(i)));
    wanted.extend(terminators(new).iter().map(|t| fp_kcp::hash::terminator_label(t)));
    let labels = new.map_mut(&["metadata", "labels"]);
    labels.retain(|key, _| {
        let ours = key.starts_with(names::INITIALIZER_LABEL_PREFIX)
            || key.starts_with(names::TERMINATOR_LABEL_PREFIX);
        !ours || wanted.iter().any(|(k, _)| k == key)
    });
    for (key, value) in wanted {
        labels.insert(key, value.into());
    }
    if new.annotation(names::SHARD) != Some(s.shard_name) {
        new.set_annotation(names::SHARD, s.shard_name);
    }
    if phase == Phase::Ready && new.annotation(names::OWNER).is_some() {
        trim_owner(new);
    }
    terminators_finalizer(new);
    let url = format!("{}/clusters/{}", s.external_url, s.cluster);
    new.map_mut(&["status"]).insert("URL".into(), url.into());
}

/// The finalizer that keeps the object while terminators are left.
fn terminators_finalizer(new: &mut Object) {
    let has = new.finalizers().contains(&names::TERMINATORS_FINALIZER);
    let wants = !terminators(new).is_empty();
    if has == wants {
        return;
    }
    let mut list: Vec<Value> = new.finalizers().iter().map(|f| Value::from(*f)).collect();
    if wants {
        list.push(names::TERMINATORS_FINALIZER.into());
    } else {
        list.retain(|f| f != names::TERMINATORS_FINALIZER);
    }
    new.set_meta("finalizers", list);
}

/// The owner's right to everything in the workspace.
fn admin(s: &Snapshot<'_>) -> Option<Action> {
    if s.has_admin {
        return None;
    }
    let spec: LogicalClusterSpec = api::part(s.object, "spec");
    let user = match spec.created_by {
        Some(user) => user.username,
        None => {
            let owner = s.object.annotation(names::OWNER)?;
            serde_json::from_str::<api::UserInfo>(owner).ok()?.username
        }
    };
    if user.is_empty() {
        return None;
    }
    let object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": WORKSPACE_ADMIN},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"},
    });
    Some(create(cluster_scoped(&s.cluster, gvr::rbac("clusterrolebindings")), object))
}

/// The ClusterRoleBinding that makes the creator of a workspace its admin.
pub const WORKSPACE_ADMIN: &str = "workspace-admin";

pub(super) fn create(at: action::Target, object: Value) -> Action {
    let Value::Object(object) = object else { unreachable!("callers build objects") };
    Action::Create { at, object }
}

/// What `root:universal` promises and is not there yet.
fn universal(s: &Snapshot<'_>) -> Vec<Action> {
    let missing = NAMESPACES.iter().filter(|n| !s.namespaces.iter().any(|have| have == *n));
    let namespace = |name: &&str| {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "annotations": {names::CREATE_ONLY: "true"}},
        });
        create(cluster_scoped(&s.cluster, gvr::namespaces()), object)
    };
    missing.map(namespace).collect()
}
