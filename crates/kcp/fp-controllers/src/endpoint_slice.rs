//! The APIExportEndpointSlice controller: what the slice refers to, and this shard's endpoint.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_informer::{Change, ObjectKey};
use fp_kcp::api::{self, ShardSpec};
use fp_kcp::names::{self, group};
use fp_object::meta::Meta;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key};
use plan::Snapshot;

pub const CONTROLLER: Controller = Controller {
    name: "kcp-apiexportendpointslice",
    routes: &[
        Route { group: group::APIS, resource: "apiexportendpointslices", keys: Keys::Own },
        Route { group: group::APIS, resource: "apiexports", keys: Keys::Lookup(all) },
        Route { group: group::TOPOLOGY, resource: "partitions", keys: Keys::Lookup(all) },
        Route { group: group::CORE, resource: "shards", keys: Keys::Lookup(all) },
        Route { group: group::APIS, resource: "apibindings", keys: Keys::Change(first_binding) },
    ],
    make: |world| Arc::new(EndpointSlices(world)),
};

/// Slices are few: one an export.
fn all(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let table = world.system(group::APIS, "apiexportendpointslices");
    world.everywhere(&table).iter().map(|e| e.key.clone()).collect()
}

/// An export's first binding here and its last one matter. A binding names the cluster of its
/// export in its status; that slice has the export's name unless somebody made another, which the
/// next change of the export finds.
fn first_binding(change: &Change) -> Vec<ObjectKey> {
    let exported = |entry: &fp_informer::Entry| {
        let object = entry.object();
        let cluster = object.text(&["status", "apiExportClusterName"])?.to_owned();
        let name = object.text(&["spec", "reference", "export", "name"])?.to_owned();
        Some(key(&fp_base::ClusterName::parse(&cluster).ok()?, &name))
    };
    let now = exported(&change.entry);
    let before = change.old.as_deref().and_then(exported);
    let deleted = change.kind == fp_informer::ChangeKind::Deleted;
    if now == before && !deleted { Vec::new() } else { now.or(before).into_iter().collect() }
}

struct EndpointSlices(Arc<World>);

#[async_trait]
impl Reconciler for EndpointSlices {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(entry) = world.system(group::APIS, "apiexportendpointslices").get(at) else {
            return Ok(Next::Done);
        };
        let slice = entry.object();
        let path = slice
            .text(&["spec", "export", "path"])
            .filter(|p| !p.is_empty())
            .unwrap_or(at.cluster.as_str());
        let name = slice.text(&["spec", "export", "name"]).unwrap_or("");
        let export_cluster = world.resolve(path).filter(|_| world.export(path, name).is_some());
        let partition = slice.text(&["spec", "partition"]).filter(|p| !p.is_empty()).map(|name| {
            let table = world.exported("topology.kcp.io", group::TOPOLOGY, "partitions");
            table.and_then(|t| t.get(&key(&at.cluster, name))).map(|e| e.object())
        });
        let shards = world.shards().map(|t| world.everywhere(&t)).unwrap_or_default();
        let own = shards.iter().find(|e| *e.key.name == *world.config.shard_name);
        let url = |e: &Arc<fp_informer::Entry>| {
            api::part::<ShardSpec>(&e.object(), "spec").virtual_workspace_url
        };
        let shard_urls: Vec<String> = shards.iter().map(url).collect();
        let plan = plan::plan(&Snapshot {
            slice: &slice,
            cluster: &at.cluster,
            path,
            export: export_cluster.as_ref(),
            partition: partition.as_ref().map(Option::as_ref),
            shard_labels: own.map(|e| &*e.labels).unwrap_or_default(),
            virtual_workspace_url: &world.config.virtual_workspace_url,
            shard_urls: &shard_urls,
            has_bindings: export_cluster.as_ref().is_some_and(|c| has_bindings(world, c, name)),
            now: &time::now(),
        });
        Ok(action::run(world, plan).await?)
    }
}

/// Stops at the first one: popular exports have as many bindings as there are workspaces.
fn has_bindings(world: &World, cluster: &fp_base::ClusterName, export: &str) -> bool {
    let label = fp_kcp::hash::export_label(cluster, export);
    world.system(group::APIS, "apibindings").any(|e| e.label(names::EXPORT_LABEL) == Some(&label))
}
