//! What every controller reads and writes: the informer's copy, the path index, and a client in
//! the process.

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::{ClusterName, ClusterPath, ClusterScope, Gr, Gvr, Revision};
use fp_informer::{Entry, Informer, ObjectKey, Query, Table, TableId};
use fp_kcp::api::TypeRef;
use fp_kcp::api::WorkspaceTypeSpec;
use fp_kcp::bypath::ByPath;
use fp_kcp::names::{self, group};
use fp_kcp::workspacetype::{self, WorkspaceType};
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::time;
use fp_object::{Object, Value};
use fp_schema::{ResourceInfo, Segment, Sub};
use fp_verbs::local::{At, Preconditions};
use fp_verbs::{Directory, LocalClient, Located, Resolver};
use parking_lot::Mutex;

use crate::action::Target;

/// What differs between servers.
#[derive(Clone)]
pub struct Config {
    pub shard_name: String,
    /// The shard's URLs, without a trailing slash.
    pub base_url: String,
    pub external_url: String,
    pub virtual_workspace_url: String,
    /// The CA bundle that is published in every namespace.
    pub root_ca_pem: String,
}

/// Shared by all controllers; cheap to clone.
pub struct World {
    pub informer: Arc<Informer>,
    pub directory: Arc<dyn Directory>,
    pub resolver: Arc<dyn Resolver>,
    /// Acts as a member of `system:masters`.
    pub client: LocalClient,
    /// WorkspaceTypes by path.
    pub types: Arc<ByPath<WorkspaceTypeSpec>>,
    pub config: Config,
    /// By revision, which names one state of one object. See [`World::outline`].
    pub outlines: Mutex<HashMap<Revision, Arc<Object>>>,
}

/// How many outlines are kept: more definitions than that are parsed again.
const OUTLINES_MAX: usize = 4096;

/// The segment of custom resources that no export has bound.
const CUSTOM: &str = "customresources";

impl World {
    fn table(&self, group: &str, resource: &str, segment: &str) -> Arc<Table> {
        self.informer.table(&TableId { gr: Gr::new(group, resource), segment: segment.into() })
    }

    /// A table of a built-in type.
    pub fn builtin(&self, group: &str, resource: &str) -> Arc<Table> {
        self.table(group, resource, "")
    }

    /// A table of a system CRD (`apis.kcp.io`, `core.kcp.io/logicalclusters`).
    pub fn system(&self, group: &str, resource: &str) -> Arc<Table> {
        self.table(group, resource, CUSTOM)
    }

    /// The identity of one of root's own exports, once it has one.
    fn root_identity(&self, export: &str) -> Option<String> {
        let export = self
            .system(group::APIS, "apiexports")
            .get(&key(&ClusterName::root(), export))?
            .object();
        export.text(&["status", "identityHash"]).filter(|i| !i.is_empty()).map(str::to_owned)
    }

    /// A table of one of root's own exports (tenancy, topology, shards): `None` before the export
    /// has its identity.
    pub fn exported(&self, export: &str, group: &str, resource: &str) -> Option<Arc<Table>> {
        Some(self.table(group, resource, &self.root_identity(export)?))
    }

    /// Everything a cluster serves.
    pub fn served(&self, cluster: &ClusterName) -> Vec<Arc<ResourceInfo>> {
        self.resolver.list(&ClusterScope::One(cluster.clone()))
    }

    /// The table that a resource's objects are in.
    pub fn table_of(&self, info: &ResourceInfo) -> Arc<Table> {
        let segment = match &info.segment {
            Segment::Builtin => "",
            Segment::CustomResources => CUSTOM,
            Segment::Identity(identity) => identity.as_str(),
        };
        self.table(&info.gr.group, &info.gr.resource, segment)
    }

    pub fn workspaces(&self) -> Option<Arc<Table>> {
        self.exported("tenancy.kcp.io", group::TENANCY, "workspaces")
    }

    pub fn workspace_types(&self) -> Option<Arc<Table>> {
        self.exported("tenancy.kcp.io", group::TENANCY, "workspacetypes")
    }

    pub fn shards(&self) -> Option<Arc<Table>> {
        self.exported("shards.core.kcp.io", group::CORE, "shards")
    }

    pub fn logical_cluster(&self, cluster: &ClusterName) -> Option<Object> {
        let key = ObjectKey {
            cluster: cluster.clone(),
            namespace: "".into(),
            name: names::LOGICAL_CLUSTER.into(),
        };
        self.system(group::CORE, "logicalclusters").get(&key).map(|e| e.object())
    }

    /// All entries of a table in one cluster.
    pub fn in_cluster(&self, table: &Table, cluster: &ClusterName) -> Vec<Arc<Entry>> {
        self.listed(table, &ClusterScope::One(cluster.clone()), None)
    }

    /// All entries of a table.
    pub fn everywhere(&self, table: &Table) -> Vec<Arc<Entry>> {
        self.listed(table, &ClusterScope::All, None)
    }

    pub fn in_namespace(
        &self,
        table: &Table,
        cluster: &ClusterName,
        namespace: &str,
    ) -> Vec<Arc<Entry>> {
        self.listed(table, &ClusterScope::One(cluster.clone()), Some(namespace))
    }

