//! Discovery, OpenAPI, objects and storage keys of a new server, against those of a Go kcp.
//!
//! The facts lie in `tests/oracle/golden` (its README says how they were taken). What is random on
//! every server is replaced by words on both sides. What differs is listed in [`DIFFERENT`] with
//! the reason; anything else that differs is a fault of ours, and so is a row without a difference.
//! The values of the store have a test beside the codec (`fp-keyspace/tests/golden.rs`).

mod discovery;
mod keys;
mod normal;
mod objects;
mod openapi;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use it::{PATIENCE, Server};
use serde_json::{Value, json};

use normal::Words;

/// The clusters of the facts, in the order of their digits in `discovery.txt`.
const CLUSTERS: [&str; 7] = [
    "root",
    "root:acme",
    "root:acme:team-a",
    "system:admin",
    "system:bound-crds",
    "system:shard",
    "system:system-crds",
];

const CLAIMS: &str = "permission claims are not built yet";
const CEL: &str = "CEL rules are not built yet: our schema of gadgets is made without its rule";
const ISSUER: &str = "the OpenAPI documents of issuer discovery are not built";
const HEALTH: &str = "a check of a part that Go's server alone has";
const OPENAPI_V2: &str = "OpenAPI v2 is not built yet";
const RACE: &str =
    "there Go kcp's workspace was ready before it was seen initializing; team-a's was not";
const DEFINITIONS: &str = "Go kcp has this group in OpenAPI v2 alone, to which kubectl falls back";
const LEASE: &str = "departure on purpose: our process needs no Lease (ARCHITECTURE.md)";

/// How a difference begins, what it has after a `*`, and why it is there.
const DIFFERENT: [(&str, &str); 28] = [
    ("openapi + * apis/apiextensions.k8s.io", DEFINITIONS),
    ("openapi + path /apis/apiextensions.k8s.io/", DEFINITIONS),
    ("openapi - * .well-known/openid-configuration", ISSUER),
    ("openapi - path /.well-known/openid-configuration/", ISSUER),
    ("openapi - * openid/v1/jwks", ISSUER),
    ("openapi - path /openid/v1/jwks/", ISSUER),
    ("path - /openapi/v2", OPENAPI_V2),
    ("path - /healthz/etcd", HEALTH),
    ("path - /healthz/log", HEALTH),
    ("path - /healthz/loopback-serving-certificate", HEALTH),
    ("path - /healthz/poststarthook/", HEALTH),
    ("path - /livez/etcd", HEALTH),
    ("path - /livez/log", HEALTH),
    ("path - /livez/loopback-serving-certificate", HEALTH),
    ("path - /livez/poststarthook/", HEALTH),
    ("path - /readyz/etcd", HEALTH),
    ("path - /readyz/log", HEALTH),
    ("path - /readyz/poststarthook/", HEALTH),
    ("objects root Workspace /acme /status/conditions", RACE),
    ("objects root:acme schema /spec/versions/0/schema/", CEL),
    ("objects system:bound-crds * /gadgets.example.dev /spec/versions/0/schema/", CEL),
    ("objects root:acme:team-a ConfigMap default/c1 /metadata/labels/claimed", CLAIMS),
    ("objects root:acme:team-a ConfigMap default/kube-root-ca.crt /metadata/labels", CLAIMS),
    ("objects root:acme:team-a ConfigMap kube-system/kube-root-ca.crt /metadata/labels", CLAIMS),
    ("objects root:acme:team-a APIBinding /gadgets /metadata/generation", CLAIMS),
    ("objects root:acme:team-a APIBinding /gadgets /status/appliedPermissionClaims", CLAIMS),
    ("objects root:acme:team-a APIBinding /gadgets /status/conditions/4", CLAIMS),
    ("keys - /registry/coordination.k8s.io/leases/system:admin/kube-system/apiserver-", LEASE),
];

