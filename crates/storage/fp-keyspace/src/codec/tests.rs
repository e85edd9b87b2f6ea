//! Values both ways.

use bytes::Bytes;
use expect_test::{Expect, expect};
use fp_base::{ClusterName, Revision};
use fp_object::json;
use fp_schema::ResourceInfo;

use crate::testing::custom;
use crate::{CUSTOM_RESOURCES, Layout, PREFIX, Spot};

fn builtin(group: &str, resource: &str) -> &'static ResourceInfo {
    fp_builtin::resource(group, resource).expect("a built-in resource")
}

fn configmaps() -> &'static ResourceInfo {
    builtin("", "configmaps")
}

fn layout() -> Layout {
    Layout::new(PREFIX, fp_builtin::resources().iter().cloned())
}

fn key(layout: &Layout, info: &ResourceInfo) -> fp_store::Key {
    let root = ClusterName::root();
    let namespace = if info.namespaced() { "default" } else { "" };
    let spot = Spot { cluster: &root, namespace, name: "n1" };
    layout.key(info, spot).expect("a key")
}

/// Encodes the object, and prints the stored bytes and what is served of them at revision 7.
fn check(info: &ResourceInfo, object: &str, expect: Expect) {
    let layout = layout();
    let object = json::decode(object.as_bytes()).expect("the test's object is JSON").object;
    let key = key(&layout, info);
    let out = match layout.encode(info, &object) {
        Err(error) => format!("error: {error}"),
        Ok(encoded) => {
            let parts = layout.split(&key).expect("a key");
            let read = layout.decode(&parts, &encoded.value).expect("what was stored can be read");
            let json = |served: &crate::Served| {
                String::from_utf8(served.json(&parts.cluster, Revision(7))).expect("JSON is UTF-8")
            };
            assert_eq!(json(&read), json(&encoded.served), "the writer sees what a reader sees");
            assert_eq!(read.labels, encoded.served.labels);
            format!("{}\n{}\n", encoded.value.escape_ascii(), json(&read))
        }
    };
    expect.assert_eq(&out);
}

/// Decodes a stored value of `info` and prints what is served at revision 7.
fn check_stored(info: &ResourceInfo, value: &[u8], expect: Expect) {
    let layout = layout();
    let key = key(&layout, info);
    let parts = layout.split(&key).expect("a key");
    let out = match layout.decode(&parts, &Bytes::copy_from_slice(value)) {
        Ok(read) => {
            let json = String::from_utf8(read.json(&parts.cluster, Revision(7))).expect("UTF-8");
            format!("{json}\nlabels={:?} deleting={}", read.labels, read.deleting)
        }
        Err(error) => format!("error: {error}"),
    };
    expect.assert_eq(&out);
}

