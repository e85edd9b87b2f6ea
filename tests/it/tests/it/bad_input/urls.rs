//! Targets that two programs could read differently, and clusters that are none.
//!
//! Who may not know a workspace gets the same bytes whether it exists or not; who may see its
//! parent gets the truth, which for a name that is none is 400.

use it::Server;
use serde_json::json;

use super::*;

/// A user without any right, beside the admins.
const TENANT: &str = "tenant-token";

fn with_tenant() -> (tempfile::TempDir, Rig) {
    let dir = tempfile::tempdir().expect("make a folder");
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, format!("{TENANT},tenant,t1,\"tenants\"\n")).expect("write the tokens");
    let server = Server::start_with(&[&format!("--token-auth-file={}", tokens.display())]);
    (dir, Rig::of(server))
}

/// An answer without what differs each time.
fn bytes(answer: &Answer) -> (u16, String) {
    (answer.code, answer.text())
}

#[test]
fn row_18_encoded_letters_are_the_same_cluster() {
    let (_dir, rig) = with_tenant();
    rig.server.workspace("foo");
    let below = "/api/v1/namespaces/default";
    for user in [rig.admin.as_str(), rig.master.as_str(), TENANT] {
        let get = |cluster: &str| {
            bytes(&rig.server.send(
                "GET",
                &format!("/clusters/{cluster}{below}"),
                Some(user),
                &[],
                b"",
            ))
        };
        let plain = get("root:foo");
        assert_eq!(plain.0, if user == TENANT { 403 } else { 200 }, "{}", plain.1);
        for same in ["root%3Afoo", "root%3afoo", "%72oot:foo", "root:%66%6F%6f"] {
            assert_eq!(get(same), plain, "{same}");
        }
    }
    rig.server.assert_alive("encoded letters");
}

#[test]
fn row_19_targets_that_are_not_canonical() {
    let (_dir, rig) = with_tenant();
    let map = "api/v1/namespaces/default/configmaps";
    let targets = [
        format!("/clusters/root%2Fapi/v1/{map}"),
        format!("/clusters/root%2fapi/v1/{map}"),
        format!("/clusters/%2e%2e/{map}"),
        format!("/clusters/%2E./{map}"),
        format!("/clusters/../{map}"),
        format!("/clusters/./root/{map}"),
        format!("/clusters/root/../system:admin/{map}"),
        format!("/clusters/root/%2e%2e/system:admin/{map}"),
        format!("/clusters/root/./{map}"),
        format!("/clusters/root//{map}"),
        format!("/clusters//root/{map}"),
        format!("//clusters/root/{map}"),
        format!("/./clusters/root/{map}"),
        format!("/../clusters/root/{map}"),
        format!("/clusters/root/{map}/.."),
        format!("/clusters/root/{map}/."),
        format!("/clusters/root/{map}/a/.."),
        format!("/clusters/root\\..\\system:admin/{map}"),
        format!("/clusters/root/{map}\\a"),
        format!("/clusters/root/{map}/a%5Cb"),
        format!("/clusters/root/{map}/a%00"),
        format!("/clusters/root%00/{map}"),
        format!("/clusters/root/{map}/a%0A"),
        format!("/clusters/root/{map}/a%7f"),
        format!("/clusters/root/{map}/a%2Fb"),
        format!("/clusters/root/{map}/a%252f"),
        format!("/clusters/root%252f/{map}"),
        format!("/clusters/%2572oot/{map}"),
        format!("/clusters/root/{map}/%zz"),
        format!("/clusters/root/{map}/%"),
        format!("/clusters/root/{map}/%4"),
        format!("/clusters/root/{map}/%ff"),
        format!("/clusters/root/{map}/%c0%af"),
        format!("clusters/root/{map}"),
        "/healthz/..".to_owned(),
        "/healthz//ping".to_owned(),
        "//".to_owned(),
        "/services/..".to_owned(),
        "/services//apiexport".to_owned(),
    ];
    for target in &targets {
        for user in [Some(rig.admin.as_str()), Some(rig.master.as_str()), Some(TENANT), None] {
            let answer = rig.server.send("GET", target, user, &[], b"");
            assert_eq!(answer.code, 400, "{target} {user:?}: {}", answer.text());
            assert_eq!(answer.header("location"), None, "{target}");
        }
        rig.server.assert_alive(target);
    }
    // hyper refuses by itself what is no target at all; the parser's refusals carry a reason.
    let reasons = targets.iter().filter(|t| rig.get(t).verdict() == "400 [BadRequest]").count();
    assert!(reasons >= targets.len() - 4, "{reasons} of {}", targets.len());
}

