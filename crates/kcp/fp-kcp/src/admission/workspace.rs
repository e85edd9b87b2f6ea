//! A Workspace: who owns it, the groups it requires, and what of it nobody but the server sets.

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};

use super::{NO_LOGICAL_CLUSTER, Readers, forbidden};
use crate::api::{self, MountRef, Phase, UserInfo, WorkspaceSpec};
use crate::names::{self, group};

pub struct Workspace(pub Readers);

impl Workspace {
    /// The groups that the parent requires; its children require them too.
    fn required_groups(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
    ) -> Result<Option<String>, Status> {
        let facts = self.0.clusters.get(attributes.cluster);
        let facts = facts.ok_or_else(|| forbidden(attributes, Some(object), NO_LOGICAL_CLUSTER))?;
        Ok(facts.required_groups.as_deref().map(str::to_owned))
    }
}

#[async_trait]
impl Plugin for Workspace {
    fn name(&self) -> &'static str {
        "tenancy.kcp.io/Workspace"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.is(group::TENANCY, "workspaces") || attributes.operation != Operation::Create
        {
            return Ok(());
        }
        let master = attributes.user.is_master();
        if !master {
            object.set_annotation(names::OWNER, &UserInfo::of(attributes.user).to_json());
        }
        if !master || object.annotation(names::REQUIRED_GROUPS).is_none() {
            match self.required_groups(attributes, object)? {
                Some(groups) => object.set_annotation(names::REQUIRED_GROUPS, &groups),
                None => {
                    object.remove_at(&["metadata", "annotations", names::REQUIRED_GROUPS]);
                }
            }
        }
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(group::TENANCY, "workspaces")) else {
            return Ok(());
        };
        let refused = match (attributes.operation, attributes.old) {
            (Operation::Create, _) => match refused_create(attributes, object) {
                None if !attributes.user.is_master() => {
                    let wanted = self.required_groups(attributes, object)?.unwrap_or_default();
                    let got = object.annotation(names::REQUIRED_GROUPS).unwrap_or("");
                    (got != wanted).then(|| {
                        format!(
                            "missing required groups annotation {}={wanted}",
                            names::REQUIRED_GROUPS
                        )
                    })
                }
                refused => refused,
            },
            (Operation::Update, Some(old)) => refused_update(attributes, old, object),
            _ => None,
        };
        refused.map_or(Ok(()), |why| Err(forbidden(attributes, Some(object), why)))
    }
}

fn refused_create(attributes: &Attributes<'_>, object: &Object) -> Option<String> {
    let spec: WorkspaceSpec = api::part(object, "spec");
    let master = attributes.user.is_master();
    if !master {
        if !spec.cluster.is_empty() {
            return Some("spec.Cluster can only be set by system privileged users".into());
        }
        if !spec.url.is_empty() {
            return Some("spec.URL can only be set by system privileged users".into());
        }
        let owner = UserInfo::of(attributes.user).to_json();
        if object.annotation(names::OWNER) != Some(owner.as_str()) {
            return Some(format!("expected user annotation {}={owner}", names::OWNER));
        }
    }
    let mount = spec.mount?.reference;
    for (name, value) in
        [("kind", &mount.kind), ("name", &mount.name), ("apiVersion", &mount.api_version)]
    {
        if value.is_empty() {
            return Some(format!("spec.mount.{name} must be set"));
        }
    }
    (!master && spec.kind.is_some())
        .then(|| "spec.type cannot be set for mounted workspaces".into())
}

fn refused_update(
    attributes: &Attributes<'_>,
    old_object: &Object,
    object: &Object,
) -> Option<String> {
    let (old, new): (WorkspaceSpec, WorkspaceSpec) =
        (api::part(old_object, "spec"), api::part(object, "spec"));
    let master = attributes.user.is_master();
    if let Some(mount) = &old.mount {
        return refused_mount_update(&mount.reference, &old, &new, master);
    }
    if !old.cluster.is_empty() && new.cluster.is_empty() {
        return Some("spec.cluster cannot be unset".into());
    }
    if old.cluster != new.cluster && !master {
        return Some("spec.cluster can only be changed by system privileged users".into());
    }
    if old.url != new.url && !master {
        return Some("spec.URL can only be changed by system privileged users".into());
    }
    if old.kind != new.kind {
        let value = object.at(&["spec", "type"]).cloned().unwrap_or(Value::Null);
        return Some(FieldError::invalid("spec.type", value, "field is immutable").to_string());
    }
    if Phase::of(old_object) != Phase::Ready && Phase::of(object) == Phase::Ready {
        if new.cluster.is_empty() {
            return Some("spec.cluster must be set for phase Ready".into());
        }
        if new.url.is_empty() {
            return Some("spec.URL must be set for phase Ready".into());
        }
    }
    None
}

fn refused_mount_update(
    mount: &MountRef,
    old: &WorkspaceSpec,
    new: &WorkspaceSpec,
    master: bool,
) -> Option<String> {
    let now = new.mount.as_ref().map(|m| m.reference.clone()).unwrap_or_default();
    for (name, before, after) in [
        ("kind", &mount.kind, &now.kind),
        ("name", &mount.name, &now.name),
        ("namespace", &mount.namespace, &now.namespace),
        ("apiVersion", &mount.api_version, &now.api_version),
    ] {
        if before != after {
            return Some(format!("spec.mount.{name} is immutable"));
        }
    }
    if !master && new.kind.is_some() {
        return Some("spec.type cannot be set for mounted workspaces".into());
    }
    (!master && old.kind != new.kind).then(|| "spec.type is immutable".into())
}
