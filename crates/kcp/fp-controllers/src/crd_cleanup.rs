//! Deletes bound CRDs that no binding uses any more, half an hour after they were made.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::ObjectKey;
use fp_kcp::api::{self, ApiBindingStatus};
use fp_kcp::names::{group, system};
use fp_object::meta::Meta;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr, seconds, since_secs};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-crdcleanup",
    routes: &[Route {
        group: group::APIEXTENSIONS,
        resource: "customresourcedefinitions",
        keys: Keys::Own,
    }],
    make: |world| Arc::new(Cleanup(world)),
};

/// A bound CRD is looked at this often, and is this old at least when it goes.
const AGE: Duration = Duration::from_secs(30 * 60);

struct Cleanup(Arc<World>);

#[async_trait]
impl Reconciler for Cleanup {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        1
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        if at.cluster != ClusterName::system(system::BOUND_CRDS) {
            return Ok(Next::Done);
        }
        let table = world.builtin(group::APIEXTENSIONS, "customresourcedefinitions");
        let Some(entry) = table.get(at) else { return Ok(Next::Done) };
        let crd = entry.object();
        let age = seconds(&time::now()) - since_secs(&crd, "creationTimestamp");
        let is_used = || {
            let bindings = world.everywhere(&world.system(group::APIS, "apibindings"));
            bindings.iter().any(|b| {
                let status: ApiBindingStatus = api::part(&b.object(), "status");
                status.bound_resources.iter().any(|r| *r.schema.uid == *at.name)
            })
        };
        if age >= AGE.as_secs() as i64 && !is_used() {
            world.delete(&cluster_scoped(&at.cluster, gvr::crds()), &at.name, crd.uid()).await?;
            return Ok(Next::Done);
        }
        Ok(Next::After(AGE))
    }
}
