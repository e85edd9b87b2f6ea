//! Paths to clusters: `root:acme:team-a` is found by walking from the cluster `root` through the
//! Workspaces `acme` and `team-a`.
//!
//! Rules: kcp `pkg/index`. Invariant: only Workspaces stored under the identity of root's own
//! `tenancy.kcp.io` export count; a tenant's export of the same group makes no paths.

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::{ClusterName, ClusterPath, ClusterScope, Gr};
use fp_informer::{Entry, ObjectKey};
use fp_object::meta::Meta;
use fp_verbs::{Directory, Located};
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::api::{self, Phase, WorkspaceSpec};
use crate::clusters::Clusters;
use crate::{hash, names};

/// The shard's [`Directory`].
pub struct Paths {
    clusters: Arc<Clusters>,
    state: RwLock<State>,
}

type Parents = HashMap<ClusterName, HashMap<Arc<str>, Leaf>>;

#[derive(Default)]
struct State {
    /// `status.identityHash` of root's `tenancy.kcp.io` export.
    tenancy: Option<Box<str>>,
    /// Identity, then parent cluster, then name.
    workspaces: HashMap<Box<str>, Parents>,
}

/// Where a Workspace leads.
enum Leaf {
    Cluster(ClusterName),
    Mount(Box<str>),
    Unavailable,
}

impl Paths {
    pub fn new(clusters: Arc<Clusters>) -> Self {
        Self { clusters, state: RwLock::default() }
    }

    /// Takes in a Workspace of the table with this identity; `None` is a delete.
    pub fn apply_workspace(&self, identity: &str, key: &ObjectKey, entry: Option<&Entry>) {
        let leaf = entry.and_then(|e| leaf(&e.object()));
        let state = &mut *self.state.write();
        if let Some(leaf) = leaf {
            let parents = state.workspaces.entry(identity.into()).or_default();
            parents.entry(key.cluster.clone()).or_default().insert(key.name.clone(), leaf);
            return;
        }
        let Some(parents) = state.workspaces.get_mut(identity) else { return };
        if let Some(children) = parents.get_mut(&key.cluster) {
            children.remove(&key.name);
            if children.is_empty() {
                parents.remove(&key.cluster);
            }
        }
        if parents.is_empty() {
            state.workspaces.remove(identity);
        }
    }

    /// Takes in an APIExport: which identity counts is read from root's.
    pub fn apply_export(&self, key: &ObjectKey, entry: Option<&Entry>) {
        if key.cluster != ClusterName::root() || &*key.name != names::group::TENANCY {
            return;
        }
        let object = entry.map(Entry::object);
        self.state.write().tenancy =
            object.and_then(|o| o.text(&["status", "identityHash"]).map(Into::into));
    }

    /// The storage identity of Workspaces, once root's export has one.
    pub fn tenancy_identity(&self) -> Option<Box<str>> {
        self.state.read().tenancy.clone()
    }

    /// The cluster of a path or name, if it exists and is not another server's.
    pub fn find(&self, path: &str) -> Option<ClusterName> {
        let path = ClusterPath::parse(path).ok()?;
        match path.as_name() {
            Some(name) => self.clusters.get(&name).map(|_| name),
            None => self.walk(&path)?.ok(),
        }
    }

    fn cluster(&self, name: ClusterName) -> Located {
        let inactive = self.clusters.get(&name).is_some_and(|f| f.inactive);
        Located::Cluster { inactive, name }
    }

    fn walk(&self, path: &ClusterPath) -> Option<Result<ClusterName, Located>> {
        let mut segments = path.segments();
        let first = segments.next()?;
        let mut cluster = match first {
            "user" => hash::home_cluster_name(segments.next()?)?,
            name => ClusterName::parse(name).ok()?,
        };
        self.clusters.get(&cluster)?;
        let state = self.state.read();
        let workspaces = state.tenancy.as_ref().and_then(|t| state.workspaces.get(t));
        let mut segments = segments.peekable();
        while let Some(segment) = segments.next() {
            match workspaces?.get(&cluster)?.get(segment)? {
                Leaf::Cluster(name) => {
                    self.clusters.get(name)?;
                    cluster = name.clone();
                }
                // Below a mount, the other server knows.
                Leaf::Mount(url) => {
                    let rest: String = segments.map(|s| format!(":{s}")).collect();
                    return Some(Err(Located::Mount(format!("{url}{rest}"))));
                }
                Leaf::Unavailable => return Some(Err(Located::Unavailable)),
            }
        }
        Some(Ok(cluster))
    }
}

fn leaf(workspace: &fp_object::Object) -> Option<Leaf> {
    let spec: WorkspaceSpec = api::part(workspace, "spec");
    match Phase::of(workspace) {
        Phase::Scheduling => None,
        Phase::Unavailable => Some(Leaf::Unavailable),
        _ if spec.mount.is_some() => (!spec.url.is_empty()).then(|| Leaf::Mount(spec.url.into())),
        _ => ClusterName::parse(&spec.cluster).ok().map(Leaf::Cluster),
    }
}

