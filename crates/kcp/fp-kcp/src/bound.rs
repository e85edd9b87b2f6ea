//! From an APIResourceSchema to the CRD in `system:bound-crds` that serves it everywhere.
//!
//! Rules: kcp `pkg/reconciler/apis/apibinding` (`GenerateBoundCRD`). The CRD's name is the schema's
//! uid, so that a schema is served once, however many workspaces bind it.

use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use crate::names::{self, system};

/// Why no CRD can be made of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("multiple versions specified for {0} but no conversion strategy")]
    NoConversion(String),
}

/// The CRD of a schema, as it is created. `schema` carries the annotation of its cluster.
pub fn crd(schema: &Object) -> Result<Object, Error> {
    let spec = |key: &str| schema.at(&["spec", key]).cloned().unwrap_or(Value::Null);
    let mut annotations = json!({
        names::CLUSTER: format!("system:{}", system::BOUND_CRDS),
        names::BOUND_CRD: "",
        names::SCHEMA_CLUSTER: schema.annotation(names::CLUSTER).unwrap_or_default(),
        names::SCHEMA_NAME: schema.name(),
    });
    if let Some(approved) = schema.annotation(names::API_APPROVED) {
        annotations[names::API_APPROVED] = approved.into();
    }
    if spec("nameValidation") == "PathSegmentName" {
        annotations[names::VALIDATE_NAME] = "path-segment".into();
    }
    let schema_versions = match spec("versions") {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": schema.uid(), "annotations": annotations},
        "spec": {"group": spec("group"), "names": spec("names"), "scope": spec("scope")},
    });
    if schema_versions.len() > 1 {
        let conversion = spec("conversion");
        if conversion.is_null() {
            return Err(Error::NoConversion(schema.name().to_owned()));
        }
        crd["spec"]["conversion"] = conversion;
    }
    crd["spec"]["versions"] = schema_versions.into_iter().map(version).collect();
    match crd {
        Value::Object(crd) => Ok(crd),
        _ => unreachable!("made an object just above"),
    }
}

fn version(mut version: Value) -> Value {
    version["schema"] = json!({"openAPIV3Schema": version["schema"].take()});
    if version["subresources"].is_null() {
        version["subresources"] = json!({});
    }
    version
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    #[test]
    fn of_schema() {
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {"type": "object"}});
        let schema = |versions: Value, conversion: Value| {
            object(json!({
                "metadata": {
                    "name": "v1.widgets.g.dev", "uid": "u-1",
                    "annotations": {names::CLUSTER: "c1", "other": "x", names::API_APPROVED: "url"},
                },
                "spec": {
                    "group": "g.dev", "names": {"plural": "widgets"}, "scope": "Cluster",
                    "nameValidation": "PathSegmentName", "versions": versions, "conversion": conversion,
                },
            }))
        };
        let one = crd(&schema(json!([version("v1")]), Value::Null)).unwrap();
        expect_test::expect![[r#"
            {"annotations":{"api-approved.kubernetes.io":"url","apis.kcp.io/bound-crd":"","apis.kcp.io/schema-cluster":"c1","apis.kcp.io/schema-name":"v1.widgets.g.dev","internal.kcp.io/validate-name":"path-segment","kcp.io/cluster":"system:bound-crds"},"name":"u-1"}
            {"group":"g.dev","names":{"plural":"widgets"},"scope":"Cluster","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true,"subresources":{}}]}
        "#]]
        .assert_eq(&format!("{}\n{}\n", one["metadata"], one["spec"]));
        let two = json!([version("v1"), version("v2")]);
        let error = crd(&schema(two.clone(), Value::Null)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "multiple versions specified for v1.widgets.g.dev but no conversion strategy"
        );
        assert_eq!(
            crd(&schema(two, json!({"strategy": "None"}))).unwrap()["spec"]["conversion"]["strategy"],
            "None"
        );
    }
}
