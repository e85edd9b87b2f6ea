//! Marks what other shards must see: ClusterRoles, ClusterRoleBindings and LogicalClusters get the
//! annotation `internal.kcp.io/replicate` with the groups that need them.
//!
//! Rules: kcp `pkg/reconciler/{apis,core,tenancy}/replicate*` (surface 6 and 11.3).

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, ObjectKey};
use fp_kcp::names::{self, group};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_runtime::{Error, Next, Reconciler};

use crate::action::{self, Plan};
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr, key};

pub const ROLES: Controller = Controller {
    name: "kcp-replicate-clusterrole",
    routes: &[
        Route { group: group::RBAC, resource: "clusterroles", keys: Keys::Own },
        Route {
            group: group::RBAC,
            resource: "clusterrolebindings",
            keys: Keys::Lookup(role_of_binding),
        },
        Route {
            group: group::CORE,
            resource: "logicalclusters",
            keys: Keys::Lookup(roles_of_cluster),
        },
    ],
    make: |world| Arc::new(Roles(world)),
};

pub const BINDINGS: Controller = Controller {
    name: "kcp-replicate-clusterrolebinding",
    routes: &[
        Route { group: group::RBAC, resource: "clusterrolebindings", keys: Keys::Own },
        Route {
            group: group::RBAC,
            resource: "clusterroles",
            keys: Keys::Lookup(bindings_of_role),
        },
        Route {
            group: group::CORE,
            resource: "logicalclusters",
            keys: Keys::Lookup(bindings_of_cluster),
        },
    ],
    make: |world| Arc::new(Bindings(world)),
};

pub const LOGICAL_CLUSTERS: Controller = Controller {
    name: "kcp-replicate-logicalcluster",
    routes: &[
        Route { group: group::APIS, resource: "apiexports", keys: Keys::Change(of_same_cluster) },
        Route {
            group: group::TENANCY,
            resource: "workspacetypes",
            keys: Keys::Change(of_same_cluster),
        },
        Route { group: group::CORE, resource: "logicalclusters", keys: Keys::Own },
    ],
    make: |world| Arc::new(LogicalClusters(world)),
};

fn of_same_cluster(change: &Change) -> Vec<ObjectKey> {
    vec![key(&change.entry.key.cluster, names::LOGICAL_CLUSTER)]
}

fn keys_in(world: &World, resource: &str, cluster: &ClusterName) -> Vec<ObjectKey> {
    let table = world.builtin(group::RBAC, resource);
    world.in_cluster(&table, cluster).iter().map(|e| e.key.clone()).collect()
}

fn roles_of_cluster(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    keys_in(world, "clusterroles", &at.cluster)
}

fn bindings_of_cluster(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    keys_in(world, "clusterrolebindings", &at.cluster)
}

fn role_of_binding(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let entry = world.builtin(group::RBAC, "clusterrolebindings").get(at);
    let role = entry.and_then(|e| e.object().text(&["roleRef", "name"]).map(str::to_owned));
    role.map(|name| key(&at.cluster, &name)).into_iter().collect()
}

fn bindings_of_role(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let all = world.in_cluster(&world.builtin(group::RBAC, "clusterrolebindings"), &at.cluster);
    let refers = |o: &Object| o.text(&["roleRef", "name"]) == Some(&at.name);
    all.iter().filter(|e| refers(&e.object())).map(|e| e.key.clone()).collect()
}

/// The groups a LogicalCluster is replicated for.
fn cluster_groups(world: &World, cluster: &ClusterName) -> Vec<String> {
    let annotation = world
        .logical_cluster(cluster)
        .and_then(|lc| lc.annotation(names::REPLICATE).map(str::to_owned));
    annotation.map(|a| a.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

async fn annotate(
    world: &World,
    at: &ObjectKey,
    gvr: fp_base::Gvr,
    object: &Object,
    groups: &[&str],
) -> Result<Next, Error> {
    let mut new = object.clone();
    plan::annotate(&mut new, groups);
    let update = action::update(cluster_scoped(&at.cluster, gvr), object, new);
    Ok(action::run(world, Plan::none().then(update.into_iter().collect())).await?)
}

struct Roles(Arc<World>);

#[async_trait]
impl Reconciler for Roles {
    fn name(&self) -> &'static str {
        ROLES.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let Some(entry) = self.0.builtin(group::RBAC, "clusterroles").get(at) else {
            return Ok(Next::Done);
        };
        if at.cluster.is_system() {
            return Ok(Next::Done);
        }
        let role = entry.object();
        let table = self.0.builtin(group::RBAC, "clusterrolebindings");
        let bindings: Vec<Object> = self
            .0
            .in_cluster(&table, &at.cluster)
            .iter()
            .map(|e| e.object())
            .filter(|b| b.text(&["roleRef", "name"]) == Some(&at.name))
            .collect();
        let groups = plan::role_groups(&role, &bindings, &cluster_groups(&self.0, &at.cluster));
        annotate(&self.0, at, gvr::rbac("clusterroles"), &role, &groups).await
    }
}

struct Bindings(Arc<World>);

#[async_trait]
impl Reconciler for Bindings {
    fn name(&self) -> &'static str {
        BINDINGS.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let table = self.0.builtin(group::RBAC, "clusterrolebindings");
        let Some(entry) = table.get(at) else { return Ok(Next::Done) };
        if at.cluster.is_system() {
            return Ok(Next::Done);
        }
        let binding = entry.object();
        let roles = self.0.builtin(group::RBAC, "clusterroles");
        let role_name = binding.text(&["roleRef", "name"]).unwrap_or("");
        let find = |cluster: &ClusterName| roles.get(&key(cluster, role_name)).map(|e| e.object());
        let role = find(&at.cluster).or_else(|| find(&ClusterName::system(names::system::ADMIN)));
        let groups =
            plan::binding_groups(&binding, role.as_ref(), &cluster_groups(&self.0, &at.cluster));
        annotate(&self.0, at, gvr::rbac("clusterrolebindings"), &binding, &groups).await
    }
}

struct LogicalClusters(Arc<World>);

#[async_trait]
impl Reconciler for LogicalClusters {
    fn name(&self) -> &'static str {
        LOGICAL_CLUSTERS.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(object) = world.logical_cluster(&at.cluster) else { return Ok(Next::Done) };
        if at.cluster.is_system() || object.is_deleting() {
            return Ok(Next::Done);
        }
        let has = |table: &fp_informer::Table| !world.in_cluster(table, &at.cluster).is_empty();
        let mut groups = Vec::new();
        if has(&world.system(group::APIS, "apiexports")) {
            groups.push(group::APIS);
        }
        if world.workspace_types().is_some_and(|t| has(&t)) {
            groups.push(group::TENANCY);
        }
        annotate(world, at, gvr::logical_clusters(), &object, &groups).await
    }
}
