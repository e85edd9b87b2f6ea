//! Tiers fed with CRDs and bindings, and what they answer.

use super::*;
use crate::names;
use crate::testing::{cluster, entry, key};
use fp_object::Value;
use fp_schema::{Origin as From, Segment};
use serde_json::json;

const IDENTITY: &str = "8b12fa27a3c48b89e06f37d21638ebe26171f1f0ec18dbdc04f4dbeac38c0322";
const OTHER: &str = "c0529ba43e2aaab247eba53d0e26cc0a26216e49c1e2df59dd5bce5a64d52087";

fn definition(gr: &str) -> Value {
    let (resource, group) = gr.split_once('.').unwrap_or((gr, ""));
    let stored = resource != "broken";
    json!({
        "group": group, "scope": "Cluster",
        "names": {"plural": resource, "singular": resource, "kind": resource, "listKind": "List"},
        "versions": [{"name": "v1", "served": true, "storage": stored, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    })
}

fn builtin(gr: &str) -> Arc<ResourceInfo> {
    let crd = crate::testing::object(json!({"metadata": {"name": gr}, "spec": definition(gr)}));
    let info = fp_schema::crd::from_crd(&crd, Segment::Builtin, From::Builtin, &|_| None);
    Arc::new(info.unwrap())
}

fn tiers() -> Tiers {
    Tiers::new(["configmaps", "secrets", "roles.rbac.authorization.k8s.io"].map(builtin).to_vec())
}

fn crd(tiers: &Tiers, at: &str, name: &str, gr: &str, established: bool) {
    let object = json!({
        "metadata": {"name": name},
        "spec": definition(gr),
        "status": {"conditions": [{"type": "Established", "status": if established { "True" } else { "False" }}]},
    });
    let key = key(at, "", name);
    tiers.apply_crd(&key, Some(&entry(&key, object)));
}

/// `resources`: `resource.group uid identity`.
fn binding(tiers: &Tiers, at: &str, name: &str, deleting: bool, resources: &[(&str, &str, &str)]) {
    let bound = |(gr, uid, identity): &(&str, &str, &str)| {
        let (resource, group) = gr.split_once('.').unwrap_or((gr, ""));
        json!({
            "group": group, "resource": resource, "storageVersions": ["v1"],
            "schema": {"name": format!("v1.{gr}"), "UID": uid, "identityHash": identity},
        })
    };
    let mut object = json!({
        "metadata": {"name": name, "annotations": {names::CLUSTER: at}},
        "status": {"boundResources": resources.iter().map(bound).collect::<Value>()},
    });
    if deleting {
        object["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
    }
    let key = key(at, "", name);
    tiers.apply_binding(&key, Some(&entry(&key, object)));
}

fn scope(name: &str) -> ClusterScope {
    if name == "*" { ClusterScope::All } else { ClusterScope::One(cluster(name)) }
}

fn resolve(tiers: &Tiers, at: &str, asked: &str, partial: bool) -> String {
    let (gr, identity) =
        asked.split_once(':').map_or((asked, None), |(gr, identity)| (gr, Some(identity)));
    let (resource, group) = gr.split_once('.').unwrap_or((gr, ""));
    match tiers.resolve(&scope(at), group, resource, identity, partial) {
        Resolved::Unknown => "unknown".into(),
        Resolved::Unavailable(why) => why,
        Resolved::Found(info) => {
            let origin = match &info.origin {
                From::Builtin => "builtin",
                From::System { .. } => "system",
                From::Bound { .. } => "bound",
                From::Crd { .. } => "local",
            };
            let segment = match &info.segment {
                Segment::Identity(identity) => identity.as_str()[..4].to_owned(),
                _ => String::new(),
            };
            format!("{origin}{segment}{}", if info.terminating { " terminating" } else { "" })
        }
    }
}

fn served(tiers: &Tiers, at: &str) -> String {
    tiers.list(&scope(at)).iter().map(|i| i.gr.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn tiers_in_order() {
    let tiers = tiers();
    crd(
        &tiers,
        "system:system-crds",
        "logicalclusters.core.kcp.io",
        "logicalclusters.core.kcp.io",
        true,
    );
    crd(&tiers, "system:bound-crds", "uid1", "gadgets.example.dev", true);
    crd(&tiers, "system:bound-crds", "uid2", "configmaps", true);
    binding(
        &tiers,
        "one",
        "b",
        false,
        &[("gadgets.example.dev", "uid1", IDENTITY), ("toys.example.dev", "uid9", IDENTITY)],
    );
    crd(&tiers, "one", "gadgets.example.dev", "gadgets.example.dev", true);
    crd(&tiers, "one", "shirts.example.dev", "shirts.example.dev", true);
    crd(&tiers, "one", "slow.example.dev", "slow.example.dev", false);
    crd(&tiers, "one", "broken.example.dev", "broken.example.dev", true);
    crd(&tiers, "one", "roles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", true);
    binding(&tiers, "two", "core", false, &[("configmaps", "uid2", OTHER)]);
    for (at, asked, want) in [
        ("one", "logicalclusters.core.kcp.io", "system"),
        ("*", "logicalclusters.core.kcp.io", "system"),
        ("one", "gadgets.example.dev", "bound8b12"),
        ("one", "toys.example.dev", "toys.example.dev is currently unavailable"),
        ("one", "shirts.example.dev", "local"),
        ("one", "slow.example.dev", "unknown"),
        ("one", "broken.example.dev", "unknown"),
        ("one", "roles.rbac.authorization.k8s.io", "builtin"),
        ("one", "configmaps", "builtin"),
        ("two", "configmaps", "boundc052"),
        ("two", "gadgets.example.dev", "unknown"),
        ("*", "configmaps", "builtin"),
        ("*", "gadgets.example.dev", "unknown"),
    ] {
        assert_eq!(resolve(&tiers, at, asked, false), want, "{at} {asked}");
    }
    assert_eq!(
        served(&tiers, "one"),
        "configmaps secrets roles.rbac.authorization.k8s.io logicalclusters.core.kcp.io gadgets.example.dev shirts.example.dev"
    );
    assert_eq!(
        served(&tiers, "two"),
        "secrets roles.rbac.authorization.k8s.io logicalclusters.core.kcp.io configmaps"
    );
    assert_eq!(
        served(&tiers, "*"),
        "configmaps secrets roles.rbac.authorization.k8s.io logicalclusters.core.kcp.io"
    );
    assert!(served(&tiers, "system:bound-crds").ends_with("gadgets.example.dev configmaps"));
}

#[test]
fn identities_and_partial() {
    let tiers = tiers();
    crd(&tiers, "system:bound-crds", "uid1", "gadgets.example.dev", true);
    crd(&tiers, "three", "shirts.example.dev", "shirts.example.dev", true);
    binding(&tiers, "one", "b", false, &[("gadgets.example.dev", "uid1", IDENTITY)]);
    let asked = |identity: &str| format!("gadgets.example.dev:{identity}");
    for (at, asked, partial, want) in [
        ("*", asked(IDENTITY), false, "bound8b12"),
        ("*", asked(OTHER), false, "unknown"),
        ("*", asked("short"), false, "unknown"),
        ("one", asked(IDENTITY), false, "bound8b12"),
        ("one", asked(OTHER), false, "unknown"),
        ("three", format!("shirts.example.dev:{IDENTITY}"), false, "unknown"),
        ("*", "gadgets.example.dev".into(), true, "bound8b12"),
        ("*", "shirts.example.dev".into(), true, "local"),
        ("*", "nothing.example.dev".into(), true, "unknown"),
    ] {
        assert_eq!(resolve(&tiers, at, &asked, partial), want, "{at} {asked}");
    }
}

#[test]
fn deletion() {
    let tiers = tiers();
    crd(&tiers, "system:bound-crds", "uid1", "gadgets.example.dev", true);
    let resources = [("gadgets.example.dev", "uid1", IDENTITY)];
    binding(&tiers, "one", "b", false, &resources);
    let before = tiers.fingerprint(&scope("one"));
    binding(&tiers, "one", "b", true, &resources);
    assert_eq!(resolve(&tiers, "one", "gadgets.example.dev", false), "bound8b12 terminating");
    assert_ne!(tiers.fingerprint(&scope("one")), before);
    let info = tiers.list(&scope("one")).pop().unwrap();
    assert!(!info.verbs.contains(&"create") && info.verbs.contains(&"get"));
    drop(info);

    let bound = key("system:bound-crds", "", "uid1");
    tiers.apply_crd(&bound, None);
    assert_eq!(
        resolve(&tiers, "one", "gadgets.example.dev", false),
        "gadgets.example.dev is currently unavailable"
    );
    tiers.apply_binding(&key("one", "", "b"), None);
    assert_eq!(resolve(&tiers, "one", "gadgets.example.dev", false), "unknown");
    let state = tiers.state.read();
    assert!(state.clusters.is_empty());
    assert_eq!(state.views.sizes(), (0, 0));
}

/// A workspace costs an entry; what it serves is one allocation for all that serve the same.
#[test]
fn sharing() {
    let tiers = tiers();
    crd(&tiers, "system:bound-crds", "uid1", "gadgets.example.dev", true);
    for name in ["one", "two", "three"] {
        binding(
            &tiers,
            name,
            &format!("gadgets-{name}"),
            false,
            &[("gadgets.example.dev", "uid1", IDENTITY)],
        );
        crd(&tiers, name, "shirts.example.dev", "shirts.example.dev", true);
    }
    assert!(Arc::ptr_eq(&tiers.view(&scope("one")), &tiers.view(&scope("three"))));
    // The other view is that of `system:bound-crds`.
    assert_eq!(tiers.state.read().views.sizes(), (2, 1));
    let before = tiers.fingerprint(&scope("two"));
    crd(&tiers, "system:system-crds", "apiexports.apis.kcp.io", "apiexports.apis.kcp.io", true);
    assert_ne!(tiers.fingerprint(&scope("two")), before);
    assert_eq!(tiers.fingerprint(&scope("two")), tiers.fingerprint(&scope("one")));
}

/// Our own CRDs are served, and apis.kcp.io is converted between its versions.
#[test]
fn system_crds_are_served() {
    let tiers = tiers();
    for text in crate::assets::SYSTEM_CRDS {
        let mut crd = crate::assets::one(text);
        let status = crate::bootstrap::established(&crd, "2026-01-02T03:04:05Z");
        crd.insert("status".into(), status);
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        let key = key("system:system-crds", "", &name);
        tiers.apply_crd(&key, Some(&entry(&key, Value::Object(crd))));
    }
    let shown = |i: &Arc<ResourceInfo>| {
        let versions: Vec<&str> = i.versions.iter().map(|v| &*v.name).collect();
        format!("{} {} {}\n", i.gr, versions.join(","), i.convert.is_some())
    };
    expect_test::expect![[r#"
        apibindings.apis.kcp.io v1alpha2,v1alpha1 true
        apiconversions.apis.kcp.io v1alpha1 false
        apiexportendpointslices.apis.kcp.io v1alpha1 false
        apiexports.apis.kcp.io v1alpha2,v1alpha1 true
        apiresourceschemas.apis.kcp.io v1alpha1 false
        clustercachedresourceendpointslices.cache.kcp.io v1alpha1 false
        clustercachedresources.cache.kcp.io v1alpha1 false
        logicalclusters.core.kcp.io v1alpha1 false
    "#]]
    .assert_eq(&tiers.list(&scope("one"))[3..].iter().map(shown).collect::<String>());
}
