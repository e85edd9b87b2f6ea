//! What the servers write in turn, and must find again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use it::{Answer, PATIENCE, Server};
use serde_json::{Value, json};

const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const EXPORTS: &str = "/apis/apis.kcp.io/v1alpha2/apiexports";
const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const LAMPS: &str = "/apis/home.example.dev/v1/namespaces/default/lamps";
const KETTLES: &str = "/apis/home.example.dev/v1/namespaces/default/kettles";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// All that must be there.
#[derive(Default)]
pub struct Content {
    /// Paths of workspaces, and their logical clusters.
    workspaces: BTreeMap<String, String>,
    /// Workspaces that the next writer deletes.
    doomed: Vec<String>,
    /// The last writer, whose export the next one binds too.
    before: Option<String>,
    /// Objects by URL, as they were read when they had been written.
    objects: BTreeMap<String, Value>,
}

impl Content {
    /// Writes into a workspace of its own, and into those of others.
    pub fn write(&mut self, server: &Server, name: &str) {
        self.change(server, name);
        for doomed in std::mem::take(&mut self.doomed) {
            self.delete_workspace(server, &doomed);
        }
        let at = format!("root:{name}");
        for (parent, workspace) in [("root", name), (at.as_str(), "team")] {
            self.make_workspace(server, parent, workspace);
        }
        let doomed = format!("{name}-doomed");
        self.make_workspace(server, "root", &doomed);
        self.doomed.push(format!("root:{doomed}"));
        let team = format!("{at}:team");
        for at in [&at, &team] {
            self.fill(server, at, name);
        }
        self.export(server, &at, name);
        let before = self.before.replace(name.to_owned());
        for exporter in before.iter().map(String::as_str).chain([name]) {
            self.bind(server, &team, exporter);
        }
    }

