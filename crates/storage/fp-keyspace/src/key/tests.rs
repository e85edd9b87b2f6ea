//! Keys both ways.

use expect_test::{Expect, expect};
use fp_base::{ClusterName, ClusterScope};

use crate::testing::{builtin, custom};
use crate::{Layout, PREFIX, Spot};

fn layout() -> Layout {
    Layout::new(PREFIX, fp_builtin::resources().iter().cloned())
}

/// Splits each key, builds it again and prints its parts.
fn check(keys: &str, expect: Expect) {
    let layout = layout();
    let mut out = String::new();
    for key in keys.lines().map(str::trim).filter(|key| !key.is_empty()) {
        let Some(parts) = layout.split(key) else {
            out += "none\n";
            continue;
        };
        out += &format!(
            "group={} resource={} segment={:.15} cluster={} namespace={} name={}\n",
            parts.group, parts.resource, parts.segment, parts.cluster, parts.namespace, parts.name
        );
        let namespaced = !parts.namespace.is_empty();
        let info = match parts.segment {
            "" => builtin(parts.group, parts.resource, namespaced),
            segment => custom(parts.group, parts.resource, namespaced, segment),
        };
        let spot = Spot { cluster: &parts.cluster, namespace: parts.namespace, name: parts.name };
        let built = layout.key(&info, spot).expect("parts of a key make a key");
        assert_eq!(&*built, key);
        let namespace = namespaced.then_some(parts.namespace);
        let scope = ClusterScope::One(parts.cluster.clone());
        let prefix = layout.prefix(&info, &scope, namespace).expect("parts of a key make a prefix");
        assert!(key.starts_with(&prefix), "{prefix}");
        let all = layout.prefix(&info, &ClusterScope::All, namespace).expect("as above");
        assert!(prefix.starts_with(&all) && all.len() < prefix.len(), "{all}");
    }
    expect.assert_eq(&out);
}

/// Keys as a Go kcp writes them, one of each shape.
#[test]
fn splits_and_builds() {
    check(
        "
        /registry/core/configmaps/2uqs24hp209i7ju0/default/kube-root-ca.crt
        /registry/core/namespaces/system:admin/kube-system
        /registry/core/events/root/default/e.17a
        /registry/coordination.k8s.io/leases/system:admin/kube-system/kcp-controllers
        /registry/rbac.authorization.k8s.io/clusterroles/root/system:kcp:apiexport:tenancy:bind
        /registry/rbac.authorization.k8s.io/roles/system:admin/kube-system/system::leader-locking-kube-scheduler
        /registry/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/04a5ec66-5891-4e8a-b61e-82bbe6f00c6e
        /registry/apis.kcp.io/apibindings/customresources/root/shards.core.kcp.io
        /registry/stable.example.dev/shirts/customresources/2uqs24hp209i7ju0/default/s1
        /registry/core.kcp.io/shards/c0529ba43e2aaab247eba53d0e26cc0a26216e49c1e2df59dd5bce5a64d52087/root/root
        /registry/example.dev/gadgets/8b12fa27a3c48b89e06f37d21638ebe26171f1f0ec18dbdc04f4dbeac38c0322/2uqs24hp209i7ju0/default/g1
        /registry/rbac.authorization.k8s.io/clusterroles/customresources/root/a-crd-of-this-name
        ",
        expect![[r#"
            group= resource=configmaps segment= cluster=2uqs24hp209i7ju0 namespace=default name=kube-root-ca.crt
            group= resource=namespaces segment= cluster=system:admin namespace= name=kube-system
            group= resource=events segment= cluster=root namespace=default name=e.17a
            group=coordination.k8s.io resource=leases segment= cluster=system:admin namespace=kube-system name=kcp-controllers
            group=rbac.authorization.k8s.io resource=clusterroles segment= cluster=root namespace= name=system:kcp:apiexport:tenancy:bind
            group=rbac.authorization.k8s.io resource=roles segment= cluster=system:admin namespace=kube-system name=system::leader-locking-kube-scheduler
            group=apiextensions.k8s.io resource=customresourcedefinitions segment= cluster=system:bound-crds namespace= name=04a5ec66-5891-4e8a-b61e-82bbe6f00c6e
            group=apis.kcp.io resource=apibindings segment=customresources cluster=root namespace= name=shards.core.kcp.io
            group=stable.example.dev resource=shirts segment=customresources cluster=2uqs24hp209i7ju0 namespace=default name=s1
            group=core.kcp.io resource=shards segment=c0529ba43e2aaab cluster=root namespace= name=root
            group=example.dev resource=gadgets segment=8b12fa27a3c48b8 cluster=2uqs24hp209i7ju0 namespace=default name=g1
            group=rbac.authorization.k8s.io resource=clusterroles segment=customresources cluster=root namespace= name=a-crd-of-this-name
        "#]],
    );
}

#[test]
fn refuses_other_layouts() {
    check(
        "
        /registry
        /registry/core/configmaps/root
        /registry/core/configmaps/root:acme/default/c1
        /registry/core/configmaps/root/default/a/b
        /registry/core/configmaps/root/../c1
        /registry/core/configmaps/root/default/
        /registry/apps/deployments/root/default/web
        /registry/health
        /registryx/core/namespaces/root/default
        /cache/core.kcp.io/shards/customresources/root/root/root
        compact_rev_key
        ",
        expect![[r#"
            none
            none
            none
            none
            none
            none
            none
            none
            none
            none
            none
        "#]],
    );
}

/// No name breaks out of its place in a key.
#[test]
fn refuses_names() {
    let layout = layout();
    let root = ClusterName::root();
    let configmaps = builtin("", "configmaps", true);
    let namespaces = builtin("", "namespaces", false);
    for bad in ["", ".", "..", "a/b", "/", "a\0"] {
        let spot = Spot { cluster: &root, namespace: "default", name: bad };
        assert!(layout.key(&configmaps, spot).is_err(), "name {bad:?}");
        let spot = Spot { cluster: &root, namespace: bad, name: "c1" };
        assert!(layout.key(&configmaps, spot).is_err(), "namespace {bad:?}");
        let scope = ClusterScope::One(root.clone());
        assert!(layout.prefix(&configmaps, &scope, Some(bad)).is_err(), "prefix {bad:?}");
    }
    let spot = Spot { cluster: &root, namespace: "default", name: "n1" };
    assert!(layout.key(&namespaces, spot).is_err(), "a cluster-scoped object in a namespace");
}

#[test]
fn events_of_both_groups_have_one_place() {
    let layout = layout();
    let root = ClusterName::root();
    let key = |group| {
        let spot = Spot { cluster: &root, namespace: "default", name: "e" };
        layout.key(&builtin(group, "events", true), spot).expect("a key").to_string()
    };
    assert_eq!(key("events.k8s.io"), "/registry/core/events/root/default/e");
    assert_eq!(key("events.k8s.io"), key(""));
}
