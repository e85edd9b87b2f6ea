//! What CustomResourceDefinitions ask of the write path beyond their strategy.
//!
//! Source: apiextensions' `registry/customresourcedefinition/{etcd,strategy}.go`.

use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value, time};
use fp_schema::{ResourceInfo, crd};
use serde_json::json;

const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub fn is_crd(info: &ResourceInfo) -> bool {
    &*info.gr.group == "apiextensions.k8s.io" && &*info.gr.resource == "customresourcedefinitions"
}

/// How many objects a definition's body may hold: more than any of its versions may have schemas.
const OBJECTS_MAX: usize = 30_000;

/// Refuses a body of JSON or flow YAML that holds too many schemas, by counting its braces: a tree
/// of them would cost fifty times the body's memory.
pub fn check_body(body: &[u8]) -> Result<(), Status> {
    if body.iter().filter(|b| **b == b'{').count() <= OBJECTS_MAX {
        return Ok(());
    }
    let why = format!("must not have more than {OBJECTS_MAX} objects");
    Err(too_large("", FieldError::invalid("spec.versions", "", why)))
}

/// Refuses schemas that are too large or too deep before anything walks them.
pub fn check_size(crd: &Object) -> Result<(), Status> {
    crd::oversized(crd).map_or(Ok(()), |error| Err(too_large(crd.name(), error)))
}

fn too_large(name: &str, error: FieldError) -> Status {
    Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, &[error])
}

/// Refuses a definition that asks for a part that is not here.
pub fn check(crd: &Object) -> Result<(), Status> {
    crd::not_built(crd).map_or(Ok(()), |part| Err(Status::not_implemented(part)))
}

/// The first delete of a definition marks it: it waits until its objects are gone.
pub fn mark_deleted(crd: &mut Object) {
    let now = time::now();
    crd.set_meta("deletionTimestamp", now.as_str());
    let mut finalizers: Vec<Value> = crd.finalizers().into_iter().map(Value::from).collect();
    if !finalizers.iter().any(|f| f == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.into());
    }
    crd.set_meta("finalizers", finalizers);
    let condition = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now, "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let status = crd.map_mut(&["status"]);
    let mut conditions = match status.remove("conditions") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    conditions.retain(|c| c["type"] != "Terminating");
    conditions.push(condition);
    status.insert("conditions".into(), conditions.into());
}
