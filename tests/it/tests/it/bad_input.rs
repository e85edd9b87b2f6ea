//! Hostile input gets its answer: URL confusion, unauthenticated routes, wrong options and bodies.

use it::Server;
use serde_json::{Value, json};

#[test]
fn urls_that_are_not_canonical_are_refused() {
    let server = Server::start();
    let token = server.token("shard-admin");
    for target in [
        "/clusters/root%2Fapi/v1/configmaps",
        "/clusters/%2e%2e/api/v1/configmaps",
        "/clusters/root//api/v1/configmaps",
        "/clusters/root/api/v1/namespaces/default/configmaps/a%2Fb",
        "/clusters/root/api/v1/namespaces/default/configmaps/a%00",
        "/clusters/root/api/v1/namespaces/default/configmaps/a%252f",
        "/clusters/root/api/v1/namespaces/default/configmaps/a%5Cb",
    ] {
        let answer = server.request("GET", target, Some(&token), &[], b"").expect("an answer");
        assert_eq!(answer.code, 400, "{target}: {}", answer.text());
    }
    let plain = server
        .request("GET", "/clusters/root/api/v1/namespaces", Some(&token), &[], b"")
        .expect("an answer");
    let encoded = server
        .request("GET", "/clusters/%72oot/api/v1/namespaces", Some(&token), &[], b"")
        .expect("an answer");
    assert_eq!(plain.body, encoded.body);
    let nested = server
        .request("GET", "/clusters/root/clusters/root/api", Some(&token), &[], b"")
        .expect("an answer");
    assert_eq!(nested.code, 404, "{}", nested.text());
}

#[test]
fn only_health_is_open() {
    let server = Server::start();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(server.get(path).expect("an answer").code, 200, "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/metrics",
        "/livez/ping",
        "/version",
        "/openapi/v3",
        "/openapi/v2",
        "/services/cache/shards/root/clusters/root/api",
        "/services/apiexport/root/x/clusters/*/api",
        "/clusters/root/api/v1/secrets",
        "/clusters/*/api/v1/secrets",
        "/clusters/system:admin/api/v1/secrets",
        "/debug/pprof/",
        "/clusters/root/apis",
        "/.well-known/openid-configuration",
    ] {
        let answer = server.get(path).expect("an answer");
        assert!(matches!(answer.code, 401 | 403), "{path}: {} {}", answer.code, answer.text());
    }
    let wrong =
        server.request("GET", "/clusters/root/api", Some("wrong"), &[], b"").expect("an answer");
    assert_eq!(wrong.refusal(), "401 Unauthorized: Unauthorized");
}

#[test]
fn options_and_bodies() {
    let server = Server::start();
    let base = "/clusters/root/api/v1/namespaces/default/configmaps";
    let get = |query: &str| server.admin("GET", &format!("{base}?{query}"), &Value::Null).code;
    assert_eq!(get("limit=abc"), 400);
    assert_eq!(get("resourceVersion=abc"), 400);
    assert_eq!(get("resourceVersion=1&resourceVersionMatch=Nope"), 422);
    assert_eq!(get("labelSelector=a+in+(("), 400);
    assert_eq!(get("fieldSelector=spec.x%3Da"), 400);
    assert_eq!(get("continue=Li4v"), 400);
    assert_eq!(get("resourceVersion=999999999999&resourceVersionMatch=NotOlderThan"), 504);
    let token = server.token("kcp-admin");
    let post = |kind: &str, body: &[u8]| {
        server
            .request("POST", base, Some(&token), &[("Content-Type", kind)], body)
            .expect("an answer")
            .code
    };
    assert_eq!(post("application/json", b"{"), 400);
    assert_eq!(
        post("application/json", b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":1e400}}"),
        400
    );
    assert_eq!(post("application/json", &[b'[', 0xff]), 400);
    assert_eq!(post("text/xml", b"<a/>"), 415);
    assert_eq!(post("application/vnd.kubernetes.protobuf", b"nope"), 400);
    assert_eq!(post("application/yaml", alias_bomb().as_bytes()), 400);
    assert_eq!(post("application/json", &vec![b' '; 3 * 1024 * 1024 + 1]), 413);
    let deep = [vec![b'['; 10_001], vec![b']'; 10_001]].concat();
    assert_eq!(post("application/json", &deep), 400);
    let long = json!({"metadata": {"name": "x".repeat(254)}});
    assert_eq!(server.admin("POST", base, &long).code, 422);
    assert_eq!(server.admin("POST", base, &json!({"metadata": {"name": "A"}})).code, 422);
    assert_eq!(server.admin("GET", &format!("{base}/.."), &Value::Null).code, 400);
    let other = json!({"metadata": {"name": "a", "namespace": "other"}});
    assert_eq!(server.admin("POST", base, &other).code, 400);
    let spoofed =
        json!({"metadata": {"name": "spoof", "annotations": {"kcp.io/cluster": "elsewhere"}}});
    let made = server.admin("POST", base, &spoofed).json();
    assert_eq!(made["metadata"]["annotations"]["kcp.io/cluster"], "root");
}

#[test]
fn identity_headers_of_clients_are_ignored() {
    let server = Server::start();
    let headers = [("X-Remote-User", "shard-admin"), ("X-Remote-Group", "system:masters")];
    let answer = server
        .request("GET", "/clusters/root/api/v1/secrets", None, &headers, b"")
        .expect("an answer");
    assert!(matches!(answer.code, 401 | 403), "{}", answer.text());
    let token = server.token("kcp-admin");
    for (name, value) in [
        ("Impersonate-Group", "system:masters"),
        (
            "Impersonate-Extra-Authorization.kcp.io%2Fwarrant",
            "{\"user\":\"x\",\"groups\":[\"system:masters\"]}",
        ),
    ] {
        let headers = [("Impersonate-User", "someone"), (name, value)];
        let answer = server
            .request("GET", "/clusters/root/api/v1/secrets", Some(&token), &headers, b"")
            .expect("an answer");
        assert_eq!(answer.code, 403, "{name}: {}", answer.text());
    }
}

fn alias_bomb() -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 9].join(",");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    text
}
