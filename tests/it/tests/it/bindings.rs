//! APIs that come from another workspace: who holds a resource, and reads over all clusters.

use it::Server;
use serde_json::{Value, json};

const SCHEMAS: &str = "apis/apis.kcp.io/v1alpha1/apiresourceschemas";
const EXPORTS: &str = "apis/apis.kcp.io/v1alpha2/apiexports";
const BINDINGS: &str = "apis/apis.kcp.io/v1alpha2/apibindings";
const CRDS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LAMPS: &str = "apis/home.example.dev/v1/namespaces/default/lamps";

/// Creates an object; the collection's path tells its apiVersion.
fn make(server: &Server, workspace: &str, collection: &str, kind: &str, mut object: Value) {
    let path: Vec<&str> = collection.split('/').collect();
    object["apiVersion"] = format!("{}/{}", path[1], path[2]).into();
    object["kind"] = kind.into();
    let made = server.admin("POST", &format!("/clusters/root:{workspace}/{collection}"), &object);
    assert_eq!(made.code, 201, "{}", made.text());
}

fn get(server: &Server, workspace: &str, path: &str) -> Value {
    server.admin("GET", &format!("/clusters/root:{workspace}/{path}"), &Value::Null).json()
}

/// Deletes, and waits until it is gone.
fn delete(server: &Server, workspace: &str, path: &str) {
    server.admin("DELETE", &format!("/clusters/root:{workspace}/{path}"), &Value::Null);
    server.until("it is gone", || (get(server, workspace, path)["code"] == 404).then_some(()));
}

fn names() -> Value {
    json!({"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"})
}

/// A workspace that exports lamps.
fn provider(server: &Server) {
    server.workspace("provider");
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {}, "schema": schema});
    make(
        server,
        "provider",
        SCHEMAS,
        "APIResourceSchema",
        json!({"metadata": {"name": "v1.lamps.home.example.dev"},
            "spec": {"group": "home.example.dev", "scope": "Namespaced", "names": names(), "versions": [version]}}),
    );
    let resource = json!({"group": "home.example.dev", "name": "lamps",
        "schema": "v1.lamps.home.example.dev", "storage": {"crd": {}}});
    make(
        server,
        "provider",
        EXPORTS,
        "APIExport",
        json!({"metadata": {"name": "lamps"}, "spec": {"resources": [resource]}}),
    );
}

fn bind(server: &Server, workspace: &str, name: &str) {
    let export = json!({"path": "root:provider", "name": "lamps"});
    make(
        server,
        workspace,
        BINDINGS,
        "APIBinding",
        json!({"metadata": {"name": name}, "spec": {"reference": {"export": export}}}),
    );
}

fn is_bound(server: &Server, workspace: &str, name: &str) {
    let path = format!("{BINDINGS}/{name}");
    server.until("it is bound", || {
        (get(server, workspace, &path)["status"]["phase"] == "Bound").then_some(())
    });
}

/// A CRD of lamps in the workspace, served.
fn own_lamps(server: &Server, workspace: &str) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": "home.example.dev", "scope": "Namespaced", "names": names(), "versions": [version]});
    let name = "lamps.home.example.dev";
    make(
        server,
        workspace,
        CRDS,
        "CustomResourceDefinition",
        json!({"metadata": {"name": name}, "spec": spec}),
    );
    server.until("the CRD is served", || {
        (get(server, workspace, LAMPS)["kind"] == "LampList").then_some(())
    });
}

fn lamp(server: &Server, workspace: &str, name: &str) {
    make(server, workspace, LAMPS, "Lamp", json!({"metadata": {"name": name}}));
}

#[test]
fn a_resource_passes_from_one_holder_to_the_next() {
    let server = Server::start();
    provider(&server);
    server.workspace("consumer");
    own_lamps(&server, "consumer");
    bind(&server, "consumer", "first");
    let path = format!("{BINDINGS}/first");
    server.until("the CRD stands in the way", || {
        let conditions = get(&server, "consumer", &path)["status"]["conditions"].clone();
        let found = conditions.as_array()?.iter().any(|c| c["reason"] == "NamingConflicts");
        found.then_some(())
    });
    delete(&server, "consumer", &format!("{CRDS}/lamps.home.example.dev"));
    is_bound(&server, "consumer", "first");
    lamp(&server, "consumer", "desk");
    // A second binding of the same API waits, and takes the objects over.
    let uid = get(&server, "consumer", &format!("{LAMPS}/desk"))["metadata"]["uid"].clone();
    bind(&server, "consumer", "second");
    delete(&server, "consumer", &path);
    is_bound(&server, "consumer", "second");
    assert_eq!(get(&server, "consumer", &format!("{LAMPS}/desk"))["metadata"]["uid"], uid);
    delete(&server, "consumer", &format!("{BINDINGS}/second"));
    assert_eq!(get(&server, "consumer", LAMPS)["code"], 404);
}

#[test]
fn metadata_over_all_clusters_is_of_every_definition() {
    let server = Server::start();
    provider(&server);
    for workspace in ["own", "consumer"] {
        server.workspace(workspace);
    }
    own_lamps(&server, "own");
    bind(&server, "consumer", "lamps");
    is_bound(&server, "consumer", "lamps");
    lamp(&server, "own", "desk");
    lamp(&server, "consumer", "shelf");
    let all = "/clusters/*/apis/home.example.dev/v1/lamps";
    assert_eq!(server.master("GET", all, &Value::Null).code, 404);
    let token = server.token("shard-admin");
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = |query: &str| {
        let headers = [("Accept", partial)];
        let answer = server.request("GET", &format!("{all}{query}"), Some(&token), &headers, b"");
        answer.expect("an answer").json()
    };
    let told = |list: &Value| {
        let items = list["items"].as_array().expect("items").iter();
        let mut names: Vec<&str> =
            items.map(|i| i["metadata"]["name"].as_str().expect("a name")).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(told(&list("")), "desk shelf");
    let first = list("?limit=1");
    let token = first["metadata"]["continue"].as_str().expect("more follows");
    let second = list(&format!("?limit=1&continue={token}"));
    let mut both = [told(&first), told(&second)];
    both.sort();
    assert_eq!(both, ["desk", "shelf"]);
}
