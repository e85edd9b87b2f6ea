//! The client for callers in the process.

use expect_test::expect;
use fp_base::{ClusterName, ClusterScope, Gvr};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use fp_schema::Sub;
use fp_verbs::delete::Gone;
use fp_verbs::local::{At, Preconditions};
use serde_json::json;

use crate::server::Server;

fn object(value: Value) -> Object {
    value.as_object().expect("an object").clone()
}

#[tokio::test]
async fn writes_and_reads() {
    let server = Server::start().await;
    let (client, root) = (server.client(), ClusterName::root());
    let gvr = Gvr::new("", "v1", "configmaps");
    let at = At { cluster: &root, gvr: &gvr, namespace: "default", name: "a" };
    let body = object(
        json!({ "metadata": { "name": "a", "namespace": "default" }, "data": { "k": "v" } }),
    );
    let made = client.create(&root, &gvr, body).await.expect("create");
    client.merge(at, Sub::Main, &json!({ "data": { "n": "1" } })).await.expect("merge");
    let stale = client.update(&root, &gvr, made).await.expect_err("the object has changed");
    let set = |object: &mut Object| drop(object.remove("data"));
    let changed = client.modify(at, Sub::Main, set).await.expect("modify");
    let listed = client.list(&ClusterScope::All, &gvr, None).await.expect("list").len();
    let wrong = Preconditions { uid: Some("x".into()), ..Preconditions::default() };
    let refused = client.delete(at, wrong).await.err().expect("another uid");
    let gone = client.delete(at, Preconditions::default()).await.expect("delete");
    let lines = [
        format!("{} {}", stale.code, stale.message),
        format!("data={:?} listed={listed}", changed.get("data")),
        refused.code.to_string(),
        format!("removed={}", matches!(gone, Gone::Removed(_))),
        client.get(at).await.expect_err("gone").message,
    ];
    expect![[r#"
        409 Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
        data=None listed=1
        409
        removed=true
        configmaps "a" not found"#]].assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn main_part_and_status_are_written_at_once() {
    let server = Server::start().await;
    let (client, root) = (server.client(), ClusterName::root());
    let gvr = Gvr::new("example.com", "v1", "lamps");
    let lamp = object(json!({
        "metadata": { "name": "a", "namespace": "default" },
        "spec": { "color": "red" },
        "status": { "lit": 1 },
    }));
    let mut lamp = client.create(&root, &gvr, lamp).await.expect("create");
    let mut lines = Vec::new();
    let mut say = |lamp: &Object| {
        let (revision, generation) = (lamp.resource_version(), lamp.generation());
        let (spec, status) = (lamp.get("spec"), lamp.get("status"));
        lines.push(format!("{revision} generation {generation} {spec:?} {status:?}"));
    };
    say(&lamp);
    lamp.insert("status".into(), json!({ "lit": 2 }));
    lamp = client.update_whole(&root, &gvr, lamp).await.expect("the status only");
    say(&lamp);
    lamp.insert("spec".into(), json!({ "color": "green" }));
    lamp.insert("status".into(), json!({ "lit": 3 }));
    lamp = client.update_whole(&root, &gvr, lamp).await.expect("both");
    say(&lamp);
    lamp.insert("status".into(), json!({ "lit": "no number" }));
    let refused = client.update_whole(&root, &gvr, lamp).await.expect_err("a wrong status");
    lines.push(refused.message);
    expect![[r#"
        1 generation 1 Some(Object {"bulbs": Number(1), "color": String("red")}) Some(Object {"lit": Number(1)})
        2 generation 1 Some(Object {"bulbs": Number(1), "color": String("red")}) Some(Object {"lit": Number(2)})
        3 generation 2 Some(Object {"bulbs": Number(1), "color": String("green")}) Some(Object {"lit": Number(3)})
        Lamp.example.com "a" is invalid: [status.lit: Invalid value: "string": status.lit in body must be of type integer: "string", .status.lit: Invalid value: 0: .status.lit accessor error: "no number" is of the wrong type, expected int64]"#]].assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn a_writer_whose_epoch_is_over_writes_nothing() {
    let server = Server::start().await;
    let (client, root) = (server.client(), ClusterName::root());
    let gvr = Gvr::new("", "v1", "configmaps");
    let make = |name: &str| object(json!({ "metadata": { "name": name, "namespace": "default" } }));
    let epoch = client.create(&root, &gvr, make("epoch")).await.expect("create");
    let revision = fp_base::Revision(epoch.resource_version().parse().expect("a number"));
    let at = At { cluster: &root, gvr: &gvr, namespace: "default", name: "epoch" };
    let leader = client.while_unchanged(at, revision).expect("a built-in");
    leader.create(&root, &gvr, make("a")).await.expect("the epoch holds");
    client.merge(at, Sub::Main, &json!({ "data": { "leader": "other" } })).await.expect("merge");
    let refused = leader.create(&root, &gvr, make("b")).await.expect_err("another leads");
    expect![[r#"Operation cannot be fulfilled on configmaps "b": the writer's epoch is over"#]]
        .assert_eq(&refused.message);
}
