//! The three tiers of resource definitions: system CRDs (every cluster has them), CRDs that a
//! cluster's APIBindings bring, and the cluster's own CRDs; around them the built-ins.
//!
//! Rules: kcp `pkg/server/apiextensions.go` (surface 4.3). A CRD in the core group shadows the
//! built-in of its name; an earlier tier shadows a later one.
//!
//! Invariants: fed by informer observers, so never behind what a reader of the informer sees;
//! definitions are shared by content, and what a cluster serves is shared by every cluster that
//! serves the same: a workspace costs one entry of the `clusters` map.

mod definitions;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::{ClusterName, ClusterScope, Gr, Identity};
use fp_informer::{Entry, ObjectKey};
use fp_schema::ResourceInfo;
use fp_verbs::{Resolved, Resolver};
use parking_lot::RwLock;

use crate::names::system;
use definitions::{Definition, Definitions, Origin};
use view::{BindingContent, Cluster, View, Views};

/// The shard's [`Resolver`].
pub struct Tiers {
    builtins: Vec<Arc<ResourceInfo>>,
    state: RwLock<State>,
}

struct State {
    definitions: Definitions,
    /// By name; what every cluster serves.
    system: Vec<Arc<ResourceInfo>>,
    system_crds: HashMap<Arc<str>, Arc<Definition>>,
    /// CRDs of `system:bound-crds`, by name (the schema's uid).
    bound_crds: HashMap<Arc<str>, Arc<Definition>>,
    /// Every cluster that has a binding or a CRD.
    clusters: HashMap<ClusterName, Cluster>,
    views: Views,
    /// How many CRDs of clusters have this resource, and one of them: for partial lists over all.
    local: HashMap<Gr, Vec<(ClusterName, Arc<ResourceInfo>)>>,
    /// What a request over all clusters sees; also a cluster without anything of its own.
    common: Arc<View>,
}

impl Tiers {
    /// `builtins` in discovery order.
    pub fn new(builtins: Vec<Arc<ResourceInfo>>) -> Self {
        let common = Arc::new(View::common(&builtins, &[]));
        let state = State {
            definitions: Definitions::new(),
            system: Vec::new(),
            system_crds: HashMap::new(),
            bound_crds: HashMap::new(),
            clusters: HashMap::new(),
            views: Views::default(),
            local: HashMap::new(),
            common,
        };
        Self { builtins, state: RwLock::new(state) }
    }

    /// Takes in a CustomResourceDefinition; `None` is a delete.
    pub fn apply_crd(&self, key: &ObjectKey, entry: Option<&Entry>) {
        let definition = entry.map(|e| Arc::new(Definition::read(&e.object())));
        let state = &mut *self.state.write();
        if key.cluster == ClusterName::system(system::SYSTEM_CRDS) {
            put(&mut state.system_crds, &key.name, definition);
            state.rebuild_system(&self.builtins);
        } else if key.cluster == ClusterName::system(system::BOUND_CRDS) {
            // There they are also CRDs like any other.
            state.set_local(key, definition.as_deref());
            put(&mut state.bound_crds, &key.name, definition);
            state.rebuild_cluster(&self.builtins, &key.cluster);
            state.rebuild_views(&self.builtins, Some(&key.name));
        } else {
            state.set_local(key, definition.as_deref());
            state.rebuild_cluster(&self.builtins, &key.cluster);
        }
    }

    /// Takes in an APIBinding; `None` is a delete.
    pub fn apply_binding(&self, key: &ObjectKey, entry: Option<&Entry>) {
        let content = entry.map(|e| BindingContent::read(&e.object()));
        let state = &mut *self.state.write();
        let content = content.map(|c| state.views.share_binding(c));
        let cluster = state.clusters.entry(key.cluster.clone()).or_default();
        if cluster.set_binding(&key.name, content) {
            state.rebuild_cluster(&self.builtins, &key.cluster);
        }
    }

    /// The export (path, which may be empty, and name) through which a cluster has a resource.
    pub fn bound_export(
        &self,
        cluster: &ClusterName,
        group: &str,
        resource: &str,
    ) -> Option<(Arc<str>, Arc<str>)> {
        self.state.read().clusters.get(cluster)?.bound_export(group, resource)
    }

    /// What the cluster's definitions are, for whoever must look at all of them at once.
    fn view(&self, scope: &ClusterScope) -> Arc<View> {
        let state = self.state.read();
        let own = scope.one().and_then(|name| state.clusters.get(name)).and_then(Cluster::view);
        own.unwrap_or_else(|| state.common.clone())
    }

