//! Keys: `<prefix>/<group|core>/<resource>[/customresources | /<identity>]/<cluster>[/<namespace>]/<name>`.
//!
//! Five components after the prefix are ambiguous: a namespaced built-in, or a cluster-scoped
//! object of a bound API. The resource decides, never the look of a component: group-resources
//! that are built in have no identity segment.

use fp_base::{ClusterName, ClusterScope, Identity};
use fp_schema::ResourceInfo;
use fp_store::Key;

use crate::{Error, Layout, Spot, segment, stored_gr};

/// The segment of system CRDs' and a workspace's own CRDs' objects.
pub const CUSTOM_RESOURCES: &str = "customresources";
/// How the core group is written.
const CORE: &str = "core";

/// A key, taken apart. `cluster` is a valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The group as Kubernetes writes it: empty for core.
    pub group: &'a str,
    pub resource: &'a str,
    /// Empty, `customresources`, or an identity.
    pub segment: &'a str,
    pub cluster: ClusterName,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Layout {
    /// The key of the object of `info` at `spot`. An object of a namespaced resource has a
    /// namespace, and no other has.
    pub fn key(&self, info: &ResourceInfo, spot: Spot<'_>) -> Result<Key, Error> {
        if spot.namespace.is_empty() == info.namespaced() {
            return Err(Error::Segment(spot.namespace.to_owned()));
        }
        let more = spot.cluster.as_str().len() + spot.namespace.len() + spot.name.len();
        let mut key = self.table(info, more);
        key.push_str(spot.cluster.as_str());
        key.push('/');
        if info.namespaced() {
            key.push_str(checked(spot.namespace)?);
            key.push('/');
        }
        key.push_str(checked(spot.name)?);
        Ok(key.into())
    }

    /// The beginning of the keys of all objects of `info` in `scope`, with its closing slash. A
    /// namespace narrows it only within one cluster.
    pub fn prefix(
        &self,
        info: &ResourceInfo,
        scope: &ClusterScope,
        namespace: Option<&str>,
    ) -> Result<String, Error> {
        let mut prefix = self.table(info, 64);
        if let ClusterScope::One(cluster) = scope {
            prefix.push_str(cluster.as_str());
            prefix.push('/');
            if let Some(namespace) = namespace {
                prefix.push_str(checked(namespace)?);
                prefix.push('/');
            }
        }
        Ok(prefix)
    }

    /// The beginning of the keys of all objects of the resource, whatever defines them.
    pub fn prefix_of_all(&self, info: &ResourceInfo) -> String {
        let mut prefix = self.resource(info, 1);
        prefix.push('/');
        prefix
    }

    /// Takes a key apart. `None`: the key is of another layout.
    pub fn split<'a>(&self, key: &'a str) -> Option<Parts<'a>> {
        let rest = key.strip_prefix(&*self.prefix)?.strip_prefix('/')?;
        let mut all = rest.split('/');
        let (group, resource, third) = (all.next()?, all.next()?, all.next()?);
        let group = if group == CORE { "" } else { group };
        let (segment, cluster) = if third == CUSTOM_RESOURCES {
            (third, all.next()?)
        } else if self.builtin(group, resource).is_some() {
            ("", third)
        } else {
            Identity::parse(third)?;
            (third, all.next()?)
        };
        let cluster = ClusterName::parse(cluster).ok()?;
        let (namespace, name) = match (all.next()?, all.next(), all.next()) {
            (name, None, _) => ("", name),
            (namespace, Some(name), None) => (checked(namespace).ok()?, name),
            _ => return None,
        };
        checked(name).ok()?;
        Some(Parts { group, resource, segment, cluster, namespace, name })
    }

    /// `<prefix>/<group>/<resource>/[<segment>/]`, with room for `more` bytes.
    fn table(&self, info: &ResourceInfo, more: usize) -> String {
        let segment = segment(info);
        let mut key = self.resource(info, segment.len() + more + 4);
        if !segment.is_empty() {
            key.push('/');
            key.push_str(segment);
        }
        key.push('/');
        key
    }

    /// `<prefix>/<group>/<resource>`, with room for `more` bytes.
    fn resource(&self, info: &ResourceInfo, more: usize) -> String {
        let gr = stored_gr(info);
        let group = if gr.group.is_empty() { CORE } else { &*gr.group };
        let len = self.prefix.len() + group.len() + gr.resource.len() + more + 2;
        let mut key = String::with_capacity(len);
        for part in [&*self.prefix, "/", group, "/", &gr.resource] {
            key.push_str(part);
        }
        key
    }
}

/// A name or namespace that stays one component of a key.
fn checked(part: &str) -> Result<&str, Error> {
    let bad = part.is_empty() || part == "." || part == ".." || part.contains(['/', '\0']);
    if bad { Err(Error::Segment(part.to_owned())) } else { Ok(part) }
}

#[cfg(test)]
mod tests;
