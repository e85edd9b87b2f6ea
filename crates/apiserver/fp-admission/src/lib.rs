//! The admission chain, and the plugins that know no workspace.
//!
//! Deliberately absent: stores, transport; readers and writers come in as closures at wiring.

pub mod namespace;
pub mod rbac_escalation;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use async_trait::async_trait;
use fp_auth::User;
use fp_base::ClusterName;
use fp_object::Object;
use fp_object::status::Status;
use fp_schema::{ResourceInfo, Sub};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// One write, as a plugin sees it.
pub struct Attributes<'a> {
    pub user: &'a User,
    pub cluster: &'a ClusterName,
    pub info: &'a ResourceInfo,
    /// The version of the request; objects are in it.
    pub version: &'a str,
    pub sub: Sub,
    pub operation: Operation,
    pub namespace: &'a str,
    /// Empty on a create with generateName until the name is made.
    pub name: &'a str,
    pub dry_run: bool,
    /// The stored object before: update and delete.
    pub old: Option<&'a Object>,
}

impl Attributes<'_> {
    /// The resource is `resource` of `group`.
    pub fn is(&self, group: &str, resource: &str) -> bool {
        &*self.info.gr.group == group && &*self.info.gr.resource == resource
    }
}

/// A plugin mutates, then (when all have) validates. On delete there is no object.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    async fn mutate(
        &self,
        _attributes: &Attributes<'_>,
        _object: &mut Object,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(
        &self,
        _attributes: &Attributes<'_>,
        _object: Option<&Object>,
    ) -> Result<(), Status> {
        Ok(())
    }
}

/// The plugins in order.
#[derive(Clone, Default)]
pub struct Chain(pub Vec<Arc<dyn Plugin>>);

impl Chain {
    pub async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), Status> {
        for plugin in &self.0 {
            plugin.mutate(attributes, object).await?;
        }
        Ok(())
    }

    pub async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        for plugin in &self.0 {
            plugin.validate(attributes, object).await?;
        }
        Ok(())
    }
}