#[test]
fn row_20_clusters_that_are_none() {
    let (_dir, rig) = with_tenant();
    let below = "/api/v1/namespaces";
    for target in [
        "/clusters/root/clusters/root/api",
        "/clusters/a/clusters/b/api",
        "/clusters/root/clusters/root:x/api/v1/secrets",
    ] {
        rig.check(target, &rig.get(target), "404 [NotFound]");
        let master = rig.server.send("GET", target, Some(&rig.master), &[], b"");
        rig.check(target, &master, "404 [NotFound]");
    }
    let hidden = rig.server.workspace("hidden");
    let path = format!("/clusters/{hidden}/apis/tenancy.kcp.io/v1alpha1/workspaces");
    let child = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "real"},
        "spec": {"type": {"name": "universal", "path": "root"}},
    });
    assert_eq!(rig.post(&path, &child).code, 201);
    rig.server.until("the child is Ready", || {
        let child = rig.get(&format!("{path}/real")).json();
        (child["status"]["phase"] == "Ready").then_some(())
    });
    // Below a workspace that the tenant may not enter.
    for below in [
        below,
        "/api",
        "/apis",
        "/openapi/v3",
        "/version",
        "/metrics-not",
        "/api/v1/namespaces/x/secrets/y",
    ] {
        let get = |cluster: &str, user: Option<&str>| {
            bytes(&rig.server.send("GET", &format!("/clusters/{cluster}{below}"), user, &[], b""))
        };
        for user in [Some(TENANT), None] {
            let real = get("root:hidden:real", user);
            assert!(matches!(real.0, 401 | 403), "{below}: {real:?}");
            for other in [
                "root:hidden:none",
                "root:hidden:",
                "root:hidden:NONE",
                "root:hidden:a_b",
                "root:hidden::x",
                "root:hidden:real:deeper",
                "root:hidden:none:deeper",
                "2uqs24hp209i7ju0",
            ] {
                assert_eq!(get(other, user), real, "{other}{below} as {user:?}");
            }
        }
    }
    // Who may see the parent is told.
    for (cluster, want) in [
        ("root:hidden:none", "404 [NotFound]"),
        ("root:hidden:NONE", "400 [BadRequest]"),
        ("root:hidden:", "400 [BadRequest]"),
        ("ROOT", "400 [BadRequest]"),
        ("root:", "400 [BadRequest]"),
        (":x", "400 [BadRequest]"),
        ("-", "400 [BadRequest]"),
        ("a..b", "400 [BadRequest]"),
        ("root::x", "400 [BadRequest]"),
        // A name alone is no child of any workspace: nobody but masters may know it.
        ("unknown", "403 [Forbidden]"),
    ] {
        rig.check(cluster, &rig.get(&format!("/clusters/{cluster}{below}")), want);
    }
    let long = format!("/clusters/{}{below}", "a:".repeat(30_000) + "a");
    let cost = rig.checked_cost("a path of 30,000 segments", "400 [BadRequest]", || rig.get(&long));
    cost.assert_below("a path of 30,000 segments", 30, PEAK_MIB);
}

#[test]
fn row_21_every_cluster_at_once() {
    let (_dir, rig) = with_tenant();
    let all = "/clusters/*/api/v1/secrets";
    for user in [Some(TENANT), Some(rig.admin.as_str()), None] {
        for target in [
            all,
            "/clusters/*/api/v1/namespaces/default/secrets",
            "/clusters/%2A/api/v1/secrets",
            "/clusters/*/api",
            "/clusters/*/openapi/v3",
        ] {
            let answer = rig.server.send("GET", target, user, &[], b"");
            assert!(matches!(answer.code, 401 | 403), "{target} {user:?}: {}", answer.text());
        }
    }
    let tenant = rig.server.send("GET", all, Some(TENANT), &[], b"");
    rig.check("a tenant", &tenant, "403 [Forbidden]");
    let master = |method: &str, target: &str, body: &str| {
        let headers = [("Content-Type", if method == "PATCH" { MERGE } else { JSON })];
        rig.server.send(method, target, Some(&rig.master), &headers, body.as_bytes())
    };
    assert_eq!(master("GET", all, "").code, 200);
    let named = "/clusters/*/api/v1/namespaces/default/secrets";
    let body = r#"{"metadata":{"name":"a"}}"#;
    for (method, target) in [
        ("POST", all),
        ("POST", named),
        ("DELETE", all),
        ("DELETE", named),
        ("GET", "/clusters/*/api/v1/namespaces/default/secrets/a"),
        ("PUT", "/clusters/*/api/v1/namespaces/default/secrets/a"),
        ("PATCH", "/clusters/*/api/v1/namespaces/default/secrets/a"),
        ("DELETE", "/clusters/*/api/v1/namespaces/default/secrets/a"),
    ] {
        let answer = master(method, target, body);
        rig.check(&format!("{method} {target}"), &answer, "405 [MethodNotAllowed]");
        assert!(answer.text().contains("in the `*` logical cluster"), "{}", answer.text());
    }
}