    /// A definition (APIResourceSchema or CRD) without its schemas, parsed once: every binding of
    /// every workspace looks at the same few, whose schemas are large.
    pub fn outline(&self, entry: &Entry) -> Arc<Object> {
        if let Some(known) = self.outlines.lock().get(&entry.revision) {
            return known.clone();
        }
        let mut object = entry.object();
        let versions = object
            .get_mut("spec")
            .and_then(|s| s.get_mut("versions"))
            .and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
            version.remove("schema");
        }
        let outline = Arc::new(object);
        let mut outlines = self.outlines.lock();
        if outlines.len() >= OUTLINES_MAX {
            outlines.clear();
        }
        outlines.insert(entry.revision, outline.clone());
        outline
    }

    fn listed(
        &self,
        table: &Table,
        scope: &ClusterScope,
        namespace: Option<&str>,
    ) -> Vec<Arc<Entry>> {
        table.list(Query { scope, namespace, start_after: None, limit: 0, filter: None }).entries
    }

    /// The cluster that a path or a name leads to.
    pub fn resolve(&self, path: &str) -> Option<ClusterName> {
        let path = ClusterPath::parse(path).ok()?;
        match self.directory.locate(&path) {
            Located::Cluster { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The APIExport that a path and a name mean.
    pub fn export(&self, path: &str, name: &str) -> Option<Object> {
        let cluster = self.resolve(path)?;
        self.system(group::APIS, "apiexports").get(&key(&cluster, name)).map(|e| e.object())
    }

    /// A type and all that it extends, its own last; the error says what is missing.
    pub fn type_closure(&self, kind: &TypeRef) -> Result<Vec<Arc<WorkspaceType>>, String> {
        let identity = self.root_identity("tenancy.kcp.io").unwrap_or_default();
        let lookup = |path: &str, name: &str| self.types.get(&identity, path, name);
        let own = workspacetype::resolve("root", kind, &lookup).map_err(|e| e.to_string())?;
        workspacetype::aliases(&own, &lookup).map_err(|e| e.to_string())
    }

    pub async fn create(&self, at: &Target, object: Object) -> Result<Object, Status> {
        self.client.create(&at.cluster, &at.gvr, object).await
    }

    pub async fn update(&self, at: &Target, object: Object) -> Result<Object, Status> {
        self.client.update(&at.cluster, &at.gvr, object).await
    }

    pub async fn update_status(&self, at: &Target, object: Object) -> Result<Object, Status> {
        self.client.update_status(&at.cluster, &at.gvr, object).await
    }

    pub async fn update_whole(&self, at: &Target, object: Object) -> Result<Object, Status> {
        self.client.update_whole(&at.cluster, &at.gvr, object).await
    }

    /// Replaces a namespace's `spec.finalizers`.
    pub async fn finalize_namespace(
        &self,
        cluster: &ClusterName,
        namespace: Object,
    ) -> Result<Object, Status> {
        self.client.replace(cluster, &gvr::namespaces(), namespace, Sub::Other("finalize")).await
    }

    /// Deletes the object, if it is still the one with this uid.
    pub async fn delete(&self, at: &Target, name: &str, uid: &str) -> Result<(), Status> {
        let place = At { cluster: &at.cluster, gvr: &at.gvr, namespace: &at.namespace, name };
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        self.client.delete(place, preconditions).await.map(drop)
    }
}

/// Seconds since 1970 of a timestamp in `metadata`; 0 when it has none.
pub fn since_secs(object: &Object, key: &str) -> i64 {
    object.text(&["metadata", key]).and_then(time::parse).map_or(0, |t| t.unix_timestamp())
}

/// Seconds since 1970 of an RFC 3339 time.
pub fn seconds(text: &str) -> i64 {
    time::parse(text).map_or(0, |t| t.unix_timestamp())
}

/// A cluster-scoped target.
pub fn cluster_scoped(cluster: &ClusterName, gvr: Gvr) -> Target {
    Target { cluster: cluster.clone(), gvr, namespace: String::new() }
}

/// The key of a cluster-scoped object.
pub fn key(cluster: &ClusterName, name: &str) -> ObjectKey {
    ObjectKey { cluster: cluster.clone(), namespace: "".into(), name: name.into() }
}

/// The resources that controllers write.
pub mod gvr {
    use fp_base::Gvr;

    pub fn workspaces() -> Gvr {
        Gvr::new("tenancy.kcp.io", "v1alpha1", "workspaces")
    }
    pub fn workspace_types() -> Gvr {
        Gvr::new("tenancy.kcp.io", "v1alpha1", "workspacetypes")
    }
    pub fn logical_clusters() -> Gvr {
        Gvr::new("core.kcp.io", "v1alpha1", "logicalclusters")
    }
    pub fn api_bindings() -> Gvr {
        Gvr::new("apis.kcp.io", "v1alpha2", "apibindings")
    }
    pub fn api_exports() -> Gvr {
        Gvr::new("apis.kcp.io", "v1alpha2", "apiexports")
    }
    pub fn endpoint_slices() -> Gvr {
        Gvr::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices")
    }
    pub fn crds() -> Gvr {
        Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }
    pub fn namespaces() -> Gvr {
        Gvr::new("", "v1", "namespaces")
    }
    pub fn core(resource: &str) -> Gvr {
        Gvr::new("", "v1", resource)
    }
    pub fn rbac(resource: &str) -> Gvr {
        Gvr::new("rbac.authorization.k8s.io", "v1", resource)
    }
}
