//! WorkspaceTypes, and the type of a Workspace: found, usable by the caller, allowed where it stands.

use std::sync::Arc;

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_base::ClusterName;
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::Status;
use serde_json::json;

use super::{NO_LOGICAL_CLUSTER, Readers, Right, forbidden};
use crate::api::{self, TypeRef, WorkspaceSpec, WorkspaceTypeSpec};
use crate::names::{self, group};
use crate::workspacetype::{self, WorkspaceType};

/// What a WorkspaceType itself must say.
pub struct WorkspaceTypes(pub Readers);

#[async_trait]
impl Plugin for WorkspaceTypes {
    fn name(&self) -> &'static str {
        "tenancy.kcp.io/WorkspaceType"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(group::TENANCY, "workspacetypes"))
        else {
            return Ok(());
        };
        let spec: WorkspaceTypeSpec = api::part(object, "spec");
        if let Some(why) = refused_type(attributes.cluster, object.name(), &spec) {
            return Err(forbidden(attributes, Some(object), why));
        }
        // Whoever names an export here has it bound in workspaces by the server: it takes the right
        // to bind it. What was there before has been checked before.
        let old: WorkspaceTypeSpec =
            attributes.old.map(|o| api::part(o, "spec")).unwrap_or_default();
        for reference in
            spec.default_api_bindings.iter().filter(|r| !old.default_api_bindings.contains(r))
        {
            let cluster = match reference.path.as_str() {
                "" => Some(attributes.cluster.clone()),
                "root" => Some(ClusterName::root()),
                path => self.0.paths.find(path),
            };
            let may = match &cluster {
                Some(cluster) => self.0.may_bind(attributes.user, cluster, &reference.export).await,
                None => false,
            };
            if !may {
                let export = join(&reference.path, &reference.export);
                let why = format!(
                    "unable to create or update WorkspaceType: no permission to bind to export {export}"
                );
                return Err(forbidden(attributes, Some(object), why));
            }
        }
        Ok(())
    }
}

/// `path:name`, or the name alone.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}:{name}") }
}

fn refused_type(cluster: &ClusterName, name: &str, spec: &WorkspaceTypeSpec) -> Option<String> {
    if name == "root" && *cluster != ClusterName::root() {
        return Some("root workspace type can only be created in root cluster".into());
    }
    if spec.default_child_workspace_type.as_ref().is_some_and(|t| t.path.is_empty()) {
        return Some(".spec.defaultChildWorkspaceType.path must be set".into());
    }
    let limits = [
        ("limitAllowedChildren", &spec.limit_allowed_children),
        ("limitAllowedParents", &spec.limit_allowed_parents),
    ];
    limits.into_iter().find_map(|(name, limit)| {
        let at = limit.as_ref()?.types.iter().position(|t| t.path.is_empty())?;
        Some(format!(".spec.{name}.types[{at}].path must be set"))
    })
}

/// The type of a Workspace.
pub struct WorkspaceTypeExists(pub Readers);

#[async_trait]
impl Plugin for WorkspaceTypeExists {
    fn name(&self) -> &'static str {
        "tenancy.kcp.io/WorkspaceTypeExists"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !applies(attributes, object) || attributes.operation != Operation::Create {
            return Ok(());
        }
        let spec: WorkspaceSpec = api::part(object, "spec");
        let kind = self
            .chosen(attributes.cluster, spec.kind)
            .map_err(|why| forbidden(attributes, Some(object), why))?;
        let (reference, kind) = kind;
        object
            .map_mut(&["spec"])
            .insert("type".into(), json!({"name": reference.name, "path": reference.path}));
        for (key, value) in &kind.value.additional_workspace_labels {
            if object.label(key).is_none() {
                object.set_label(key, value);
            }
        }
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|o| applies(attributes, o)) else { return Ok(()) };
        let spec: WorkspaceSpec = api::part(object, "spec");
        match (attributes.operation, attributes.old) {
            (Operation::Update, Some(old)) => {
                let old: WorkspaceSpec = api::part(old, "spec");
                if old.kind != spec.kind {
                    return Err(forbidden(attributes, Some(object), "spec.type is immutable"));
                }
                Ok(())
            }
            (Operation::Create, _) => {
                let checked = self.usable(attributes, &spec.kind.unwrap_or_default()).await;
                checked.map_err(|why| forbidden(attributes, Some(object), why))
            }
            _ => Ok(()),
        }
    }
}