impl Directory for Paths {
    fn locate(&self, path: &ClusterPath) -> Located {
        if let Some(name) = path.as_name() {
            return self.cluster(name);
        }
        match self.walk(path) {
            Some(Ok(name)) => self.cluster(name),
            Some(Err(located)) => located,
            None => Located::Unknown,
        }
    }

    fn ends(&self, scope: &ClusterScope, gr: &Gr) -> Option<watch::Receiver<bool>> {
        // A LogicalCluster is followed into and out of its end
        // (`pkg/server/filters/perclustercontext.go`).
        if *gr.group == *names::group::CORE && &*gr.resource == "logicalclusters" {
            return None;
        }
        Some(match scope {
            ClusterScope::One(cluster) => self.clusters.gone(cluster),
            ClusterScope::All => self.clusters.some_inactive(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, key};
    use serde_json::json;

    fn workspace(
        paths: &Paths,
        identity: &str,
        parent: &str,
        name: &str,
        phase: &str,
        spec: serde_json::Value,
    ) {
        let key = key(parent, "", name);
        let object = json!({"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}});
        paths.apply_workspace(identity, &key, Some(&entry(&key, object)));
    }

    fn locate(paths: &Paths, path: &str) -> String {
        match paths.locate(&ClusterPath::parse(path).unwrap()) {
            Located::Cluster { name, .. } => name.to_string(),
            Located::Mount(url) => url,
            Located::Unavailable => "unavailable".into(),
            Located::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn inactivity_ends_watches_but_of_the_logical_cluster() {
        let clusters = Arc::new(Clusters::default());
        let at = key("c-acme", "", "cluster");
        let put = |annotations: serde_json::Value| {
            let object = json!({"metadata": {"name": "cluster", "annotations": annotations}});
            clusters.apply(&at, Some(&entry(&at, object)));
        };
        put(json!({}));
        let paths = Paths::new(clusters.clone());
        let one = |name: &str| ClusterScope::One(ClusterName::parse(name).unwrap());
        let scopes = [one("c-acme"), ClusterScope::All, one("c-other"), one("system:admin")];
        let watched = [Gr::new("", "configmaps"), Gr::new("core.kcp.io", "logicalclusters")];
        let asked = |gr: &Gr| scopes.clone().map(|scope| paths.ends(&scope, gr));
        let receivers = [asked(&watched[0]), asked(&watched[1])];
        put(json!({"core.kcp.io/inactive": "true"}));
        let ended = receivers.map(|all| all.map(|r| r.map(|r| *r.borrow())));
        let none = [None; 4];
        assert_eq!(ended, [[Some(true), Some(true), Some(false), Some(false)], none]);
    }

    #[test]
    fn paths() {
        let clusters = Arc::new(Clusters::default());
        for name in ["root", "c-acme", "c-team", "v1u4alow0iv9"] {
            let key = key(name, "", "cluster");
            clusters.apply(&key, Some(&entry(&key, json!({"metadata": {"name": "cluster"}}))));
        }
        let paths = Paths::new(clusters);
        let export = key("root", "", "tenancy.kcp.io");
        workspace(&paths, "id", "root", "acme", "Ready", json!({"cluster": "c-acme"}));
        assert_eq!(locate(&paths, "root:acme"), "unknown");
        paths.apply_export(
            &export,
            Some(&entry(&export, json!({"status": {"identityHash": "id"}}))),
        );
        workspace(&paths, "id", "c-acme", "team-a", "Initializing", json!({"cluster": "c-team"}));
        workspace(&paths, "id", "c-acme", "new", "Scheduling", json!({"cluster": "c-team"}));
        workspace(&paths, "id", "c-acme", "lost", "Ready", json!({"cluster": "c-lost"}));
        workspace(&paths, "id", "c-acme", "sick", "Unavailable", json!({"cluster": "c-team"}));
        workspace(
            &paths,
            "id",
            "c-acme",
            "far",
            "Ready",
            json!({"mount": {"ref": {}}, "URL": "https://far/clusters/x"}),
        );
        workspace(&paths, "foreign", "c-acme", "trap", "Ready", json!({"cluster": "c-team"}));
        workspace(&paths, "id", "v1u4alow0iv9", "mine", "Ready", json!({"cluster": "c-team"}));
        for (path, want) in [
            ("root", "root"),
            ("no-such-name", "no-such-name"),
            ("system:admin", "system:admin"),
            ("root:acme", "c-acme"),
            ("root:acme:team-a", "c-team"),
            ("c-acme:team-a", "c-team"),
            ("root:acme:new", "unknown"),
            ("root:acme:lost", "unknown"),
            ("root:acme:sick", "unavailable"),
            ("root:acme:far", "https://far/clusters/x"),
            ("root:acme:far:deep", "https://far/clusters/x:deep"),
            ("root:acme:trap", "unknown"),
            ("root:nope", "unknown"),
            ("user:alice", "v1u4alow0iv9"),
            ("user:alice:mine", "c-team"),
        ] {
            assert_eq!(locate(&paths, path), want, "{path}");
        }
        paths.apply_workspace("id", &key("root", "", "acme"), None);
        assert_eq!(locate(&paths, "root:acme:team-a"), "unknown");
    }
}
