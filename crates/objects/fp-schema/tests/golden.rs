//! Compares the OpenAPI documents with those of a Go kcp, which lie beside the repository in
//! `../shared/golden`; without them the test says so and passes.

use std::path::{Path, PathBuf};

use fp_base::{Gr, Gv};
use fp_object::{Object, Value};
use fp_schema::openapi::{Source, document};
use fp_schema::structural::RuleFn;
use fp_schema::{Origin, ResourceInfo, Scope, Segment, Strategy, VersionInfo, from_crd};

fn folder() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/golden");
    path.is_dir().then_some(path)
}

fn read(root: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(root.join(name)).expect("a golden file is there");
    serde_json::from_str(&text).expect("a golden file is JSON")
}

fn any_rule(_: &str) -> Option<RuleFn> {
    Some(|_, _| true)
}

fn crds(root: &Path, names: &[&str]) -> Vec<ResourceInfo> {
    let files = names.iter().map(|name| read(root, &format!("objects-system_{name}.json")));
    let objects: Vec<Value> =
        files.flat_map(|f| f.as_array().cloned().unwrap_or_default()).collect();
    let crds = objects
        .iter()
        .filter(|o| o["kind"] == "CustomResourceDefinition")
        .filter_map(Value::as_object);
    let make = |crd| {
        from_crd(crd, Segment::CustomResources, Origin::System { name: "x".into() }, &any_rule)
    };
    crds.map(|crd| make(crd).expect("a served CRD")).collect()
}

/// Where the two differ, by path; the first few.
fn differences(path: &str, got: &Value, want: &Value, out: &mut Vec<String>) {
    match (got, want) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let null = Value::Null;
                differences(
                    &format!("{path}/{key}"),
                    a.get(key).unwrap_or(&null),
                    b.get(key).unwrap_or(&null),
                    out,
                );
            }
        }
        _ if got != want => out.push(format!("{path}: got {got}, want {want}")),
        _ => {}
    }
}

fn check(gv: &Gv, infos: &[ResourceInfo], want: &Value) {
    let infos: Vec<&ResourceInfo> = infos.iter().collect();
    let component = |name: &str| want["components"]["schemas"].get(name).cloned();
    let got = document(gv, &infos, &component);
    let mut out = Vec::new();
    differences("", &got, want, &mut out);
    // The golden files name `managedFields` nowhere, so nothing leads to its components.
    out.retain(|line| !["FieldsV1:", "ManagedFieldsEntry:"].iter().any(|end| line.contains(end)));
    assert!(
        out.is_empty(),
        "{gv}: {} differences\n{}",
        out.len(),
        out[..out.len().min(12)].join("\n")
    );
}

#[test]
fn documents_of_crds() {
    let Some(root) = folder() else {
        eprintln!("skipped: ../shared/golden is not here");
        return;
    };
    let infos = crds(&root, &["bound-crds", "system-crds"]);
    for (group, version) in [
        ("tenancy.kcp.io", "v1alpha1"),
        ("topology.kcp.io", "v1alpha1"),
        ("apis.kcp.io", "v1alpha1"),
        ("apis.kcp.io", "v1alpha2"),
    ] {
        let want = read(&root, &format!("openapi/apis_{group}_{version}.json"));
        check(&Gv::new(group, version), &infos, &want);
    }
}

static PLAIN: Strategy = Strategy {
    default: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _, _| {},
    validate: |_| Vec::new(),
    validate_update: |_, _, _| Vec::new(),
    field_labels: &[],
    field_value: |_, _| String::new(),
    allow_create_on_update: false,
    allow_unconditional_update: true,
    subresources: &[],
    grace_secs: None,
    create_not_built: None,
    virtual_only: false,
};
static FINALIZE: Strategy = Strategy { subresources: &["finalize"], ..PLAIN };
static TOKEN: Strategy = Strategy { subresources: &["token"], ..PLAIN };
static APPROVAL: Strategy = Strategy { subresources: &["approval"], ..PLAIN };

/// Infos made of a discovery document, as far as paths need them.
fn builtins(list: &[Value], group: &str, package: &str) -> Vec<ResourceInfo> {
    let has = |name: String| list.iter().any(|r| r["name"] == name.as_str());
    let resource = |r: &Object| {
        let (name, kind) = (r["name"].as_str()?, r["kind"].as_str()?);
        if name.contains('/') {
            return None;
        }
        let subs = [("finalize", &FINALIZE), ("token", &TOKEN), ("approval", &APPROVAL)];
        let sub = subs.into_iter().find(|(sub, _)| has(format!("{name}/{sub}")));
        let verbs = r["verbs"].as_array()?.iter().filter_map(Value::as_str);
        Some(ResourceInfo {
            gr: Gr::new(group, name),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: if r["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster },
            segment: Segment::Builtin,
            origin: Origin::Builtin,
            versions: vec![VersionInfo {
                name: "v1".into(),
                served: true,
                deprecated: None,
                schema: None,
                status: has(format!("{name}/status")),
                scale: None,
                columns: Vec::new(),
                selectable: Vec::new(),
                openapi: Source::Builtin(format!("io.k8s.api.{package}.v1.{kind}").leak()),
            }],
            storage: 0,
            strategy: Some(sub.map_or(&PLAIN, |(_, strategy)| strategy)),
            proto: None,
            verbs: verbs.map(|v| &*v.to_owned().leak()).collect(),
            terminating: false,
            path_segment_names: false,
            convert: None,
            content_hash: 0,
        })
    };
    list.iter().filter_map(|r| resource(r.as_object()?)).collect()
}

#[test]
fn documents_of_builtins() {
    let Some(root) = folder() else {
        eprintln!("skipped: ../shared/golden is not here");
        return;
    };
    let discovery = read(&root, "discovery-root.json");
    for (group, package, file) in [
        ("", "core", "api_v1"),
        ("rbac.authorization.k8s.io", "rbac", "apis_rbac.authorization.k8s.io_v1"),
        ("authorization.k8s.io", "authorization", "apis_authorization.k8s.io_v1"),
        ("certificates.k8s.io", "certificates", "apis_certificates.k8s.io_v1"),
        ("coordination.k8s.io", "coordination", "apis_coordination.k8s.io_v1"),
    ] {
        let key = if group.is_empty() { String::new() } else { format!("{group}/v1") };
        let lists = discovery["resources"].as_object().expect("lists by group-version");
        let list = lists.get(&key).or_else(|| lists.get(group)).expect("the group's list");
        let infos = builtins(list["resources"].as_array().expect("resources"), group, package);
        check(&Gv::new(group, "v1"), &infos, &read(&root, &format!("openapi/{file}.json")));
    }
}
