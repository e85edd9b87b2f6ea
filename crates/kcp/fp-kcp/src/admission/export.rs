//! An APIExport: its claims say whose API they mean, its resources fit their schemas' names.

use std::collections::BTreeSet;

use async_trait::async_trait;
use fp_admission::{Attributes, Plugin};
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};

use super::{binding, forbidden};
use crate::api::{self, ApiExportSpec};
use crate::conversion;
use crate::names::group;

pub struct ApiExport;

/// What may be claimed without an identity besides `apis.kcp.io`: group and resources
/// (kcp `pkg/virtual/apiexport/schemas/builtin`).
const CLAIMABLE: [(&str, &[&str]); 10] = [
    ("", &["namespaces", "configmaps", "events", "resourcequotas", "secrets", "serviceaccounts"]),
    (
        "rbac.authorization.k8s.io",
        &["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    ),
    ("certificates.k8s.io", &["certificatesigningrequests"]),
    ("coordination.k8s.io", &["leases"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ],
    ),
    ("events.k8s.io", &["events"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("core.kcp.io", &["logicalclusters"]),
    ("authorization.k8s.io", &["localsubjectaccessreviews", "subjectaccessreviews"]),
    ("authentication.k8s.io", &["tokenreviews"]),
];

fn is_claimable(of: &str, resource: &str) -> bool {
    CLAIMABLE.iter().any(|(group, resources)| *group == of && resources.contains(&resource))
}

#[async_trait]
impl Plugin for ApiExport {
    fn name(&self) -> &'static str {
        "apis.kcp.io/APIExport"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(group::APIS, "apiexports")) else {
            return Ok(());
        };
        let refuse = |error: FieldError| forbidden(attributes, Some(object), error);
        if attributes.version != "v1alpha1" {
            return invalid(object).map_or(Ok(()), |e| Err(refuse(e)));
        }
        if let Some(error) =
            overhanging_schemas(object).or_else(|| binding::overhanging_claims(object))
        {
            return Err(refuse(error));
        }
        let mut newer = object.clone();
        if let Some(convert) = conversion::of("apiexports") {
            convert(&mut newer, "v1alpha1", "v1alpha2")
                .map_err(|why| forbidden(attributes, Some(object), why))?;
        }
        invalid(&newer).map_or(Ok(()), |e| Err(refuse(e)))
    }
}

fn invalid(export: &Object) -> Option<FieldError> {
    let spec: ApiExportSpec = api::part(export, "spec");
    for (i, claim) in spec.permission_claims.iter().enumerate() {
        let known = claim.group == group::APIS || is_claimable(&claim.group, &claim.resource);
        if claim.identity_hash.is_empty() && !known {
            let path = format!("spec.permissionClaims[{i}].identityHash");
            let why = "identityHash is required for API types that are not built-in";
            return Some(FieldError::invalid(path, "", why));
        }
    }
    for (i, resource) in spec.resources.iter().enumerate() {
        let of = if resource.group.is_empty() { "core" } else { &resource.group };
        let suffix = format!(".{}.{of}", resource.name);
        if !resource.schema.ends_with(&suffix) {
            let path = format!("spec.resources[{i}].schema");
            return Some(FieldError::invalid(
                path,
                resource.schema.as_str(),
                format!("must end in {suffix}"),
            ));
        }
    }
    None
}

/// Resources that v1alpha1 carries in an annotation are named once.
fn overhanging_schemas(export: &Object) -> Option<FieldError> {
    let key = conversion::RESOURCE_SCHEMAS;
    let text = export.annotation(key)?;
    let error =
        |why: &str| Some(FieldError::invalid(format!("metadata.annotations[{key}]"), text, why));
    let Ok(carried) = serde_json::from_str::<Vec<Value>>(text) else {
        return error("failed to decode overhanging resource schemas");
    };
    let latest = export.at(&["spec", "latestResourceSchemas"]).and_then(Value::as_array);
    let names = carried.iter().map(|r| &r["schema"]).chain(latest.into_iter().flatten());
    let mut seen = BTreeSet::new();
    let mut twice = names.filter(|name| !seen.insert(name.to_string()));
    twice.next().and_then(|_| error("duplicate resource schema"))
}
