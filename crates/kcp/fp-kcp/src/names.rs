//! The annotations, labels, finalizers, groups, verbs and cluster names that kcp's parts agree on.
//!
//! Sources: kcp `sdk/apis/**` and the constants of its controllers and admission plugins.

/// Clusters that every shard has for itself: `system:<one of these>`.
pub mod system {
    pub const ADMIN: &str = "admin";
    pub const SYSTEM_CRDS: &str = "system-crds";
    pub const BOUND_CRDS: &str = "bound-crds";
    pub const SHARD: &str = "shard";
}

/// API groups.
pub mod group {
    pub const APIS: &str = "apis.kcp.io";
    pub const CACHE: &str = "cache.kcp.io";
    pub const CORE: &str = "core.kcp.io";
    pub const TENANCY: &str = "tenancy.kcp.io";
    pub const TOPOLOGY: &str = "topology.kcp.io";
    pub const APIEXTENSIONS: &str = "apiextensions.k8s.io";
    pub const RBAC: &str = "rbac.authorization.k8s.io";
}

/// The name of the one LogicalCluster object of a cluster.
pub const LOGICAL_CLUSTER: &str = "cluster";

/// On every object returned: its cluster, taken from its key.
pub const CLUSTER: &str = "kcp.io/cluster";
/// On LogicalClusters and what is referred to by path: the canonical path.
pub const PATH: &str = "kcp.io/path";
/// The real apiVersion of an object in a partial list across clusters.
pub const ORIGINAL_API_VERSION: &str = "kcp.io/original-api-version";
pub const SHARD: &str = "core.kcp.io/shard";
/// `true`: only `/openapi` and the LogicalCluster itself are served.
pub const INACTIVE: &str = "core.kcp.io/inactive";
pub const INACTIVE_LEGACY: &str = "internal.kcp.io/inactive";
pub const MAX_TOTAL_OBJECTS: &str = "core.kcp.io/max-total-objects";
pub const MIGRATING: &str = "internal.kcp.io/migrating";
/// On ClusterRoles, ClusterRoleBindings and LogicalClusters: the sorted groups that want it in the cache.
pub const REPLICATE: &str = "internal.kcp.io/replicate";
/// On a LogicalCluster: `<path>:<name>` of its type.
pub const LOGICAL_CLUSTER_TYPE: &str = "internal.tenancy.kcp.io/type";
/// On a Workspace: the cluster assigned to it, before `spec.cluster` is set.
pub const WORKSPACE_CLUSTER: &str = "internal.tenancy.kcp.io/cluster";
/// On a Workspace: the hash of its shard's name.
pub const WORKSPACE_SHARD_HASH: &str = "internal.tenancy.kcp.io/shard";
/// On Workspaces and LogicalClusters: the owner, a JSON UserInfo.
pub const OWNER: &str = "experimental.tenancy.kcp.io/owner";
/// Once how a mounted workspace was marked.
pub const MOUNT_LEGACY: &str = "experimental.tenancy.kcp.io/mount";
pub const UNSCHEDULABLE: &str = "experimental.core.kcp.io/unschedulable";
pub const REQUIRED_GROUPS: &str = "authorization.kcp.io/required-groups";
pub const SKIP_ENDPOINT_SLICE: &str = "apiexports.apis.kcp.io/skip-endpointslice";
/// Annotations of an APIExport with this prefix are copied to its bindings.
pub const EXPORT_EXTRA_PREFIX: &str = "extra.apis.kcp.io/";
pub const BOUND_CRD: &str = "apis.kcp.io/bound-crd";
pub const SCHEMA_CLUSTER: &str = "apis.kcp.io/schema-cluster";
pub const SCHEMA_NAME: &str = "apis.kcp.io/schema-name";
/// On a LogicalCluster: which binding or CRD holds which resource, as JSON.
pub const RESOURCE_BINDINGS: &str = "internal.apis.kcp.io/resource-bindings";
/// On a CRD: `path-segment` lets its objects have any name that is a path segment.
pub const VALIDATE_NAME: &str = "internal.kcp.io/validate-name";
pub const API_APPROVED: &str = "api-approved.kubernetes.io";
/// On bootstrap objects: never updated after their creation.
pub const CREATE_ONLY: &str = "bootstrap.kcp.io/create-only";
/// On bootstrap objects: there only when this battery is included.
pub const BATTERY: &str = "bootstrap.kcp.io/battery";

