//! Every object of every cluster of the facts, and what the facts' workspaces were given.

use std::collections::{BTreeMap, BTreeSet};

use it::Server;
use serde_json::{Value, json};

use super::normal::{Words, differ};
use super::{CLUSTERS, facts, get};

/// The facts leave these out; their keys are compared, and one of each is among the values.
const NOT_LISTED: [&str; 2] = ["apiresourceschemas", "apiexportendpointslices"];
const SCHEMA: &str = "v1.gadgets.example.dev";

/// What acme exports. The facts' schema has a CEL rule besides.
pub fn exported() -> Vec<(&'static str, &'static str, Value)> {
    let spec = json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "tags": {
                "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
            },
        },
    });
    let schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"}, "spec": spec,
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "schema": schema,
    });
    let schema = json!({"metadata": {"name": SCHEMA}, "spec": {
        "group": "example.dev", "scope": "Namespaced", "versions": [version],
        "names": {
            "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
            "shortNames": ["gd"],
        },
    }});
    let export = json!({"metadata": {"name": "gadgets"}, "spec": {
        "resources": [
            {"group": "example.dev", "name": "gadgets", "schema": SCHEMA, "storage": {"crd": {}}},
        ],
        "permissionClaims": [claim()],
    }});
    vec![
        ("/apis/apis.kcp.io/v1alpha1/apiresourceschemas", "APIResourceSchema", schema),
        ("/apis/apis.kcp.io/v1alpha2/apiexports", "APIExport", export),
    ]
}

fn claim() -> Value {
    json!({"group": "", "resource": "configmaps", "verbs": ["get", "list", "watch"]})
}

/// What team-a was given, custom objects apart.
pub fn of_team() -> Vec<(&'static str, &'static str, Value)> {
    let mut claim = claim();
    claim["state"] = "Accepted".into();
    claim["selector"] = json!({"matchAll": true});
    let binding = json!({"metadata": {"name": "gadgets"}, "spec": {
        "reference": {"export": {"path": "root:acme", "name": "gadgets"}},
        "permissionClaims": [claim],
    }});
    let spec = json!({"type": "object", "properties": {
        "color": {"type": "string", "default": "blue"}, "size": {"type": "string"},
    }});
    let crd = json!({"metadata": {"name": "shirts.stable.example.dev"}, "spec": {
        "group": "stable.example.dev", "scope": "Namespaced",
        "names": {"plural": "shirts", "singular": "shirt", "kind": "Shirt"},
        "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }],
    }});
    let map = json!({"metadata": {"name": "c1", "labels": {"app": "demo"}}, "data": {"k": "v"}});
    let secret = json!({"metadata": {"name": "x1"}, "stringData": {"password": "p"}});
    vec![
        ("/apis/apis.kcp.io/v1alpha2/apibindings", "APIBinding", binding),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "CustomResourceDefinition",
            crd,
        ),
        ("/api/v1/namespaces/default/configmaps", "ConfigMap", map),
        ("/api/v1/namespaces/default/secrets", "Secret", secret),
    ]
}

