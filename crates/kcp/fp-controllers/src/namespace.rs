//! Empties a namespace that is being deleted, then lets it go (kube's namespace controller).

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_informer::{Change, ObjectKey};
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::content::{self, Content};
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key};

pub const CONTROLLER: Controller = Controller {
    name: "kube-namespace-controller",
    routes: &[Route { group: "", resource: "namespaces", keys: Keys::Change(deleting) }],
    make: |world| Arc::new(Namespaces(world)),
};

fn deleting(change: &Change) -> Vec<ObjectKey> {
    let entry = &change.entry;
    if entry.deleting { vec![key(&entry.key.cluster, &entry.key.name)] } else { Vec::new() }
}

struct Namespaces(Arc<World>);

#[async_trait]
impl Reconciler for Namespaces {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        4
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(entry) = world.builtin("", "namespaces").get(at) else { return Ok(Next::Done) };
        if !entry.deleting {
            return Ok(Next::Done);
        }
        let infos = world.served(&at.cluster);
        let inside = |namespaced: bool| infos.iter().filter(move |i| i.namespaced() == namespaced);
        let mut content = Content::default();
        for info in inside(true) {
            content.take(content::delete_all(world, info, &at.cluster, Some(&at.name)).await?);
        }
        let now = time::now();
        if let Some(conditions) = plan::conditions(&entry.object(), &content, &now) {
            world.update_status(&plan::target(&at.cluster), conditions).await?;
            return Ok(Next::After(content::RETRY));
        }
        if !content.is_empty() {
            return Ok(Next::After(content::RETRY));
        }
        let Some(entry) = world.builtin("", "namespaces").get(at) else { return Ok(Next::Done) };
        world.finalize_namespace(&at.cluster, plan::without_finalizer(&entry.object())).await?;
        Ok(Next::Done)
    }
}
