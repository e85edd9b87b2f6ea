//! CRDs: their names accepted and established, their resource locked in the workspace, their
//! objects deleted with them (apiextensions' naming, establishing and finalizing controllers).

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::ObjectKey;
use fp_kcp::names::{group, system};
use fp_object::{Object, time};
use fp_runtime::{Error, Next, Reconciler};
use fp_schema::Origin;

use crate::action;
use crate::content;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr};
use plan::Snapshot;

pub const CONTROLLER: Controller = Controller {
    name: "crd-controller",
    routes: &[Route {
        group: group::APIEXTENSIONS,
        resource: "customresourcedefinitions",
        keys: Keys::Lookup(of_group),
    }],
    make: |world| Arc::new(Crds(world)),
};

/// The CRD itself, and those of its cluster that may have waited for its names.
fn of_group(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let mut out = vec![at.clone()];
    if at.cluster != ClusterName::system(system::BOUND_CRDS) {
        let table = world.builtin(group::APIEXTENSIONS, "customresourcedefinitions");
        let others = world.in_cluster(&table, &at.cluster);
        out.extend(others.iter().filter(|e| e.key != *at).map(|e| e.key.clone()));
    }
    out
}

struct Crds(Arc<World>);

impl Crds {
    /// Deletes the objects of a CRD that is being deleted. True when none is left.
    async fn empty(&self, at: &ObjectKey) -> Result<bool, Error> {
        let is_its = |o: &Origin| matches!(o, Origin::Crd { name, .. } if **name == *at.name);
        for info in self.0.served(&at.cluster).iter().filter(|i| is_its(&i.origin)) {
            if !content::delete_all(&self.0, info, &at.cluster, None).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[async_trait]
impl Reconciler for Crds {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        4
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let table = world.builtin(group::APIEXTENSIONS, "customresourcedefinitions");
        let Some(entry) = table.get(at) else { return Ok(Next::Done) };
        let crd = entry.object();
        let target = cluster_scoped(&at.cluster, gvr::crds());
        if entry.deleting && plan::has_finalizer(&crd) {
            if let Some(told) = plan::terminating(&crd, &time::now()) {
                world.update_status(&target, told).await?;
                return Ok(Next::After(content::RETRY / 20));
            }
            if !self.empty(at).await? {
                return Ok(Next::After(content::RETRY / 4));
            }
            world.update(&target, plan::without_finalizer(&crd)).await?;
            return Ok(Next::Done);
        }
        // Bound CRDs of one resource may stand side by side: the name of each is its schema's uid.
        let bound = at.cluster == ClusterName::system(system::BOUND_CRDS);
        let others: Vec<Object> = if bound {
            Vec::new()
        } else {
            world
                .in_cluster(&table, &at.cluster)
                .iter()
                .filter(|e| e.key != *at)
                .map(|e| e.object())
                .collect()
        };
        let logical_cluster = world.logical_cluster(&at.cluster);
        let plan = plan::plan(&Snapshot {
            crd: &crd,
            cluster: &at.cluster,
            others: &others,
            logical_cluster: logical_cluster.as_ref(),
            now: &time::now(),
        });
        Ok(action::run(world, plan).await?)
    }
}
