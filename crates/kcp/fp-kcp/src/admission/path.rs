//! The annotation `kcp.io/path` is the workspace's own path, wherever it stands.

use std::sync::Arc;

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::Status;

use super::{NO_LOGICAL_CLUSTER, forbidden};
use crate::clusters::Clusters;
use crate::names::{self, group};

pub struct PathAnnotation(pub Arc<Clusters>);

impl PathAnnotation {
    /// The path that the object must carry; `None` when it need not.
    fn wanted(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
    ) -> Result<Option<String>, Status> {
        if attributes.operation == Operation::Delete
            || attributes.is(group::CORE, "logicalclusters")
        {
            return Ok(None);
        }
        let binding = attributes.is(group::APIS, "apibindings");
        let always = binding
            || attributes.is(group::APIS, "apiexports")
            || attributes.is(group::CACHE, "clustercachedresources")
            || attributes.is(group::TENANCY, "workspacetypes");
        if !always && object.annotation(names::PATH).is_none() {
            return Ok(None);
        }
        match self.0.get(attributes.cluster) {
            Some(facts) => {
                Ok(Some(facts.path.as_deref().unwrap_or(attributes.cluster.as_str()).to_owned()))
            }
            // A binding may come before its workspace when a shard starts.
            None if binding => Ok(None),
            None => {
                let why = format!("cannot get this workspace: {NO_LOGICAL_CLUSTER}");
                Err(forbidden(attributes, Some(object), why))
            }
        }
    }
}

#[async_trait]
impl Plugin for PathAnnotation {
    fn name(&self) -> &'static str {
        "kcp.io/PathAnnotation"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if let Some(path) = self.wanted(attributes, object)? {
            object.set_annotation(names::PATH, &path);
        }
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object else { return Ok(()) };
        let Some(wanted) = self.wanted(attributes, object)? else { return Ok(()) };
        let got = object.annotation(names::PATH).unwrap_or("");
        if got == wanted || attributes.is(group::APIS, "apibindings") {
            return Ok(());
        }
        let why = format!(
            "annotation for {}, {:?} must match canonical path {wanted:?}, but got {got:?}",
            attributes.name,
            names::PATH
        );
        Err(forbidden(attributes, Some(object), why))
    }
}
