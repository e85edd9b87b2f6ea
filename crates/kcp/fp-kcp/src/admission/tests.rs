//! The whole chain over a small world, with the real authorizer.

use super::*;
use crate::indexes::Indexes;
use crate::testing::{cluster, entry, key, object};
use fp_admission::namespace::Namespace;
use fp_admission::{Chain, Operation};
use fp_auth::union::{AllowGroups, Union};
use fp_auth::{AUTHENTICATED, User};
use fp_base::{Gr, Identity};
use fp_informer::{Change, ChangeKind, TableId};
use fp_schema::{Origin, ResourceInfo, Segment, Sub};
use serde_json::{Value, json};

const IDENTITY: &str = "8b12fa27a3c48b89e06f37d21638ebe26171f1f0ec18dbdc04f4dbeac38c0322";

struct World {
    chain: Chain,
    indexes: Indexes,
}

impl World {
    fn new() -> Self {
        let indexes = Indexes::new(Vec::new());
        let union = Union(vec![
            Arc::new(AllowGroups(vec!["system:masters".into()])),
            Arc::new(indexes.authorizer()),
        ]);
        let readers = Readers {
            clusters: indexes.clusters.clone(),
            paths: indexes.paths.clone(),
            types: indexes.type_lookup(),
            exports: indexes.exports.clone(),
            namespace: Arc::new(|_, name| {
                let found = match name.as_str() {
                    "default" => Namespace::Active,
                    "ending" => Namespace::Terminating,
                    _ => Namespace::Missing,
                };
                Box::pin(async move { Ok(found) })
            }),
            authorizer: Arc::new(union),
        };
        let world = Self { chain: Chain(plugins(&readers)), indexes };
        world.fill();
        world
    }

    fn fill(&self) {
        for text in [crate::assets::ADMIN_KUBE_RBAC, crate::assets::ADMIN_KCP_RBAC] {
            crate::assets::many(text)
                .into_iter()
                .for_each(|o| self.put("system:admin", "", Value::Object(o)));
        }
        for text in
            [crate::assets::ROOT_RBAC, crate::assets::ROOT_EXPORTS, crate::assets::ROOT_TYPES]
        {
            for mut object in crate::assets::many(text) {
                object.set_annotation(names::PATH, "root");
                if object.name() == "tenancy.kcp.io" && object.kind() == "APIExport" {
                    object.map_mut(&["status"]).insert("identityHash".into(), IDENTITY.into());
                }
                self.put("root", "customresources", Value::Object(object));
            }
        }
        let admin = |user: &str| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "workspace-admin"},
                "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "User", "name": user}],
            })
        };
        for (name, path, kind, groups) in [
            ("root", "", "root:root", ""),
            ("c-acme", "root:acme", "root:organization", ""),
            ("c-team", "root:acme:team", "root:universal", "devs"),
        ] {
            let object = json!({
                "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
                "metadata": {"name": "cluster", "annotations": {
                    names::PATH: path, names::LOGICAL_CLUSTER_TYPE: kind, names::REQUIRED_GROUPS: groups,
                }},
                "status": {"phase": "Ready"},
            });
            self.put(name, "customresources", object);
            self.put(name, "", admin("alice"));
        }
        self.put(
            "c-acme",
            "customresources",
            json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport",
                "metadata": {"name": "gadgets", "annotations": {names::PATH: "root:acme"}}, "spec": {},
            }),
        );
    }

    fn put(&self, at: &str, segment: &str, object: Value) {
        let group = object["apiVersion"].as_str().unwrap().split_once('/').unwrap().0.to_owned();
        let resource = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let segment = match group.as_str() {
            group::RBAC => "",
            group::TENANCY => IDENTITY,
            _ => segment,
        };
        let text = |path: &str| object["metadata"][path].as_str().unwrap_or("").to_owned();
        let key = key(at, &text("namespace"), &text("name"));
        let table = TableId { gr: Gr::new(&group, &resource), segment: segment.into() };
        let entry = Arc::new(entry(&key, object));
        self.indexes.apply(&table, &Change { kind: ChangeKind::Added, entry, old: None });
    }

    /// Runs the chain; the object as it comes out, or why it is refused.
    async fn run(
        &self,
        user: &User,
        at: &str,
        gr: &str,
        operation: Operation,
        old: Option<&Value>,
        new: Option<Value>,
    ) -> Result<Value, String> {
        let info = info(gr);
        let at = cluster(at);
        let old = old.cloned().map(object);
        let mut new = new.map(object);
        let name = new.as_ref().or(old.as_ref()).map_or("", |o| o.name()).to_owned();
        let namespace = new.as_ref().or(old.as_ref()).map_or("", |o| o.namespace()).to_owned();
        let attributes = Attributes {
            user,
            cluster: &at,
            info: &info,
            version: "v1alpha2",
            sub: Sub::Main,
            operation,
            namespace: &namespace,
            name: &name,
            dry_run: false,
            old: old.as_ref(),
        };
        if let Some(object) = &mut new {
            self.chain.mutate(&attributes, object).await.map_err(|s| s.message)?;
        }
        self.chain.validate(&attributes, new.as_ref()).await.map_err(|s| s.message)?;
        Ok(new.map_or(Value::Null, Value::Object))
    }

    async fn create(&self, user: &User, at: &str, gr: &str, new: Value) -> Result<Value, String> {
        self.run(user, at, gr, Operation::Create, None, Some(new)).await
    }

    async fn update(
        &self,
        user: &User,
        at: &str,
        gr: &str,
        old: &Value,
        new: Value,
    ) -> Result<Value, String> {
        self.run(user, at, gr, Operation::Update, Some(old), Some(new)).await
    }
}

