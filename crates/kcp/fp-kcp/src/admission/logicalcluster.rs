//! A LogicalCluster: initializers and terminators are taken over when it starts, and users change
//! nothing of its life.

use std::collections::BTreeSet;

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};

use super::forbidden;
use crate::api::{self, LogicalClusterSpec, LogicalClusterStatus, Phase};
use crate::clusters::Facts;
use crate::names::{group, groups};

pub struct LogicalCluster;

/// Who may do anything to a LogicalCluster.
const PRIVILEGED: [&str; 4] = [
    groups::MASTERS,
    groups::LOGICAL_CLUSTER_ADMIN,
    groups::EXTERNAL_LOGICAL_CLUSTER_ADMIN,
    groups::BOOTSTRAPPER,
];

fn starts(old: &Object, new: &Object) -> bool {
    Phase::of(old) != Phase::Initializing && Phase::of(new) == Phase::Initializing
}

#[async_trait]
impl Plugin for LogicalCluster {
    fn name(&self) -> &'static str {
        "core.kcp.io/LogicalCluster"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.is(group::CORE, "logicalclusters")
            || attributes.operation != Operation::Update
        {
            return Ok(());
        }
        if !attributes.old.is_some_and(|old| starts(old, object)) {
            return Ok(());
        }
        for member in ["initializers", "terminators"] {
            match object.at(&["spec", member]).cloned() {
                Some(list) => object.map_mut(&["status"]).insert(member.into(), list),
                None => object.remove_at(&["status", member]),
            };
        }
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        if !attributes.is(group::CORE, "logicalclusters")
            || PRIVILEGED.iter().any(|g| attributes.user.in_group(g))
        {
            return Ok(());
        }
        let refused = match (attributes.operation, attributes.old, object) {
            (Operation::Create, ..) => Some("LogicalCluster cannot be created".to_owned()),
            (Operation::Delete, old, _) => {
                let spec: LogicalClusterSpec =
                    old.map(|o| api::part(o, "spec")).unwrap_or_default();
                (!spec.directly_deletable).then(|| "LogicalCluster cannot be deleted".to_owned())
            }
            (Operation::Update, Some(old), Some(new)) => refused_update(old, new),
            _ => None,
        };
        refused.map_or(Ok(()), |why| Err(forbidden(attributes, object, why)))
    }
}

fn refused_update(old: &Object, new: &Object) -> Option<String> {
    let created_by = |o: &Object| o.at(&["spec", "createdBy"]).cloned();
    if created_by(old) != created_by(new) {
        let value = created_by(new).unwrap_or(Value::Null);
        return Some(
            FieldError::invalid("spec.createdBy", value, "field is immutable").to_string(),
        );
    }
    let (old_spec, new_spec): (LogicalClusterSpec, LogicalClusterSpec) =
        (api::part(old, "spec"), api::part(new, "spec"));
    let (before, after): (LogicalClusterStatus, LogicalClusterStatus) =
        (api::part(old, "status"), api::part(new, "status"));
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    let (was, is) = (set(&before.initializers), set(&after.initializers));
    if set(&old_spec.initializers) != set(&new_spec.initializers) {
        return Some("spec.initializers is immutable".into());
    }
    if starts(old, new) && set(&new_spec.initializers) != is {
        return Some("status.initializers do not equal spec.initializers".into());
    }
    if !starts(old, new) && after.phase == Phase::Initializing && !was.is_superset(&is) {
        return Some("status.initializers must not grow".into());
    }
    if after.phase != Phase::Initializing && was != is {
        return Some("status.initializers is immutable after initialization".into());
    }
    if before.phase == Phase::Initializing && after.phase != Phase::Initializing && !is.is_empty() {
        return Some("status.initializers is not empty".into());
    }
    if rank(before.phase) > rank(after.phase) {
        return Some(format!(
            "cannot transition from {:?} to {:?}",
            before.phase.as_str(),
            after.phase.as_str()
        ));
    }
    let becomes_inactive = Facts::read(new).inactive && !Facts::read(old).inactive;
    if becomes_inactive && after.phase != Phase::Ready {
        let phase = after.phase.as_str();
        return Some(format!(
            "LogicalCluster can only be marked inactive in phase \"Ready\", but is in phase {phase:?}"
        ));
    }
    None
}

/// The phases that a user's write may pass through, in this order only; the others are the server's.
fn rank(phase: Phase) -> u8 {
    match phase {
        Phase::Scheduling => 2,
        Phase::Initializing => 3,
        Phase::Ready => 4,
        _ => 0,
    }
}
