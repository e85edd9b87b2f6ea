//! Paths beside resources: issuer discovery, status pages, and what is not built.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use it::Server;
use serde_json::{Value, json};

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

#[test]
fn the_issuer_is_discovered() {
    let mut server = Server::start();
    let address = server.url.trim_start_matches("https://").to_owned();
    let configuration =
        server.admin("GET", &format!("/clusters/root{CONFIGURATION}"), &Value::Null);
    assert_eq!(
        configuration.json(),
        json!({
            "issuer": "https://kcp.default.svc",
            "jwks_uri": format!("https://{address}{KEYS}"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    );
    let keys = server.admin("GET", &format!("/clusters/root{KEYS}"), &Value::Null);
    assert_eq!(keys.header("content-type"), Some("application/jwk-set+json"));
    let keys = keys.json();
    let key = &keys["keys"][0];
    let bytes = |name: &str| {
        let text = key[name].as_str().expect("text");
        URL_SAFE_NO_PAD.decode(text).expect("base64")
    };
    assert_eq!([bytes("x").len(), bytes("y").len(), bytes("kid").len()], [32, 32, 32]);
    // Whom RBAC does not let is refused: masters alone read the path outside of every cluster.
    assert_eq!(server.admin("GET", KEYS, &Value::Null).code, 403);
    assert_eq!(server.master("GET", KEYS, &Value::Null).json(), keys);
    // The key stays.
    server.stop();
    let again = Server::start_in(&server.root, &[]).expect("start again");
    assert_eq!(again.master("GET", KEYS, &Value::Null).json(), keys);
}

#[test]
fn status_pages() {
    let server = Server::start();
    let statusz = server.master("GET", "/statusz", &Value::Null);
    assert_eq!(statusz.code, 406, "{}", statusz.text());
    let token = server.token("shard-admin");
    let text = server.request("GET", "/statusz", Some(&token), &[], b"").expect("an answer").text();
    let paths = text.lines().find(|l| l.starts_with("Paths: ")).expect("a line of paths");
    assert_eq!(paths, "Paths: /healthz /livez /metrics /readyz /statusz /version");
    let slis = server.master("GET", "/metrics/slis", &Value::Null).text();
    assert!(slis.contains("kubernetes_healthcheck{name=\"ping\",type=\"readyz\"} 1\n"), "{slis}");
    assert_eq!(server.master("GET", "/flagz", &Value::Null).code, 404);
}

#[test]
fn kubectl_of_an_unknown_kind() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("make a folder");
    let path = dir.path().join("thing.json");
    let thing =
        json!({"apiVersion": "nope.example.dev/v1", "kind": "Thing", "metadata": {"name": "x"}});
    std::fs::write(&path, thing.to_string()).expect("write a file");
    let path = path.display().to_string();
    let (told, code) = server.kubectl(&["create", "-f", &path]);
    assert_eq!(code, 1);
    expect![[r#"
        error: error validating "thing.json": error validating data: an error on the server ("OpenAPI v2 is not served by this version of Ferroplane; kubectl asks for it when the server has no such kind") has prevented the request from succeeding; if you choose to ignore these errors, turn validation off with --validate=false
    "#]].assert_eq(&told.replace(&path, "thing.json"));
    let (told, code) = server.kubectl(&["create", "--validate=false", "-f", &path]);
    assert_eq!(code, 1);
    expect![[r#"
        error: resource mapping not found for name: "x" namespace: "" from "thing.json": no matches for kind "Thing" in version "nope.example.dev/v1"
        ensure CRDs are installed first
    "#]].assert_eq(&told.replace(&path, "thing.json"));
}
