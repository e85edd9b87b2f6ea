//! A stored body on its way to readers.

use bytes::Bytes;
use fp_base::{ClusterName, Revision};
use fp_object::json;
use fp_object::meta::Meta;
use fp_object::{Object, Value};

use crate::Error;

/// The annotation that names an object's cluster.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// A body that lacks its revision, which a write learns last, and its cluster, which is its key's.
#[derive(Debug)]
pub struct Served {
    /// Compact JSON of an object, which can be read back.
    json: Bytes,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    pub deleting: bool,
}

impl Served {
    /// `json` is `object` in JSON.
    pub(crate) fn new(json: Bytes, object: &Object) -> Self {
        let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        let pairs = labels.into_iter().flatten();
        let labels =
            pairs.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
        Self { json, labels: labels.collect(), deleting: object.is_deleting() }
    }

    /// The body as it is served: its revision and its cluster are spliced in, and stand for what
    /// it says of them itself.
    pub fn json(&self, cluster: &ClusterName, revision: Revision) -> Vec<u8> {
        respin(&self.json, cluster, revision).expect("the JSON was written from a parsed object")
    }
}

/// A served body at another revision.
pub fn respin(json: &[u8], cluster: &ClusterName, revision: Revision) -> Result<Vec<u8>, Error> {
    let mut out = json::with_server_fields(json, &revision.to_string(), cluster.as_str())
        .map_err(Error::Json)?;
    out.shrink_to_fit();
    Ok(out)
}
