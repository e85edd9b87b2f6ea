//! One object in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fp_base::{ClusterName, Gr, Revision};
use fp_object::Object;

/// A table of the informer: a resource as it is stored. `segment` is the storage key's segment
/// after the resource: empty for built-ins, `customresources`, or an identity hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId {
    pub gr: Gr,
    pub segment: Arc<str>,
}

/// Where an object lives within its table. `namespace` is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    pub cluster: ClusterName,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// One object at one revision: the JSON as it is served in the stored version (with
/// `metadata.resourceVersion` and the `kcp.io/cluster` annotation), and what is asked of it often.
#[derive(Debug)]
pub struct Entry {
    pub key: ObjectKey,
    pub revision: Revision,
    /// The served bytes, compact JSON.
    pub json: Bytes,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    pub deleting: bool,
    /// See [`Entry::is_clean`]; 0 is "not known".
    clean_under: AtomicU64,
}

impl Entry {
    pub fn new(key: ObjectKey, revision: Revision, json: Bytes, labels: Box<[(Box<str>, Box<str>)]>, deleting: bool) -> Self {
        Self { key, revision, json, labels, deleting, clean_under: AtomicU64::new(0) }
    }

    /// Whether the bytes were found right as they are (nothing to prune, nothing to default) by
    /// the resource with this content hash. A memo of readers, so that they need not parse again.
    pub fn is_clean(&self, content_hash: u64) -> bool {
        content_hash != 0 && self.clean_under.load(Ordering::Relaxed) == content_hash
    }

    pub fn mark_clean(&self, content_hash: u64) {
        self.clean_under.store(content_hash, Ordering::Relaxed);
    }

    /// Parses the body. Nothing is kept: callers that need it often keep it themselves.
    pub fn object(&self) -> Object {
        serde_json::from_slice(&self.json).expect("an entry's JSON was made from a parsed object")
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.labels[i].1)
    }
}
