//! Deletes what an APIBinding brought, then lets the binding go (surface 9.3).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, ObjectKey};
use fp_kcp::api::{self, ApiBindingStatus};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition, group};
use fp_object::meta::Meta;
use fp_object::{Object, Value, time};
use fp_runtime::{Error, Next, Reconciler};

use crate::content::{self, Content};
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr, key};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-apibindingdeletion",
    routes: &[Route { group: group::APIS, resource: "apibindings", keys: Keys::Change(deleting) }],
    make: |world| Arc::new(Deletion(world)),
};

fn deleting(change: &Change) -> Vec<ObjectKey> {
    if change.entry.deleting { vec![change.entry.key.clone()] } else { Vec::new() }
}

struct Deletion(Arc<World>);

/// Group, resource, schema uid and identity: equal in two bindings means the same objects.
type Bound = (String, String, String, String);

fn bound(binding: &Object) -> BTreeSet<Bound> {
    let status: ApiBindingStatus = api::part(binding, "status");
    let of = |b: api::BoundResource| (b.group, b.resource, b.schema.uid, b.schema.identity_hash);
    status.bound_resources.into_iter().map(of).collect()
}

impl Deletion {
    /// What only this binding brings: the rest is adopted by another one of the cluster.
    fn due(&self, at: &ObjectKey, binding: &Object) -> BTreeSet<Bound> {
        let mut due = bound(binding);
        for other in self.0.in_cluster(&self.0.system(group::APIS, "apibindings"), &at.cluster) {
            if other.key != *at && !other.deleting {
                let kept = self.promised(&at.cluster, &other.object());
                due.retain(|b| !kept.contains(b));
            }
        }
        due
    }

    /// What a binding has bound, and what its export would let it bind: a successor waits for the
    /// resources that the binding under deletion still holds.
    fn promised(&self, cluster: &ClusterName, binding: &Object) -> BTreeSet<Bound> {
        let mut all = bound(binding);
        let spec: api::ApiBindingSpec = api::part(binding, "spec");
        let Some(reference) = spec.reference.export else { return all };
        let path = if reference.path.is_empty() { cluster.as_str() } else { &reference.path };
        let (Some(provider), Some(export)) =
            (self.0.resolve(path), self.0.export(path, &reference.name))
        else {
            return all;
        };
        let identity = export.text(&["status", "identityHash"]).unwrap_or("");
        let schemas = self.0.system(group::APIS, "apiresourceschemas");
        let export: api::ApiExportSpec = api::part(&export, "spec");
        all.extend(export.resources.into_iter().filter_map(|r| {
            let schema = schemas.get(&key(&provider, &r.schema))?;
            Some((r.group, r.name, schema.object().uid().to_owned(), identity.to_owned()))
        }));
        all
    }

    async fn empty(&self, at: &ObjectKey, due: &BTreeSet<Bound>) -> Result<Content, Error> {
        let mut left = Content::default();
        for info in self.0.served(&at.cluster) {
            let fp_schema::Segment::Identity(identity) = &info.segment else { continue };
            let is_it = |b: &&Bound| {
                b.0 == *info.gr.group && b.1 == *info.gr.resource && b.3 == identity.as_str()
            };
            if due.iter().any(|b| is_it(&b)) {
                left.take(content::delete_all(&self.0, &info, &at.cluster, None).await?);
            }
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
        let Some(entry) = world.system(group::APIS, "apibindings").get(at) else {
            return Ok(Next::Done);
        };
        let binding = entry.object();
        if !entry.deleting || !binding.finalizers().contains(&names::API_BINDING_FINALIZER) {
            return Ok(Next::Done);
        }
        let left = self.empty(at, &self.due(at, &binding)).await?;
        let target = cluster_scoped(&at.cluster, gvr::api_bindings());
        if left.is_empty() {
            world.update(&target, without_finalizer(&binding)).await?;
            return Ok(Next::Done);
        }
        if let Some(told) = tell(&binding, &left, &time::now()) {
            world.update_status(&target, told).await?;
        }
        Ok(Next::After(content::RETRY / 4))
    }
}

/// The binding with the condition for what is left, if it says anything new.
fn tell(binding: &Object, left: &Content, now: &str) -> Option<Object> {
    let mut new = binding.clone();
    let reason = if left.has_finalizers() { "SomeFinalizersRemain" } else { "SomeResourcesRemain" };
    let parts = [left.resources_message(), left.finalizers_message()];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let bad =
        Condition::new_false(condition::BINDING_RESOURCE_DELETE_SUCCESS, reason, "Error", message);
    conditions::set(&mut new, now, bad);
    (new != *binding).then_some(new)
}

fn without_finalizer(binding: &Object) -> Object {
    let mut new = binding.clone();
    let kept: Vec<Value> = binding
        .finalizers()
        .into_iter()
        .filter(|f| *f != names::API_BINDING_FINALIZER)
        .map(Value::from)
        .collect();
    new.set_meta("finalizers", kept);
    new
}
