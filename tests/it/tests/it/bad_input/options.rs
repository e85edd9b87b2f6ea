//! Options that are none, and selectors that are too much.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use it::Server;
use serde_json::json;

use super::*;

#[test]
fn row_14_label_selectors() {
    let rig = Rig::start();
    for selector in [
        "a+in+((",
        "a+in",
        "a+in+(b",
        "a==b==c",
        "a,,b",
        "!",
        "a+notin+()x",
        "=b",
        "A_/b=c",
        "a=b%20c",
        "-a=b",
        "a=-b",
    ] {
        for verb in ["", "&watch=1"] {
            let answer = rig.get(&format!("{CONFIG_MAPS}?labelSelector={selector}{verb}"));
            rig.check(selector, &answer, "400 [BadRequest]");
        }
        let target = format!("{CONFIG_MAPS}?labelSelector={selector}");
        rig.check(selector, &rig.ask("DELETE", &target, &[], b""), "400 [BadRequest]");
    }
    let long = format!("a={}", "x".repeat(64));
    let answer = rig.get(&format!("{CONFIG_MAPS}?labelSelector={long}"));
    rig.check("a value of 64 characters", &answer, "400 [BadRequest]");

    for n in 0..100 {
        let labels = json!({"aaa": "1", "k": format!("v{n}")});
        let made = rig
            .post(CONFIG_MAPS, &json!({"metadata": {"name": format!("m{n}"), "labels": labels}}));
        assert_eq!(made.code, 201, "{}", made.text());
    }
    let key = |n: usize| {
        [n / 676 % 26, n / 26 % 26, n % 26]
            .map(|d| char::from(b'a' + d as u8))
            .iter()
            .collect::<String>()
    };
    let terms = |prefix: &str| {
        (1..=10_000).map(|n| format!("{prefix}{}", key(n))).collect::<Vec<_>>().join(",")
    };
    let values = (0..10_000).map(|n| format!("{n}")).collect::<Vec<_>>().join(",");
    for (what, selector, found) in [
        ("10,000 keys that are not there", terms("!"), 100),
        ("10,000 keys that are", terms(""), 0),
        ("10,000 values", format!("k+in+({values})"), 0),
        ("10,000 values that it is not", format!("k+notin+({values})"), 100),
    ] {
        let target = format!("{CONFIG_MAPS}?limit=500&labelSelector={selector}");
        let (answer, cost) = rig.server.cost(|| rig.get(&target));
        assert_eq!(answer.code, 200, "{what}: {}", answer.text());
        cost.assert_below(what, 100, PEAK_MIB);
        let items = answer.json()["items"].as_array().map_or(0, Vec::len);
        // The root CA's ConfigMap has no labels.
        assert!((found..=found + 2).contains(&items), "{what}: {items}");
        rig.server.assert_alive(what);
    }
}

#[test]
fn row_14_heads_that_are_too_long() {
    let rig = Rig::start();
    let mib = "x".repeat(1 << 20);
    let cost = rig.checked_cost("a request line", "431", || {
        rig.get(&format!("{CONFIG_MAPS}?labelSelector={mib}"))
    });
    cost.assert_below("a request line of 1 MiB", 30, PEAK_MIB);
    let cost = rig
        .checked_cost("a header", "431", || rig.ask("GET", CONFIG_MAPS, &[("X-Long", &mib)], b""));
    cost.assert_below("a header of 1 MiB", 30, PEAK_MIB);
    let many = vec![("X-Many", "x"); 100_000];
    let cost = rig.checked_cost("many headers", "431", || rig.ask("GET", CONFIG_MAPS, &many, b""));
    cost.assert_below("100,000 headers", 10, PEAK_MIB);
    // Much, but not too much.
    let half = "x".repeat(1 << 19);
    let answer = rig.ask("GET", CONFIG_MAPS, &[("X-Long", &half)], b"");
    assert_eq!(answer.code, 200, "{}", answer.text());
}

