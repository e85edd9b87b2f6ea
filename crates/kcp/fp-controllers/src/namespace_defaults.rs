//! The ServiceAccount `default` and the root CA bundle of every namespace
//! (kube-controller-manager's service account and root CA publishing controllers).

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_informer::{Change, ObjectKey};
use fp_runtime::{Error, Next, Reconciler};

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key};
use plan::{ROOT_CA, SERVICE_ACCOUNT, Snapshot};

pub const CONTROLLER: Controller = Controller {
    name: "kube-namespace-defaults-controller",
    routes: &[
        Route { group: "", resource: "namespaces", keys: Keys::Own },
        Route { group: "", resource: "serviceaccounts", keys: Keys::Change(of_namespace) },
        Route { group: "", resource: "configmaps", keys: Keys::Change(of_namespace) },
    ],
    make: |world| Arc::new(NamespaceDefaults(world)),
};

fn of_namespace(change: &Change) -> Vec<ObjectKey> {
    let at = &change.entry.key;
    if [SERVICE_ACCOUNT, ROOT_CA].contains(&&*at.name) {
        vec![key(&at.cluster, &at.namespace)]
    } else {
        Vec::new()
    }
}

struct NamespaceDefaults(Arc<World>);

#[async_trait]
impl Reconciler for NamespaceDefaults {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        4
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(namespace) = world.builtin("", "namespaces").get(at) else {
            return Ok(Next::Done);
        };
        let inside = |name: &str| ObjectKey {
            cluster: at.cluster.clone(),
            namespace: at.name.clone(),
            name: name.into(),
        };
        let plan = plan::plan(&Snapshot {
            cluster: &at.cluster,
            namespace: &at.name,
            deleting: namespace.deleting,
            has_service_account: world
                .builtin("", "serviceaccounts")
                .get(&inside(SERVICE_ACCOUNT))
                .is_some(),
            root_ca: world.builtin("", "configmaps").get(&inside(ROOT_CA)).map(|e| e.object()),
            ca_pem: &world.config.root_ca_pem,
        });
        Ok(action::run(world, plan).await?)
    }
}
