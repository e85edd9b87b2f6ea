//! Names, groups and annotations that only the server uses.

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::Object;
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;

use super::forbidden;
use crate::names::{group, system};

fn is_crd(attributes: &Attributes<'_>) -> bool {
    attributes.is(group::APIEXTENSIONS, "customresourcedefinitions")
        && attributes.operation != Operation::Delete
}

fn in_system(attributes: &Attributes<'_>, cluster: &str) -> bool {
    attributes.cluster.as_str().strip_prefix("system:") == Some(cluster)
}

/// Annotations of `apis.kcp.io` mark bound CRDs.
pub struct CrdAnnotations;

#[async_trait]
impl Plugin for CrdAnnotations {
    fn name(&self) -> &'static str {
        "apis.kcp.io/ReservedCRDAnnotations"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| is_crd(attributes)) else { return Ok(()) };
        if in_system(attributes, system::BOUND_CRDS) {
            return Ok(());
        }
        let annotations = object.at(&["metadata", "annotations"]).and_then(|a| a.as_object());
        let reserved = |key: &&String| {
            let domain = key.split('/').next().unwrap_or_default();
            domain == group::APIS
                || domain.strip_suffix(group::APIS).is_some_and(|d| d.ends_with('.'))
        };
        let keys = annotations.into_iter().flat_map(|a| a.keys()).filter(reserved);
        let errors: Vec<String> =
            keys.map(|key| format!("{key} is a reserved annotation")).collect();
        match errors.as_slice() {
            [] => Ok(()),
            [one] => Err(forbidden(attributes, Some(object), one)),
            many => Err(forbidden(attributes, Some(object), format!("[{}]", many.join(", ")))),
        }
    }
}

/// CRDs of `apis.kcp.io` are the system's.
pub struct CrdGroups;

#[async_trait]
impl Plugin for CrdGroups {
    fn name(&self) -> &'static str {
        "kcp.io/ReservedCRDGroups"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| is_crd(attributes)) else { return Ok(()) };
        let of = object.text(&["spec", "group"]).unwrap_or("");
        if of.ends_with(group::APIS) && !in_system(attributes, system::SYSTEM_CRDS) {
            return Err(forbidden(attributes, Some(object), format!("{of} is a reserved group")));
        }
        Ok(())
    }
}

/// WorkspaceTypes that mean something else in `kubectl ws` and in limits.
pub struct Names;

#[async_trait]
impl Plugin for Names {
    fn name(&self) -> &'static str {
        "apis.kcp.io/ReservedNames"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let creates = attributes.operation == Operation::Create
            && attributes.is(group::TENANCY, "workspacetypes");
        let name = object.name();
        if creates && matches!(name, "any" | "system") {
            let error = FieldError::invalid("metadata.name", name, "name is reserved");
            return Err(forbidden(attributes, Some(object), error));
        }
        Ok(())
    }
}
