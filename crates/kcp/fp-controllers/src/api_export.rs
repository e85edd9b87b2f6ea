//! The APIExport controller: an identity, its hash, and the default endpoint slice.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_informer::{Change, ObjectKey};
use fp_kcp::api::{self, ApiExportSpec};
use fp_kcp::names::group;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key};
use plan::{SECRET_NAMESPACE, Snapshot};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-apiexport",
    routes: &[
        Route { group: group::APIS, resource: "apiexports", keys: Keys::Own },
        Route {
            group: group::APIS,
            resource: "apiexportendpointslices",
            keys: Keys::Change(of_slice),
        },
        Route { group: "", resource: "secrets", keys: Keys::Lookup(of_secret) },
    ],
    make: |world| Arc::new(ApiExports(world)),
};

fn of_slice(change: &Change) -> Vec<ObjectKey> {
    vec![change.entry.key.clone()]
}

/// The exports of the secret's cluster that name it.
fn of_secret(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let exports = world.in_cluster(&world.system(group::APIS, "apiexports"), &at.cluster);
    let names_it = |e: &&Arc<fp_informer::Entry>| {
        let spec: ApiExportSpec = api::part(&e.object(), "spec");
        let secret = spec.identity.and_then(|i| i.secret_ref).unwrap_or_default();
        secret.namespace == *at.namespace && secret.name == *at.name
    };
    exports.iter().filter(names_it).map(|e| e.key.clone()).collect()
}

struct ApiExports(Arc<World>);

#[async_trait]
impl Reconciler for ApiExports {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(entry) = world.system(group::APIS, "apiexports").get(at) else {
            return Ok(Next::Done);
        };
        let export = entry.object();
        let spec: ApiExportSpec = api::part(&export, "spec");
        let secret_ref = spec.identity.and_then(|i| i.secret_ref);
        let (namespace, name) = match &secret_ref {
            Some(secret) => (secret.namespace.as_str(), secret.name.as_str()),
            None => (SECRET_NAMESPACE, &*at.name),
        };
        let secret = ObjectKey {
            cluster: at.cluster.clone(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let slices = world.system(group::APIS, "apiexportendpointslices");
        let plan = plan::plan(&Snapshot {
            cluster: &at.cluster,
            export: &export,
            has_secret_ref: secret_ref.is_some(),
            secret: world.builtin("", "secrets").get(&secret).map(|e| e.object()).as_ref(),
            has_namespace: world
                .builtin("", "namespaces")
                .get(&key(&at.cluster, SECRET_NAMESPACE))
                .is_some(),
            has_slice: slices.get(at).is_some(),
            fresh_key: fp_kcp::hash::random_identity_key(),
            now: &time::now(),
        });
        Ok(action::run(world, plan).await?)
    }
}
