//! Row 2: bodies that nest too deep, and the deepest that is taken.

use it::Server;
use serde_json::json;

use super::*;

/// The most levels that a body may have (`fp_object::json::MAX_DEPTH`).
const MAX_DEPTH: usize = 2_500;

/// `levels` of one kind of container.
fn lists(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

fn maps(levels: usize) -> String {
    "{\"a\":".repeat(levels - 1) + "{}" + &"}".repeat(levels - 1)
}

#[test]
fn row_02_bodies_that_are_too_deep() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let dashes = |n: usize| format!("a: \n  {}x\n", "- ".repeat(n));
    let questions = |n: usize| format!("{}x: y\n", "? ".repeat(n));
    let unclosed = "[".repeat(3 << 20);
    let bodies = [
        ("JSON lists", JSON, lists(10_001)),
        ("JSON maps", JSON, maps(10_001)),
        ("JSON lists that do not end", JSON, unclosed.clone()),
        ("JSON maps that do not end", JSON, "{\"a\":".repeat(500_000)),
        (
            "JSON in an object",
            JSON,
            format!(r#"{{"metadata":{{"name":"d"}},"data":{}}}"#, lists(10_001)),
        ),
        ("YAML flow lists", YAML, lists(10_001)),
        ("YAML flow maps", YAML, maps(10_001)),
        ("YAML lists that do not end", YAML, unclosed),
        ("YAML block lists", YAML, dashes(10_001)),
        ("YAML block keys", YAML, questions(10_001)),
    ];
    for (what, media, body) in bodies {
        for target in [CONFIG_MAPS, WIDGETS] {
            let cost = rig
                .checked_cost(what, "400 [BadRequest]", || rig.put("POST", target, media, &body));
            cost.assert_below(what, 100, PEAK_MIB);
        }
    }
    let made = rig.post(WIDGETS, &widget("deep", &json!({"a": 1})));
    assert_eq!(made.code, 201, "{}", made.text());
    let deep = lists(10_001);
    for (media, patch) in [
        (MERGE, format!(r#"{{"spec":{{"a":{deep}}}}}"#)),
        (JSON_PATCH, format!(r#"[{{"op":"add","path":"/spec/a","value":{deep}}}]"#)),
    ] {
        let answer = rig.put("PATCH", &format!("{WIDGETS}/deep"), media, patch);
        rig.check(media, &answer, "400 [BadRequest]");
    }
    let review = "/clusters/root/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    rig.check("a review", &rig.put("POST", review, JSON, lists(10_001)), "400 [BadRequest]");
    let options = rig.put("DELETE", &format!("{WIDGETS}/deep"), JSON, maps(10_001));
    rig.check("delete options", &options, "400 [BadRequest]");
}

/// A patch may put a deep value deep into an object: the result is what counts.
#[test]
fn row_02_patches_that_make_an_object_too_deep() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let made = rig.post(WIDGETS, &widget("deep", &json!({})));
    assert_eq!(made.code, 201, "{}", made.text());
    let target = format!("{WIDGETS}/deep");
    let part = maps(MAX_DEPTH - 10);
    let below = "/a".repeat(MAX_DEPTH - 20);
    let add =
        |path: &str, value: &str| format!(r#"{{"op":"add","path":"{path}","value":{value}}}"#);
    let twice = format!("[{},{}]", add("/spec/a", &part), add(&format!("/spec{below}"), &part));
    let answer = rig.put("PATCH", &target, JSON_PATCH, twice);
    rig.check("a value in a value", &answer, "422 [Invalid]");
    let copies: Vec<String> = (0..200)
        .map(|n| {
            let path = format!("/spec/b{}", "/x".repeat(n));
            format!(r#"{{"op":"copy","from":"/spec/a","path":"{path}"}}"#)
        })
        .collect();
    let patch =
        format!("[{},{},{}]", add("/spec/a", &part), add("/spec/b", "{}"), copies.join(","));
    let answer = rig.put("PATCH", &target, JSON_PATCH, patch);
    rig.check("copies into copies", &answer, "422 [Invalid]");
}

/// What walked the deepest values has left half of its stack untouched, in a debug build too.
fn assert_stacks(rig: &Rig) {
    const STACK_KIB: u64 = 32 << 10;
    let deepest = rig.server.deepest_stack_kib();
    println!("the deepest stack has {deepest} KiB");
    // A thread's stack is never this small: else nothing was measured.
    assert!((8..STACK_KIB / 2).contains(&deepest), "{deepest} KiB");
}

#[test]
fn row_02_the_deepest_object_lives_like_any_other() {
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let mut rig = Rig::of(Server::start_in(&root, &[]).expect("start the server"));
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    // The object and its spec are two levels.
    let deepest = [lists(MAX_DEPTH - 2), maps(MAX_DEPTH - 2)];
    let object = |name: &str, value: &str| {
        format!(
            r#"{{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"v":{value}}}}}"#
        )
    };
    let names = ["lists", "maps"];
    for (name, value) in names.iter().zip(&deepest) {
        let more = value.replacen('[', "[[", 1).replacen(']', "]]", 1);
        let more = if more == *value { value.replacen("{}", "{\"a\":{}}", 1) } else { more };
        let refused = rig.put("POST", WIDGETS, JSON, object(name, &more));
        rig.check("one level more", &refused, "400 [BadRequest]");
        let made = rig.put("POST", WIDGETS, JSON, object(name, value));
        assert_eq!(made.code, 201, "{name}: {}", made.text());
        assert!(made.text().contains(value.as_str()), "{name}");
    }
    let reads = |rig: &Rig| {
        for (name, value) in names.iter().zip(&deepest) {
            let target = format!("{WIDGETS}/{name}");
            let got = rig.get(&target);
            assert_eq!(got.code, 200, "{}", got.text());
            assert!(got.text().contains(value.as_str()), "{name}");
            let label = format!(r#"{{"metadata":{{"labels":{{"l{}":"x"}}}}}}"#, rig.server.pid());
            let patched = rig.put("PATCH", &target, MERGE, label);
            assert_eq!(patched.code, 200, "{}", patched.text());
            assert!(patched.text().contains(value.as_str()), "{name}");
            let replaced = rig.put("PUT", &target, JSON, patched.text());
            assert_eq!(replaced.code, 200, "{}", replaced.text());
            let test = format!(r#"[{{"op":"test","path":"/spec/v","value":{value}}}]"#);
            let tested = rig.put("PATCH", &target, JSON_PATCH, test);
            assert_eq!(tested.code, 200, "{}", tested.text());
            let yaml = rig.ask("GET", &target, &[("Accept", YAML)], b"");
            assert_eq!(yaml.code, 200, "{}", yaml.verdict());
            let pretty = rig.get(&format!("{target}?pretty=true"));
            assert_eq!(pretty.code, 200);
            let table = [("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
            let table = rig.ask("GET", &format!("{target}?includeObject=Object"), &table, b"");
            assert_eq!(table.code, 200, "{}", table.text());
            assert!(table.text().contains(value.as_str()), "{name}");
        }
        let list = rig.get(WIDGETS).text();
        let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        let every = rig.server.send(
            "GET",
            "/clusters/*/apis/example.dev/v1/widgets",
            Some(&rig.master),
            &[("Accept", partial)],
            b"",
        );
        assert_eq!(every.json()["items"].as_array().map_or(0, Vec::len), 2, "{}", every.text());
        let watch = rig.get(&format!("{WIDGETS}?watch=1&timeoutSeconds=1")).text();
        for (name, value) in names.iter().zip(&deepest) {
            assert!(list.contains(value.as_str()), "{name} in the list");
            assert!(watch.contains(value.as_str()), "{name} in the watch");
        }
    };
    reads(&rig);
    assert_stacks(&rig);
    rig.server.stop();
    rig = Rig::of(Server::start_in(&root, &[]).expect("start again"));
    rig.server.until("the CRD is served", || (rig.get(WIDGETS).code == 200).then_some(()));
    reads(&rig);
    assert_stacks(&rig);
    for name in names {
        let deleted = rig.put("DELETE", &format!("{WIDGETS}/{name}"), JSON, "");
        assert_eq!(deleted.code, 200, "{}", deleted.text());
        rig.check(name, &rig.get(&format!("{WIDGETS}/{name}")), "404 [NotFound]");
    }
}
