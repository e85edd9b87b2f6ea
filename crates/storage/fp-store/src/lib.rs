//! The byte MVCC contract every backend meets, an in-memory store, and the conformance suite.
//!
//! Invariants: one revision order, commit order, never reused; an acknowledged write is durable;
//! a watch is ordered, unique, complete and resumable down to the compact revision; an unknown
//! outcome is [`Error::Unknown`], never a conflict.
//! Deliberately absent: objects, JSON, gRPC, SQL, what a key means.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fp_base::Revision;

pub mod conformance;
mod keys;
pub mod memory;

pub use keys::{check_key, check_prefix, prefix_end};
pub use memory::MemoryStore;

/// Keys are UTF-8 without NUL; a prefix is a key's beginning.
pub type Key = Arc<str>;

/// One live key at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    pub value: Bytes,
    /// The revision of the last write.
    pub revision: Revision,
    /// The revision of the create.
    pub created: Revision,
    /// Seconds the key lives after its write; 0 is for ever.
    pub lease_ttl_secs: u32,
}

/// What happened to a key, at `row.revision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// For a delete: the key, the revision of the delete, and the last value.
    pub row: Row,
    /// The value before; `None` for a create. For a delete it equals `row.value`.
    pub previous: Option<Bytes>,
    /// The revision of the write before; zero for a create.
    pub previous_revision: Revision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Created,
    Updated,
    Deleted,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    Absent(Key),
    /// The key exists and its last write has this revision.
    At(Key, Revision),
    /// No key from `from` on and before `end` (`None`: to the last) was written after `since`; does
    /// not hold either when `since` is compacted. So a transaction that read a range is serializable.
    Unchanged {
        from: Box<str>,
        end: Option<Box<str>>,
        since: Revision,
    },
}

/// A write of a transaction. Every write takes one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put { key: Key, value: Bytes, lease_ttl_secs: u32 },
    Delete { key: Key },
}

/// All compares hold, then all writes are made at consecutive revisions, in one commit that is
/// never seen in part. A guard is a compare on a key that is not written. A `Delete` of an absent
/// key takes no revision.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    pub compares: Vec<Compare>,
    pub ops: Vec<Op>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// One revision per write that changed something, in order.
    Committed(Vec<Revision>),
    /// Nothing was written; for every compare the key's row as it was in that moment
    /// (`None` for a range).
    Failed(Vec<Option<Row>>),
}

/// A list at one revision.
#[derive(Clone, Debug)]
pub struct Page {
    pub rows: Vec<Row>,
    /// The revision the rows are a snapshot of.
    pub revision: Revision,
    /// More keys follow the last one.
    pub more: bool,
}

/// What to list. `start_after` is a key, exclusive; `limit` 0 is no limit; `at` zero is the newest.
#[derive(Clone, Debug, Default)]
pub struct ListQuery<'a> {
    pub prefix: &'a str,
    pub start_after: Option<&'a str>,
    pub limit: usize,
    pub at: Revision,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("revision {asked} is compacted, oldest is {oldest}")]
    Compacted { asked: Revision, oldest: Revision },
    #[error("revision {asked} is in the future, newest is {newest}")]
    Future { asked: Revision, newest: Revision },
    #[error("value of {key} has {bytes} bytes, most is {max}")]
    TooLarge { key: Key, bytes: usize, max: usize },
    #[error("{0:?} is not a key")]
    Key(String),
    /// The write may or may not have happened.
    #[error("outcome of the write is unknown")]
    Unknown(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// Surely not written: no space, read-only, closed, ...
    #[error("store is unavailable: {what}")]
    Unavailable {
        what: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// The longest value, in bytes: etcd's default request limit, so that a store can be migrated to one.
pub const VALUE_BYTES_MAX: usize = 1_572_864;
/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 2048;
/// The most compares and writes of one transaction.
pub const TXN_OPS_MAX: usize = 4096;
/// The most bytes, keys and values, that one transaction writes.
pub const TXN_BYTES_MAX: usize = 32 << 20;

/// Batches of events in revision order. A batch never splits a transaction.
#[async_trait]
pub trait Watcher: Send {
    /// The next batch and the revision up to which everything has been delivered (at least the
    /// last event's). An empty batch is progress only.
    async fn next(&mut self) -> Result<Batch, Error>;
}

#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub events: Vec<Event>,
    pub progress: Revision,
}

#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The newest revision, at a moment after the call began.
    async fn head(&self) -> Result<Revision, Error>;
    /// One key; `at` zero is the newest.
    async fn get(&self, key: &str, at: Revision) -> Result<Option<Row>, Error>;
    async fn list(&self, query: ListQuery<'_>) -> Result<Page, Error>;
    /// How many live keys begin with `prefix`, at `at` (zero: now).
    async fn count(&self, prefix: &str, at: Revision) -> Result<u64, Error>;
    /// How many live keys are from `from` on and before `end` (`None`: to the last), at `at` (zero:
    /// now). Bounds may be any strings. This one reads them all; a backend may know better.
    async fn count_range(&self, from: &str, end: Option<&str>, at: Revision) -> Result<u64, Error> {
        keys::count_by_list(self, from, end, at).await
    }
    /// Bytes that the store takes on its disk, where that is known.
    async fn size_bytes(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }
    async fn commit(&self, txn: Txn) -> Result<Outcome, Error>;
    /// Events of keys that begin with `prefix`, from revision `from` on, inclusive.
    /// `Error::Compacted` when `from` is at or below the compact revision, now or, from the
    /// watcher, once the watcher has fallen behind it. A `from` in the future is waited for.
    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watcher>, Error>;
    /// Forgets history below `at`; live keys and the state at `at` stay. Returns the compact
    /// revision in force, which is later than `at` if it was before; `Future` for one to come.
    async fn compact(&self, at: Revision) -> Result<Revision, Error>;
    /// The compact revision: reads at or above it and watches above it are served.
    async fn compacted(&self) -> Result<Revision, Error>;
    /// Flushes and closes; later calls get `Unavailable`.
    async fn close(&self);
}
