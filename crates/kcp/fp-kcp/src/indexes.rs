//! All that this crate keeps in memory, fed by one observer of the informer.

use std::sync::Arc;

use fp_auth::rbac::{self, Rbac};
use fp_informer::{Change, ChangeKind, Informer, TableId};
use fp_object::Object;
use fp_schema::ResourceInfo;

use crate::admission::TypeLookup;
use crate::api::{self, ApiExportSpec, WorkspaceTypeSpec};
use crate::authorizer::Workspaces;
use crate::bypath::ByPath;
use crate::clusters::Clusters;
use crate::directory::Paths;
use crate::names::group;
use crate::resolver::Tiers;

/// The indexes of a shard.
#[derive(Clone)]
pub struct Indexes {
    pub clusters: Arc<Clusters>,
    /// The `Directory`.
    pub paths: Arc<Paths>,
    /// The `Resolver`.
    pub tiers: Arc<Tiers>,
    pub types: Arc<ByPath<WorkspaceTypeSpec>>,
    pub exports: Arc<ByPath<ApiExportSpec>>,
    pub rbac: Arc<Rbac>,
}

fn spec<T: for<'a> serde::Deserialize<'a> + Default>(object: &Object) -> T {
    api::part(object, "spec")
}

impl Indexes {
    /// `builtins` in discovery order.
    pub fn new(builtins: Vec<Arc<ResourceInfo>>) -> Self {
        let clusters = Arc::new(Clusters::default());
        Self {
            paths: Arc::new(Paths::new(clusters.clone())),
            clusters,
            tiers: Arc::new(Tiers::new(builtins)),
            types: Arc::new(ByPath::new(spec)),
            exports: Arc::new(ByPath::new(spec)),
            rbac: Arc::default(),
        }
    }

    /// Follows the informer from now on.
    pub fn observe(&self, informer: &Informer) {
        let indexes = self.clone();
        informer.observe(None, Arc::new(move |table, change| indexes.apply(table, change)));
    }

    /// Takes in one change of any table.
    pub fn apply(&self, table: &TableId, change: &Change) {
        let key = &change.entry.key;
        let entry = (change.kind != ChangeKind::Deleted).then_some(&*change.entry);
        let system = &*table.segment == "customresources";
        match (&*table.gr.group, &*table.gr.resource) {
            (group::APIEXTENSIONS, "customresourcedefinitions") => self.tiers.apply_crd(key, entry),
            (group::APIS, "apibindings") if system => self.tiers.apply_binding(key, entry),
            (group::APIS, "apiexports") if system => {
                self.paths.apply_export(key, entry);
                self.exports.apply(&table.segment, key, entry);
            }
            (group::CORE, "logicalclusters") if system => self.clusters.apply(key, entry),
            (group::TENANCY, "workspaces") => {
                self.paths.apply_workspace(&table.segment, key, entry)
            }
            (group::TENANCY, "workspacetypes") => self.types.apply(&table.segment, key, entry),
            (group::RBAC, resource) if table.segment.is_empty() => {
                if let Some(kind) = rbac::Kind::of(resource) {
                    self.rbac.apply(kind, key, entry);
                }
            }
            _ => {}
        }
    }

    /// WorkspaceTypes of root's own export, by path and name.
    pub fn type_lookup(&self) -> TypeLookup {
        let (types, paths) = (self.types.clone(), self.paths.clone());
        Arc::new(move |path, name| types.get(&paths.tenancy_identity()?, path, name))
    }

    /// The authorizer of everyone but `system:masters`.
    pub fn authorizer(&self) -> Workspaces {
        Workspaces {
            clusters: self.clusters.clone(),
            rbac: self.rbac.clone(),
            tiers: self.tiers.clone(),
            exports: self.exports.clone(),
        }
    }
}
