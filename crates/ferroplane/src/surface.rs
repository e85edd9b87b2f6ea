//! The shard's surface: everything below HTTP, wired.

use std::sync::Arc;

use fp_admission::Chain;
use fp_admission::namespace::{Namespace, ReadNamespace};
use fp_admission::rbac_escalation::{RbacEscalation, RoleRules};
use fp_auth::Authorizer;
use fp_auth::rbac::Rbac;
use fp_auth::union::{AllowGroups, AllowPaths, Union};
use fp_base::{ClusterName, Gr};
use fp_informer::Informer;
use fp_kcp::admission::{self, Readers};
use fp_kcp::indexes::Indexes;
use fp_object::status::Status;
use fp_registry::store::StoreBackend;
use fp_verbs::Surface;

use crate::content::Content;

/// The members of this group may do everything (kcp's AlwaysAllowGroups).
const MASTERS: &str = "system:masters";

/// Wires the surface of a shard.
pub fn wire(
    backend: Arc<StoreBackend>,
    informer: Arc<Informer>,
    indexes: &Indexes,
    allow_paths: Vec<String>,
) -> Surface {
    let authorizer: Arc<dyn Authorizer> = Arc::new(Union(vec![
        Arc::new(AllowGroups(vec![MASTERS.into()])),
        Arc::new(AllowPaths(allow_paths)),
        Arc::new(indexes.authorizer()),
    ]));
    let readers = Readers {
        clusters: indexes.clusters.clone(),
        paths: indexes.paths.clone(),
        types: indexes.type_lookup(),
        exports: indexes.exports.clone(),
        namespace: read_namespace(Content(informer)),
        authorizer: authorizer.clone(),
    };
    let mut plugins = admission::plugins(&readers);
    let role_rules = role_rules(indexes.rbac.clone());
    plugins.push(Arc::new(RbacEscalation { authorizer: authorizer.clone(), role_rules }));
    Surface {
        directory: indexes.paths.clone(),
        resolver: indexes.tiers.clone(),
        authorizer,
        admission: Chain(plugins),
        backend,
    }
}

/// Reads namespaces of memory: a write is in memory before it is answered, so this process's own
/// are always seen.
fn read_namespace(content: Content) -> ReadNamespace {
    let gr = Gr::new("", "namespaces");
    Arc::new(move |cluster: ClusterName, name: String| {
        let found = content.entry(&cluster, &gr, "", &name);
        Box::pin(async move {
            Ok::<_, Status>(match found {
                None => Namespace::Missing,
                Some(entry) if entry.deleting => Namespace::Terminating,
                Some(_) => Namespace::Active,
            })
        })
    })
}

/// The rules of the role that a binding refers to, as its cluster sees them: its own roles and, as
/// kcp has it, the ClusterRoles of `system:admin`.
fn role_rules(rbac: Arc<Rbac>) -> RoleRules {
    let admin = ClusterName::system("admin");
    Arc::new(move |role| {
        let found = match role.kind {
            "ClusterRole" => rbac.cluster_role(&[role.cluster, &admin], role.name),
            _ => rbac.role(role.cluster, role.namespace, role.name),
        };
        found.map(|rules| rules.to_vec())
    })
}