/// Collection, kind, name and spec of the custom objects of team-a.
pub const CUSTOM: [(&str, &str, &str, &str); 2] = [
    (
        "/apis/example.dev/v1/namespaces/default/gadgets",
        "Gadget",
        "g1",
        r#"{"size": 3, "tags": ["a", "b"]}"#,
    ),
    ("/apis/stable.example.dev/v1/namespaces/default/shirts", "Shirt", "s1", r#"{"size": "L"}"#),
];

pub fn differences(server: &Server, words: &Words) -> Vec<String> {
    let facts = facts("objects.txt");
    let facts: Vec<(&str, Value)> = facts
        .lines()
        .map(|line| line.split_once(' ').expect("a cluster and an object"))
        .map(|(cluster, object)| (cluster, serde_json::from_str(object).expect("JSON")))
        .collect();
    let mut out = Vec::new();
    for cluster in CLUSTERS {
        let theirs = facts.iter().filter(|(at, _)| *at == cluster);
        let theirs = by_name(theirs.map(|(_, object)| words.object(object)));
        let ours = by_name(list(server, &words.cluster(cluster)).iter().map(|o| words.object(o)));
        compare(cluster, &ours, &theirs, &mut out);
    }
    for (title, path) in [
        ("schema", format!("/apis/apis.kcp.io/v1alpha1/apiresourceschemas/{SCHEMA}")),
        ("slice", "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/gadgets".to_owned()),
    ] {
        let resource = path.split('/').nth(4).expect("a resource");
        let theirs = words.object(&stored(resource));
        let ours = words.object(&get(server, &words.cluster("root:acme"), &path));
        differ(&format!("objects root:acme {title} "), Some(&ours), Some(&theirs), &mut out);
    }
    out
}

fn compare(
    cluster: &str,
    ours: &BTreeMap<String, Value>,
    theirs: &BTreeMap<String, Value>,
    out: &mut Vec<String>,
) {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let title = format!("objects {cluster} {name} ");
        match (ours.get(name), theirs.get(name)) {
            (Some(a), Some(b)) => differ(&title, Some(a), Some(b), out),
            (Some(_), None) => out.push(format!("{title}: Go kcp has none")),
            _ => out.push(format!("{title}: missing")),
        }
    }
}

/// `<kind> <namespace>/<name>`; a bound definition's name is random, its spec's is not.
fn by_name(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let name = match (text(&meta["name"]).as_str(), &object["spec"]) {
            ("<uid>", spec) => {
                format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]))
            }
            (name, _) => name.to_owned(),
        };
        format!("{} {}/{name}", text(&object["kind"]), text(&meta["namespace"]))
    };
    let mut out = BTreeMap::new();
    for object in objects {
        let name = name(&object);
        assert!(out.insert(name.clone(), object).is_none(), "two objects are named {name}");
    }
    out
}

/// Every object of a cluster, in the preferred version of its group.
fn list(server: &Server, cluster: &str) -> Vec<Value> {
    let groups = get(server, cluster, "/apis");
    let mut versions = vec!["/api/v1".to_owned()];
    for group in groups["groups"].as_array().expect("groups") {
        let listed = group["versions"].as_array().expect("versions").iter();
        let listed = listed.filter_map(|v| v["groupVersion"].as_str());
        versions.extend(listed.map(|version| format!("/apis/{version}")));
    }
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut out = Vec::new();
    for version in versions {
        let group = version.rsplit_once('/').expect("a version").0.to_owned();
        let resources = get(server, cluster, &version);
        for resource in resources["resources"].as_array().expect("resources") {
            let name = resource["name"].as_str().expect("a name");
            let listable = resource["verbs"].as_array().expect("verbs").iter().any(|v| v == "list");
            let first = seen.insert((group.clone(), name.to_owned()));
            if !listable || !first || NOT_LISTED.contains(&name) || name.contains('/') {
                continue;
            }
            let list = get(server, cluster, &format!("{version}/{name}"));
            for item in list["items"].as_array().expect("items") {
                let mut item = item.clone();
                item["kind"] = resource["kind"].clone();
                item["apiVersion"] = list["apiVersion"].clone();
                out.push(item);
            }
        }
    }
    out
}

/// The stored object of acme's export, from the facts' values.
fn stored(resource: &str) -> Value {
    let values: Value = serde_json::from_str(&facts("values.json")).expect("JSON");
    let values = values.as_array().expect("a list");
    let part = format!("/apis.kcp.io/{resource}/");
    let found = values.iter().find(|v| v["key"].as_str().is_some_and(|key| key.contains(&part)));
    let text = found.expect("the facts have it")["json"].as_str().expect("a text");
    let text = text.replace("338rzxtns0c9c77z", "<root:acme>");
    let text = text.replace("127.0.0.1:6444", "<address>");
    let mut object: Value = serde_json::from_str(&text).expect("JSON");
    // Some are stored without; all are served with it.
    object["metadata"]["annotations"]["kcp.io/cluster"] = "<root:acme>".into();
    object
}
