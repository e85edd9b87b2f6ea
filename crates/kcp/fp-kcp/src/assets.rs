//! Our own CRDs, schemas, exports, types and roles: the files in `assets/`, built into the program.
//!
//! They are what a Go kcp writes, without descriptions; `assets/README.md` says where each comes from.

use fp_object::Object;

/// The CRDs of `system:system-crds`.
pub const SYSTEM_CRDS: [&str; 8] = [
    include_str!("../../../../assets/system-crds/apibindings.apis.kcp.io.json"),
    include_str!("../../../../assets/system-crds/apiconversions.apis.kcp.io.json"),
    include_str!("../../../../assets/system-crds/apiexportendpointslices.apis.kcp.io.json"),
    include_str!("../../../../assets/system-crds/apiexports.apis.kcp.io.json"),
    include_str!("../../../../assets/system-crds/apiresourceschemas.apis.kcp.io.json"),
    include_str!(
        "../../../../assets/system-crds/clustercachedresourceendpointslices.cache.kcp.io.json"
    ),
    include_str!("../../../../assets/system-crds/clustercachedresources.cache.kcp.io.json"),
    include_str!("../../../../assets/system-crds/logicalclusters.core.kcp.io.json"),
];

/// The APIResourceSchemas of `root`.
pub const ROOT_SCHEMAS: [&str; 12] = [
    include_str!("../../../../assets/root/apiresourceschemas/cachedobjects.cache.kcp.io.json"),
    include_str!(
        "../../../../assets/root/apiresourceschemas/clustercachedresourceendpointslices.cache.kcp.io.json"
    ),
    include_str!(
        "../../../../assets/root/apiresourceschemas/clustercachedresources.cache.kcp.io.json"
    ),
    include_str!(
        "../../../../assets/root/apiresourceschemas/logicalclusterdumps.migration.kcp.io.json"
    ),
    include_str!(
        "../../../../assets/root/apiresourceschemas/logicalclustermigrations.migration.kcp.io.json"
    ),
    include_str!("../../../../assets/root/apiresourceschemas/logicalclusters.core.kcp.io.json"),
    include_str!("../../../../assets/root/apiresourceschemas/partitions.topology.kcp.io.json"),
    include_str!("../../../../assets/root/apiresourceschemas/partitionsets.topology.kcp.io.json"),
    include_str!("../../../../assets/root/apiresourceschemas/shards.core.kcp.io.json"),
    include_str!(
        "../../../../assets/root/apiresourceschemas/workspaceauthenticationconfigurations.tenancy.kcp.io.json"
    ),
    include_str!("../../../../assets/root/apiresourceschemas/workspaces.tenancy.kcp.io.json"),
    include_str!("../../../../assets/root/apiresourceschemas/workspacetypes.tenancy.kcp.io.json"),
];

/// The APIExports of `root`, a list.
pub const ROOT_EXPORTS: &str = include_str!("../../../../assets/root/apiexports.json");
/// The WorkspaceTypes of `root`, a list.
pub const ROOT_TYPES: &str = include_str!("../../../../assets/root/workspacetypes.json");
/// ClusterRoles and ClusterRoleBindings of `root`, a list.
pub const ROOT_RBAC: &str = include_str!("../../../../assets/root/rbac.json");
/// Battery `metrics-viewer`: objects of `root`, a list.
pub const ROOT_METRICS_VIEWER: &str = include_str!("../../../../assets/root/metrics-viewer.json");
/// Kubernetes' bootstrap policy in `system:admin`, a list.
pub const ADMIN_KUBE_RBAC: &str = include_str!("../../../../assets/admin/kube-rbac.json");
/// What kcp adds to it, a list.
pub const ADMIN_KCP_RBAC: &str = include_str!("../../../../assets/admin/kcp-rbac.json");

/// Parses one object.
pub fn one(text: &str) -> Object {
    serde_json::from_str(text).expect("a test parses every asset")
}

/// Parses a list.
pub fn many(text: &str) -> Vec<Object> {
    serde_json::from_str(text).expect("a test parses every asset")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fp_object::Value;
    use fp_object::meta::Meta;

    fn schemas() -> Vec<Object> {
        SYSTEM_CRDS.iter().chain(&ROOT_SCHEMAS).map(|text| one(text)).collect()
    }

    #[test]
    fn all_parse() {
        assert!(schemas().iter().all(|o| !o.name().is_empty()));
        for list in [
            ROOT_EXPORTS,
            ROOT_TYPES,
            ROOT_RBAC,
            ROOT_METRICS_VIEWER,
            ADMIN_KUBE_RBAC,
            ADMIN_KCP_RBAC,
        ] {
            assert!(many(list).iter().all(|o| !o.name().is_empty() && !o.kind().is_empty()));
        }
    }

    /// An export names schemas that exist, for the group and resource that they define.
    #[test]
    fn exports_fit_schemas() {
        let schemas = schemas();
        for export in many(ROOT_EXPORTS) {
            let spec: crate::api::ApiExportSpec = crate::api::part(&export, "spec");
            for resource in spec.resources {
                let schema = schemas
                    .iter()
                    .find(|s| s.name() == resource.schema)
                    .expect("the schema exists");
                assert_eq!(schema.text(&["spec", "group"]), Some(&*resource.group));
                assert_eq!(
                    schema.at(&["spec", "names", "plural"]).and_then(Value::as_str),
                    Some(&*resource.name)
                );
            }
        }
    }
}
