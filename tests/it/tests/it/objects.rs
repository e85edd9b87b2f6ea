//! An API author's day: a CRD, its objects, apply, patch, scale, tables, conflicts.

use it::Server;
use serde_json::{Value, json};

const CRD: &str = r#"{
 "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
 "metadata": {"name": "lamps.home.example.dev"},
 "spec": {
  "group": "home.example.dev", "scope": "Namespaced",
  "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList", "shortNames": ["lp"]},
  "versions": [{"name": "v1", "served": true, "storage": true,
   "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.bulbs", "statusReplicasPath": ".status.bulbs"}},
   "additionalPrinterColumns": [{"name": "Watts", "type": "integer", "jsonPath": ".spec.watts"}],
   "schema": {"openAPIV3Schema": {"type": "object", "properties": {
    "spec": {"type": "object", "required": ["watts"], "properties": {
     "watts": {"type": "integer", "minimum": 1, "maximum": 100},
     "bulbs": {"type": "integer", "default": 1},
     "color": {"type": "string", "enum": ["warm", "cold"], "default": "warm"}}},
    "status": {"type": "object", "properties": {"bulbs": {"type": "integer"}}}}}}}]}}"#;

const LAMP: &str = r#"{"apiVersion": "home.example.dev/v1", "kind": "Lamp",
 "metadata": {"name": "desk", "namespace": "default"}, "spec": {"watts": 40}}"#;

fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("write a file");
    path.display().to_string()
}

#[test]
fn a_crd_and_its_objects() {
    let server = Server::start();
    server.kubectl_ok(&["create", "workspace", "acme", "--enter"]);
    let dir = tempfile::tempdir().expect("make a folder");
    let (crd, lamp) = (file(&dir, "crd.json", CRD), file(&dir, "lamp.json", LAMP));
    server.kubectl_ok(&["apply", "-f", &crd]);
    server.kubectl_ok(&[
        "wait",
        "--for=condition=Established",
        "crd/lamps.home.example.dev",
        "--timeout=20s",
    ]);
    assert_eq!(server.kubectl_ok(&["apply", "-f", &lamp]), "lamp.home.example.dev/desk created\n");
    assert_eq!(
        server.kubectl_ok(&["apply", "-f", &lamp]),
        "lamp.home.example.dev/desk unchanged\n"
    );
    assert_eq!(server.kubectl_ok(&["diff", "-f", &lamp]), "");
    let spec = server.kubectl_ok(&["get", "lp", "desk", "-o", "jsonpath={.spec}"]);
    assert_eq!(
        serde_json::from_str::<Value>(&spec).expect("JSON"),
        json!({"watts": 40, "bulbs": 1, "color": "warm"})
    );
    assert!(server.kubectl_ok(&["get", "lamps"]).starts_with("NAME   WATTS\ndesk   40\n"));
    server.kubectl_ok(&["scale", "lamp", "desk", "--replicas=3"]);
    assert_eq!(
        server.kubectl_ok(&[
            "get",
            "lamp",
            "desk",
            "-o",
            "jsonpath={.spec.bulbs}/{.metadata.generation}"
        ]),
        "3/2"
    );
    server.kubectl_ok(&[
        "patch",
        "lamp",
        "desk",
        "--type=json",
        "-p",
        r#"[{"op":"replace","path":"/spec/watts","value":5}]"#,
    ]);
    let bad = file(&dir, "bad.json", &LAMP.replace("40", "400").replace("desk", "bad"));
    let (told, code) = server.kubectl(&["create", "-f", &bad]);
    let want = "The Lamp \"bad\" is invalid: spec.watts: Invalid value: 400: spec.watts in body should be less than or equal to 100\n";
    assert_eq!((told.as_str(), code), (want, 1));
    let unknown =
        file(&dir, "unknown.json", &LAMP.replace("\"watts\": 40", "\"watts\": 40, \"shade\": 1"));
    let (told, code) = server.kubectl(&["replace", "-f", &unknown]);
    assert_eq!(code, 1);
    assert!(told.contains("strict decoding error: unknown field \"spec.shade\""), "{told}");
    server.kubectl_ok(&["delete", "crd", "lamps.home.example.dev"]);
    // kubectl keeps what it has discovered until it looks again.
    server.kubectl_ok(&["api-resources"]);
    let (told, _) = server.kubectl(&["get", "lamps"]);
    assert_eq!(told, "error: the server doesn't have a resource type \"lamps\"\n");
}

#[test]
fn conflicts_and_preconditions() {
    let server = Server::start();
    let path = "/clusters/root/api/v1/namespaces/default/configmaps";
    let made =
        server.admin("POST", path, &json!({"metadata": {"name": "c"}, "data": {"a": "1"}})).json();
    let mut newer = made.clone();
    newer["data"]["a"] = "2".into();
    assert_eq!(server.admin("PUT", &format!("{path}/c"), &newer).code, 200);
    let stale = server.admin("PUT", &format!("{path}/c"), &newer);
    assert_eq!(
        stale.refusal(),
        "409 Conflict: Operation cannot be fulfilled on configmaps \"c\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    let again = server.admin("POST", path, &json!({"metadata": {"name": "c"}}));
    assert_eq!(again.refusal(), "409 AlreadyExists: configmaps \"c\" already exists");
    let wrong = json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}});
    assert_eq!(server.admin("DELETE", &format!("{path}/c"), &wrong).code, 409);
    assert_eq!(server.admin("DELETE", &format!("{path}/c"), &Value::Null).code, 200);
    assert_eq!(server.admin("GET", &format!("{path}/c"), &Value::Null).code, 404);
}

#[test]
fn secrets_are_kept_as_kubernetes_keeps_them() {
    let server = Server::start();
    let path = "/clusters/root/api/v1/namespaces/default/secrets";
    let made = server
        .admin("POST", path, &json!({"metadata": {"generateName": "s-"}, "stringData": {"p": "x"}}))
        .json();
    assert_eq!((&made["data"]["p"], &made["type"]), (&json!("eA=="), &json!("Opaque")));
    assert!(made.get("stringData").is_none());
    assert!(
        made["metadata"]["name"].as_str().is_some_and(|n| n.starts_with("s-") && n.len() == 7),
        "{made}"
    );
}

#[test]
fn unbuilt_parts_say_so() {
    let server = Server::start();
    let lists =
        "/clusters/root/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(server.admin("GET", lists, &Value::Null).code, 200);
    let refused = server.admin("POST", lists, &json!({"metadata": {"name": "x"}}));
    assert_eq!(refused.code, 501, "{}", refused.text());
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    assert_eq!(
        server
            .admin("POST", "/clusters/root/apis/authentication.k8s.io/v1/tokenreviews", &review)
            .code,
        501
    );
    let foreground =
        "/clusters/root/api/v1/namespaces/default/configmaps/x?propagationPolicy=Foreground";
    assert_eq!(server.admin("DELETE", foreground, &Value::Null).code, 501);
    assert_eq!(
        server.master("GET", "/services/apiexport/root/x/clusters/*/api", &Value::Null).code,
        501
    );
}
