//! Empties a workspace that is being deleted, then lets its LogicalCluster go.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, ObjectKey};
use fp_kcp::names::group;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};
use fp_schema::{Origin, ResourceInfo};

use crate::content::{self, Content};
use crate::routes::{Controller, Keys, Route};
use crate::world::World;

pub const CONTROLLER: Controller = Controller {
    name: "kcp-logicalcluster-deletion",
    routes: &[Route {
        group: group::CORE,
        resource: "logicalclusters",
        keys: Keys::Change(deleting),
    }],
    make: |world| Arc::new(Deletion(world)),
};

fn deleting(change: &Change) -> Vec<ObjectKey> {
    if change.entry.deleting { vec![change.entry.key.clone()] } else { Vec::new() }
}

struct Deletion(Arc<World>);

/// Kept to the end: they let the deletion itself go on.
fn is_kept(info: &ResourceInfo) -> bool {
    let (group, resource) = (&*info.gr.group, &*info.gr.resource);
    match resource {
        "logicalclusters" => group == group::CORE,
        "clusterroles" | "clusterrolebindings" => group == group::RBAC,
        "apibindings" => group == group::APIS,
        _ => false,
    }
}

impl Deletion {
    async fn delete(
        &self,
        cluster: &ClusterName,
        which: impl Fn(&ResourceInfo) -> bool,
    ) -> Result<Content, Error> {
        let mut left = Content::default();
        for info in self.0.served(cluster).iter().filter(|i| !i.namespaced() && which(i)) {
            left.take(content::delete_all(&self.0, info, cluster, None).await?);
        }
        Ok(left)
    }
}

#[async_trait]
impl Reconciler for Deletion {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        10
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(object) = world.logical_cluster(&at.cluster) else { return Ok(Next::Done) };
        if !plan::is_due(&object) {
            return Ok(Next::Done);
        }
        // Namespaces take what is in them along; bound resources go with their bindings.
        let own = |i: &ResourceInfo| !is_kept(i) && !matches!(i.origin, Origin::Bound { .. });
        let mut left = self.delete(&at.cluster, own).await?;
        if left.is_empty() {
            left = self
                .delete(&at.cluster, |i| {
                    &*i.gr.resource == "apibindings" && &*i.gr.group == group::APIS
                })
                .await?;
        }
        let target = plan::target(&at.cluster);
        if !left.is_empty() {
            if let Some(told) = plan::tell(&object, &left, &time::now()) {
                world.update_status(&target, told).await?;
            }
            return Ok(Next::After(content::RETRY / 4));
        }
        for resource in ["clusterroles", "clusterrolebindings"] {
            self.delete(&at.cluster, |i| {
                &*i.gr.resource == resource && &*i.gr.group == group::RBAC
            })
            .await?;
        }
        world.update(&target, plan::without_finalizer(&object)).await?;
        Ok(Next::Done)
    }
}
