//! An APIBinding: its export is one that the caller may bind, and its label says which.

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_base::ClusterName;
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};

use super::{Readers, forbidden, types};
use crate::api::{self, ApiBindingSpec, ApiBindingStatus, BindingExport};
use crate::names::{self, group};
use crate::{conversion, hash};

pub struct ApiBinding(pub Readers);

impl ApiBinding {
    /// The cluster of the export. Exports of `root` are taken as given: when a shard starts they
    /// come after the bindings.
    fn export_cluster(&self, binding: &ClusterName, export: &BindingExport) -> Option<ClusterName> {
        match export.path.as_str() {
            "" => Some(binding.clone()),
            "root" => Some(ClusterName::root()),
            path => {
                Some(self.0.exports.get("customresources", path, &export.name)?.cluster.clone())
            }
        }
    }
}

/// One answer for "does not exist" and "may not": neither is told.
fn no_permission(attributes: &Attributes<'_>, object: &Object, export: &BindingExport) -> Status {
    let action = if attributes.operation == Operation::Create { "create" } else { "update" };
    let name = types::join(&export.path, &export.name);
    let why = format!("unable to {action} APIBinding: no permission to bind to export {name}");
    forbidden(attributes, Some(object), why)
}

/// The export, where the write sets or changes it (or its label).
fn changed_export(attributes: &Attributes<'_>, object: &Object) -> Option<BindingExport> {
    let export = |o: &Object| api::part::<ApiBindingSpec>(o, "spec").reference.export;
    let same = attributes.old.is_some_and(|old| {
        export(old) == export(object)
            && old.label(names::EXPORT_LABEL) == object.label(names::EXPORT_LABEL)
    });
    export(object).filter(|_| !same)
}

#[async_trait]
impl Plugin for ApiBinding {
    fn name(&self) -> &'static str {
        "apis.kcp.io/APIBinding"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if !attributes.is(group::APIS, "apibindings") || attributes.operation == Operation::Delete {
            return Ok(());
        }
        if attributes.version == "v1alpha1"
            && let Some(error) = overhanging_claims(object)
        {
            return Err(forbidden(attributes, Some(object), error));
        }
        let Some(export) = changed_export(attributes, object) else { return Ok(()) };
        let cluster = self.export_cluster(attributes.cluster, &export);
        let cluster = cluster.ok_or_else(|| no_permission(attributes, object, &export))?;
        object.set_label(names::EXPORT_LABEL, &hash::export_label(&cluster, &export.name));
        // The export's owner sees the binding, whatever it claims.
        object.set_label(
            &hash::claim_label_key(&cluster, &export.name),
            &hash::reflexive_claim_value(),
        );
        Ok(())
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(group::APIS, "apibindings")) else {
            return Ok(());
        };
        let errors = invalid(attributes, object);
        if !errors.is_empty() {
            let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(forbidden(attributes, Some(object), format!("[{}]", list.join(" "))));
        }
        let Some(export) = changed_export(attributes, object) else { return Ok(()) };
        let refused = || no_permission(attributes, object, &export);
        let cluster = self.export_cluster(attributes.cluster, &export).ok_or_else(refused)?;
        if !self.0.may_bind(attributes.user, &cluster, &export.name).await {
            return Err(refused());
        }
        let wanted = hash::export_label(&cluster, &export.name);
        let got = object.label(names::EXPORT_LABEL).unwrap_or("");
        if got != wanted {
            let path = format!("metadata.labels[{}]", names::EXPORT_LABEL);
            let error = FieldError::invalid(path, got, format!("must be set to {wanted:?}"));
            return Err(forbidden(attributes, Some(object), error));
        }
        Ok(())
    }
}

fn invalid(attributes: &Attributes<'_>, object: &Object) -> Vec<FieldError> {
    let spec: ApiBindingSpec = api::part(object, "spec");
    let mut errors = Vec::new();
    match &spec.reference.export {
        None => errors.push(FieldError::required("spec.reference.export", "")),
        Some(export) if export.name.is_empty() => {
            errors.push(FieldError::required("spec.reference.export.name", ""));
        }
        Some(_) => {}
    }
    if attributes.version != "v1alpha1" {
        for (i, claim) in spec.permission_claims.iter().enumerate() {
            let selector = claim.selector.clone().unwrap_or(Value::Null);
            let path = format!("spec.permissionClaims[{i}].selector");
            let has = |key: &str| match &selector[key] {
                Value::Array(list) => !list.is_empty(),
                Value::Object(map) => !map.is_empty(),
                _ => false,
            };
            let all = selector["matchAll"] == true;
            for key in ["matchLabels", "matchExpressions"] {
                if all && has(key) {
                    let why = format!("{key} cannot be used with matchAll");
                    errors.push(FieldError::invalid(
                        format!("{path}.{key}"),
                        selector.clone(),
                        why,
                    ));
                }
            }
            if !all && !has("matchLabels") && !has("matchExpressions") {
                let why = "either one of matchAll, matchLabels, or matchExpressions must be set";
                errors.push(FieldError::required(path, why));
            }
        }
    }
    let phase = |o: &Object| api::part::<ApiBindingStatus>(o, "status").phase;
    if let Some(before) = attributes.old.map(phase)
        && !before.is_empty()
        && phase(object).is_empty()
    {
        errors.push(FieldError::forbidden(
            "status.phase",
            format!("cannot transition from {before:?} to \"\""),
        ));
    }
    errors
}

/// Claims that v1alpha1 carries in an annotation must be those of the spec.
pub(super) fn overhanging_claims(object: &Object) -> Option<FieldError> {
    let key = conversion::PERMISSION_CLAIMS;
    let text = object.annotation(key)?;
    let error =
        |why: &str| Some(FieldError::invalid(format!("metadata.annotations[{key}]"), text, why));
    let Ok(carried) = serde_json::from_str::<Vec<Value>>(text) else {
        return error("failed to decode overhanging permission claims");
    };
    let spec = object.at(&["spec", "permissionClaims"]).and_then(Value::as_array);
    let known =
        |claim: &Value| spec.into_iter().flatten().any(|c| conversion::same_resource(c, claim));
    if carried.iter().all(known) {
        return None;
    }
    error("permission claims defined in annotation do not match permission claims defined in spec")
}