#[test]
fn a_new_server_is_as_go_kcps() {
    let mut server = Server::start();
    let words = set_up(&server);
    let deadline = Instant::now() + PATIENCE;
    // Controllers may still be at work: what is still different when patience ends is different.
    let mut found = loop {
        let found = differences(&server, &words);
        if found.iter().all(|d| reason(d).is_some()) || Instant::now() > deadline {
            break found;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    server.stop();
    found.extend(keys::differences(&server.root.join("ferroplane.db"), &words));

    let unknown: Vec<&str> =
        found.iter().filter(|d| reason(d).is_none()).map(String::as_str).collect();
    assert!(unknown.is_empty(), "{} differ:\n{}", unknown.len(), unknown.join("\n"));
    let unused = DIFFERENT.iter().filter(|(row, _)| !found.iter().any(|d| is_of(row, d)));
    let unused: Vec<&str> = unused.map(|(row, _)| *row).collect();
    assert!(unused.is_empty(), "these rows differ no longer:\n{}", unused.join("\n"));
}

fn reason(difference: &str) -> Option<&'static str> {
    DIFFERENT.iter().find(|(row, _)| is_of(row, difference)).map(|(_, why)| *why)
}

fn is_of(row: &str, difference: &str) -> bool {
    let (head, part) = row.split_once('*').unwrap_or((row, ""));
    difference.starts_with(head) && difference.contains(part)
}

fn differences(server: &Server, words: &Words) -> Vec<String> {
    let mut out = discovery::differences(server, words);
    out.extend(openapi::differences(server));
    out.extend(objects::differences(server, words));
    out
}

/// A file of facts.
fn facts(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oracle/golden").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Lines of one side only; equal lines are counted.
fn lines_differ(what: &str, ours: Vec<String>, theirs: Vec<String>) -> Vec<String> {
    let mut balance: BTreeMap<String, i32> = BTreeMap::new();
    ours.into_iter().for_each(|line| *balance.entry(line).or_default() += 1);
    theirs.into_iter().for_each(|line| *balance.entry(line).or_default() -= 1);
    let of = |(line, n): (String, i32)| match n {
        0 => None,
        1.. => Some(format!("{what} + {line}")),
        _ => Some(format!("{what} - {line}")),
    };
    balance.into_iter().filter_map(of).collect()
}

/// A GET as a master, who sees all clusters.
fn get(server: &Server, cluster: &str, path: &str) -> Value {
    let answer = server.master("GET", &format!("/clusters/{cluster}{path}"), &Value::Null);
    assert_eq!(answer.code, 200, "{cluster} {path}: {}", answer.text());
    answer.json()
}

/// The workspaces of the facts with what is in them. Answers the words for what is random here.
fn set_up(server: &Server) -> Words {
    let file = server.root.with_extension("yaml");
    let acme = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "acme"},
        "spec": {"type": {"name": "organization", "path": "root"}},
    });
    std::fs::write(&file, acme.to_string()).expect("write a file");
    server.kubectl_ok(&["apply", "-f", file.to_str().expect("a path")]);
    let acme = ready(server, "root", "acme");
    let workspaces = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let team = json!({
        "metadata": {"name": "team-a"}, "spec": {"type": {"name": "universal", "path": "root"}},
    });
    let create = |cluster: &str, path: &str, kind: &str, mut body: Value| {
        let parts: Vec<&str> = path.split('/').collect();
        let version = if parts[1] == "api" { parts[2].into() } else { parts[2..4].join("/") };
        body["apiVersion"] = version.into();
        body["kind"] = kind.into();
        let answer = server.admin("POST", &format!("/clusters/{cluster}{path}"), &body);
        assert_eq!(answer.code, 201, "{path}: {}", answer.text());
    };
    create("root:acme", workspaces, "Workspace", team);
    let team = ready(server, "root:acme", "team-a");
    for (path, kind, body) in objects::exported() {
        create("root:acme", path, kind, body);
    }
    for (path, kind, body) in objects::of_team() {
        create("root:acme:team-a", path, kind, body);
    }
    let mut label = String::new();
    server.until("the APIs are served", || {
        let binding = get(server, &team, "/apis/apis.kcp.io/v1alpha2/apibindings/gadgets");
        label = binding["metadata"]["labels"]["internal.apis.kcp.io/export"].as_str()?.to_owned();
        let served = |path: &str| {
            let path = format!("/clusters/{team}{path}");
            server.master("GET", &path, &Value::Null).code == 200
        };
        let bound = binding["status"]["phase"] == "Bound";
        (bound && objects::CUSTOM.iter().all(|(path, ..)| served(path))).then_some(())
    });
    for (path, kind, name, spec) in objects::CUSTOM {
        let spec: Value = serde_json::from_str(spec).expect("a constant");
        create("root:acme:team-a", path, kind, json!({"metadata": {"name": name}, "spec": spec}));
    }
    Words::new([
        (acme, "<root:acme>"),
        (team, "<root:acme:team-a>"),
        (label, "<gadgets>"),
        (server.url.trim_start_matches("https://").to_owned(), "<address>"),
    ])
}

/// The logical cluster of a workspace, once it is ready.
fn ready(server: &Server, parent: &str, name: &str) -> String {
    let path = format!("/clusters/{parent}/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}");
    server.until("a workspace is Ready", || {
        let workspace = server.admin("GET", &path, &Value::Null).json();
        let ready = workspace["status"]["phase"] == "Ready";
        ready.then(|| workspace["spec"]["cluster"].as_str().expect("a cluster").to_owned())
    })
}