#[test]
fn row_15_options() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object"}));
    for (target, query, want) in [
        (CONFIG_MAPS, "fieldSelector=spec.x%3Da", "400 [BadRequest]"),
        (CONFIG_MAPS, "fieldSelector=data.a%3Da", "400 [BadRequest]"),
        (CONFIG_MAPS, "fieldSelector=metadata.name", "400 [BadRequest]"),
        (CONFIG_MAPS, "fieldSelector=a%3D%3D%3Db", "400 [BadRequest]"),
        (CONFIG_MAPS, "fieldSelector=metadata.labels%3Da", "400 [BadRequest]"),
        (WIDGETS, "fieldSelector=spec.a%3Da", "400 [BadRequest]"),
        (CONFIG_MAPS, "limit=abc", "400 [BadRequest]"),
        (CONFIG_MAPS, "limit=1.5", "400 [BadRequest]"),
        (CONFIG_MAPS, "limit=99999999999999999999", "400 [BadRequest]"),
        (CONFIG_MAPS, "timeoutSeconds=abc", "400 [BadRequest]"),
        (CONFIG_MAPS, "timeout=abc", "400 [BadRequest]"),
        (CONFIG_MAPS, "resourceVersion=1&resourceVersionMatch=Nope", "422 [Invalid]"),
        (CONFIG_MAPS, "resourceVersionMatch=Exact", "422 [Invalid]"),
        (CONFIG_MAPS, "resourceVersion=0&resourceVersionMatch=Exact", "422 [Invalid]"),
        (CONFIG_MAPS, "resourceVersion=1&resourceVersionMatch=Exact&continue=x", "422 [Invalid]"),
        (CONFIG_MAPS, "sendInitialEvents=true", "422 [Invalid]"),
        (CONFIG_MAPS, "watch=1&sendInitialEvents=true", "422 [Invalid]"),
        (CONFIG_MAPS, "watch=1&resourceVersionMatch=Nope", "422 [Invalid]"),
    ] {
        rig.check(query, &rig.get(&format!("{target}?{query}")), want);
    }
    let body = json!({"metadata": {"name": "options"}});
    for (query, want) in [
        ("dryRun=Some", "422 [Invalid]"),
        ("fieldValidation=Nope", "422 [Invalid]"),
        ("fieldManager=a%01b", "422 [Invalid]"),
    ] {
        rig.check(query, &rig.post(&format!("{CONFIG_MAPS}?{query}"), &body), want);
    }
    for (query, want) in [
        ("gracePeriodSeconds=abc", "400 [BadRequest]"),
        ("propagationPolicy=Nope", "422 [Invalid]"),
        ("propagationPolicy=Background&orphanDependents=true", "422 [Invalid]"),
    ] {
        let target = format!("{CONFIG_MAPS}/kube-root-ca.crt?{query}");
        rig.check(query, &rig.ask("DELETE", &target, &[], b""), want);
    }
}

fn token(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[test]
fn row_16_continue_tokens_that_are_forged() {
    let rig = Rig::start();
    for n in 0..3 {
        let made = rig.post(CONFIG_MAPS, &json!({"metadata": {"name": format!("m{n}")}}));
        assert_eq!(made.code, 201, "{}", made.text());
    }
    let list = |token: &str| rig.get(&format!("{CONFIG_MAPS}?limit=1&continue={token}"));
    let first = rig.get(&format!("{CONFIG_MAPS}?limit=1")).json();
    let good = first["metadata"]["continue"].as_str().expect("a token").to_owned();
    assert_eq!(list(&good).code, 200);
    let wire: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&good).expect("base64")).expect("JSON");
    let with = |key: &str, value: Value| {
        let mut forged = wire.clone();
        forged[key] = value;
        token(&forged)
    };
    let start = |text: &str| with("start", text.into());
    for (what, forged) in [
        ("another cluster", start("system:admin/default/m0\0")),
        ("another workspace", start("2uqs24hp209i7ju0/default/m0\0")),
        ("another namespace", start("root/kube-system/m0\0")),
        ("a step up", start("root/default/../../system:admin/default/m0\0")),
        ("two steps up", start("../../secrets/system:admin\0")),
        ("a dot name", start("root/default/..\0")),
        ("a path", start("root:acme/default/m0\0")),
        ("all clusters", start("*/default/m0\0")),
        ("no cluster", start("default/m0\0")),
        ("nothing", start("")),
        ("an encoded slash", start("root/default/a%2Fb\0")),
        ("a NUL inside", start("root/default/a\0b\0")),
        ("revision 0", with("rv", 0.into())),
        ("revision -7", with("rv", (-7).into())),
        ("a revision that is none", with("rv", "x".into())),
        ("another version", with("v", "meta.k8s.io/v2".into())),
        ("no JSON", URL_SAFE_NO_PAD.encode("{")),
        ("a number", URL_SAFE_NO_PAD.encode("7")),
        ("no base64", "***".into()),
        ("a path in the clear", "..%2F..%2Fsecrets".replace("%2F", "_")),
        ("a token of 60 KB", "A".repeat(60_000)),
    ] {
        rig.check(what, &list(&forged), "400 [BadRequest]");
    }
    // A token that was given in one workspace is none in another, nor for all of them.
    let cluster = rig.server.workspace("other");
    let other = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
    let answer = rig.get(&format!("{other}?limit=1&continue={good}"));
    rig.check("the token of another workspace", &answer, "400 [BadRequest]");
    let answer = rig.get(&format!(
        "/clusters/root/api/v1/namespaces/kube-system/configmaps?limit=1&continue={good}"
    ));
    rig.check("the token of another namespace", &answer, "400 [BadRequest]");
}

