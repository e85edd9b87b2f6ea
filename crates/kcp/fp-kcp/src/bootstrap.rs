//! What a new shard must contain before it is ready: a pure plan, in levels of writes that depend on
//! the level before. One level is one commit of the store, not one per object.
//!
//! Rules: kcp `config/{system-crds,shard,root-phase0,root}` and `pkg/authorization/bootstrap`
//! (surface 10 and 12). What exists is never written again, with two exceptions: a system CRD
//! that is not established yet, and the URLs of this shard's Shard object.

use std::collections::BTreeSet;

use fp_base::{ClusterName, Gr, Gv, Gvr};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use crate::names::{self, group, system};
use crate::{api, assets};

/// What differs between shards.
pub struct Config {
    pub shard_name: String,
    pub base_url: String,
    pub external_url: String,
    pub virtual_workspace_url: String,
    /// `workspace-types`, `metrics-viewer`, ...
    pub batteries: BTreeSet<String>,
    /// Who may create a home workspace.
    pub home_creator_groups: Vec<String>,
    /// RFC 3339, seconds, UTC.
    pub now: String,
}

impl Config {
    fn is_root_shard(&self) -> bool {
        self.shard_name == "root"
    }
}

/// One write, as `system:masters`.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    pub cluster: ClusterName,
    pub gvr: Gvr,
    pub kind: WriteKind,
    pub object: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// One that exists meanwhile is left as it is.
    Create,
    /// Replaces the main resource; the object carries its resourceVersion if it was read.
    Update,
    /// Replaces `status`. The object has no resourceVersion: nobody else writes it that early.
    Status,
}

/// Writes that may go at once, after everything before and once `needs` are served.
#[derive(Debug, PartialEq)]
pub struct Level {
    /// For logs and start-up steps.
    pub name: &'static str,
    pub needs: Vec<(ClusterName, Gr)>,
    pub writes: Vec<Write>,
}

/// An object as it is stored: by cluster, resource, namespace and name.
pub type Current<'a> = &'a dyn Fn(&ClusterName, &Gr, &str, &str) -> Option<Object>;

/// The levels that are left to do; empty once all is there.
pub fn plan(config: &Config, current: Current<'_>) -> Vec<Level> {
    let planner = Planner { config, current };
    let mut levels = vec![planner.definitions(), planner.policies(), planner.clusters()];
    if config.is_root_shard() {
        levels.push(planner.root_apis());
    }
    levels.push(planner.bindings());
    if config.is_root_shard() {
        levels.push(planner.root_content());
    }
    levels.retain(|level| !level.writes.is_empty());
    levels
}

struct Planner<'a> {
    config: &'a Config,
    current: Current<'a>,
}

