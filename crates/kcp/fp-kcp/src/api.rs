//! Typed views of kcp's own kinds: what controllers and admission read of them.
//!
//! A view is read from the dynamic object and never written back: writers change the object, so that
//! fields this version does not know survive. A mistyped member (objects passed their schema, so
//! only a foreign writer can have stored one) reads as absent.

use std::collections::BTreeMap;

use fp_base::{ClusterName, Identity};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde::Deserialize;

use crate::names;

/// Reads `member` of an object (`spec`, `status`) as `T`.
pub fn part<T: for<'a> Deserialize<'a> + Default>(object: &Object, member: &str) -> T {
    object.get(member).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
}

/// The cluster of an object as it is served.
pub fn cluster_of(object: &Object) -> Option<ClusterName> {
    object.annotation(names::CLUSTER).and_then(|name| ClusterName::parse(name).ok())
}

/// Where a cluster, or an object with a path, is to be found: its path, else its cluster.
pub fn path_of(object: &Object) -> Option<&str> {
    object.annotation(names::PATH).or_else(|| object.annotation(names::CLUSTER))
}

/// `LogicalClusterPhase`: also a Workspace's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Phase {
    #[default]
    Scheduling,
    Initializing,
    Ready,
    Unavailable,
    Inactive,
    Terminating,
    Deleting,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduling => "Scheduling",
            Self::Initializing => "Initializing",
            Self::Ready => "Ready",
            Self::Unavailable => "Unavailable",
            Self::Inactive => "Inactive",
            Self::Terminating => "Terminating",
            Self::Deleting => "Deleting",
        }
    }

    /// The phase in `status.phase`; the schema's default where there is none.
    pub fn of(object: &Object) -> Self {
        object.at(&["status", "phase"]).and_then(|p| Self::deserialize(p).ok()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogicalClusterSpec {
    pub directly_deletable: bool,
    pub owner: Option<Owner>,
    pub created_by: Option<UserInfo>,
    pub initializers: Vec<String>,
    pub terminators: Vec<String>,
}

/// What a LogicalCluster belongs to: usually a Workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    pub api_version: String,
    pub resource: String,
    pub name: String,
    pub namespace: String,
    pub cluster: String,
    pub uid: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogicalClusterStatus {
    #[serde(rename = "URL")]
    pub url: String,
    pub phase: Phase,
    pub initializers: Vec<String>,
    pub terminators: Vec<String>,
}

/// `authentication/v1.UserInfo`, as the owner annotation and `spec.createdBy` hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    pub fn of(user: &fp_auth::User) -> Self {
        Self {
            username: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        }
    }

    /// The compact JSON that the owner annotation holds.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a user is plain data")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceSpec {
    #[serde(rename = "type")]
    pub kind: Option<TypeRef>,
    pub location: Option<Location>,
    pub cluster: String,
    #[serde(rename = "URL")]
    pub url: String,
    pub mount: Option<Mount>,
}

/// Where a workspace wants to be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Location {
    /// A LabelSelector over Shards.
    pub selector: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Mount {
    #[serde(rename = "ref")]
    pub reference: MountRef,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MountRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

/// A WorkspaceType by path and name. `Display` is `path:name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(default)]
pub struct TypeRef {
    pub name: String,
    pub path: String,
}

impl TypeRef {
    /// Takes `path:name` apart.
    pub fn parse(text: &str) -> Option<Self> {
        text.rsplit_once(':').map(|(path, name)| Self { name: name.into(), path: path.into() })
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}:{}", self.path, self.name)
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceTypeSpec {
    pub initializer: bool,
    pub terminator: bool,
    pub extend: Extend,
    pub additional_workspace_labels: BTreeMap<String, String>,
    pub default_child_workspace_type: Option<TypeRef>,
    pub limit_allowed_children: Option<TypeLimit>,
    pub limit_allowed_parents: Option<TypeLimit>,
    #[serde(rename = "defaultAPIBindings")]
    pub default_api_bindings: Vec<ExportRef>,
    #[serde(rename = "defaultAPIBindingLifecycle")]
    pub default_api_binding_lifecycle: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Extend {
    pub with: Vec<TypeRef>,
}

/// Which types may stand above or below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TypeLimit {
    pub none: bool,
    pub types: Vec<TypeRef>,
}

/// An export that a type binds. `path` may be empty: the type's own cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(default)]
pub struct ExportRef {
    pub path: String,
    pub export: String,
}

/// `apis.kcp.io/v1alpha2` APIExport.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiExportSpec {
    pub resources: Vec<ExportResource>,
    pub identity: Option<ExportIdentity>,
    pub maximal_permission_policy: Option<MaximalPermissionPolicy>,
    pub permission_claims: Vec<PermissionClaim>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ExportResource {
    pub name: String,
    pub group: String,
    pub schema: String,
    /// `{crd: {}}` or `{virtual: {...}}`.
    pub storage: Object,
}

impl ExportResource {
    /// Objects live in a CRD; otherwise another server has them.
    pub fn is_crd(&self) -> bool {
        !self.storage.contains_key("virtual")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExportIdentity {
    pub secret_ref: Option<SecretRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MaximalPermissionPolicy {
    pub local: Option<Object>,
}

/// A claim of an export, and (with selector and state) what a binding makes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionClaim {
    pub group: String,
    pub resource: String,
    pub verbs: Vec<String>,
    pub identity_hash: String,
    pub default_selector: Option<Value>,
    pub selector: Option<Value>,
    /// `Accepted`, `Rejected`.
    pub state: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiBindingSpec {
    pub reference: BindingReference,
    pub permission_claims: Vec<PermissionClaim>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BindingReference {
    pub export: Option<BindingExport>,
}

/// `path` may be empty: the binding's own cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BindingExport {
    pub path: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiBindingStatus {
    pub api_export_cluster_name: String,
    pub bound_resources: Vec<BoundResource>,
    /// Empty, `Binding`, `Bound`.
    pub phase: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundResource {
    pub group: String,
    pub resource: String,
    pub schema: BoundSchema,
    /// Empty for a resource that another server has.
    pub storage_versions: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundSchema {
    pub name: String,
    #[serde(rename = "UID")]
    pub uid: String,
    pub identity_hash: String,
}

impl BoundSchema {
    pub fn identity(&self) -> Option<Identity> {
        Identity::parse(&self.identity_hash)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShardSpec {
    #[serde(rename = "baseURL")]
    pub base_url: String,
    #[serde(rename = "externalURL")]
    pub external_url: String,
    #[serde(rename = "virtualWorkspaceURL")]
    pub virtual_workspace_url: String,
}

/// Who holds a resource of a cluster: the value of [`names::RESOURCE_BINDINGS`], keyed by
/// `<resource>.<group>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct ResourceLock {
    /// The binding's name.
    #[serde(rename = "n", skip_serializing_if = "String::is_empty")]
    pub binding: String,
    /// A CRD of the cluster itself.
    #[serde(rename = "c", skip_serializing_if = "std::ops::Not::not")]
    pub crd: bool,
    /// RFC 3339: the lock is provisional until then.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    pub expiry: Option<String>,
}

/// Reads the locks of a LogicalCluster; `Err` when the annotation is no JSON of theirs.
pub fn resource_locks(
    logical_cluster: &Object,
) -> Result<BTreeMap<String, ResourceLock>, serde_json::Error> {
    logical_cluster
        .annotation(names::RESOURCE_BINDINGS)
        .map_or_else(|| Ok(BTreeMap::new()), serde_json::from_str)
}