/// A mounted workspace has no type.
fn applies(attributes: &Attributes<'_>, object: &Object) -> bool {
    attributes.is(group::TENANCY, "workspaces") && object.at(&["spec", "mount"]).is_none()
}

impl WorkspaceTypeExists {
    /// The type that a new workspace gets, with its path filled in.
    fn chosen(
        &self,
        cluster: &ClusterName,
        wanted: Option<TypeRef>,
    ) -> Result<(TypeRef, Arc<WorkspaceType>), String> {
        let facts = self.0.clusters.get(cluster);
        if facts.is_none() {
            return Err(format!("workspace type cannot be resolved: {NO_LOGICAL_CLUSTER}"));
        }
        let mut reference = match wanted.filter(|t| !t.name.is_empty()) {
            Some(reference) => reference,
            None => {
                let parent = self.parent_type(cluster, "parent type cannot be resolved")?;
                let default = parent.value.default_child_workspace_type.clone();
                default.ok_or_else(|| {
                    format!(
                        "spec.defaultChildWorkspaceType of workspace type {} must be set",
                        parent.qualified()
                    )
                })?
            }
        };
        let path = self.0.clusters.path(cluster);
        let kind = self.resolve(&path, &reference)?;
        if reference.path.is_empty() {
            reference.path = kind.path.clone();
        }
        Ok((reference, kind))
    }

    fn resolve(&self, path: &str, reference: &TypeRef) -> Result<Arc<WorkspaceType>, String> {
        workspacetype::resolve(path, reference, &*self.0.types).map_err(|error| match error {
            // A type that is named by its path is simply looked up.
            workspacetype::Error::Unresolved(name) if !reference.path.is_empty() => {
                format!("Internal error occurred: {}", not_found(&name))
            }
            other => other.to_string(),
        })
    }

    /// The type of the workspace in which the new one is made.
    fn parent_type(
        &self,
        cluster: &ClusterName,
        failure: &str,
    ) -> Result<Arc<WorkspaceType>, String> {
        let kind = self.0.clusters.get(cluster).and_then(|f| f.kind.clone());
        let annotation = names::LOGICAL_CLUSTER_TYPE;
        let kind =
            kind.ok_or_else(|| format!("annotation {annotation} on LogicalCluster must be set"))?;
        if kind.path.is_empty() {
            return Err(format!(
                "annotation {annotation} on LogicalCluster must be in the form of cluster:name"
            ));
        }
        (self.0.types)(&kind.path, &kind.name)
            .ok_or_else(|| format!("{failure}: {}", not_found(&kind.to_string())))
    }

    async fn usable(&self, attributes: &Attributes<'_>, reference: &TypeRef) -> Result<(), String> {
        let kind = self.resolve(attributes.cluster.as_str(), reference)?;
        let aliases = workspacetype::aliases(&kind, &*self.0.types).map_err(|e| e.to_string())?;
        if reference.path.is_empty() {
            return Err("spec.type.path must be set".into());
        }
        for alias in &aliases {
            let right = Right {
                verb: "use",
                group: group::TENANCY,
                resource: "workspacetypes",
                name: &alias.name,
            };
            if !self.0.may(attributes.user, &alias.cluster, right).await {
                return Err(format!(
                    "unable to use workspace type {}: missing verb='use' permission on workspacetype",
                    alias.qualified()
                ));
            }
        }
        let parent = self.parent_type(attributes.cluster, "workspace type cannot be resolved")?;
        let parents = workspacetype::aliases(&parent, &*self.0.types).map_err(|e| e.to_string())?;
        let facts = self.0.clusters.get(attributes.cluster);
        let parent_name =
            facts.and_then(|f| f.kind.as_ref().map(TypeRef::to_string)).unwrap_or_default();
        workspacetype::check_limits(&parent_name, &parents, &reference.to_string(), &aliases)
            .map_err(|e| e.to_string())
    }
}

fn not_found(qualified: &str) -> String {
    format!("workspacetypes.tenancy.kcp.io {qualified:?} not found")
}
