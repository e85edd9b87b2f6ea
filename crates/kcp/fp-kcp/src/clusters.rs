//! What is asked of every LogicalCluster on every request: phase, path, type, required groups.
//!
//! Fed by an informer observer. Costs one entry per cluster; the channel that ends a cluster's
//! watches exists only while someone holds its other end.

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::ClusterName;
use fp_informer::{Entry, ObjectKey};
use fp_object::Object;
use fp_object::meta::Meta;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::api::{Phase, TypeRef};
use crate::names;

/// One LogicalCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub phase: Phase,
    pub deleting: bool,
    /// Marked inactive: only `/openapi` and the LogicalCluster itself are served.
    pub inactive: bool,
    /// Annotation `kcp.io/path`; a cluster without one is found by its name.
    pub path: Option<Box<str>>,
    /// Annotation `internal.tenancy.kcp.io/type`.
    pub kind: Option<TypeRef>,
    /// Annotation `authorization.kcp.io/required-groups`.
    pub required_groups: Option<Box<str>>,
}

impl Facts {
    pub fn read(logical_cluster: &Object) -> Self {
        let text = |key: &str| logical_cluster.annotation(key).filter(|v| !v.is_empty());
        let marked = |key: &str| text(key) == Some("true");
        Self {
            phase: Phase::of(logical_cluster),
            deleting: logical_cluster.is_deleting(),
            inactive: marked(names::INACTIVE) || marked(names::INACTIVE_LEGACY),
            path: text(names::PATH).map(Into::into),
            kind: text(names::LOGICAL_CLUSTER_TYPE).and_then(TypeRef::parse),
            required_groups: text(names::REQUIRED_GROUPS).map(Into::into),
        }
    }

    /// Watches of such a cluster end.
    fn ends_watches(&self) -> bool {
        self.inactive || self.phase == Phase::Deleting
    }
}

/// The index over all LogicalClusters of the shard.
pub struct Clusters {
    state: RwLock<State>,
    /// Never turns true: what system clusters get.
    never: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    facts: HashMap<ClusterName, Arc<Facts>>,
    gone: HashMap<ClusterName, watch::Sender<bool>>,
    /// For the watches over all clusters.
    some_inactive: watch::Sender<bool>,
    /// When `gone` has grown to this, channels that nobody holds are dropped.
    sweep_at: usize,
}

const SWEEP_FIRST: usize = 1024;

impl Default for Clusters {
    fn default() -> Self {
        let state = State { sweep_at: SWEEP_FIRST, ..State::default() };
        Self { state: RwLock::new(state), never: watch::Sender::new(false) }
    }
}

impl Clusters {
    /// Takes in a LogicalCluster; `None` is a delete.
    pub fn apply(&self, key: &ObjectKey, entry: Option<&Entry>) {
        if &*key.name != names::LOGICAL_CLUSTER {
            return;
        }
        let facts = entry.map(|e| Arc::new(Facts::read(&e.object())));
        let state = &mut *self.state.write();
        let ended = facts.as_ref().is_none_or(|f| f.ends_watches());
        let before = match facts {
            Some(facts) => state.facts.insert(key.cluster.clone(), facts),
            None => state.facts.remove(&key.cluster),
        };
        let inactive = state.facts.get(&key.cluster).is_some_and(|f| f.inactive);
        if inactive && !before.as_ref().is_some_and(|f| f.inactive) {
            // Watches that begin now are not ended by what ends those before.
            std::mem::take(&mut state.some_inactive).send_replace(true);
        }
        let was_ended = before.is_some_and(|f| f.ends_watches());
        if ended
            && (!was_ended || entry.is_none())
            && let Some(gone) = state.gone.remove(&key.cluster)
        {
            gone.send_replace(true);
        }
    }

    pub fn get(&self, cluster: &ClusterName) -> Option<Arc<Facts>> {
        self.state.read().facts.get(cluster).cloned()
    }

