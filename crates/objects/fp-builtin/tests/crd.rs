//! CustomResourceDefinitions: the stored form and the update rules.

use expect_test::expect;
use fp_builtin::crd;
use fp_object::{Object, Value};
use fp_schema::Sub;
use serde_json::json;

const STORED: &str = include_str!("data/crd-stored.json");

fn object(value: Value) -> Object {
    value.as_object().expect("an object").clone()
}

#[test]
fn stored_bytes_come_back() {
    let v1 = crd::decode_stored(STORED.as_bytes()).unwrap();
    assert_eq!(v1["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(v1["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"], "object");
    assert!(v1["spec"].get("version").is_none() && v1["spec"].get("validation").is_none());
    let again = crd::encode_stored(&v1).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), STORED);
}

#[test]
fn what_versions_share_stands_once() {
    let version = |name: &str, schema: Value| {
        json!({
            "name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".spec.x"}],
        })
    };
    let crd = object(json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "as.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [
                version("v1", json!({"type": "object", "description": "a < b"})),
                version("v2", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {"namespace": "n", "name": "s"}}, "conversionReviewVersions": ["v1"],
            }},
        },
    }));
    let stored = String::from_utf8(crd::encode_stored(&crd).unwrap()).unwrap();
    expect![[r#"
        {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"as.example.dev"},"spec":{"group":"example.dev","version":"v1","names":{"plural":"as","kind":"A"},"scope":"Cluster","subresources":{"status":{}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"description":"a \u003c b","type":"object"}}},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}],"additionalPrinterColumns":[{"name":"X","type":"string","JSONPath":".spec.x"}],"conversion":{"strategy":"Webhook","webhookClientConfig":{"service":{"namespace":"n","name":"s"}},"conversionReviewVersions":["v1"]},"preserveUnknownFields":false},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}
    "#]].assert_eq(&stored);
    let back = crd::decode_stored(stored.as_bytes()).unwrap();
    assert_eq!(back["spec"]["versions"], crd["spec"]["versions"]);
    expect![[r#"{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"s","namespace":"n","port":443}},"conversionReviewVersions":["v1"]}}"#]].assert_eq(&back["spec"]["conversion"].to_string());
}

#[test]
fn old_stored_forms_are_read() {
    let stored = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "as.example.dev"},
        "spec": {"group": "example.dev", "version": "v1", "names": {"plural": "as", "kind": "A"}},
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    });
    let crd = crd::from_storage(&object(stored)).unwrap();
    expect![[r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.example.dev"},"spec":{"conversion":{"strategy":"None"},"group":"example.dev","names":{"kind":"A","listKind":"AList","plural":"as","singular":"a"},"preserveUnknownFields":true,"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}"#]].assert_eq(&serde_json::to_string(&crd).unwrap());
    assert!(crd::decode_stored(b"[]").is_err());
    assert!(crd::decode_stored(br#"{"spec":{"versions":1}}"#).is_err());
}

#[test]
fn generation_counts_changes_of_the_spec() {
    let info = fp_builtin::resource("apiextensions.k8s.io", "customresourcedefinitions").unwrap();
    let strategy = info.strategy.unwrap();
    let mut crd = object(json!({
        "metadata": {"name": "as.example.dev"},
        "spec": {
            "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
        "status": {"conditions": [{"type": "Established"}]},
    }));
    (strategy.default)(&mut crd);
    (strategy.prepare_create)(&mut crd);
    expect![[r#"{"metadata":{"generation":1,"name":"as.example.dev"},"spec":{"conversion":{"strategy":"None"},"names":{"kind":"A","listKind":"AList","plural":"as","singular":"a"},"versions":[{"name":"v1","served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}"#]].assert_eq(&serde_json::to_string(&crd).unwrap());

    let mut new = crd.clone();
    new["spec"]["versions"] = json!([
        {"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": true, "storage": true},
    ]);
    new["status"] = json!({});
    (strategy.prepare_update)(&mut new, &crd, Sub::Main);
    let text = format!("{} {}", new["metadata"]["generation"], new["status"]["storedVersions"]);
    expect![[r#"2 ["v1","v2"]"#]].assert_eq(&text);

    (strategy.prepare_update)(&mut new, &crd, Sub::Status);
    assert_eq!(new["spec"], crd["spec"]);
}
