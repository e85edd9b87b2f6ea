//! Deleting everything of a resource in one place, and telling what is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fp_base::{ClusterName, Gvr};
use fp_informer::Entry;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_schema::ResourceInfo;

use crate::action::Target;
use crate::world::World;

/// How soon to look again when something is left.
pub const RETRY: Duration = Duration::from_secs(1);
/// How many deletes are under way at once: they share commits of the store.
const DELETES_AT_ONCE: usize = 64;

/// What is left after a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// `resource.group` to how many are left.
    resources: BTreeMap<String, usize>,
    /// Finalizer to how many objects it holds.
    finalizers: BTreeMap<String, usize>,
}

impl Content {
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    pub fn has_finalizers(&self) -> bool {
        !self.finalizers.is_empty()
    }

    pub fn take(&mut self, other: Content) {
        for (key, count) in other.resources {
            *self.resources.entry(key).or_default() += count;
        }
        for (key, count) in other.finalizers {
            *self.finalizers.entry(key).or_default() += count;
        }
    }

    /// As Kubernetes words it; `None` when nothing is left.
    pub fn resources_message(&self) -> Option<String> {
        let list = |(resource, count): (&String, &usize)| {
            format!("{resource} has {count} resource instances")
        };
        let all: Vec<String> = self.resources.iter().map(list).collect();
        (!all.is_empty()).then(|| format!("Some resources are remaining: {}", all.join(", ")))
    }

    pub fn finalizers_message(&self) -> Option<String> {
        let list = |(finalizer, count): (&String, &usize)| {
            format!("{finalizer} in {count} resource instances")
        };
        let all: Vec<String> = self.finalizers.iter().map(list).collect();
        (!all.is_empty()).then(|| {
            format!("Some content in the namespace has finalizers remaining: {}", all.join(", "))
        })
    }
}

/// Deletes every object of a resource in a cluster (and namespace); those already being deleted
/// are left to their finalizers.
pub async fn delete_all(
    world: &World,
    info: &Arc<ResourceInfo>,
    cluster: &ClusterName,
    namespace: Option<&str>,
) -> Result<Content, Status> {
    let table = world.table_of(info);
    let entries = match namespace {
        Some(namespace) => world.in_namespace(&table, cluster, namespace),
        None => world.in_cluster(&table, cluster),
    };
    if entries.is_empty() || !info.verbs.contains(&"delete") {
        return Ok(Content::default());
    }
    let gvr = Gvr::new(&info.gr.group, &info.storage_version().name, &info.gr.resource);
    let due: Vec<&Arc<Entry>> = entries.iter().filter(|e| !e.deleting).collect();
    for some in due.chunks(DELETES_AT_ONCE) {
        let deletes = some.iter().map(|entry| {
            let target = Target {
                cluster: cluster.clone(),
                gvr: gvr.clone(),
                namespace: entry.key.namespace.to_string(),
            };
            async move { world.delete(&target, &entry.key.name, entry.object().uid()).await }
        });
        for outcome in futures_util::future::join_all(deletes).await {
            match outcome {
                Err(refused) if !matches!(refused.code, 404 | 409) => return Err(refused),
                _ => {}
            }
        }
    }
    let mut left = Content::default();
    for entry in entries.iter().filter_map(|e| table.get(&e.key)) {
        *left.resources.entry(info.gr.to_string()).or_default() += 1;
        for finalizer in entry.object().finalizers() {
            *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    Ok(left)
}
