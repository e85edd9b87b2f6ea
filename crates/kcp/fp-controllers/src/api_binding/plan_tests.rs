//! A binding's way to Bound, and what stands in it.

use fp_base::ClusterName;
use fp_object::Object;
use fp_object::meta::Meta;
use serde_json::{Value, json};

use super::*;
use crate::action::describe;

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn schema() -> Object {
    object(json!({
        "metadata": {"name": "v1.lamps.home.example.dev", "uid": "s1", "annotations": {"kcp.io/cluster": "provider"}},
        "spec": {
            "group": "home.example.dev", "scope": "Namespaced",
            "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}],
        },
    }))
}

fn crd(established: bool) -> Object {
    let status = if established { "True" } else { "False" };
    object(json!({
        "metadata": {"name": "s1", "uid": "c1"},
        "spec": {"group": "home.example.dev"},
        "status": {
            "conditions": [{"type": "Established", "status": status}],
            "acceptedNames": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"},
            "storedVersions": ["v1"],
        },
    }))
}

fn binding() -> Object {
    object(json!({
        "metadata": {"name": "lamps"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "lamps"}}},
    }))
}

struct World {
    export: Option<Object>,
    exported: Vec<Exported>,
    locks: &'static str,
    others: Vec<conflict::Other>,
}

fn world(crd: Option<Object>) -> World {
    let exported = Exported {
        schema_name: "v1.lamps.home.example.dev".into(),
        is_crd: true,
        schema: Some(Arc::new(schema())),
        crd: crd.map(Arc::new),
    };
    World {
        export: Some(object(json!({"status": {"identityHash": "id"}}))),
        exported: vec![exported],
        locks: "{}",
        others: Vec::new(),
    }
}

/// The writes of a pass; the binding's phase, conditions and bound resources after it.
fn check(world: &World, want: &str) -> Object {
    let (cluster, provider) =
        (ClusterName::root(), ClusterName::parse("provider").expect("a name"));
    let logical_cluster = object(
        json!({"metadata": {"name": "cluster", "annotations": {names::RESOURCE_BINDINGS: world.locks}}}),
    );
    let binding = binding();
    let bindings = [Binding {
        object: &binding,
        export: world.export.as_ref().map(|e| (&provider, e)),
        exported: &world.exported,
        others: &world.others,
    }];
    let snapshot = Snapshot {
        cluster: &cluster,
        logical_cluster: Some(&logical_cluster),
        bindings: &bindings,
        crds: &["own.home.example.dev"],
        now: "2026-01-01T00:00:00Z",
    };
    let plan = plan(&snapshot);
    let new = plan.stages.iter().flatten().rev().find_map(|action| match action {
        Action::Update { object, .. } => Some(object.clone()),
        _ => None,
    });
    let new = new.expect("a new binding says something");
    let told: Vec<String> = conditions::list(&new)
        .iter()
        .filter(|c| c.status != "True")
        .map(|c| format!("{} {}: {}", c.kind, c.reason, c.message))
        .collect();
    let phase = new.text(&["status", "phase"]).unwrap_or("");
    assert_eq!(format!("{}{phase}\n{}", describe(&plan), told.join("\n")).trim_end(), want);
    new
}

#[test]
fn bound_at_once_when_the_crd_is_there() {
    let new = check(
        &world(Some(crd(true))),
        "update main logicalclusters root|cluster\nupdate status apibindings root|lamps\nBound",
    );
    assert_eq!(
        new.at(&["status", "boundResources"]),
        Some(&json!([{
            "group": "home.example.dev", "resource": "lamps",
            "schema": {"name": "v1.lamps.home.example.dev", "UID": "s1", "identityHash": "id"},
            "storageVersions": ["v1"],
        }]))
    );
}

#[test]
fn the_crd_is_made_and_waited_for() {
    let waits = "Ready WaitingForEstablished: Waiting for API(s) to be established: v1.lamps.home.example.dev\n\
                 BindingUpToDate WaitingForEstablished: Waiting for API(s) to be established: v1.lamps.home.example.dev\n\
                 InitialBindingCompleted WaitingForEstablished: Waiting for API(s) to be established: v1.lamps.home.example.dev";
    let writes =
        "update main logicalclusters root|cluster\nupdate status apibindings root|lamps\nBinding\n";
    check(
        &world(None),
        &format!("create customresourcedefinitions system:bound-crds|s1\n{writes}{waits}"),
    );
    check(&world(Some(crd(false))), &format!("{writes}{waits}"));
}

#[test]
fn what_stands_in_the_way() {
    let mut no_export = world(None);
    no_export.export = None;
    check(
        &no_export,
        "update status apibindings root|lamps\nBinding\n\
         Ready WaitingForEstablished: Waiting for API(s) to be established\n\
         APIExportValid APIExportNotFound: APIExport root:provider|lamps not found\n\
         InitialBindingCompleted WaitingForEstablished: Waiting for API(s) to be established",
    );
    let mut held = world(Some(crd(true)));
    held.locks = r#"{"lamps.home.example.dev":{"c":true,"e":"2026-01-01T00:00:01Z"}}"#;
    let why = "Unable to bind APIs because they are bound by other APIBindings or CRDs: map[lamps.home.example.dev:{ true}]";
    check(
        &held,
        &format!(
            "update status apibindings root|lamps\nBinding\nReady NamingConflicts: {why}\n\
             BindingUpToDate NamingConflicts: {why}\nInitialBindingCompleted NamingConflicts: {why}"
        ),
    );
    let mut named = world(Some(crd(true)));
    named.others = vec![conflict::Other { crd: Arc::new(crd(true)), binding: None }];
    let why = "Unable to bind APIs: naming conflict with CustomResourceDefinition \"s1\": spec.names.plural=lamps is forbidden";
    check(
        &named,
        &format!(
            "update main logicalclusters root|cluster\nupdate status apibindings root|lamps\nBinding\n\
             Ready NamingConflicts: {why}\nBindingUpToDate NamingConflicts: {why}\nInitialBindingCompleted NamingConflicts: {why}"
        ),
    );
}

#[test]
fn locks_without_a_holder_are_released() {
    let check = |locks: &str, want: Option<&str>| {
        let annotations = json!({names::RESOURCE_BINDINGS: locks});
        let logical_cluster = object(json!({"metadata": {"annotations": annotations}}));
        let now = "2026-01-01T00:00:00Z";
        let new = locks::released(&logical_cluster, &["here"], &["own.dev"], now);
        let told = new.as_ref().map(|o| o.annotation(names::RESOURCE_BINDINGS).unwrap_or("none"));
        assert_eq!(told, want, "{locks}");
    };
    check(r#"{"a.dev":{"n":"here"},"own.dev":{"c":true}}"#, None);
    check(r#"{"a.dev":{"n":"here"},"b.dev":{"n":"gone"}}"#, Some(r#"{"a.dev":{"n":"here"}}"#));
    check(r#"{"lost.dev":{"c":true}}"#, Some("{}"));
    check(r#"{"lost.dev":{"c":true,"e":"2025-12-31T23:59:59Z"}}"#, Some("{}"));
    check(r#"{"soon.dev":{"c":true,"e":"2026-01-01T00:00:01Z"}}"#, None);
    check("no JSON", None);
    // One that is gone stands in nobody's way.
    let mut stale = world(Some(crd(true)));
    stale.locks = r#"{"lamps.home.example.dev":{"n":"other"}}"#;
    super::tests::check(
        &stale,
        "update main logicalclusters root|cluster\nupdate status apibindings root|lamps\nBound",
    );
}
