//! The life of a Workspace, pass by pass.

use fp_base::ClusterName;
use fp_object::Object;
use fp_object::meta::Meta;
use serde_json::{Value, json};

use super::*;
use crate::action::describe;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn root() -> Object {
    object(json!({"metadata": {"name": "cluster"}, "status": {"phase": "Ready"}}))
}

fn shard() -> ShardView {
    let labels = vec![("name".into(), "root".into()), ("region".into(), "north".into())];
    ShardView { name: "root".into(), external_url: "https://host:6443".into(), labels }
}

/// The writes of a pass, the phase after it, and its conditions.
fn pass(
    workspace: &Object,
    child: Option<&Object>,
    shards: &[ShardView],
    age_secs: i64,
) -> (String, Object) {
    let root = root();
    let chosen =
        workspace.annotation(names::SHARD).and_then(|n| shards.iter().find(|s| s.name == n));
    let snapshot = Snapshot {
        workspace,
        cluster: ClusterName::root(),
        parent: Some(&root),
        child,
        candidates: shards,
        shard: chosen,
        kind: Ok(TypeView { initializers: vec!["root:universal".into()], terminators: Vec::new() }),
        fresh_name: ClusterName::parse("fresh0000000001").expect("a name"),
        dice: 7,
        now: "2026-01-01T00:00:00Z",
        now_secs: age_secs,
        since_secs: 0,
    };
    let plan = plan(&snapshot);
    let new = plan.stages.iter().flatten().find_map(|action| match action {
        Action::Update { object, .. } => Some(object.clone()),
        _ => None,
    });
    let new = new.unwrap_or_else(|| workspace.clone());
    let conditions: Vec<String> = conditions::list(&new)
        .iter()
        .map(|c| format!("{}={}{}", c.kind, c.status, c.reason))
        .collect();
    (format!("{}{} {}", describe(&plan), Phase::of(&new).as_str(), conditions.join(" ")), new)
}

fn fresh() -> Object {
    object(json!({
        "metadata": {"name": "acme", "uid": "u1", "annotations": {
            names::OWNER: "{\"username\":\"alice\",\"groups\":[\"g\"]}",
        }},
        "spec": {"type": {"name": "universal", "path": "root"}},
    }))
}

/// The LogicalCluster of [`fresh`], or of another Workspace of that name.
fn owned_by(uid: &Value) -> Object {
    object(json!({"spec": {"owner": {
        "apiVersion": "tenancy.kcp.io/v1alpha1", "resource": "workspaces", "name": "acme", "cluster": "root", "uid": uid,
    }}}))
}

#[test]
fn from_new_to_ready() {
    let (text, reserved) = pass(&fresh(), None, &[shard()], 0);
    let want = "update both workspaces root|acme\n\
                create logicalclusters fresh0000000001|cluster\nScheduling ";
    assert_eq!(text, want);
    assert_eq!(reserved.annotation(names::WORKSPACE_CLUSTER), Some("fresh0000000001"));
    assert_eq!(reserved.annotation(names::WORKSPACE_SHARD_HASH), Some("1pfxsevk"));
    assert_eq!(
        (reserved.label("region"), reserved.finalizers()),
        (Some("north"), vec![names::WORKSPACE_FINALIZER])
    );

    let (text, _) = pass(&reserved, None, &[shard()], 0);
    assert_eq!(text, "create logicalclusters fresh0000000001|cluster\nScheduling ");

    let mut child = owned_by(&json!("u1"));
    assert_eq!(pass(&reserved, Some(&child), &[shard()], 0).0, "Scheduling ");

    let status = json!({"phase": "Initializing", "initializers": ["root:universal"]});
    child.insert("status".into(), status.clone());
    let (text, waiting) = pass(&reserved, Some(&child), &[shard()], 1);
    let want = "update both workspaces root|acme\nInitializing \
                WorkspaceInitialized=FalseInitializerExists WorkspaceScheduled=True";
    assert_eq!(text, want);
    assert_eq!(waiting.text(&["spec", "cluster"]), Some("fresh0000000001"));
    assert_eq!(waiting.text(&["spec", "URL"]), Some("https://host:6443/clusters/root:acme"));

    child.map_mut(&["status"]).remove("initializers");
    let (text, ready) = pass(&waiting, Some(&child), &[shard()], 2);
    assert!(text.ends_with("Ready WorkspaceInitialized=True WorkspaceScheduled=True"), "{text}");
    let (text, trimmed) = pass(&ready, Some(&child), &[shard()], 3);
    let _ = text;
    assert_eq!(trimmed.annotation(names::OWNER), Some("{\"username\":\"alice\"}"));
    assert_eq!(
        pass(&trimmed, Some(&child), &[shard()], 4).0,
        "Ready WorkspaceInitialized=True WorkspaceScheduled=True"
    );
}