impl Planner<'_> {
    /// CRDs, namespaces and cluster-wide roles: all that needs nothing but built-ins.
    fn definitions(&self) -> Level {
        let admin = ClusterName::system(system::ADMIN);
        let crds = ClusterName::system(system::SYSTEM_CRDS);
        let mut writes = Vec::new();
        for text in assets::SYSTEM_CRDS {
            self.create(&mut writes, &crds, assets::one(text));
        }
        for name in ["default", "kube-public", "kube-system"] {
            self.create(&mut writes, &admin, namespace(name, false));
        }
        self.create(&mut writes, &ClusterName::system(system::SHARD), namespace("default", true));
        for object in cluster_wide(admin_policy(), true) {
            self.create(&mut writes, &admin, object);
        }
        if self.config.is_root_shard() {
            self.create(&mut writes, &ClusterName::root(), namespace("default", true));
            for object in cluster_wide(self.root_policy(), true) {
                self.create(&mut writes, &ClusterName::root(), object);
            }
        }
        Level { name: "definitions and policies", needs: Vec::new(), writes }
    }

    /// What lives in those namespaces, and the word that the CRDs are served.
    fn policies(&self) -> Level {
        let admin = ClusterName::system(system::ADMIN);
        let crds = ClusterName::system(system::SYSTEM_CRDS);
        let mut writes = Vec::new();
        for text in assets::SYSTEM_CRDS {
            self.establish(&mut writes, &crds, assets::one(text));
        }
        for object in cluster_wide(admin_policy(), false) {
            self.create(&mut writes, &admin, object);
        }
        let since = self.config.now.get(..10).unwrap_or_default();
        let tracking = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"since": since},
            "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"},
        });
        self.create(&mut writes, &admin, object(tracking));
        if self.config.is_root_shard() {
            for object in cluster_wide(self.root_policy(), false) {
                self.create(&mut writes, &ClusterName::root(), object);
            }
        }
        Level { name: "namespaced policies", needs: Vec::new(), writes }
    }

    fn clusters(&self) -> Level {
        let shard = ClusterName::system(system::SHARD);
        let mut writes = Vec::new();
        let logical_cluster = |annotations: Value| {
            object(json!({
                "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "spec": {},
                "metadata": {"name": names::LOGICAL_CLUSTER, "annotations": annotations},
            }))
        };
        self.create(&mut writes, &shard, logical_cluster(json!({names::CREATE_ONLY: "true"})));
        let mut needs = vec![(shard, Gr::new(group::CORE, "logicalclusters"))];
        if self.config.is_root_shard() {
            let owner = api::UserInfo {
                username: names::users::ROOT_OWNER.into(),
                ..api::UserInfo::default()
            };
            let annotations = json!({
                names::CREATE_ONLY: "true",
                names::LOGICAL_CLUSTER_TYPE: "root:root",
                names::OWNER: owner.to_json(),
            });
            self.create(&mut writes, &ClusterName::root(), logical_cluster(annotations));
            for text in assets::ROOT_SCHEMAS {
                self.create(&mut writes, &ClusterName::root(), assets::one(text));
            }
            needs.push((ClusterName::root(), Gr::new(group::APIS, "apiresourceschemas")));
        }
        Level { name: "logical clusters and schemas", needs, writes }
    }

    fn root_apis(&self) -> Level {
        let root = ClusterName::root();
        let mut writes = Vec::new();
        for export in assets::many(assets::ROOT_EXPORTS) {
            self.create(&mut writes, &root, export);
        }
        Level {
            name: "exports of root",
            needs: vec![(root, Gr::new(group::APIS, "apiexports"))],
            writes,
        }
    }

    fn bindings(&self) -> Level {
        let shard = ClusterName::system(system::SHARD);
        let mut writes = Vec::new();
        let binding = |export: &str| {
            object(json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": export},
                "spec": {"reference": {"export": {"name": export, "path": "root"}}},
            }))
        };
        for export in [
            "shards.core.kcp.io",
            "tenancy.kcp.io",
            "topology.kcp.io",
            "cache.kcp.io",
            "migration.kcp.io",
        ] {
            self.create(&mut writes, &shard, binding(export));
        }
        if self.config.is_root_shard() {
            for export in ["shards.core.kcp.io", "tenancy.kcp.io", "topology.kcp.io"] {
                self.create(&mut writes, &ClusterName::root(), binding(export));
            }
        }
        Level {
            name: "bindings",
            needs: vec![(shard, Gr::new(group::APIS, "apibindings"))],
            writes,
        }
    }

    /// What the bindings make possible.
    fn root_content(&self) -> Level {
        let root = ClusterName::root();
        let mut writes = Vec::new();
        self.shard(&mut writes, &root);
        for mut kind in assets::many(assets::ROOT_TYPES) {
            if kind.name() == "root" && !self.config.batteries.contains("workspace-types") {
                kind.remove_at(&["spec", "defaultChildWorkspaceType"]);
            }
            if self.included(&kind) {
                self.create(&mut writes, &root, kind);
            }
        }
        let needs = vec![
            (root.clone(), Gr::new(group::CORE, "shards")),
            (root, Gr::new(group::TENANCY, "workspacetypes")),
        ];
        Level { name: "shard and workspace types", needs, writes }
    }

    /// This shard's object; its URLs follow the flags.
    fn shard(&self, writes: &mut Vec<Write>, root: &ClusterName) {
        let config = self.config;
        let urls = json!({
            "baseURL": config.base_url,
            "externalURL": config.external_url,
            "virtualWorkspaceURL": config.virtual_workspace_url,
        });
        let wanted = object(json!({
            "apiVersion": "core.kcp.io/v1alpha1", "kind": "Shard", "spec": urls,
            "metadata": {"name": config.shard_name, "labels": {names::SHARD_NAME_LABEL: config.shard_name}},
        }));
        let gvr = Gvr::new(group::CORE, "v1alpha1", "shards");
        let Some(mut stored) = (self.current)(root, &gvr.gr(), "", &config.shard_name) else {
            self.create(writes, root, wanted);
            return;
        };
        let spec = stored.map_mut(&["spec"]);
        let differs = urls
            .as_object()
            .expect("made above")
            .iter()
            .any(|(key, url)| spec.get(key) != Some(url));
        if differs {
            spec.extend(urls.as_object().expect("made above").clone());
            writes.push(Write {
                cluster: root.clone(),
                gvr,
                kind: WriteKind::Update,
                object: stored,
            });
        }
    }

    fn root_policy(&self) -> Vec<Object> {
        let mut all = assets::many(assets::ROOT_RBAC);
        all.extend(assets::many(assets::ROOT_METRICS_VIEWER));
        all.retain(|o| self.included(o));
        for binding in &mut all {
            if binding.name() == HOME_CREATORS && binding.kind() == "ClusterRoleBinding" {
                let group =
                    |name: &String| json!({"apiGroup": group::RBAC, "kind": "Group", "name": name});
                binding.insert(
                    "subjects".into(),
                    self.config.home_creator_groups.iter().map(group).collect(),
                );
            }
        }
        all
    }

    fn included(&self, object: &Object) -> bool {
        object
            .annotation(names::BATTERY)
            .is_none_or(|battery| self.config.batteries.contains(battery))
    }

    fn create(&self, writes: &mut Vec<Write>, cluster: &ClusterName, object: Object) {
        let gvr = gvr(&object);
        if (self.current)(cluster, &gvr.gr(), object.namespace(), object.name()).is_none() {
            writes.push(Write { cluster: cluster.clone(), gvr, kind: WriteKind::Create, object });
        }
    }

    /// Nothing competes for the names of system CRDs: they need not wait for the controller that
    /// accepts names.
    fn establish(&self, writes: &mut Vec<Write>, cluster: &ClusterName, mut crd: Object) {
        let gvr = gvr(&crd);
        let stored = (self.current)(cluster, &gvr.gr(), "", crd.name());
        if stored.is_some_and(|crd| crate::conditions::is_true(&crd, "Established")) {
            return;
        }
        crd.insert("status".into(), established(&crd, &self.config.now));
        writes.push(Write { cluster: cluster.clone(), gvr, kind: WriteKind::Status, object: crd });
    }
}

