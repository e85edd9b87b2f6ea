//! No route but health is open: every route that the program has, found by asking it.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// Open to everyone, as in kcp.
const OPEN: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// What no document tells of: other programs' routes, and checks of health by name.
const UNLISTED: &[&str] = &[
    "/livez/ping",
    "/readyz/ping",
    "/healthz/ping",
    "/readyz?verbose",
    "/healthz/poststarthook/x",
    "/debug/pprof/",
    "/debug/pprof/profile",
    "/debug/flags/v",
    "/debug/api_priority_and_fairness/dump_queues",
    "/logs",
    "/logs/",
    "/metrics/slis",
    "/statusz",
    "/flagz",
    "/configz",
    "/ui",
    "/index.html",
    "/favicon.ico",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/swagger.json",
    "/swaggerapi",
    "/services/cache/shards/root/clusters/root/api",
    "/services/cache/api",
    "/services/apiexport/root/x/clusters/*/api",
    "/services/initializingworkspaces/root:x/clusters/*/apis",
    "/services/terminatingworkspaces/root:x/clusters/*/apis",
    "/services/replication/root/x",
    "/services/",
    "/services",
    "/clusters/",
    "/clusters",
    "/clusters/root:none/api",
    "/proxy",
    "/api/v1/nodes/x/proxy/",
    "/api/v1/namespaces/default/pods/x/exec",
];

/// Every path that discovery and OpenAPI tell a master of, in one cluster.
fn routes(rig: &Rig, cluster: &str) -> BTreeSet<String> {
    let get = |path: &str| {
        let answer =
            rig.server.send("GET", &format!("{cluster}{path}"), Some(&rig.master), &[], b"");
        assert_eq!(answer.code, 200, "{cluster}{path}: {}", answer.text());
        answer.json()
    };
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect()
    };
    let mut found: BTreeSet<String> = texts(&get("/")["paths"]).into_iter().collect();
    let mut versions = vec!["/api/v1".to_owned()];
    for group in get("/apis")["groups"].as_array().expect("groups") {
        found.insert(format!("/apis/{}", group["name"].as_str().expect("a name")));
        let of_group = group["versions"].as_array().into_iter().flatten();
        versions.extend(
            of_group.map(|v| format!("/apis/{}", v["groupVersion"].as_str().unwrap_or_default())),
        );
    }
    for version in versions {
        for resource in get(&version)["resources"].as_array().expect("resources") {
            let name = resource["name"].as_str().expect("a name");
            let (name, sub) = name.split_once('/').map_or((name, None), |(n, s)| (n, Some(s)));
            let scope = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            let collection = format!("{version}{scope}/{name}");
            if let Some(sub) = sub {
                found.insert(format!("{collection}/x/{sub}"));
            } else {
                found.extend([format!("{version}/{name}"), format!("{collection}/x"), collection]);
            }
        }
        found.insert(version);
    }
    let openapi = get("/openapi/v3");
    found.extend(
        openapi["paths"].as_object().expect("paths").keys().map(|p| format!("/openapi/v3/{p}")),
    );
    found.extend(["/openapi/v2", "/version", "/metrics", "/", "/api", "/apis"].map(str::to_owned));
    found
}

#[test]
fn bar_42_only_health_is_open() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object"}));
    let mut targets = BTreeSet::new();
    for cluster in ["", "/clusters/root", "/clusters/system:admin", "/clusters/*"] {
        let of =
            if cluster == "/clusters/*" || cluster.is_empty() { "/clusters/root" } else { cluster };
        targets.extend(routes(&rig, of).into_iter().map(|path| format!("{cluster}{path}")));
    }
    assert!(targets.len() > 500, "only {} routes were found", targets.len());
    targets.extend(UNLISTED.iter().map(|target| (*target).to_owned()));
    let mut raw = rig.server.connect("http/1.1");
    let mut ask = |method: &str, target: &str| {
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        raw.write(head.as_bytes());
        match raw.try_answer() {
            Some(answer) => answer,
            None => {
                raw = rig.server.connect("http/1.1");
                raw.write(head.as_bytes());
                raw.answer()
            }
        }
    };
    let health = |target: &str| {
        let path = target.split('?').next().unwrap_or_default();
        OPEN.iter().any(|open| path.ends_with(open))
    };
    let mut open = BTreeSet::new();
    for target in &targets {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = ask(method, target);
            match answer.code {
                200 if method == "GET" => drop(open.insert(target.clone())),
                401 | 403 => {}
                // A workspace has no metrics, whoever asks.
                501 if target.starts_with("/clusters/") && target.ends_with("/metrics") => {}
                // Health is open, and takes nothing else.
                405 if health(target) => {}
                code => panic!("{method} {target}: {code} {}", answer.text()),
            }
        }
    }
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    assert!(open.iter().all(|target| health(target)), "{open:?}");
    for path in OPEN {
        assert_eq!(ask("GET", path).code, 200, "{path}");
    }
}