fn info(gr: &str) -> ResourceInfo {
    let (resource, group) = gr.split_once('.').unwrap_or((gr, ""));
    let crd = json!({"metadata": {"name": gr}, "spec": {
        "group": group, "scope": "Cluster", "names": {"plural": resource, "singular": "x", "kind": "X", "listKind": "L"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    let segment = Segment::Identity(Identity::parse(IDENTITY).unwrap());
    fp_schema::crd::from_crd(&object(crd), segment, Origin::Builtin, &|_| None).unwrap()
}

fn alice() -> User {
    User::new("alice", &[AUTHENTICATED, "devs"])
}

fn bob() -> User {
    User::new("bob", &[AUTHENTICATED])
}

fn master() -> User {
    User::new("m", &["system:masters"])
}

fn refused(got: Result<Value, String>, want: &str) {
    assert_eq!(got.map(|o| o.to_string()).unwrap_err(), want);
}

const WORKSPACES: &str = "workspaces.tenancy.kcp.io";

fn workspace(spec: Value) -> Value {
    json!({"metadata": {"name": "w"}, "spec": spec})
}

#[tokio::test]
async fn workspaces() {
    let world = World::new();
    let made = world.create(&alice(), "c-acme", WORKSPACES, workspace(json!({}))).await.unwrap();
    assert_eq!(made["spec"]["type"], json!({"name": "universal", "path": "root"}));
    let owner = r#"{"username":"alice","groups":["system:authenticated","devs"]}"#;
    assert_eq!(made["metadata"]["annotations"], json!({names::OWNER: owner}));
    let made = world.create(&alice(), "c-team", WORKSPACES, workspace(json!({}))).await.unwrap();
    assert_eq!(made["metadata"]["annotations"][names::REQUIRED_GROUPS], "devs");

    let prefix = "workspaces.tenancy.kcp.io \"w\" is forbidden: ";
    for (user, at, spec, want) in [
        (
            alice(),
            "c-acme",
            json!({"cluster": "x"}),
            "spec.Cluster can only be set by system privileged users",
        ),
        (
            alice(),
            "c-acme",
            json!({"URL": "x"}),
            "spec.URL can only be set by system privileged users",
        ),
        (
            alice(),
            "c-acme",
            json!({"type": {"name": "nope"}}),
            "workspace type \"nope\" cannot be resolved",
        ),
        (
            alice(),
            "c-acme",
            json!({"type": {"name": "nope", "path": "root"}}),
            "Internal error occurred: workspacetypes.tenancy.kcp.io \"root:nope\" not found",
        ),
        (
            alice(),
            "c-team",
            json!({"type": {"name": "team"}}),
            "workspace type root:team only allows [root:organization root:team] parent workspaces, \
             but parent type root:universal only implements [root:universal]",
        ),
        (
            bob(),
            "c-acme",
            json!({"type": {"name": "home"}}),
            "unable to use workspace type root:home: missing verb='use' permission on workspacetype",
        ),
        (
            master(),
            "c-acme",
            json!({"type": {"name": "home"}}),
            "workspace type root:home cannot have any parent",
        ),
        (alice(), "c-gone", json!({}), "logicalclusters.core.kcp.io \"cluster\" not found"),
    ] {
        refused(
            world.create(&user, at, WORKSPACES, workspace(spec)).await,
            &format!("{prefix}{want}"),
        );
    }
    let old = workspace(json!({"type": {"name": "universal", "path": "root"}, "cluster": "c"}));
    for (user, spec, want) in [
        (
            alice(),
            json!({"type": {"name": "universal", "path": "root"}}),
            "spec.cluster cannot be unset",
        ),
        (
            alice(),
            json!({"type": {"name": "universal", "path": "root"}, "cluster": "d"}),
            "spec.cluster can only be changed by system privileged users",
        ),
    ] {
        refused(
            world.update(&user, "c-acme", WORKSPACES, &old, workspace(spec)).await,
            &format!("{prefix}{want}"),
        );
    }
}

#[tokio::test]
async fn workspace_types() {
    let world = World::new();
    let types = "workspacetypes.tenancy.kcp.io";
    let kind = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let made = world.create(&alice(), "c-acme", types, kind("t", json!({}))).await.unwrap();
    assert_eq!(made["metadata"]["annotations"][names::PATH], "root:acme");
    let prefix = |name: &str| format!("workspacetypes.tenancy.kcp.io {name:?} is forbidden: ");
    for (name, spec, want) in [
        ("root", json!({}), "root workspace type can only be created in root cluster"),
        ("any", json!({}), "metadata.name: Invalid value: \"any\": name is reserved"),
        (
            "t",
            json!({"limitAllowedParents": {"types": [{"name": "a", "path": "b"}, {"name": "c"}]}}),
            ".spec.limitAllowedParents.types[1].path must be set",
        ),
        (
            "t",
            json!({"defaultAPIBindings": [{"path": "root:acme", "export": "gadgets"}]}),
            "unable to create or update WorkspaceType: no permission to bind to export root:acme:gadgets",
        ),
    ] {
        let got = world.create(&bob(), "c-team", types, kind(name, spec)).await;
        refused(got, &format!("{}{want}", prefix(name)));
    }
    let bound = json!({"defaultAPIBindings": [{"path": "root", "export": "tenancy.kcp.io"}]});
    world.create(&bob(), "c-team", types, kind("t", bound)).await.unwrap();
}

#[tokio::test]
async fn bindings() {
    let world = World::new();
    let gr = "apibindings.apis.kcp.io";
    let binding = |path: &str, name: &str| json!({"metadata": {"name": "b"}, "spec": {"reference": {"export": {"path": path, "name": name}}}});
    let made = world.create(&alice(), "c-team", gr, binding("root:acme", "gadgets")).await.unwrap();
    let acme = cluster("c-acme");
    assert_eq!(
        made["metadata"]["labels"][names::EXPORT_LABEL],
        crate::hash::export_label(&acme, "gadgets")
    );
    assert_eq!(
        made["metadata"]["labels"][crate::hash::claim_label_key(&acme, "gadgets")],
        crate::hash::reflexive_claim_value()
    );
    assert_eq!(made["metadata"]["finalizers"], json!([names::API_BINDING_FINALIZER]));
    assert_eq!(made["metadata"]["annotations"][names::PATH], "root:acme:team");

    let prefix = "apibindings.apis.kcp.io \"b\" is forbidden: ";
    let no = |export: &str| {
        format!("{prefix}unable to create APIBinding: no permission to bind to export {export}")
    };
    refused(
        world.create(&bob(), "c-team", gr, binding("root:acme", "gadgets")).await,
        &no("root:acme:gadgets"),
    );
    refused(
        world.create(&bob(), "c-team", gr, binding("root:acme", "nope")).await,
        &no("root:acme:nope"),
    );
    refused(world.create(&bob(), "c-team", gr, binding("", "own")).await, &no("own"));
    world.create(&bob(), "c-team", gr, binding("root", "tenancy.kcp.io")).await.unwrap();
    let mut bad = binding("root", "tenancy.kcp.io");
    bad["spec"]["permissionClaims"] = json!([{"resource": "secrets", "selector": {}}]);
    refused(
        world.create(&master(), "c-team", gr, bad).await,
        &format!(
            "{prefix}[spec.permissionClaims[0].selector: Required value: \
             either one of matchAll, matchLabels, or matchExpressions must be set]"
        ),
    );
    let mut deleting = made.clone();
    deleting["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
    let mut stripped = deleting.clone();
    stripped["metadata"]["finalizers"] = json!([]);
    refused(
        world.update(&alice(), "c-team", gr, &deleting, stripped.clone()).await,
        &format!("{prefix}removing the finalizer apis.kcp.io/apibinding-finalizer is forbidden"),
    );
    world.update(&master(), "c-team", gr, &deleting, stripped).await.unwrap();
}

#[tokio::test]
async fn logical_clusters() {
    let world = World::new();
    let gr = "logicalclusters.core.kcp.io";
    let lc = |status: Value| json!({"metadata": {"name": "cluster", "finalizers": [names::LOGICAL_CLUSTER_DELETION_FINALIZER]}, "spec": {"initializers": ["a:b"]}, "status": status});
    let made = world
        .create(&master(), "c-new", gr, json!({"metadata": {"name": "cluster"}}))
        .await
        .unwrap();
    assert_eq!(made["metadata"]["finalizers"], json!([names::LOGICAL_CLUSTER_DELETION_FINALIZER]));
    let started = world
        .update(&master(), "c-team", gr, &lc(json!({})), lc(json!({"phase": "Initializing"})))
        .await
        .unwrap();
    assert_eq!(started["status"]["initializers"], json!(["a:b"]));
    let prefix = "logicalclusters.core.kcp.io \"cluster\" is forbidden: ";
    refused(
        world.create(&alice(), "c-new", gr, lc(json!({}))).await,
        &format!("{prefix}LogicalCluster cannot be created"),
    );
    let got =
        world.run(&alice(), "c-team", gr, Operation::Delete, Some(&lc(json!({}))), None).await;
    refused(got, &format!("{prefix}LogicalCluster cannot be deleted"));
    for (before, after, want) in [
        (
            json!({"phase": "Initializing", "initializers": []}),
            json!({"phase": "Initializing", "initializers": ["a:b"]}),
            "status.initializers must not grow",
        ),
        (
            json!({"phase": "Initializing", "initializers": ["a:b"]}),
            json!({"phase": "Ready", "initializers": ["a:b"]}),
            "status.initializers is not empty",
        ),
        (
            json!({"phase": "Ready"}),
            json!({"phase": "Scheduling"}),
            "cannot transition from \"Ready\" to \"Scheduling\"",
        ),
        (
            json!({"phase": "Ready"}),
            json!({"phase": "Ready", "initializers": ["a:b"]}),
            "status.initializers is immutable after initialization",
        ),
    ] {
        refused(
            world.update(&alice(), "c-team", gr, &lc(before), lc(after)).await,
            &format!("{prefix}{want}"),
        );
    }
}

#[tokio::test]
async fn crds_and_shards() {
    let world = World::new();
    let gr = "customresourcedefinitions.apiextensions.k8s.io";
    let crd = |group: &str, annotation: &str| json!({"metadata": {"name": "x", "annotations": {annotation: ""}}, "spec": {"group": group}});
    let prefix = "customresourcedefinitions.apiextensions.k8s.io \"x\" is forbidden: ";
    let annotation = format!("{prefix}extra.apis.kcp.io/x is a reserved annotation");
    refused(
        world.create(&master(), "c-team", gr, crd("g.dev", "extra.apis.kcp.io/x")).await,
        &annotation,
    );
    let group = format!("{prefix}apis.kcp.io is a reserved group");
    refused(world.create(&master(), "c-team", gr, crd("apis.kcp.io", "a")).await, &group);
    world.create(&master(), "system:bound-crds", gr, crd("g.dev", names::BOUND_CRD)).await.unwrap();
    world.create(&master(), "system:system-crds", gr, crd("apis.kcp.io", "a")).await.unwrap();
    world.create(&alice(), "c-team", gr, crd("g.dev", "myapis.kcp.io/x")).await.unwrap();

    let shard = json!({"metadata": {"name": "s"}, "spec": {"baseURL": "https://b", "externalURL": "https://e"}});
    let made = world.create(&master(), "root", "shards.core.kcp.io", shard).await.unwrap();
    assert_eq!(
        made["spec"],
        json!({"baseURL": "https://b", "externalURL": "https://e", "virtualWorkspaceURL": "https://b"})
    );
}

#[tokio::test]
async fn namespaces() {
    let world = World::new();
    let config = |namespace: &str| json!({"metadata": {"name": "x", "namespace": namespace}});
    world.create(&alice(), "c-team", "configmaps", config("default")).await.unwrap();
    refused(
        world.create(&alice(), "c-team", "configmaps", config("none")).await,
        "namespaces \"none\" not found",
    );
    refused(
        world.create(&alice(), "c-team", "configmaps", config("ending")).await,
        "configmaps \"x\" is forbidden: unable to create new content in namespace ending because it is being terminated",
    );
    let default = json!({"metadata": {"name": "default"}});
    let user = alice();
    let delete =
        || world.run(&user, "c-team", "namespaces", Operation::Delete, Some(&default), None);
    refused(
        delete().await,
        "namespaces \"default\" is forbidden: this namespace may not be deleted",
    );
    world.put(
        "c-team",
        "customresources",
        json!({
            "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": "cluster", "deletionTimestamp": "2026-01-02T03:04:05Z"},
        }),
    );
    delete().await.unwrap();
}

#[tokio::test]
async fn exports_and_schemas() {
    let world = World::new();
    let gr = "apiexports.apis.kcp.io";
    let export = |spec: Value| json!({"metadata": {"name": "e"}, "spec": spec});
    let good = json!({
        "resources": [{"name": "pods", "group": "", "schema": "v1.pods.core", "storage": {"crd": {}}}],
        "permissionClaims": [{"resource": "secrets"}, {"group": "apis.kcp.io", "resource": "apibindings"}],
    });
    world.create(&alice(), "c-team", gr, export(good)).await.unwrap();
    let prefix = "apiexports.apis.kcp.io \"e\" is forbidden: ";
    for (spec, want) in [
        (
            json!({"permissionClaims": [{"group": "g.dev", "resource": "widgets"}]}),
            "spec.permissionClaims[0].identityHash: Invalid value: \"\": \
             identityHash is required for API types that are not built-in",
        ),
        (
            json!({"resources": [{"name": "a", "group": "g.dev", "schema": "v1.b.g.dev"}]}),
            "spec.resources[0].schema: Invalid value: \"v1.b.g.dev\": must end in .a.g.dev",
        ),
    ] {
        refused(
            world.create(&alice(), "c-team", gr, export(spec)).await,
            &format!("{prefix}{want}"),
        );
    }

    let gr = "apiresourceschemas.apis.kcp.io";
    for text in crate::assets::ROOT_SCHEMAS {
        world.create(&master(), "root", gr, Value::Object(crate::assets::one(text))).await.unwrap();
    }
    let schema = |name: &str, group: &str, properties: Value| {
        json!({"metadata": {"name": name}, "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object", "properties": properties}}],
        }})
    };
    let made = world
        .create(&alice(), "c-team", gr, schema("v1.widgets.g.dev", "g.dev", json!({})))
        .await
        .unwrap();
    world
        .create(&alice(), "c-team", gr, schema("v1.widgets.apps", "apps", json!({})))
        .await
        .unwrap();
    world.create(&alice(), "c-team", gr, schema("v1.widgets.core", "", json!({}))).await.unwrap();
    for (name, group, properties, want) in [
        (
            "v1.widget.g.dev",
            "g.dev",
            json!({}),
            "[metadata.name: Invalid value: \"v1.widget.g.dev\": must end in .widgets.g.dev]",
        ),
        (
            "1.widgets.g.dev",
            "g.dev",
            json!({}),
            "[metadata.name: Invalid value: \"1.widgets.g.dev\": \
             must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .widgets.g.dev]",
        ),
        (
            "v1.widgets.g.dev",
            "g.dev",
            json!({"x": {}}),
            "[spec.versions[0].schema.openAPIV3Schema.properties[x].type: Required value: \
             must not be empty for specified object fields]",
        ),
    ] {
        let prefix = format!("apiresourceschemas.apis.kcp.io {name:?} is forbidden: ");
        refused(
            world.create(&alice(), "c-team", gr, schema(name, group, properties)).await,
            &format!("{prefix}{want}"),
        );
    }
    let changed = schema("v1.widgets.g.dev", "g.dev", json!({"x": {"type": "string"}}));
    refused(
        world.update(&alice(), "c-team", gr, &made, changed).await,
        "apiresourceschemas.apis.kcp.io \"v1.widgets.g.dev\" is forbidden: [spec: Invalid value: is immutable]",
    );
}