    /// Tiers beyond the system CRDs, for all clusters at once.
    fn resolve_all(&self, gr: &Gr, identity: Option<&str>, partial: bool) -> Resolved {
        let state = &mut *self.state.write();
        if let Some(identity) = identity {
            let Some(identity) = Identity::parse(identity) else { return Resolved::Unknown };
            return state.bound_by_identity(gr, &identity);
        }
        if !partial {
            return Resolved::Unknown;
        }
        if let Some((_, info)) = state.local.get(gr).and_then(|l| l.first()) {
            return Resolved::Found(info.clone());
        }
        match state.views.identity_of(gr) {
            Some(identity) => state.bound_by_identity(gr, &identity),
            None => Resolved::Unknown,
        }
    }
}

impl State {
    fn rebuild_system(&mut self, builtins: &[Arc<ResourceInfo>]) {
        let mut names: Vec<&Arc<str>> = self.system_crds.keys().collect();
        names.sort();
        self.system = names
            .into_iter()
            .filter_map(|name| {
                self.definitions.info(&self.system_crds[name], Origin::System { name })
            })
            .collect();
        self.common = Arc::new(View::common(builtins, &self.system));
        self.rebuild_views(builtins, None);
    }

    /// Renews every view, or those that use one bound CRD.
    fn rebuild_views(&mut self, builtins: &[Arc<ResourceInfo>], using: Option<&str>) {
        let Self { definitions, system, bound_crds, views, .. } = self;
        views
            .rebuild(using, &mut |key| View::build(builtins, system, bound_crds, definitions, key));
    }

    fn rebuild_cluster(&mut self, builtins: &[Arc<ResourceInfo>], name: &ClusterName) {
        let Self { definitions, system, bound_crds, views, clusters, .. } = self;
        let Some(cluster) = clusters.get_mut(name) else { return };
        cluster
            .renew(views, &mut |key| View::build(builtins, system, bound_crds, definitions, key));
        if cluster.is_empty() {
            clusters.remove(name);
        }
    }

    /// Sets or removes a cluster's own CRD. One that is not established is not served.
    fn set_local(&mut self, key: &ObjectKey, definition: Option<&Definition>) {
        let origin = Origin::Local { name: &key.name };
        let info = definition.and_then(|d| self.definitions.info(d, origin));
        let cluster = self.clusters.entry(key.cluster.clone()).or_default();
        let old = cluster.set_local(&key.name, info.clone());
        if key.cluster == ClusterName::system(system::BOUND_CRDS) {
            return;
        }
        if let Some(old) = old
            && let Some(list) = self.local.get_mut(&old.gr)
        {
            list.retain(|(c, i)| *c != key.cluster || !Arc::ptr_eq(i, &old));
            if list.is_empty() {
                self.local.remove(&old.gr);
            }
        }
        if let Some(info) = info {
            self.local.entry(info.gr.clone()).or_default().push((key.cluster.clone(), info));
        }
    }

    fn bound_by_identity(&mut self, gr: &Gr, identity: &Identity) -> Resolved {
        let Some((uid, schema_name)) = self.views.bound(gr, identity) else {
            return Resolved::Unknown;
        };
        let definition = self.bound_crds.get(&uid);
        let origin =
            Origin::Bound { name: &uid, schema_name: &schema_name, identity, terminating: false };
        match definition.and_then(|d| self.definitions.info(d, origin)) {
            Some(info) => Resolved::Found(info),
            None => Resolved::Unavailable(unavailable(gr)),
        }
    }
}

impl Resolver for Tiers {
    fn resolve(
        &self,
        scope: &ClusterScope,
        group: &str,
        resource: &str,
        identity: Option<&str>,
        partial: bool,
    ) -> Resolved {
        let view = self.view(scope);
        if let Some(found) = view.find(group, resource, identity) {
            return found;
        }
        match scope {
            ClusterScope::One(_) => Resolved::Unknown,
            ClusterScope::All => self.resolve_all(&Gr::new(group, resource), identity, partial),
        }
    }

    fn list(&self, scope: &ClusterScope) -> Vec<Arc<ResourceInfo>> {
        self.view(scope).served.to_vec()
    }

    fn fingerprint(&self, scope: &ClusterScope) -> u64 {
        self.view(scope).fingerprint
    }
}

/// kcp's words for a bound resource whose CRD is not there.
fn unavailable(gr: &Gr) -> String {
    let group = if gr.group.is_empty() { "core" } else { &gr.group };
    format!("{}.{group} is currently unavailable", gr.resource)
}

fn put<V>(map: &mut HashMap<Arc<str>, V>, key: &Arc<str>, value: Option<V>) {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    };
}

#[cfg(test)]
mod tests;
