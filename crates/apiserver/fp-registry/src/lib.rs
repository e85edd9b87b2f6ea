//! One resource's get, list, guarded create, update and delete, and watch; the pump from store to
//! informer; the trait [`Backend`].
//!
//! Deliberately absent: admission, HTTP, RBAC.

mod log;
mod mixed;
mod prepared;
pub mod pump;
pub mod store;
mod strings;
mod watch;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::{ClusterName, ClusterScope, Revision};
use fp_informer::{Entry, ObjectKey};
use fp_object::Object;
use fp_schema::ResourceInfo;

pub use fp_informer::{Change, ChangeKind};
pub use store::StoreBackend;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("object does not exist")]
    NotFound,
    #[error("object exists already")]
    Exists,
    /// The expected revision is not the current one; the object as it is now, `None` when it is gone.
    #[error("object has changed")]
    Conflict(Option<Arc<Entry>>),
    /// A guard's key has another revision: the writer's epoch is over.
    #[error("guard does not hold")]
    Guard,
    #[error("revision {asked} is compacted, oldest is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    /// Memory has not reached the revision in time (3 s).
    #[error("revision {asked} is not reached, newest is {newest}")]
    TooNew { asked: Revision, newest: Revision },
    #[error("stored object is too large: {bytes} bytes")]
    TooLarge { bytes: usize },
    #[error("encode or decode object: {0}")]
    Codec(String),
    #[error("outcome of the write is unknown")]
    Unknown(#[source] fp_store::Error),
    #[error("store")]
    Store(#[source] fp_store::Error),
}

/// Whose objects: a resource, in one cluster or in all.
#[derive(Clone)]
pub struct Place<'a> {
    pub info: &'a Arc<ResourceInfo>,
    pub scope: &'a ClusterScope,
    /// `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<&'a str>,
    /// The resource's objects under every definition (identities and `customresources`), not of
    /// `info` alone: for reads of metadata over all clusters.
    pub mixed: bool,
}

/// How fresh a read must be (`resourceVersion` and `resourceVersionMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// At least as new as when the call began.
    Newest,
    /// Whatever memory holds.
    Any,
    AtLeast(Revision),
    /// Exactly this revision, from the store's history.
    Exact(Revision),
}

/// A page of a list, in key order (cluster, namespace, name).
pub struct Page {
    pub entries: Vec<Arc<Entry>>,
    pub revision: Revision,
    /// More entries follow the last one.
    pub more: bool,
    /// How many follow, when it is known.
    pub remaining: Option<u64>,
}

/// What a list asks for. `filter` sees every entry before it counts towards `limit` (0: none).
pub struct ListQuery<'a> {
    pub freshness: Freshness,
    pub start_after: Option<&'a ObjectKey>,
    pub limit: usize,
    pub filter: Option<&'a (dyn Fn(&Entry) -> bool + Send + Sync)>,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    /// Changes after this revision.
    After(Revision),
    /// First everything that exists (at least as fresh as the call), then changes.
    Start { fresh: bool },
}

/// What a watch yields.
#[derive(Clone, Debug)]
pub enum Step {
    Change(Change),
    /// Everything up to this revision has been delivered.
    Bookmark(Revision),
    /// The initial objects of `WatchFrom::Start` are complete at this revision.
    Synced(Revision),
}

/// A running watch. Dropping it ends it.
#[async_trait]
pub trait Watch: Send {
    /// The next steps, at least one; waits for them. `Compacted` when history is gone.
    async fn next(&mut self) -> Result<Vec<Step>, Error>;
    /// The revision up to which everything has been delivered by `next` so far.
    fn delivered(&self) -> Revision;
    /// Brings `delivered` up to what memory holds when nothing is pending, for a bookmark.
    fn progress(&mut self) -> Revision;
}

/// A write's extra condition: the object at `key` of `info` still has this revision.
#[derive(Clone)]
pub struct Guard {
    pub info: Arc<ResourceInfo>,
    pub key: ObjectKey,
    pub revision: Revision,
}

/// Where a surface's objects live. The shard's is [`store::StoreBackend`]; caches and virtual
/// workspaces bring their own.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    async fn get(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        freshness: Freshness,
    ) -> Result<Option<Arc<Entry>>, Error>;
    async fn list(&self, place: Place<'_>, query: ListQuery<'_>) -> Result<Page, Error>;
    async fn count(&self, place: Place<'_>) -> Result<u64, Error>;
    /// Stores `object` (in the storage version). The entry returned carries its revision.
    async fn create(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        object: &Object,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error>;
    async fn update(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        expected: Revision,
        object: &Object,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error>;
    /// Removes the key. The entry returned is the last state at the revision of the delete.
    async fn delete(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        expected: Revision,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error>;
    async fn watch(&self, place: Place<'_>, from: WatchFrom) -> Result<Box<dyn Watch>, Error>;
}

/// Writes `seconds`-lived objects: only core events have a TTL.
pub fn ttl_secs(info: &ResourceInfo) -> u32 {
    if &*info.gr.resource == "events" && matches!(&*info.gr.group, "" | "events.k8s.io") {
        3600
    } else {
        0
    }
}

/// The key of an object.
pub fn key(cluster: &ClusterName, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: cluster.clone(), namespace: namespace.into(), name: name.into() }
}

#[cfg(test)]
mod tests;
