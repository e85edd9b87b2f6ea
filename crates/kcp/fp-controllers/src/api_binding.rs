//! The APIBinding controller.

pub mod conflict;
pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::ObjectKey;
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
use plan::{Exported, Snapshot};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-apibinding",
    routes: &[
        Route { group: group::APIS, resource: "apibindings", keys: Keys::Own },
        Route {
            group: group::CORE,
            resource: "logicalclusters",
            keys: Keys::Lookup(unbound_in_cluster),
        },
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

fn bindings(world: &World) -> Arc<fp_informer::Table> {
    world.system(group::APIS, "apibindings")
}

/// The bindings of an export, by the label that admission keeps.
fn of_export(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let label = fp_kcp::hash::export_label(&at.cluster, &at.name);
    let all = world.everywhere(&bindings(world));
    all.iter()
        .filter(|e| e.label(names::EXPORT_LABEL) == Some(&label))
        .map(|e| e.key.clone())
        .collect()
}

fn is_bound(object: &Object) -> bool {
    object.text(&["status", "phase"]) == Some("Bound")
}

/// A schema or a bound CRD only matters to bindings that still wait.
fn unbound(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let all = world.everywhere(&bindings(world));
    all.iter().filter(|e| !is_bound(&e.object())).map(|e| e.key.clone()).collect()
}

fn unbound_in_cluster(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let all = world.in_cluster(&bindings(world), &at.cluster);
    all.iter().filter(|e| !is_bound(&e.object())).map(|e| e.key.clone()).collect()
}

fn of_crd(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    if at.cluster == ClusterName::system(system::BOUND_CRDS) {
        unbound(world, at)
    } else {
        unbound_in_cluster(world, at)
    }
}

struct ApiBindings(Arc<World>);

fn bound_crd(world: &World, name: &str) -> Option<Object> {
    let at = key(&ClusterName::system(system::BOUND_CRDS), name);
    world.builtin(group::APIEXTENSIONS, "customresourcedefinitions").get(&at).map(|e| e.object())
}

impl ApiBindings {
    fn exported(&self, cluster: &ClusterName, export: &Object) -> Vec<Exported> {
        let spec: ApiExportSpec = api::part(export, "spec");
        let schemas = self.0.system(group::APIS, "apiresourceschemas");
        let found = |r: &api::ExportResource| {
            let schema = schemas.get(&key(cluster, &r.schema)).map(|e| e.object());
            let crd = schema.as_ref().and_then(|s| bound_crd(&self.0, s.uid()));
            Exported { schema_name: r.schema.clone(), is_crd: r.is_crd(), schema, crd }
        };
        spec.resources.iter().map(found).collect()
    }

    /// The CRDs of a cluster, and what its other bindings bring.
    fn others(&self, at: &ObjectKey) -> Vec<Other> {
        let crds = self.0.builtin(group::APIEXTENSIONS, "customresourcedefinitions");
        let own = self.0.in_cluster(&crds, &at.cluster);
        let mut out: Vec<Other> =
            own.iter().map(|e| Other { crd: e.object(), binding: None }).collect();
        for binding in self.0.in_cluster(&bindings(&self.0), &at.cluster) {
            if binding.key == *at {
                continue;
            }
            let object = binding.object();
            let spec: ApiBindingSpec = api::part(&object, "spec");
            let status: ApiBindingStatus = api::part(&object, "status");
            let export = spec.reference.export.unwrap_or_default();
            for bound in status.bound_resources {
                if let Some(crd) = bound_crd(&self.0, &bound.schema.uid) {
                    let by = (object.name().to_owned(), export.path.clone(), export.name.clone());
                    out.push(Other { crd, binding: Some(by) });
                }
            }
        }
        out
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
        let Some(entry) = bindings(world).get(at) else { return Ok(Next::Done) };
        let binding = entry.object();
        let spec: ApiBindingSpec = api::part(&binding, "spec");
        let reference = spec.reference.export.unwrap_or_default();
        let path = if reference.path.is_empty() { at.cluster.as_str() } else { &reference.path };
        let export_cluster = world.resolve(path);
        let export = export_cluster.as_ref().zip(world.export(path, &reference.name));
        let exported = export.as_ref().map(|(c, e)| self.exported(c, e)).unwrap_or_default();
        let logical_cluster = world.logical_cluster(&at.cluster);
        let snapshot = Snapshot {
            binding: &binding,
            cluster: at.cluster.clone(),
            export: export.as_ref().map(|(c, e)| (*c, e)),
            exported: &exported,
            logical_cluster: logical_cluster.as_ref(),
            others: &self.others(at),
            now: &time::now(),
        };
        Ok(action::run(world, plan::plan(&snapshot)).await?)
    }
}
