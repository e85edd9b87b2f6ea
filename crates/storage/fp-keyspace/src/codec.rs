//! The value codec: built-ins as Kubernetes protobuf, CRDs as JSON of `apiextensions.k8s.io/v1beta1`,
//! custom resources as JSON the way Go prints it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fp_base::Gr;
use fp_builtin::core_v1::event;
use fp_builtin::crd;
use fp_object::meta::Meta;
use fp_object::{Object, json, proto};
use fp_schema::ResourceInfo;

use crate::served::CLUSTER_ANNOTATION;
use crate::{Error, Layout, Parts, Served, stored_gr};

/// What an encrypted value begins with.
const ENCRYPTED: &[u8] = b"k8s:enc:";

static CRDS: LazyLock<Gr> =
    LazyLock::new(|| Gr::new("apiextensions.k8s.io", "customresourcedefinitions"));
/// Under their key stand the events of `events.k8s.io` too.
static EVENTS: LazyLock<Gr> = LazyLock::new(|| Gr::new("", "events"));

/// An object ready to be stored.
pub struct Encoded {
    /// The bytes to store.
    pub value: Bytes,
    /// What a reader of these bytes will get.
    pub served: Served,
}

impl Layout {
    /// Encodes an object, which is in the resource's storage version. What a reader learns from
    /// the key or the row is left out: `resourceVersion`, `selfLink` and the cluster.
    pub fn encode(&self, info: &ResourceInfo, object: &Object) -> Result<Encoded, Error> {
        let object = stripped(object);
        let Some(builtin) = self.stored_as(info) else {
            let mut text = json::to_go_vec(&*object);
            let value_len = text.len();
            text.push(b'\n');
            let value = Bytes::from(text);
            let served = Served::new(value.slice(..value_len), &object);
            return Ok(Encoded { value, served });
        };
        let value = encode_builtin(builtin, &object)?;
        let served = decode_builtin(builtin, &value)?;
        Ok(Encoded { value: value.into(), served })
    }

    /// The served form of a stored value, whose key is `parts`.
    pub fn decode(&self, parts: &Parts<'_>, value: &Bytes) -> Result<Served, Error> {
        if value.starts_with(ENCRYPTED) {
            return Err(Error::Encrypted);
        }
        if parts.segment.is_empty() {
            let builtin = self.builtin(parts.group, parts.resource);
            return decode_builtin(builtin.ok_or(Error::Format)?, value);
        }
        let object = json::decode_stored(value).map_err(Error::Json)?;
        Ok(Served::new(value.slice_ref(value.trim_ascii()), &object))
    }

    /// The built-in resource whose form the objects of `info` are stored in.
    fn stored_as(&self, info: &ResourceInfo) -> Option<&Arc<ResourceInfo>> {
        let gr = stored_gr(info);
        self.builtin(&gr.group, &gr.resource)
            .filter(|_| info.segment == fp_schema::Segment::Builtin)
    }
}

fn encode_builtin(info: &ResourceInfo, object: &Object) -> Result<Vec<u8>, Error> {
    let api_version = info.api_version(&info.storage_version().name);
    let mut object = Cow::Borrowed(object);
    if info.gr == *EVENTS && object.api_version() != api_version {
        event::to_core(object.to_mut());
    }
    if object.api_version() != api_version {
        return Err(Error::Version(object.api_version().to_owned()));
    }
    if info.gr == *CRDS {
        return crd::encode_stored(&object).map_err(Error::Crd);
    }
    let message = info.proto.ok_or(Error::Format)?;
    let raw = proto::encode(message, &object).map_err(Error::Protobuf)?;
    Ok(proto::wrap(&fp_builtin::stored_gv(info).to_string(), &info.kind, &raw))
}

/// Protobuf, or the JSON that Kubernetes reads as well.
fn decode_builtin(info: &ResourceInfo, value: &[u8]) -> Result<Served, Error> {
    let version = info.api_version(&info.storage_version().name);
    let is_known = |v: &str| v == version || v == fp_builtin::stored_gv(info).to_string();
    let object = if value.starts_with(proto::PREFIX) {
        let unknown = proto::unwrap(value).map_err(Error::Protobuf)?;
        if !is_known(unknown.api_version) {
            return Err(Error::Version(unknown.api_version.to_owned()));
        }
        let message = info.proto.ok_or(Error::Format)?;
        let mut object = proto::decode(message, unknown.raw).map_err(Error::Protobuf)?;
        object.insert("apiVersion".into(), version.into());
        object.insert("kind".into(), unknown.kind.into());
        object
    } else if value.first() == Some(&b'{') {
        let mut object = json::decode_stored(value).map_err(Error::Json)?;
        match object.api_version() {
            same if same == version => object,
            _ if info.gr == *CRDS => crd::from_storage(&object).map_err(Error::Crd)?,
            known if is_known(known) => {
                object.insert("apiVersion".into(), version.into());
                object
            }
            other => return Err(Error::Version(other.to_owned())),
        }
    } else {
        return Err(Error::Format);
    };
    Ok(Served::new(json::to_go_vec(&object).into(), &object))
}

/// The object without what is not stored. Mostly nothing is to be removed, then nothing is copied.
fn stripped(object: &Object) -> Cow<'_, Object> {
    const ANNOTATIONS: &[&str] = &["metadata", "annotations"];
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
    let is_empty = object.at(ANNOTATIONS).and_then(|a| a.as_object()).is_some_and(Object::is_empty);
    if is_empty && matches!(object, Cow::Owned(_)) {
        object.to_mut().remove_at(ANNOTATIONS);
    }
    object
}

#[cfg(test)]
mod tests;