    /// How a workspace is called by its path; its name where it has none.
    pub fn path(&self, cluster: &ClusterName) -> String {
        let facts = self.get(cluster);
        facts
            .and_then(|f| f.path.as_deref().map(str::to_owned))
            .unwrap_or_else(|| cluster.to_string())
    }

    /// Turns true when any cluster becomes inactive.
    pub fn some_inactive(&self) -> watch::Receiver<bool> {
        self.state.read().some_inactive.subscribe()
    }

    /// Turns true when the cluster becomes inactive, enters deletion or is gone.
    pub fn gone(&self, cluster: &ClusterName) -> watch::Receiver<bool> {
        if cluster.is_system() {
            return self.never.subscribe();
        }
        if let Some(sender) = self.state.read().gone.get(cluster) {
            return sender.subscribe();
        }
        let state = &mut *self.state.write();
        if state.gone.len() >= state.sweep_at {
            state.gone.retain(|_, sender| sender.receiver_count() > 0);
            state.sweep_at = (state.gone.len() * 2).max(SWEEP_FIRST);
        }
        state.gone.entry(cluster.clone()).or_insert_with(|| watch::Sender::new(false)).subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cluster, entry, key};
    use serde_json::json;

    fn logical_cluster(phase: &str, annotations: serde_json::Value) -> serde_json::Value {
        json!({"metadata": {"name": "cluster", "annotations": annotations}, "status": {"phase": phase}})
    }

    fn put(clusters: &Clusters, name: &str, object: Option<serde_json::Value>) {
        let key = key(name, "", "cluster");
        clusters.apply(&key, object.map(|o| entry(&key, o)).as_ref());
    }

    #[test]
    fn facts() {
        let clusters = Clusters::default();
        let annotations = json!({"kcp.io/path": "root:acme", "internal.tenancy.kcp.io/type": "root:universal", "core.kcp.io/inactive": "true"});
        put(&clusters, "one", Some(logical_cluster("Ready", annotations)));
        let facts = clusters.get(&cluster("one")).unwrap();
        assert!(facts.inactive && !facts.deleting && facts.phase == Phase::Ready);
        assert_eq!(facts.kind.as_ref().unwrap().to_string(), "root:universal");
        assert_eq!(clusters.path(&cluster("one")), "root:acme");
        assert_eq!(clusters.path(&cluster("two")), "two");
        put(&clusters, "one", None);
        assert!(clusters.get(&cluster("one")).is_none());
    }

    #[test]
    fn an_inactive_cluster_ends_watches_of_all() {
        let clusters = Clusters::default();
        put(&clusters, "one", Some(logical_cluster("Ready", json!({}))));
        let inactive = || Some(logical_cluster("Ready", json!({"core.kcp.io/inactive": "true"})));
        let (before, other) = (clusters.some_inactive(), clusters.gone(&cluster("two")));
        put(&clusters, "one", inactive());
        assert!(*before.borrow() && !*other.borrow());
        let during = clusters.some_inactive();
        put(&clusters, "one", inactive());
        put(&clusters, "two", Some(logical_cluster("Deleting", json!({}))));
        put(&clusters, "two", None);
        assert!(!*during.borrow());
        put(&clusters, "one", Some(logical_cluster("Ready", json!({}))));
        put(&clusters, "one", inactive());
        assert!(*during.borrow());
    }

    #[test]
    fn watches_end_once() {
        let clusters = Clusters::default();
        put(&clusters, "one", Some(logical_cluster("Ready", json!({}))));
        let before = clusters.gone(&cluster("one"));
        put(&clusters, "one", Some(logical_cluster("Terminating", json!({}))));
        assert!(!*before.borrow());
        put(&clusters, "one", Some(logical_cluster("Deleting", json!({}))));
        assert!(*before.borrow());
        let during = clusters.gone(&cluster("one"));
        put(&clusters, "one", Some(logical_cluster("Deleting", json!({"a": "b"}))));
        assert!(!*during.borrow());
        put(&clusters, "one", None);
        assert!(*during.borrow());
        assert!(clusters.state.read().gone.is_empty());
    }
}
