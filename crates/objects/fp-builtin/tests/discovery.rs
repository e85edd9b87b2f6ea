//! The table against what Kubernetes 1.36 lists in kcp's discovery: group, resource, kind, singular,
//! scope, short names, categories, verbs, subresources, storage version hash.

use fp_schema::{ResourceInfo, Scope};

fn line(info: &ResourceInfo) -> String {
    let list = |items: Vec<&str>| if items.is_empty() { "-".into() } else { items.join(",") };
    let strategy = info.strategy.expect("every built-in has a strategy");
    let mut subresources = strategy.subresources.to_vec();
    if info.versions[0].status {
        subresources.push("status");
    }
    let group = if info.gr.group.is_empty() { "core" } else { &info.gr.group };
    [
        group,
        &info.gr.resource,
        &info.kind,
        &info.singular,
        if info.scope == Scope::Namespaced { "ns" } else { "cluster" },
        &list(info.short_names.iter().map(String::as_str).collect()),
        &list(info.categories.iter().map(String::as_str).collect()),
        &list(info.verbs.clone()),
        &list(subresources),
        &fp_builtin::storage_version_hash(info).unwrap_or("-".into()),
    ]
    .join(" ")
}

#[test]
fn resources_are_those_of_discovery() {
    let lines: Vec<String> = fp_builtin::resources().iter().map(|info| line(info)).collect();
    let expected: Vec<&str> = include_str!("data/discovery.txt").lines().collect();
    assert_eq!(lines, expected);
}

#[test]
fn every_kind_has_its_message_and_its_schema() {
    for info in fp_builtin::resources() {
        let message = info.proto.expect("every built-in has a message");
        assert_eq!(message.short_name(), &*info.kind);
        let is_published = &*info.gr.group != "apiextensions.k8s.io";
        assert_eq!(fp_builtin::openapi::component(message.name).is_some(), is_published);
    }
    let refs = fp_builtin::openapi::component_refs("io.k8s.api.core.v1.ConfigMap");
    let refs: Vec<&str> = refs.into_iter().map(|r| r.rsplit('.').next().unwrap()).collect();
    assert_eq!(
        refs,
        ["ConfigMap", "FieldsV1", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Time"]
    );
}