/// A server whose history before its newest revision is gone, and that revision. kine would do
/// the same: the compact revision is a column of its one row.
fn compacted() -> (tempfile::TempDir, Rig, i64) {
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let mut server = Server::start_in(&root, &[]).expect("start the server");
    server.stop();
    let store = rusqlite::Connection::open(root.join("ferroplane.db")).expect("open the store");
    let head = |sql: &str| store.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
    let newest = head("SELECT MAX(id) FROM kine");
    let set = "UPDATE kine SET prev_revision = ?1 WHERE name = 'compact_rev_key'";
    assert_eq!(store.execute(set, [newest]).expect("compact"), 1);
    drop(store);
    (dir, Rig::of(Server::start_in(&root, &[]).expect("start again")), newest)
}

#[test]
fn row_16_and_17_history_that_is_gone() {
    let (_dir, rig, compact) = compacted();
    for n in 0..3 {
        let made = rig.post(CONFIG_MAPS, &json!({"metadata": {"name": format!("m{n}")}}));
        assert_eq!(made.code, 201, "{}", made.text());
    }
    let old =
        token(&json!({"v": "meta.k8s.io/v1", "rv": compact - 5, "start": "root/default/m0\0"}));
    let expired = rig.get(&format!("{CONFIG_MAPS}?limit=1&continue={old}"));
    rig.check("an expired token", &expired, "410 [Expired]");
    let fresh = expired.json()["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    assert!(!fresh.is_empty(), "{}", expired.text());
    let page = rig.get(&format!("{CONFIG_MAPS}?limit=1&continue={fresh}"));
    assert_eq!(page.code, 200, "{}", page.text());
    assert_eq!(page.json()["items"][0]["metadata"]["name"], "m1");

    let old = compact - 5;
    for query in [
        format!("resourceVersion={old}&resourceVersionMatch=Exact"),
        format!("resourceVersion={old}&limit=1"),
    ] {
        rig.check(&query, &rig.get(&format!("{CONFIG_MAPS}?{query}")), "410 [Expired]");
    }
    let watch = rig.get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=5&resourceVersion={old}"));
    assert_eq!(watch.code, 200, "{}", watch.text());
    let lines: Vec<Value> =
        watch.text().lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["type"], "ERROR");
    assert_eq!(lines[0]["object"]["code"], 410);
    assert_eq!(lines[0]["object"]["reason"], "Expired");
    rig.server.assert_alive("a watch of what is gone");
}

#[test]
fn row_17_resource_versions() {
    let rig = Rig::start();
    let one = format!("{CONFIG_MAPS}/kube-root-ca.crt");
    for version in ["abc", "-1", "1.5", "1e3", "0x10", "99999999999999999999999"] {
        for target in [&one, &CONFIG_MAPS.to_owned(), &format!("{CONFIG_MAPS}?watch=1")] {
            let joint = if target.contains('?') { "&" } else { "?" };
            let target = format!("{target}{joint}resourceVersion={version}");
            rig.check(&target, &rig.get(&target), "400 [BadRequest]");
        }
    }
    let far = 1i64 << 40;
    for query in [
        format!("resourceVersion={far}"),
        format!("resourceVersion={far}&resourceVersionMatch=NotOlderThan"),
        format!("resourceVersion={far}&resourceVersionMatch=Exact"),
    ] {
        let answer = rig.get(&format!("{CONFIG_MAPS}?{query}"));
        rig.check(&query, &answer, "504 [Timeout]");
        let causes = &answer.json()["details"]["causes"];
        assert_eq!(causes[0]["reason"], "ResourceVersionTooLarge", "{query}: {}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{query}");
    }
    let answer = rig.get(&format!("{one}?resourceVersion={far}"));
    rig.check("a get far ahead", &answer, "504 [Timeout]");
    // A write that names a version compares it: what is no number equals none.
    for version in ["abc", "1", &far.to_string()] {
        let object = json!({"metadata": {"name": "kube-root-ca.crt", "resourceVersion": version}});
        let answer = rig.put("PUT", &one, JSON, object.to_string());
        assert!(matches!(answer.code, 400 | 409 | 422), "{version}: {}", answer.text());
        rig.server.assert_alive(version);
    }
    let made = json!({"metadata": {"name": "versioned", "resourceVersion": "5"}});
    let answer = rig.post(CONFIG_MAPS, &made);
    assert!(matches!(answer.code, 400 | 500), "{}", answer.text());
}
