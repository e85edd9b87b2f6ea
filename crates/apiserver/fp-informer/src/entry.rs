//! One object in memory.

use std::cmp;
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
///
/// Ordered as `cluster/namespace/name` is ordered byte by byte, so that a list from memory and one
/// from the store's history go through the objects in one order (`a-b/` stands before `a/`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    pub cluster: ClusterName,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        part(self.cluster.as_str(), other.cluster.as_str())
            .then_with(|| part(&self.namespace, &other.namespace))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two components as if each ended with a slash; the empty one, which no key has, is first.
fn part(a: &str, b: &str) -> cmp::Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let shared = a.len().min(b.len());
    a[..shared].cmp(&b[..shared]).then_with(|| match (a.get(shared), b.get(shared)) {
        (None, None) => cmp::Ordering::Equal,
        _ if a.is_empty() => cmp::Ordering::Less,
        _ if b.is_empty() => cmp::Ordering::Greater,
        (next, other) => next.unwrap_or(&b'/').cmp(other.unwrap_or(&b'/')),
    })
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
    pub fn new(
        key: ObjectKey,
        revision: Revision,
        json: Bytes,
        labels: Box<[(Box<str>, Box<str>)]>,
        deleting: bool,
    ) -> Self {
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
        let decoded = fp_object::json::decode_stored(&self.json);
        decoded.expect("an entry's JSON was made from a parsed object")
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.labels[i].1)
    }
}
