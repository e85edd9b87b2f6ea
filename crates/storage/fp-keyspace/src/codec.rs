//! The value codec: built-ins as Kubernetes protobuf, CRDs as JSON of `apiextensions.k8s.io/v1beta1`,
//! custom resources as JSON the way Go prints it.

use std::borrow::Cow;

use fp_object::Object;
use fp_object::meta::Meta;
use fp_schema::ResourceInfo;

use crate::served::CLUSTER_ANNOTATION;
use crate::{Error, Layout, Parts, Served, json};

/// What an encrypted value begins with.
const ENCRYPTED: &[u8] = b"k8s:enc:";
/// What a protobuf value begins with.
const PROTOBUF: &[u8] = b"k8s\0";

impl Layout {
    /// The bytes to store for `object`, which is in the resource's storage version. What a reader
    /// learns from the key or the row is left out: `resourceVersion`, `selfLink` and the cluster.
    pub fn encode(&self, _info: &ResourceInfo, object: &Object) -> Result<Vec<u8>, Error> {
        let object = stripped(object);
        let mut value = json::to_vec(&object);
        value.push(b'\n');
        Ok(value)
    }

    /// The served form of a stored value, whose key is `parts`.
    pub fn decode(&self, parts: &Parts<'_>, value: &[u8]) -> Result<Served, Error> {
        if value.starts_with(ENCRYPTED) {
            return Err(Error::Encrypted);
        }
        if value.starts_with(PROTOBUF) {
            return Err(Error::Format);
        }
        Served::new(value, &parts.cluster)
    }
}

/// The object without what is not stored. Mostly nothing is to be removed, then nothing is copied.
fn stripped(object: &Object) -> Cow<'_, Object> {
    const PATHS: [&[&str]; 3] = [
        &["metadata", "resourceVersion"],
        &["metadata", "selfLink"],
        &["metadata", "annotations", CLUSTER_ANNOTATION],
    ];
    let mut object = Cow::Borrowed(object);
    for path in PATHS {
        if object.at(path).is_some() {
            object.to_mut().remove_at(path);
        }
    }
    let empty = |o: &Object| {
        o.at(&["metadata", "annotations"])
            .is_some_and(|a| a.as_object().is_some_and(Object::is_empty))
    };
    if matches!(object, Cow::Owned(_)) && empty(&object) {
        object.to_mut().remove_at(&["metadata", "annotations"]);
    }
    object
}