/// On Workspaces and LogicalClusters: the phase, for selectors.
pub const PHASE_LABEL: &str = "tenancy.kcp.io/phase";
pub const INITIALIZER_LABEL_PREFIX: &str = "initializer.internal.kcp.io/";
pub const TERMINATOR_LABEL_PREFIX: &str = "terminator.internal.kcp.io/";
pub const CLAIM_LABEL_PREFIX: &str = "claimed.internal.apis.kcp.io/";
/// On an APIBinding: the hash of its export.
pub const EXPORT_LABEL: &str = "internal.apis.kcp.io/export";
pub const REGION_LABEL: &str = "region";
/// On a Shard: its name, for location selectors.
pub const SHARD_NAME_LABEL: &str = "name";

/// On a Workspace while its LogicalCluster exists.
pub const WORKSPACE_FINALIZER: &str = "core.kcp.io/logicalcluster";
pub const LOGICAL_CLUSTER_DELETION_FINALIZER: &str = "core.kcp.io/logicalcluster-deletion";
pub const TERMINATORS_FINALIZER: &str = "kcp.io/has-terminators";
pub const API_BINDING_FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";

/// The initializer of the types that have default bindings.
pub const API_BINDINGS_INITIALIZER: &str = "system:apibindings";

/// User groups.
pub mod groups {
    pub const MASTERS: &str = "system:masters";
    pub const AUTHENTICATED: &str = "system:authenticated";
    pub const ADMIN: &str = "system:kcp:admin";
    pub const BOOTSTRAPPER: &str = "system:kcp:tenancy:workspace-bootstrapper";
    pub const LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:logical-cluster-admin";
    pub const EXTERNAL_LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:external-logical-cluster-admin";
    pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
    pub const INITIALIZER_PREFIX: &str = "system:kcp:initializer:";
    pub const TERMINATOR_PREFIX: &str = "system:kcp:terminator:";
    /// In front of users and groups that a maximal permission policy names.
    pub const BINDING_PREFIX: &str = "apis.kcp.io:binding:";
}

/// Users that the server itself is.
pub mod users {
    /// Creates root's content and initializes universal workspaces.
    pub const BOOTSTRAPPER: &str = "system:kcp:bootstrapper";
    /// The owner of `root`.
    pub const ROOT_OWNER: &str = "system:kcp-bootstrapper";
}

/// Extras of a user.
pub mod extras {
    pub const SCOPES: &str = "authentication.kcp.io/scopes";
    pub const CLUSTER_NAME: &str = "authentication.kcp.io/cluster-name";
    /// A service account's cluster as Kubernetes' authenticator writes it.
    pub const SERVICE_ACCOUNT_CLUSTER: &str = "authentication.kubernetes.io/cluster-name";
    pub const WARRANT: &str = "authorization.kcp.io/warrant";
}

/// Condition types.
pub mod condition {
    pub const READY: &str = "Ready";
    pub const WORKSPACE_SCHEDULED: &str = "WorkspaceScheduled";
    pub const WORKSPACE_INITIALIZED: &str = "WorkspaceInitialized";
    pub const WORKSPACE_CONTENT_DELETED: &str = "WorkspaceContentDeleted";
    pub const WORKSPACE_MOUNT_READY: &str = "WorkspaceMountReady";
    pub const API_BINDINGS_INITIALIZED: &str = "APIBindingsInitialized";
    pub const API_BINDINGS_RECONCILED: &str = "APIBindingsReconciled";
    pub const IDENTITY_VALID: &str = "IdentityValid";
    pub const VIRTUAL_WORKSPACE_URLS_READY: &str = "VirtualWorkspaceURLsReady";
    pub const API_EXPORT_VALID: &str = "APIExportValid";
    pub const INITIAL_BINDING_COMPLETED: &str = "InitialBindingCompleted";
    pub const BINDING_UP_TO_DATE: &str = "BindingUpToDate";
    pub const BINDING_RESOURCE_DELETE_SUCCESS: &str = "BindingResourceDeleteSuccess";
    pub const PERMISSION_CLAIMS_VALID: &str = "PermissionClaimsValid";
    pub const PERMISSION_CLAIMS_APPLIED: &str = "PermissionClaimsApplied";
    pub const PARTITION_VALID: &str = "PartitionValid";
}
