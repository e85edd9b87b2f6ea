//! The APIBinding controller.

pub mod conflict;
mod locks;
pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, Entry, ObjectKey};
use fp_kcp::api::{self, ApiBindingSpec, ApiBindingStatus, ApiExportSpec};
use fp_kcp::names::{self, group, system};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key};
use conflict::Other;
use plan::{Binding, Exported, Snapshot};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-apibinding",
    routes: &[
        Route { group: group::APIS, resource: "apibindings", keys: Keys::Change(of_same_cluster) },
        Route { group: group::CORE, resource: "logicalclusters", keys: Keys::Own },
        Route { group: group::APIS, resource: "apiexports", keys: Keys::Lookup(of_export) },
        Route { group: group::APIS, resource: "apiresourceschemas", keys: Keys::Lookup(unbound) },
        Route {
            group: group::APIEXTENSIONS,
            resource: "customresourcedefinitions",
            keys: Keys::Lookup(of_crd),
        },
    ],
    make: |world| Arc::new(ApiBindings(world)),
};

/// A key is a cluster: its bindings share the LogicalCluster, in which they lock resources.
fn of_cluster(cluster: &ClusterName) -> ObjectKey {
    key(cluster, names::LOGICAL_CLUSTER)
}

fn of_same_cluster(change: &Change) -> Vec<ObjectKey> {
    vec![of_cluster(&change.entry.key.cluster)]
}

fn bindings(world: &World) -> Arc<fp_informer::Table> {
    world.system(group::APIS, "apibindings")
}

/// The clusters that bind an export, by the label that admission keeps.
fn of_export(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let label = fp_kcp::hash::export_label(&at.cluster, &at.name);
    let all = world.everywhere(&bindings(world));
    let binds = |e: &&Arc<Entry>| e.label(names::EXPORT_LABEL) == Some(&label);
    all.iter().filter(binds).map(|e| of_cluster(&e.key.cluster)).collect()
}

/// A schema or a bound CRD only matters to bindings that still wait.
fn unbound(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let all = world.everywhere(&bindings(world));
    let waits = |e: &&Arc<Entry>| e.object().text(&["status", "phase"]) != Some("Bound");
    all.iter().filter(waits).map(|e| of_cluster(&e.key.cluster)).collect()
}

fn of_crd(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    if at.cluster == ClusterName::system(system::BOUND_CRDS) {
        unbound(world, at)
    } else {
        vec![of_cluster(&at.cluster)]
    }
}

struct ApiBindings(Arc<World>);

fn bound_crd(world: &World, name: &str) -> Option<Arc<Object>> {
    let at = key(&ClusterName::system(system::BOUND_CRDS), name);
    world
        .builtin(group::APIEXTENSIONS, "customresourcedefinitions")
        .get(&at)
        .map(|e| world.outline(&e))
}

impl ApiBindings {
    fn exported(&self, cluster: &ClusterName, export: &Object) -> Vec<Exported> {
        let spec: ApiExportSpec = api::part(export, "spec");
        let schemas = self.0.system(group::APIS, "apiresourceschemas");
        let found = |r: &api::ExportResource| {
            let entry = schemas.get(&key(cluster, &r.schema));
            let outline = entry.as_ref().map(|e| self.0.outline(e));
            let crd = outline.as_ref().and_then(|s| bound_crd(&self.0, s.uid()));
            // Only a CRD that is still to be made needs the whole schema.
            let schema = if crd.is_some() { outline } else { entry.map(|e| Arc::new(e.object())) };
            Exported { schema_name: r.schema.clone(), is_crd: r.is_crd(), schema, crd }
        };
        spec.resources.iter().map(found).collect()
    }

    /// The CRDs of a cluster, and what its bindings bring.
    fn definitions(&self, cluster: &ClusterName, bindings: &[Object]) -> Vec<Other> {
        let crds = self.0.builtin(group::APIEXTENSIONS, "customresourcedefinitions");
        let own = self.0.in_cluster(&crds, cluster);
        let mut out: Vec<Other> =
            own.iter().map(|e| Other { crd: self.0.outline(e), binding: None }).collect();
        for binding in bindings {
            let spec: ApiBindingSpec = api::part(binding, "spec");
            let status: ApiBindingStatus = api::part(binding, "status");
            let export = spec.reference.export.unwrap_or_default();
            for bound in status.bound_resources {
                if let Some(crd) = bound_crd(&self.0, &bound.schema.uid) {
                    let by = (binding.name().to_owned(), export.path.clone(), export.name.clone());
                    out.push(Other { crd, binding: Some(by) });
                }
            }
        }
        out
    }

    fn export(&self, cluster: &ClusterName, binding: &Object) -> Option<(ClusterName, Object)> {
        let spec: ApiBindingSpec = api::part(binding, "spec");
        let reference = spec.reference.export?;
        let path = if reference.path.is_empty() { cluster.as_str() } else { &reference.path };
        self.0.resolve(path).zip(self.0.export(path, &reference.name))
    }
}

#[async_trait]
impl Reconciler for ApiBindings {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        8
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let entries = world.in_cluster(&bindings(world), &at.cluster);
        let objects: Vec<Object> = entries.iter().map(|e| e.object()).collect();
        let others = self.definitions(&at.cluster, &objects);
        let exports: Vec<_> = objects.iter().map(|o| self.export(&at.cluster, o)).collect();
        let exported: Vec<Vec<Exported>> = exports
            .iter()
            .map(|e| e.as_ref().map(|(c, e)| self.exported(c, e)).unwrap_or_default())
            .collect();
        let bindings: Vec<Binding<'_>> = objects
            .iter()
            .zip(exports.iter().zip(&exported))
            .map(|(object, (export, exported))| Binding {
                object,
                export: export.as_ref().map(|(c, e)| (c, e)),
                exported,
                others: &others,
            })
            .collect();
        let logical_cluster = world.logical_cluster(&at.cluster);
        let own = others.iter().filter(|other| other.binding.is_none());
        let crds: Vec<&str> = own.map(|other| other.crd.name()).collect();
        let snapshot = Snapshot {
            cluster: &at.cluster,
            logical_cluster: logical_cluster.as_ref(),
            bindings: &bindings,
            crds: &crds,
            now: &time::now(),
        };
        Ok(action::run(world, plan::plan(&snapshot)).await?)
    }
}