    /// Every writer exports bulbs, in a group of its own.
    fn export(&mut self, server: &Server, at: &str, name: &str) {
        let (group, schema) = (group(name), format!("v1.bulbs.{}", group(name)));
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
        let version = json!({
            "name": "v1", "served": true, "storage": true,
            "schema": {"type": "object", "properties": {"spec": spec}},
        });
        let names = json!({
            "plural": "bulbs", "singular": "bulb", "kind": "Bulb", "listKind": "BulbList",
        });
        let body = json!({"metadata": {"name": schema}, "spec": {
            "group": group, "scope": "Namespaced", "names": names, "versions": [version],
        }});
        self.create(server, at, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas", body);
        let resource =
            json!({"group": group, "name": "bulbs", "schema": schema, "storage": {"crd": {}}});
        let body = json!({"metadata": {"name": "bulbs"}, "spec": {"resources": [resource]}});
        let url = format!("/clusters/{at}{EXPORTS}");
        let made = server.admin("POST", &url, &with_kind(EXPORTS, body));
        assert_eq!(made.code, 201, "{url}: {}", made.text());
    }

    fn bind(&mut self, server: &Server, at: &str, exporter: &str) {
        let export = json!({"path": format!("root:{exporter}"), "name": "bulbs"});
        let body = json!({
            "metadata": {"name": format!("bulbs-{exporter}")},
            "spec": {"reference": {"export": export}},
        });
        let url = format!("/clusters/{at}{BINDINGS}");
        let bind = || server.admin("POST", &url, &with_kind(BINDINGS, body.clone()));
        // Go kcp looks the export up in a cache, which may not have it yet.
        let deadline = Instant::now() + PATIENCE;
        let mut made = bind();
        while made.code == 403 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(100));
            made = bind();
        }
        assert_eq!(made.code, 201, "{url}: {}", made.text());
        let path = format!("/apis/{}/v1/namespaces/default/bulbs", group(exporter));
        self.create(server, at, &path, json!({"metadata": {"name": "b"}, "spec": {"size": 1}}));
    }

    fn fill(&mut self, server: &Server, at: &str, name: &str) {
        self.create(server, at, CRDS, crd("lamps", "Lamp", None));
        let subject =
            json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"});
        let view =
            json!({"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "view"});
        for (path, body) in [
            (CONFIG_MAPS, json!({"metadata": {"name": name}, "data": {"by": name}})),
            (
                "/api/v1/namespaces/default/secrets",
                json!({"metadata": {"name": name}, "stringData": {"by": name}}),
            ),
            ("/api/v1/namespaces", json!({"metadata": {"name": name}})),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": view}),
            ),
        ] {
            self.create(server, at, path, body);
        }
        self.create(server, at, LAMPS, lamp(name));
    }

    /// Changes an object in every workspace, and adds one.
    fn change(&mut self, server: &Server, name: &str) {
        let maps: Vec<String> =
            self.objects.keys().filter(|url| url.contains(CONFIG_MAPS)).cloned().collect();
        for url in maps {
            let changed = server.admin("PATCH", &url, &json!({"data": {"changed-by": name}}));
            assert_eq!(changed.code, 200, "{url}: {}", changed.text());
            self.objects.insert(url, plain(&changed));
        }
        let filled = self.workspaces.keys().filter(|at| !self.doomed.contains(at));
        for at in &filled.cloned().collect::<Vec<String>>() {
            self.create(server, at, LAMPS, lamp(&format!("from-{name}")));
        }
    }

    fn create(&mut self, server: &Server, at: &str, path: &str, body: Value) {
        let body = with_kind(path, body);
        let collection = format!("/clusters/{at}{path}");
        // A definition that was just made is served after a moment, elsewhere rather late.
        let made = server.until(&collection, || {
            let answer = server.admin("POST", &collection, &body);
            (answer.code != 404).then_some(answer)
        });
        assert_eq!(made.code, 201, "{collection}: {}", made.text());
        let name = body["metadata"]["name"].as_str().expect("a name");
        let url = format!("{collection}/{name}");
        let read = match path {
            CRDS => server.until("the definition is established", || {
                let answer = server.admin("GET", &url, &Value::Null);
                let crd = answer.json();
                let conditions = crd["status"]["conditions"].as_array()?;
                let is = |c: &Value| c["type"] == "Established" && c["status"] == "True";
                conditions.iter().any(is).then_some(answer)
            }),
            // The namespace controllers are at work in it.
            "/api/v1/namespaces" => return,
            _ => server.admin("GET", &url, &Value::Null),
        };
        self.objects.insert(url, plain(&read));
    }

    fn make_workspace(&mut self, server: &Server, parent: &str, name: &str) {
        let collection = format!("/clusters/{parent}{WORKSPACES}");
        let body = json!({
            "metadata": {"name": name}, "spec": {"type": {"name": "universal", "path": "root"}},
        });
        let body = with_kind(WORKSPACES, body);
        let made = server.until("workspaces are served", || {
            let answer = server.admin("POST", &collection, &body);
            (!matches!(answer.code, 403 | 404)).then_some(answer)
        });
        assert_eq!(made.code, 201, "{collection}: {}", made.text());
        let workspace = server.until("a workspace is Ready", || {
            let answer = server.admin("GET", &format!("{collection}/{name}"), &Value::Null);
            let workspace = answer.json();
            (workspace["status"]["phase"] == "Ready").then_some(workspace)
        });
        let cluster = workspace["spec"]["cluster"].as_str().expect("a cluster").to_owned();
        self.workspaces.insert(format!("{parent}:{name}"), cluster);
    }

    fn delete_workspace(&mut self, server: &Server, path: &str) {
        let (parent, name) = path.rsplit_once(':').expect("a path");
        let url = format!("/clusters/{parent}{WORKSPACES}/{name}");
        let deleted = server.admin("DELETE", &url, &Value::Null);
        assert_eq!(deleted.code, 200, "{url}: {}", deleted.text());
        server.until("a workspace of another server is gone", || {
            (server.admin("GET", &url, &Value::Null).code == 404).then_some(())
        });
        let cluster = self.workspaces.remove(path).expect("it was made");
        let left = format!("/clusters/{cluster}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
        assert_ne!(server.master("GET", &left, &Value::Null).code, 200, "{left}");
    }

    /// Everything is there, unchanged, and no object more.
    pub fn check(&self, server: &Server) {
        for (path, cluster) in &self.workspaces {
            let at = format!("/clusters/{cluster}");
            let get = |path: &str| server.master("GET", &format!("{at}{path}"), &Value::Null);
            let (parent, name) = path.rsplit_once(':').expect("a path");
            let url = format!("/clusters/{parent}{WORKSPACES}/{name}");
            // Go kcp finds no shard, and says so, until its cache server holds ours.
            let workspace = server.until("a workspace of another server is Ready", || {
                let answer = server.admin("GET", &url, &Value::Null);
                let workspace = answer.json();
                (workspace["status"]["phase"] == "Ready").then_some(workspace)
            });
            assert_eq!(workspace["spec"]["cluster"], cluster.as_str());
            let logical = get("/apis/core.kcp.io/v1alpha1/logicalclusters/cluster").json();
            assert_eq!(logical["status"]["phase"], "Ready", "{path}: {logical}");
            server.until("its APIs are bound", || {
                let bindings = get(BINDINGS).json();
                let bindings = bindings["items"].as_array()?;
                let bound = bindings.iter().all(|b| b["status"]["phase"] == "Bound");
                (bindings.len() >= 2 && bound).then_some(())
            });
        }
        for (url, want) in &self.objects {
            let answer = server.until(url, || {
                let answer = server.admin("GET", url, &Value::Null);
                (answer.code == 200).then_some(answer)
            });
            assert_eq!(plain(&answer).to_string(), want.to_string(), "{url}");
        }
        let collections = self.objects.keys().filter_map(|url| url.rsplit_once('/'));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        collections.for_each(|(collection, _)| *counts.entry(collection).or_default() += 1);
        for (collection, n_want) in counts.iter().filter(|(url, _)| url.ends_with("lamps")) {
            let list = server.admin("GET", collection, &Value::Null).json();
            assert_eq!(list["items"].as_array().map(Vec::len), Some(*n_want), "{collection}");
        }
    }

    /// The endpoint that the other server left is gone. (Go kcp takes away only what it applied.)
    pub fn check_endpoints(server: &Server) {
        let slices = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/tenancy.kcp.io";
        let url = format!("/clusters/root{slices}");
        server.until("endpoints are those of this server", || {
            let slice = server.admin("GET", &url, &Value::Null).json();
            let urls = slice["status"]["endpoints"].as_array()?;
            let own = |e: &Value| e["url"].as_str().is_some_and(|u| u.starts_with(&server.url));
            (!urls.is_empty() && urls.iter().all(own)).then_some(())
        });
    }

    /// A definition with a CEL rule, and an object that keeps it.
    pub fn write_with_rules(&mut self, server: &Server, name: &str) {
        let at = format!("root:{name}");
        let rule = json!([{"rule": "self.size < 100", "message": "size must be under 100"}]);
        self.create(server, &at, CRDS, crd("kettles", "Kettle", Some(rule)));
        let kettle = json!({"metadata": {"name": "k"}, "spec": {"size": 1}});
        self.create(server, &at, KETTLES, kettle);
        self.check_rules_hold(server, name);
    }

    pub fn check_rules_hold(&self, server: &Server, name: &str) {
        let answer = patch_size(server, name, 100);
        assert_eq!(answer.code, 422, "{}", answer.text());
        assert!(answer.text().contains("size must be under 100"), "{}", answer.text());
    }

    /// We read objects whose schema has a rule, and let be changed what the rule does not guard.
    pub fn check_rules_are_missed(&mut self, server: &Server, name: &str) {
        let answer = patch_size(server, name, 2);
        assert_eq!(answer.code, 422, "{}", answer.text());
        assert!(answer.text().contains("CEL rules are not served"), "{}", answer.text());
        let url = format!("/clusters/root:{name}{KETTLES}/k");
        let label = json!({"metadata": {"labels": {"seen": "yes"}}});
        let answer = server.admin("PATCH", &url, &label);
        assert_eq!(answer.code, 200, "{}", answer.text());
        self.objects.insert(url, plain(&answer));
    }
}

fn patch_size(server: &Server, name: &str, size: u32) -> Answer {
    let url = format!("/clusters/root:{name}{KETTLES}/k");
    server.admin("PATCH", &url, &json!({"spec": {"size": size}}))
}

fn group(exporter: &str) -> String {
    format!("{exporter}.example.dev")
}

/// A body with what the path says of it: version and kind.
fn with_kind(path: &str, mut body: Value) -> Value {
    let parts: Vec<&str> = path.split('/').collect();
    let version = if parts[1] == "api" { parts[2].to_owned() } else { parts[2..4].join("/") };
    let kind = match *parts.last().expect("a resource") {
        "apibindings" => "APIBinding",
        "apiexports" => "APIExport",
        "apiresourceschemas" => "APIResourceSchema",
        "bulbs" => "Bulb",
        "clusterrolebindings" => "ClusterRoleBinding",
        "configmaps" => "ConfigMap",
        "customresourcedefinitions" => "CustomResourceDefinition",
        "kettles" => "Kettle",
        "lamps" => "Lamp",
        "namespaces" => "Namespace",
        "secrets" => "Secret",
        "workspaces" => "Workspace",
        other => panic!("{other} has no kind here"),
    };
    body["apiVersion"] = version.into();
    body["kind"] = kind.into();
    body
}

fn lamp(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"size": 7}})
}

fn crd(plural: &str, kind: &str, rules: Option<Value>) -> Value {
    let mut spec = json!({
        "type": "object",
        "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
    });
    if let Some(rules) = rules {
        spec["x-kubernetes-validations"] = rules;
    }
    json!({"metadata": {"name": format!("{plural}.home.example.dev")}, "spec": {
        "group": "home.example.dev", "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind},
        "versions": [{
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }],
    }})
}

/// An object without managedFields, which we keep and do not write.
fn plain(answer: &Answer) -> Value {
    let mut object = answer.json();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    object
}
