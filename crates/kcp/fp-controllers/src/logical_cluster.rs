//! The LogicalCluster controller: phase, labels, promised objects, the owner's rights.

pub mod bindings;
pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, ObjectKey};
use fp_kcp::api::{ExportRef, TypeRef};
use fp_kcp::names::{self, group};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};
use std::time::Duration;

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key, seconds, since_secs};
use bindings::{Promised, Wanted};
use plan::{Snapshot, WORKSPACE_ADMIN};

/// Waiting for less than this is not worth a write.
const PATIENCE: Duration = Duration::from_secs(1);

pub const CONTROLLER: Controller = Controller {
    name: "kcp-logicalcluster",
    routes: &[
        Route { group: group::CORE, resource: "logicalclusters", keys: Keys::Own },
        Route { group: group::APIS, resource: "apibindings", keys: Keys::Change(of_same_cluster) },
        Route { group: "", resource: "namespaces", keys: Keys::Change(of_same_cluster) },
        Route { group: group::RBAC, resource: "clusterrolebindings", keys: Keys::Change(of_admin) },
        Route { group: group::TENANCY, resource: "workspacetypes", keys: Keys::Lookup(all) },
        Route { group: group::APIS, resource: "apiexports", keys: Keys::Lookup(all) },
    ],
    make: |world| Arc::new(LogicalClusters(world)),
};

fn of_cluster(cluster: &ClusterName) -> ObjectKey {
    key(cluster, names::LOGICAL_CLUSTER)
}

fn of_same_cluster(change: &Change) -> Vec<ObjectKey> {
    vec![of_cluster(&change.entry.key.cluster)]
}

fn of_admin(change: &Change) -> Vec<ObjectKey> {
    if &*change.entry.key.name == WORKSPACE_ADMIN { of_same_cluster(change) } else { Vec::new() }
}

/// Types and exports change seldom, and any LogicalCluster may be bound to follow.
fn all(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let table = world.system(group::CORE, "logicalclusters");
    world.everywhere(&table).iter().map(|e| e.key.clone()).collect()
}

struct LogicalClusters(Arc<World>);

#[async_trait]
impl Reconciler for LogicalClusters {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        8
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(object) = world.logical_cluster(&at.cluster) else { return Ok(Next::Done) };
        let entries = |table: Arc<fp_informer::Table>| world.in_cluster(&table, &at.cluster);
        let namespaces: Vec<String> = entries(world.builtin("", "namespaces"))
            .iter()
            .map(|e| e.key.name.to_string())
            .collect();
        let bindings: Vec<Object> =
            entries(world.system(group::APIS, "apibindings")).iter().map(|e| e.object()).collect();
        let admin = key(&at.cluster, WORKSPACE_ADMIN);
        let now = time::now();
        let age = seconds(&now) - since_secs(&object, "creationTimestamp");
        let snapshot = Snapshot {
            cluster: at.cluster.clone(),
            object: &object,
            shard_name: &world.config.shard_name,
            external_url: &world.config.external_url,
            namespaces: &namespaces,
            has_admin: world.builtin(group::RBAC, "clusterrolebindings").get(&admin).is_some(),
            promised: promised(world, &object, &bindings),
            now: &now,
            waited_long: age > PATIENCE.as_secs() as i64,
        };
        let next = action::run(world, plan::plan(&snapshot)).await?;
        if next == Next::Done && !snapshot.waited_long && !plan::initializers(&object).is_empty() {
            return Ok(Next::After(PATIENCE * 2));
        }
        Ok(next)
    }
}

/// The default bindings of the closure of the workspace's type.
fn promised<'a>(world: &World, object: &Object, bindings: &'a [Object]) -> Option<Promised<'a>> {
    let kind = TypeRef::parse(object.annotation(names::LOGICAL_CLUSTER_TYPE)?)?;
    let wanted = world.type_closure(&kind).map(|closure| {
        let of_type = |t: &Arc<fp_kcp::workspacetype::WorkspaceType>| {
            let maintain = t.value.default_api_binding_lifecycle.as_deref() == Some("Maintain");
            let path_of = |e: &ExportRef| {
                if e.path.is_empty() { t.cluster.to_string() } else { e.path.clone() }
            };
            t.value
                .default_api_bindings
                .iter()
                .map(|e| Wanted {
                    export: ExportRef { path: path_of(e), export: e.export.clone() },
                    object: world.export(&path_of(e), &e.export),
                    maintain,
                })
                .collect::<Vec<_>>()
        };
        closure.iter().flat_map(of_type).collect()
    });
    Some(Promised { wanted, bindings })
}
