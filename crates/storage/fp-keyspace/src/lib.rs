//! kcp's storage layout, both ways: the only crate that builds or splits storage keys, and the
//! codec between an object and the bytes stored under its key.
//!
//! Invariants: a key holds exactly one valid logical cluster name, and only a [`ClusterName`] can
//! become one, so an unresolved path never does; an object's cluster is read from its key, never
//! from its body.
//! Deliberately absent: users, HTTP, the meaning of any kind.

mod codec;
mod key;
mod served;
#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::{ClusterName, Gr};
use fp_schema::ResourceInfo;

pub use codec::Encoded;
pub use key::{CUSTOM_RESOURCES, Parts};
pub use served::{CLUSTER_ANNOTATION, Served, respin};

/// The prefix of a shard's keys.
pub const PREFIX: &str = "/registry";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0:?} cannot stand in a storage key")]
    Segment(String),
    #[error(
        "value is encrypted at rest, which is not supported: decrypt it with the server that wrote it"
    )]
    Encrypted,
    #[error("stored value is neither JSON nor Kubernetes protobuf")]
    Format,
    #[error("{0:?} is not the version that is stored")]
    Version(String),
    #[error("read or write JSON")]
    Json(#[source] fp_object::json::Error),
    #[error("read or write protobuf")]
    Protobuf(#[source] fp_object::proto::Error),
    #[error("read or write a CustomResourceDefinition")]
    Crd(#[source] fp_builtin::crd::Error),
}

/// The layout of one store: its prefix, and which group-resources are built in. The latter tells
/// a built-in's `cluster/namespace/name` from a bound resource's `identity/cluster/name`.
pub struct Layout {
    prefix: Box<str>,
    /// By resource, then group: few resources have several groups.
    builtins: HashMap<Arc<str>, Vec<Arc<ResourceInfo>>>,
}

impl Layout {
    /// `prefix` begins with a slash and does not end with one.
    pub fn new(prefix: &str, builtins: impl IntoIterator<Item = Arc<ResourceInfo>>) -> Self {
        assert!(prefix.starts_with('/') && !prefix.ends_with('/'), "a prefix is /<segment>");
        let mut map: HashMap<Arc<str>, Vec<Arc<ResourceInfo>>> = HashMap::new();
        for info in builtins {
            map.entry(info.gr.resource.clone()).or_default().push(info);
        }
        Self { prefix: prefix.into(), builtins: map }
    }

    /// The prefix of every key, with its closing slash.
    pub fn root(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// The built-in resource of this name.
    pub fn builtin(&self, group: &str, resource: &str) -> Option<&Arc<ResourceInfo>> {
        self.builtins.get(resource)?.iter().find(|info| &*info.gr.group == group)
    }
}

/// The group-resource whose keys hold the objects of `info`: one object may be served in two groups.
pub fn stored_gr(info: &ResourceInfo) -> &Gr {
    fp_builtin::stored_as(info).map_or(&info.gr, |stored| &stored.gr)
}

/// The key segment of a resource: empty for built-ins.
pub fn segment(info: &ResourceInfo) -> &str {
    match &info.segment {
        fp_schema::Segment::Builtin => "",
        fp_schema::Segment::CustomResources => key::CUSTOM_RESOURCES,
        fp_schema::Segment::Identity(identity) => identity.as_str(),
    }
}

/// Where an object lives: everything of its key but the resource.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub cluster: &'a ClusterName,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    pub name: &'a str,
}
