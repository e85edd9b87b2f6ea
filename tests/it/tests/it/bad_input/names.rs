//! Names that are none, and objects that are not where they say.

use serde_json::json;

use super::*;

#[test]
fn row_22_names() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    for collection in [CONFIG_MAPS, WIDGETS] {
        for name in ["..", ".", "%2e%2e", "%2E", "a%2Fb", "a%2fb", "..%2F..", "a%5Cb"] {
            for method in ["GET", "PUT", "PATCH", "DELETE"] {
                let target = format!("{collection}/{name}");
                let media = if method == "PATCH" { MERGE } else { JSON };
                let answer = rig.put(method, &target, media, "{}");
                rig.check(&format!("{method} {target}"), &answer, "400 [BadRequest]");
            }
        }
        let long = "x".repeat(254);
        for name in
            ["A", "aB", &long, "..", ".", "a/b", "a b", "a%2Fb", "-a", "a-", "é", "a\n", "_"]
        {
            let object = match collection {
                CONFIG_MAPS => json!({"metadata": {"name": name}}),
                _ => widget(name, &json!({})),
            };
            rig.check(name, &rig.post(collection, &object), "422 [Invalid]");
        }
        for name in [json!(1), json!(["a"]), json!({"a": 1}), json!(true)] {
            let mut object = widget("a", &json!({}));
            if collection == CONFIG_MAPS {
                object = json!({"metadata": {}});
            }
            object["metadata"]["name"] = name.clone();
            let answer = rig.post(collection, &object);
            rig.check(&name.to_string(), &answer, "400 [BadRequest]");
        }
        let mut nameless = widget("a", &json!({}));
        if collection == CONFIG_MAPS {
            nameless = json!({"metadata": {}});
        }
        nameless["metadata"].as_object_mut().expect("an object").remove("name");
        rig.check("no name", &rig.post(collection, &nameless), "422 [Invalid]");
        nameless["metadata"]["generateName"] = "UPPER-".into();
        rig.check("a bad generateName", &rig.post(collection, &nameless), "422 [Invalid]");
    }
    // The longest name that fits.
    let longest = json!({"metadata": {"name": "x".repeat(253)}});
    assert_eq!(rig.post(CONFIG_MAPS, &longest).code, 201);
    for namespace in ["..", ".", "%2e%2e", "a%2Fb"] {
        let target = format!("/clusters/root/api/v1/namespaces/{namespace}/configmaps");
        for method in ["GET", "POST", "DELETE"] {
            let answer = rig.put(method, &target, JSON, r#"{"metadata":{"name":"a"}}"#);
            rig.check(&format!("{method} {target}"), &answer, "400 [BadRequest]");
        }
    }
    for namespace in ["..", "A", "a.b", &"x".repeat(64)] {
        let answer =
            rig.post("/clusters/root/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        rig.check(namespace, &answer, "422 [Invalid]");
    }
}

#[test]
fn row_23_objects_that_are_elsewhere() {
    let rig = Rig::start();
    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let mut global = crd("globals", &json!({"type": "object"}));
    global["spec"]["scope"] = "Cluster".into();
    assert_eq!(rig.post(CRDS, &global).code, 201);
    let globals = "/clusters/root/apis/example.dev/v1/globals";
    rig.server.until("the CRD is served", || (rig.get(globals).code == 200).then_some(()));
    let object =
        json!({"apiVersion": "example.dev/v1", "kind": "Global", "metadata": {"name": "g"}});
    assert_eq!(rig.post(globals, &object).code, 201);
    // A cluster-scoped resource has no namespaced URL, and the other way round.
    let namespaced = "/clusters/root/apis/example.dev/v1/namespaces/default/globals";
    rig.check("a list", &rig.get(namespaced), "404 [NotFound]");
    rig.check("a get", &rig.get(&format!("{namespaced}/g")), "404 [NotFound]");
    rig.check("a create", &rig.post(namespaced, &object), "404 [NotFound]");
    let delete = rig.ask("DELETE", &format!("{namespaced}/g"), &[], b"");
    rig.check("a delete", &delete, "404 [NotFound]");
    rig.check(
        "a create",
        &rig.post("/clusters/root/apis/example.dev/v1/widgets", &widget("w", &json!({}))),
        "404 [NotFound]",
    );
    let roles = "/clusters/root/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles";
    rig.check("cluster roles", &rig.get(roles), "404 [NotFound]");

    for collection in [CONFIG_MAPS, WIDGETS] {
        let object = |name: &str| match collection {
            CONFIG_MAPS => json!({"metadata": {"name": name}}),
            _ => widget(name, &json!({})),
        };
        let spoofed = |name: &str| {
            let mut object = object(name);
            object["metadata"]["annotations"] = json!({"kcp.io/cluster": "elsewhere", "a": "b"});
            object
        };
        let mut other = object("there");
        other["metadata"]["namespace"] = "other".into();
        rig.check("another namespace", &rig.post(collection, &other), "400 [BadRequest]");
        // The server's cluster wins, whoever says something else, and however.
        let made = rig.post(collection, &spoofed("here"));
        assert_eq!(made.code, 201, "{}", made.text());
        let here = format!("{collection}/here");
        let cluster =
            |answer: &Answer| answer.json()["metadata"]["annotations"]["kcp.io/cluster"].clone();
        assert_eq!(cluster(&made), "root");
        let mut replacement = spoofed("here");
        replacement["metadata"]["resourceVersion"] =
            made.json()["metadata"]["resourceVersion"].clone();
        assert_eq!(cluster(&rig.put("PUT", &here, JSON, replacement.to_string())), "root");
        let patch = r#"{"metadata":{"annotations":{"kcp.io/cluster":"elsewhere"}}}"#;
        assert_eq!(cluster(&rig.put("PATCH", &here, MERGE, patch)), "root");
        let remove = r#"[{"op":"remove","path":"/metadata/annotations/kcp.io~1cluster"}]"#;
        let removed = rig.put("PATCH", &here, JSON_PATCH, remove);
        if removed.code == 200 {
            assert_eq!(cluster(&removed), "root");
        }
        assert_eq!(cluster(&rig.get(&here)), "root");
        let other_name = rig.put("PUT", &here, JSON, object("there").to_string());
        rig.check("another name", &other_name, "400 [BadRequest]");
        let other_namespace = rig.put("PUT", &here, JSON, other.to_string());
        rig.check("another name and namespace", &other_namespace, "400 [BadRequest]");
        let mut moved = object("here");
        moved["metadata"]["namespace"] = "kube-system".into();
        let answer = rig.put("PUT", &here, JSON, moved.to_string());
        rig.check("another namespace", &answer, "400 [BadRequest]");
        let renamed = rig.put("PATCH", &here, MERGE, r#"{"metadata":{"name":"there"}}"#);
        assert!(matches!(renamed.code, 400 | 422), "{}", renamed.text());
        let moved = rig.put("PATCH", &here, MERGE, r#"{"metadata":{"namespace":"kube-system"}}"#);
        assert!(matches!(moved.code, 400 | 422), "{}", moved.text());
        rig.check("nothing was moved", &rig.get(&format!("{collection}/there")), "404 [NotFound]");
    }
    // Another kind, version or group than the URL's.
    for (key, value, want) in [
        ("kind", "Gadget", "422 [Invalid]"),
        ("apiVersion", "example.dev/v2", "400 [BadRequest]"),
        ("apiVersion", "v1", "400 [BadRequest]"),
    ] {
        let mut wrong = widget("wrong", &json!({}));
        wrong[key] = value.into();
        rig.check(value, &rig.post(WIDGETS, &wrong), want);
    }
}
