//! What a LogicalCluster that is being emptied says of itself.

use fp_base::ClusterName;
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition};
use fp_object::meta::Meta;
use fp_object::{Object, Value};

use crate::action::Target;
use crate::content::Content;
use crate::world::{cluster_scoped, gvr};

pub fn target(cluster: &ClusterName) -> Target {
    cluster_scoped(cluster, gvr::logical_clusters())
}

/// The object is being deleted and still waits for its content.
pub fn is_due(object: &Object) -> bool {
    object.is_deleting() && object.finalizers().contains(&names::LOGICAL_CLUSTER_DELETION_FINALIZER)
}

/// The object with the condition for what is left, if it says anything new.
pub fn tell(object: &Object, left: &Content, now: &str) -> Option<Object> {
    let mut new = object.clone();
    let parts = [left.resources_message(), left.finalizers_message()];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let bad = Condition::new_false(
        condition::WORKSPACE_CONTENT_DELETED,
        "SomeResourcesRemain",
        "Info",
        message,
    );
    conditions::set(&mut new, now, bad);
    (new != *object).then_some(new)
}

/// The object without the finalizer that stands for its content.
pub fn without_finalizer(object: &Object) -> Object {
    let mut new = object.clone();
    let kept: Vec<Value> = object
        .finalizers()
        .into_iter()
        .filter(|f| *f != names::LOGICAL_CLUSTER_DELETION_FINALIZER)
        .map(Value::from)
        .collect();
    new.set_meta("finalizers", kept);
    new
}