/// The binding whose subjects are [`Config::home_creator_groups`].
const HOME_CREATORS: &str = "system:kcp:configured-group:home-clusterworkspace-create";

/// The status of a CRD whose names are accepted and which is served.
pub fn established(crd: &Object, now: &str) -> Value {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|v| v["storage"] == true);
    json!({
        "acceptedNames": crd.at(&["spec", "names"]),
        "conditions": [
            {"lastTransitionTime": now, "message": "no conflicts found", "reason": "NoConflicts", "status": "True", "type": "NamesAccepted"},
            {"lastTransitionTime": now, "message": "the initial names have been accepted", "reason": "InitialNamesAccepted", "status": "True", "type": "Established"},
        ],
        "storedVersions": [storage.map(|v| &v["name"])],
    })
}

fn admin_policy() -> Vec<Object> {
    let mut all = assets::many(assets::ADMIN_KUBE_RBAC);
    all.extend(assets::many(assets::ADMIN_KCP_RBAC));
    all
}

/// The objects with or without a namespace.
fn cluster_wide(mut objects: Vec<Object>, wide: bool) -> Vec<Object> {
    objects.retain(|o| o.namespace().is_empty() == wide);
    objects
}

fn namespace(name: &str, create_only: bool) -> Object {
    let mut out =
        object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    if create_only {
        out.set_annotation(names::CREATE_ONLY, "true");
    }
    out
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => unreachable!("callers pass objects"),
    }
}

