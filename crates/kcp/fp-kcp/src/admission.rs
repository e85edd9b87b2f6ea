//! kcp's admission plugins, in kcp's order (surface 7).
//!
//! What they look up comes from the indexes of this crate; permissions are asked of the authorizer
//! in the cluster concerned, as a deep review. Messages are kcp's.

mod binding;
mod export;
mod finalizer;
mod logicalcluster;
mod path;
mod reserved;
mod schema;
mod shard;
mod types;
mod workspace;

use std::sync::Arc;

use fp_admission::namespace::{NamespaceLifecycle, ReadNamespace};
use fp_admission::{Attributes, Plugin};
use fp_auth::{Authorizer, User};
use fp_base::{ClusterName, ClusterScope};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_object::status::{About, Status};

use crate::api::ApiExportSpec;
use crate::bypath::ByPath;
use crate::clusters::Clusters;
use crate::directory::Paths;
use crate::names::{self, group};
use crate::workspacetype::WorkspaceType;

/// Finds a WorkspaceType by path (or cluster name) and name.
pub type TypeLookup = Arc<dyn Fn(&str, &str) -> Option<Arc<WorkspaceType>> + Send + Sync>;

/// What the plugins read.
#[derive(Clone)]
pub struct Readers {
    pub clusters: Arc<Clusters>,
    pub paths: Arc<Paths>,
    pub types: TypeLookup,
    /// APIExports, table `customresources`.
    pub exports: Arc<ByPath<ApiExportSpec>>,
    pub namespace: ReadNamespace,
    /// The whole chain, `system:masters` included.
    pub authorizer: Arc<dyn Authorizer>,
}

/// kcp's plugins, in order.
pub fn plugins(readers: &Readers) -> Vec<Arc<dyn Plugin>> {
    let clusters = readers.clusters.clone();
    vec![
        Arc::new(NamespaceLifecycle {
            read: readers.namespace.clone(),
            cluster_ends: Box::new(move |cluster| {
                clusters.get(cluster).is_some_and(|f| f.deleting)
            }),
        }),
        Arc::new(schema::ApiResourceSchema),
        Arc::new(workspace::Workspace(readers.clone())),
        Arc::new(finalizer::Finalizer {
            plugin: "tenancy.kcp.io/LogicalClusterDeletionFinalizer",
            group: group::CORE,
            resource: "logicalclusters",
            finalizer: names::LOGICAL_CLUSTER_DELETION_FINALIZER,
        }),
        Arc::new(shard::Shard),
        Arc::new(types::WorkspaceTypes(readers.clone())),
        Arc::new(types::WorkspaceTypeExists(readers.clone())),
        Arc::new(logicalcluster::LogicalCluster),
        Arc::new(export::ApiExport),
        Arc::new(binding::ApiBinding(readers.clone())),
        Arc::new(finalizer::Finalizer {
            plugin: "apis.kcp.io/APIBindingDeletionFinalizer",
            group: group::APIS,
            resource: "apibindings",
            finalizer: names::API_BINDING_FINALIZER,
        }),
        Arc::new(reserved::CrdAnnotations),
        Arc::new(reserved::CrdGroups),
        Arc::new(reserved::Names),
        Arc::new(path::PathAnnotation(readers.clusters.clone())),
    ]
}

/// `<resource> "<name>" is forbidden: <why>`, with the name that the object will have.
fn forbidden(
    attributes: &Attributes<'_>,
    object: Option<&Object>,
    why: impl std::fmt::Display,
) -> Status {
    let generated = object.and_then(|o| o.text(&["metadata", "generateName"]));
    let names =
        [attributes.name, object.map_or("", |o| o.name()), generated.unwrap_or(""), "Unknown"];
    let name = names.into_iter().find(|n| !n.is_empty()).expect("the last one is not");
    let gr = &attributes.info.gr;
    Status::forbidden(About { group: &gr.group, resource: &gr.resource, name }, why)
}

/// kcp's words for a cluster without its LogicalCluster.
const NO_LOGICAL_CLUSTER: &str = "logicalclusters.core.kcp.io \"cluster\" not found";

/// A right that a plugin asks for.
struct Right<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    name: &'a str,
}

impl Readers {
    /// Whether `user` has the right in `cluster`, whatever cluster the request is in.
    async fn may(&self, user: &User, cluster: &ClusterName, right: Right<'_>) -> bool {
        let scope = ClusterScope::One(cluster.clone());
        let asked = fp_auth::Attributes {
            user,
            cluster: Some(&scope),
            verb: right.verb,
            group: right.group,
            version: "v1alpha1",
            resource: right.resource,
            subresource: "",
            namespace: "",
            name: right.name,
            path: None,
            deep: true,
        };
        self.authorizer.authorize(&asked).await.allowed()
    }

    /// Verb `bind` on an export: who has it may have the export bound.
    async fn may_bind(&self, user: &User, cluster: &ClusterName, export: &str) -> bool {
        let right =
            Right { verb: "bind", group: group::APIS, resource: "apiexports", name: export };
        self.may(user, cluster, right).await
    }
}

#[cfg(test)]
mod tests;