/// Go kcp stores these in a version that it does not serve.
#[test]
fn a_stored_version_may_not_be_served() {
    check(
        builtin("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
        r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"n1"},"spec":{"policyName":"p"}}"#,
        expect![[r#"
            k8s\x00\nF\n$admissionregistration.k8s.io/v1beta1\x12\x1eMutatingAdmissionPolicyBinding\x12\x19\n\x12\n\x02n1\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\x03\n\x01p\x1a\x00\"\x00
            {"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"annotations":{"kcp.io/cluster":"root"},"name":"n1","resourceVersion":"7"},"spec":{"policyName":"p"}}
        "#]],
    );
}

#[test]
fn builtins_are_protobuf() {
    check(
        configmaps(),
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n1","namespace":"default","labels":{"b":"2","a":"1"},"resourceVersion":"3","annotations":{"kcp.io/cluster":"forged"}},"data":{"k":"<v>"}}"#,
        expect![[r#"
            k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x125\n)\n\x02n1\x12\x00\x1a\x07default\"\x00*\x002\x008\x00B\x00Z\x06\n\x01a\x12\x011Z\x06\n\x01b\x12\x012\x12\x08\n\x01k\x12\x03<v>\x1a\x00\"\x00
            {"apiVersion":"v1","data":{"k":"\u003cv\u003e"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"labels":{"a":"1","b":"2"},"name":"n1","namespace":"default","resourceVersion":"7"}}
        "#]],
    );
    check(
        configmaps(),
        r#"{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"n1"}}"#,
        expect![[r#"error: "v2" is not the version that is stored"#]],
    );
}

#[test]
fn custom_resources_are_json() {
    check(
        &custom("example.dev", "shirts", true, CUSTOM_RESOURCES),
        r#"{"apiVersion":"example.dev/v1","kind":"Shirt","metadata":{"name":"n1","annotations":{"kcp.io/cluster":"forged","z":"1"},"selfLink":"/x"},"spec":{"size":"<L>","n":1.0}}"#,
        expect![[r#"
            {\"apiVersion\":\"example.dev/v1\",\"kind\":\"Shirt\",\"metadata\":{\"annotations\":{\"z\":\"1\"},\"name\":\"n1\"},\"spec\":{\"n\":1,\"size\":\"\\u003cL\\u003e\"}}\n
            {"apiVersion":"example.dev/v1","kind":"Shirt","metadata":{"annotations":{"kcp.io/cluster":"root","z":"1"},"name":"n1","resourceVersion":"7"},"spec":{"n":1,"size":"\u003cL\u003e"}}
        "#]],
    );
}

#[test]
fn the_cluster_is_the_keys() {
    let shirts = custom("example.dev", "shirts", true, CUSTOM_RESOURCES);
    check_stored(
        &shirts,
        br#"{"kind":"Shirt","metadata":{"annotations":{"kcp.io/cluster":"other"},"deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"1"},"resourceVersion":"5"}}"#,
        expect![[r#"
            {"kind":"Shirt","metadata":{"annotations":{"kcp.io/cluster":"root"},"deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"1"},"resourceVersion":"7"}}
            labels=[("a", "1")] deleting=true"#]],
    );
}

#[test]
fn refuses_what_it_cannot_read() {
    let shirts = custom("example.dev", "shirts", true, CUSTOM_RESOURCES);
    let encrypted = b"k8s:enc:aescbc:v1:key1:\x01\x02";
    check_stored(
        &shirts,
        encrypted,
        expect![
            "error: value is encrypted at rest, which is not supported: decrypt it with the server that wrote it"
        ],
    );
    check_stored(
        configmaps(),
        encrypted,
        expect![
            "error: value is encrypted at rest, which is not supported: decrypt it with the server that wrote it"
        ],
    );
    check_stored(&shirts, b"k8s\0\n\x00", expect!["error: read or write JSON"]);
    check_stored(&shirts, b"[]", expect!["error: read or write JSON"]);
    check_stored(
        configmaps(),
        b"\x08\x01",
        expect!["error: stored value is neither JSON nor Kubernetes protobuf"],
    );
    check_stored(configmaps(), b"k8s\0\x0a\xff", expect!["error: read or write protobuf"]);
    check_stored(
        configmaps(),
        b"k8s\0\n\x10\n\x02v9\x12\nConfigMaps",
        expect![[r#"error: "v9" is not the version that is stored"#]],
    );
}

/// A CRD is kept as Kubernetes keeps it, and comes back as v1.
#[test]
fn crds_are_json_of_v1beta1() {
    check(
        builtin("apiextensions.k8s.io", "customresourcedefinitions"),
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"n1"},"spec":{"group":"example.dev","names":{"plural":"shirts","kind":"Shirt","singular":"shirt","listKind":"ShirtList"},"scope":"Namespaced","conversion":{"strategy":"None"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
        expect![[r#"
            {\"kind\":\"CustomResourceDefinition\",\"apiVersion\":\"apiextensions.k8s.io/v1beta1\",\"metadata\":{\"name\":\"n1\"},\"spec\":{\"group\":\"example.dev\",\"version\":\"v1\",\"names\":{\"plural\":\"shirts\",\"singular\":\"shirt\",\"kind\":\"Shirt\",\"listKind\":\"ShirtList\"},\"scope\":\"Namespaced\",\"validation\":{\"openAPIV3Schema\":{\"type\":\"object\"}},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}],\"conversion\":{\"strategy\":\"None\"},\"preserveUnknownFields\":false},\"status\":{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},\"storedVersions\":null}}\n
            {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"kcp.io/cluster":"root"},"name":"n1","resourceVersion":"7"},"spec":{"conversion":{"strategy":"None"},"group":"example.dev","names":{"kind":"Shirt","listKind":"ShirtList","plural":"shirts","singular":"shirt"},"scope":"Namespaced","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":null}}
        "#]],
    );
}

/// An event of either group is a core event in the store.
#[test]
fn events_are_core_events() {
    let core = r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"n1","namespace":"default"},"involvedObject":{"kind":"Pod"},"message":"m","reason":"r"}"#;
    let events = r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"n1","namespace":"default"},"regarding":{"kind":"Pod"},"note":"m","reason":"r"}"#;
    let encode = |info: &ResourceInfo, text: &str| {
        let object = json::decode(text.as_bytes()).expect("JSON").object;
        layout().encode(info, &object).expect("an event can be stored").value
    };
    let stored = encode(builtin("", "events"), core);
    assert_eq!(encode(builtin("events.k8s.io", "events"), events), stored);
    assert_eq!(encode(builtin("events.k8s.io", "events"), core), stored);
}