/// The resource of an object of ours: every kind here has the plain plural.
fn gvr(object: &Object) -> Gvr {
    let gv = Gv::parse(object.api_version()).expect("assets have an apiVersion");
    Gvr::new(&gv.group, &gv.version, &format!("{}s", object.kind().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    type Key = (String, String, String, String);

    fn config() -> Config {
        Config {
            shard_name: "root".into(),
            base_url: "https://127.0.0.1:6444".into(),
            external_url: "https://127.0.0.1:6444".into(),
            virtual_workspace_url: "https://127.0.0.1:6444".into(),
            batteries: ["workspace-types".to_owned()].into(),
            home_creator_groups: vec!["system:authenticated".into()],
            now: "2026-01-02T03:04:05Z".into(),
        }
    }

    fn key(write: &Write) -> Key {
        let gr = write.gvr.gr().to_string();
        (write.cluster.to_string(), gr, write.object.namespace().into(), write.object.name().into())
    }

    /// Applies a plan to a store without controllers.
    fn run(config: &Config, store: &mut HashMap<Key, Object>) -> Vec<Level> {
        let levels = plan(config, &|cluster, gr, namespace, name| {
            store
                .get(&(cluster.to_string(), gr.to_string(), namespace.into(), name.into()))
                .cloned()
        });
        for write in levels.iter().flat_map(|l| &l.writes) {
            let before = store.insert(key(write), write.object.clone());
            assert_eq!(before.is_none(), write.kind == WriteKind::Create, "{:?}", key(write));
        }
        levels
    }

    #[test]
    fn once() {
        let mut store = HashMap::new();
        let levels = run(&config(), &mut store);
        let text: String =
            levels.iter().map(|l| format!("{}: {}\n", l.name, l.writes.len())).collect();
        expect_test::expect![[r#"
            definitions and policies: 158
            namespaced policies: 23
            logical clusters and schemas: 14
            exports of root: 5
            bindings: 8
            shard and workspace types: 6
        "#]]
        .assert_eq(&text);
        assert_eq!(run(&config(), &mut store), []);
    }

    #[test]
    fn other_flags() {
        let mut store = HashMap::new();
        let plain =
            Config { batteries: BTreeSet::new(), home_creator_groups: Vec::new(), ..config() };
        run(&plain, &mut store);
        let at = |gr: &str, name: &str| {
            store.get(&("root".into(), gr.into(), String::new(), name.into()))
        };
        assert!(at("workspacetypes.tenancy.kcp.io", "organization").is_none());
        let root_type = at("workspacetypes.tenancy.kcp.io", "root").unwrap();
        assert!(root_type.at(&["spec", "defaultChildWorkspaceType"]).is_none());
        assert_eq!(
            at("clusterrolebindings.rbac.authorization.k8s.io", HOME_CREATORS).unwrap()["subjects"],
            json!([])
        );
        assert!(at("clusterroles.rbac.authorization.k8s.io", "metrics-viewer").is_none());

        let moved = Config { base_url: "https://other".into(), ..plain };
        let levels = run(&moved, &mut store);
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].writes.len(), 1);
        assert_eq!(levels[0].writes[0].object["spec"]["baseURL"], "https://other");
    }

    #[test]
    fn another_shard_makes_nothing_in_root() {
        let other = Config { shard_name: "alpha".into(), ..config() };
        let levels = run(&other, &mut HashMap::new());
        assert!(levels.iter().flat_map(|l| &l.writes).all(|w| w.cluster != ClusterName::root()));
    }

    /// Whether all that `ours` says stands in `theirs` too.
    fn within(ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Value::Object(a), Value::Object(b)) => a.iter().all(|(k, v)| {
                matches!(k.as_str(), names::CREATE_ONLY | "lastTransitionTime" | "since")
                    || b.get(k).map_or(*v == json!({}), |w| within(v, w))
            }),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(v, w)| within(v, w))
            }
            _ => ours == theirs,
        }
    }

    /// The plan against what a Go kcp has after its start, where those records are at hand: every
    /// object of ours is theirs, and what we do not make is what controllers make.
    #[test]
    fn as_go_kcp() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/golden");
        if !std::path::Path::new(golden).exists() {
            eprintln!("skipped: no recorded objects beside the repository");
            return;
        }
        let mut store = HashMap::new();
        run(&config(), &mut store);
        let mut left = BTreeSet::new();
        for cluster in ["root", "system:admin", "system:shard", "system:system-crds"] {
            let file = format!("{golden}/objects-{}.json", cluster.replace(':', "_"));
            for theirs in assets::many(&std::fs::read_to_string(file).unwrap()) {
                let gr = gvr(&theirs).gr().to_string();
                let key =
                    (cluster.into(), gr.clone(), theirs.namespace().into(), theirs.name().into());
                match store.remove(&key) {
                    Some(ours) => {
                        assert!(
                            within(&Value::Object(ours.clone()), &Value::Object(theirs.clone())),
                            "{ours:?} {theirs:?}"
                        );
                    }
                    None => drop(left.insert(format!("{cluster} {gr} {}", theirs.namespace()))),
                }
            }
        }
        // Schemas were left out of the records.
        store.retain(|(_, gr, ..), _| gr != "apiresourceschemas.apis.kcp.io");
        assert_eq!(store.keys().collect::<Vec<_>>(), Vec::<&Key>::new());
        let text: String = left.iter().map(|l| format!("{}\n", l.trim_end())).collect();
        expect_test::expect![[r#"
            root clusterrolebindings.rbac.authorization.k8s.io
            root configmaps default
            root configmaps kcp-system
            root namespaces
            root secrets kcp-system
            root serviceaccounts default
            root serviceaccounts kcp-system
            root workspaces.tenancy.kcp.io
            system:admin configmaps default
            system:admin configmaps kube-public
            system:admin configmaps kube-system
            system:admin serviceaccounts default
            system:admin serviceaccounts kube-public
            system:admin serviceaccounts kube-system
            system:shard configmaps default
            system:shard serviceaccounts default
        "#]]
        .assert_eq(&text);
    }
}
