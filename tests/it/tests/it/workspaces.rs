//! Workspaces: made by kubectl, isolated from each other, deleted with all that is in them.

use it::Server;
use serde_json::{Value, json};

#[test]
fn kubectl_ws_makes_a_working_workspace() {
    let server = Server::start();
    let made = server.kubectl_ok(&["create", "workspace", "acme", "--enter"]);
    assert!(
        made.contains("Workspace \"acme\" (type root:organization) is ready to use."),
        "{made}"
    );
    assert!(
        made.ends_with("Current workspace is 'root:acme' (type root:organization).\n"),
        "{made}"
    );
    assert_eq!(
        server.kubectl_ok(&["get", "ns", "-o", "name"]),
        "namespace/default\nnamespace/kube-system\n"
    );
    server.kubectl_ok(&["create", "configmap", "one", "--from-literal=a=1"]);
    server.kubectl_ok(&["ws", "create", "team", "--enter"]);
    let (told, code) = server.kubectl(&["get", "configmap", "one"]);
    assert_eq!(
        (told.as_str(), code),
        ("Error from server (NotFound): configmaps \"one\" not found\n", 1)
    );
    assert_eq!(server.kubectl_ok(&["ws", "."]), "Current workspace is 'root:acme:team'.\n");
}

#[test]
fn a_fresh_workspace_holds_ten_objects() {
    let server = Server::start();
    let cluster = server.workspace("acme");
    let count = |path: &str| {
        let list = server.master("GET", &format!("/clusters/{cluster}{path}"), &Value::Null).json();
        list["items"].as_array().map_or(0, Vec::len)
    };
    let counts = [
        "/api/v1/namespaces",
        "/api/v1/serviceaccounts",
        "/api/v1/configmaps",
        "/api/v1/secrets",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/core.kcp.io/v1alpha1/logicalclusters",
        "/apis/apis.kcp.io/v1alpha2/apibindings",
    ];
    server.until("the namespaces are filled", || {
        (count(counts[2]) == 2 && count(counts[1]) == 2).then_some(())
    });
    assert_eq!(counts.map(count), [2, 2, 2, 0, 1, 1, 2]);
}

#[test]
fn a_second_user_is_let_into_one_workspace_only() {
    let dir = tempfile::tempdir().expect("make a folder");
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "user-1-token,user-1,u1,\"team-1\"\n").expect("write the tokens");
    let server = Server::start_with(&[&format!("--token-auth-file={}", tokens.display())]);
    let (one, two) = (server.workspace("one"), server.workspace("two"));
    let binding = json!({
        "metadata": {"name": "user-1"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "user-1"}],
        "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"},
    });
    let path = format!("/clusters/{one}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
    assert_eq!(server.admin("POST", &path, &binding).code, 201);
    let get = |cluster: &str| {
        let path = format!("/clusters/{cluster}/api/v1/namespaces");
        server.request("GET", &path, Some("user-1-token"), &[], b"").expect("an answer")
    };
    assert_eq!(get(&one).code, 200);
    assert_eq!(get("root:one").code, 200);
    let refused = get(&two);
    assert_eq!(refused.code, 403);
    assert!(refused.refusal().contains("user-1"), "{}", refused.refusal());
    // Everyone may list the workspaces of root: the truth about them is no secret.
    assert_eq!(
        get("root:none").refusal(),
        "404 NotFound: workspaces.tenancy.kcp.io \"root:none\" not found"
    );
    // Who may not know a workspace gets the same words whether it exists or not.
    let child = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "real"},
        "spec": {"type": {"name": "universal", "path": "root"}},
    });
    let path = format!("/clusters/{two}/apis/tenancy.kcp.io/v1alpha1/workspaces");
    assert_eq!(server.admin("POST", &path, &child).code, 201);
    server.until("the child workspace is Ready", || {
        let child = server.admin("GET", &format!("{path}/real"), &Value::Null).json();
        (child["status"]["phase"] == "Ready").then_some(())
    });
    let (real, none) = (get("root:two:real"), get("root:two:none"));
    assert_eq!((real.code, real.body), (403, none.body));
}

#[test]
fn deleting_a_workspace_leaves_nothing() {
    let server = Server::start();
    server.kubectl_ok(&["create", "workspace", "acme", "--enter"]);
    server.kubectl_ok(&["ws", "create", "team"]);
    server.kubectl_ok(&["create", "configmap", "one", "--from-literal=a=1"]);
    server.kubectl_ok(&["ws", "root"]);
    server.kubectl_ok(&["delete", "workspace", "acme", "--timeout=30s"]);
    assert_eq!(server.kubectl_ok(&["ws", "tree"]), ".\n└── root\n\n");
    let left = server
        .master("GET", "/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters", &Value::Null)
        .json();
    let clusters: Vec<&str> = left["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|o| o["metadata"]["annotations"]["kcp.io/cluster"].as_str())
        .collect();
    assert_eq!(clusters, ["root", "system:shard"]);
}
