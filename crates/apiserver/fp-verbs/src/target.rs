//! A request after authorization and resolution: what it is about.

use std::sync::Arc;

use fp_auth::User;
use fp_base::{ClusterName, ClusterScope};
use fp_informer::{Entry, ObjectKey};
use fp_object::meta::Meta;
use fp_object::status::{About, Status};
use fp_registry::Place;
use fp_schema::{ResourceInfo, Sub, VersionInfo};

use crate::Surface;
use crate::request::View;
use crate::{status, view};

/// kcp's annotation on objects of a metadata read across clusters: the apiVersion each has.
const ORIGINAL_API_VERSION: &str = "kcp.io/original-api-version";

/// Who asks for what.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub surface: &'a Surface,
    pub user: &'a User,
    pub scope: &'a ClusterScope,
    pub info: &'a Arc<ResourceInfo>,
    pub version: &'a VersionInfo,
    /// Empty: cluster-scoped, or all namespaces.
    pub namespace: &'a str,
    /// Empty: the collection.
    pub name: &'a str,
    pub sub: Sub,
    /// Only metadata is read, across all clusters, of custom resources whose definitions differ.
    pub mixed: bool,
}

impl<'a> Target<'a> {
    pub fn about(&self) -> About<'a> {
        status::about(self.info, self.name)
    }

    /// The cluster of a request that is about one: the router lets only list and watch span all.
    pub fn cluster(&self) -> &'a ClusterName {
        self.scope
            .one()
            .expect("only list and watch may span clusters, and `serve` has refused the others")
    }

    pub fn key(&self) -> ObjectKey {
        fp_registry::key(self.cluster(), self.namespace, self.name)
    }

    pub fn place(&self) -> Place<'a> {
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace);
        Place { info: self.info, scope: self.scope, namespace, mixed: self.mixed }
    }

    /// The entry as this request sees it.
    pub fn view(&self, entry: Arc<Entry>) -> Result<View, Status> {
        if self.mixed {
            return Ok(mixed_view(self.info, self.version, &entry));
        }
        view::of_entry(self.info, self.version, entry)
    }

    /// The warning that every answer in a deprecated version carries: the definition's own, or
    /// Kubernetes' (`defaultDeprecationWarning`).
    pub fn deprecation(&self) -> Option<String> {
        let own = self.version.deprecated.as_ref()?;
        if !own.is_empty() {
            return Some(own.clone());
        }
        let (group, kind, name) = (&self.info.gr.group, &self.info.kind, &self.version.name);
        let newer = self.info.versions.iter().take_while(|v| v.name != *name);
        let better = newer.filter(|v| v.served && v.deprecated.is_none()).map(|v| &v.name).next();
        let instead = better.map(|v| format!("; use {group}/{v} {kind}")).unwrap_or_default();
        Some(format!("{group}/{name} {kind} is deprecated{instead}"))
    }
}

/// An entry of a [`Target::mixed`] read: as it is stored, saying so.
pub fn mixed_view(info: &Arc<ResourceInfo>, version: &VersionInfo, entry: &Entry) -> View {
    let mut object = entry.object();
    let original = object.api_version().to_owned();
    object.set_annotation(ORIGINAL_API_VERSION, &original);
    view::of_object(info, version, object)
}