/// The cluster was written, the status not: as after a crash between the two.
#[test]
fn a_workspace_that_lost_its_status_goes_on() {
    let (_, mut workspace) = pass(&fresh(), None, &[shard()], 0);
    workspace.insert("spec".into(), json!({"cluster": "fresh0000000001", "URL": "x"}));
    workspace.insert("status".into(), json!({"phase": "Scheduling"}));
    let mut child = owned_by(&json!("u1"));
    child.insert("status".into(), json!({"phase": "Ready"}));
    let (text, _) = pass(&workspace, Some(&child), &[shard()], 0);
    assert!(text.ends_with("Ready WorkspaceInitialized=True WorkspaceScheduled=True"), "{text}");
}

#[test]
fn a_name_that_belongs_to_somebody_else_is_given_up() {
    let (_, reserved) = pass(&fresh(), None, &[shard()], 0);
    let (_, given_up) = pass(&reserved, Some(&owned_by(&json!("u9"))), &[shard()], 0);
    assert_eq!(given_up.annotation(names::WORKSPACE_CLUSTER), None);
    assert_eq!(given_up.text(&["spec", "cluster"]), None);
}

#[test]
fn nowhere_to_go() {
    let (text, _) = pass(&fresh(), None, &[], 0);
    assert_eq!(
        text,
        "update both workspaces root|acme\nScheduling WorkspaceScheduled=FalseUnschedulable"
    );
}

#[test]
fn a_cluster_that_is_gone_makes_it_unavailable() {
    let mut workspace = fresh();
    workspace.set_annotation(names::SHARD, "root");
    workspace.insert(
        "spec".into(),
        json!({"cluster": "c1", "URL": "https://host:6443/clusters/root:acme"}),
    );
    workspace.insert("status".into(), json!({"phase": "Initializing"}));
    let (text, _) = pass(&workspace, None, &[shard()], 5);
    assert!(text.contains("after 1s"), "{text}");
    let (text, _) = pass(&workspace, None, &[shard()], 100);
    assert!(text.contains("WorkspaceInitialized=FalseWorkspaceDisappeared"), "{text}");
}

#[test]
fn the_end() {
    let mut workspace = fresh();
    workspace.set_meta("deletionTimestamp", "2026-01-01T00:00:00Z");
    workspace.set_meta("finalizers", json!([names::WORKSPACE_FINALIZER]));
    workspace.insert("spec".into(), json!({"cluster": "c1", "URL": "x"}));
    workspace.insert("status".into(), json!({"phase": "Ready"}));
    let child = object(json!({"metadata": {"uid": "u2"}, "status": {"phase": "Ready"}}));
    let (text, _) = pass(&workspace, Some(&child), &[shard()], 0);
    assert!(
        text.starts_with(
            "delete logicalclusters c1|cluster\nupdate both workspaces root|acme\nDeleting"
        ),
        "{text}"
    );
    let (text, gone) = pass(&workspace, None, &[shard()], 0);
    assert!(text.contains("WorkspaceContentDeleted=True"), "{text}");
    assert!(gone.finalizers().is_empty());
}
