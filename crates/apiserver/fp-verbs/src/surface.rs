//! A surface is a value: what one kind of server (the shard, a virtual workspace, the cache) is.

use std::sync::Arc;

use fp_base::{ClusterName, ClusterPath, ClusterScope, Gr};
use fp_schema::ResourceInfo;
use tokio::sync::watch;

/// One server's parts.
#[derive(Clone)]
pub struct Surface {
    pub directory: Arc<dyn Directory>,
    pub resolver: Arc<dyn Resolver>,
    pub authorizer: Arc<dyn fp_auth::Authorizer>,
    pub admission: fp_admission::Chain,
    pub backend: Arc<dyn fp_registry::Backend>,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub enum Located {
    Cluster {
        name: ClusterName,
        /// Marked inactive: only `/openapi` and its LogicalCluster are served.
        inactive: bool,
    },
    /// A mounted workspace: another server's URL.
    Mount(String),
    /// Exists, but is not available (503).
    Unavailable,
    Unknown,
}

/// Resolves workspace paths to logical clusters.
pub trait Directory: Send + Sync + 'static {
    /// A path of one segment that is a cluster's name needs no lookup and is always `Cluster`.
    fn locate(&self, path: &ClusterPath) -> Located;

    /// Turns true when open watches of a resource end: its cluster has become inactive or is being
    /// deleted, or, for watches over all clusters, any has become inactive. `None`: they go on.
    fn ends(&self, scope: &ClusterScope, gr: &Gr) -> Option<watch::Receiver<bool>>;
}

/// What a resource request resolves to.
#[derive(Clone)]
pub enum Resolved {
    Found(Arc<ResourceInfo>),
    /// 404.
    Unknown,
    /// 503: known, but its definition is not here yet.
    Unavailable(String),
}

/// Finds a resource's definition as one cluster (or all) sees it.
pub trait Resolver: Send + Sync + 'static {
    /// `identity` is the export identity of a `resource:identity` URL; `partial` says that only
    /// metadata is asked for (kcp serves that across all clusters without an identity).
    fn resolve(
        &self,
        scope: &ClusterScope,
        group: &str,
        resource: &str,
        identity: Option<&str>,
        partial: bool,
    ) -> Resolved;
    /// Everything served in a cluster, in discovery order.
    fn list(&self, scope: &ClusterScope) -> Vec<Arc<ResourceInfo>>;
    /// Changes whenever [`Resolver::list`] may answer otherwise for this cluster: discovery and
    /// OpenAPI documents are kept by it.
    fn fingerprint(&self, scope: &ClusterScope) -> u64;
}
