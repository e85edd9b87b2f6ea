//! watch.

use expect_test::expect;

use crate::server::{Server, pull};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn begins_with_what_exists() {
    let server = Server::start().await;
    server.ask(&format!("POST {CONFIGMAPS}"), r#"{"metadata":{"name":"a"}}"#).await;
    let mut watch =
        server.watch(&format!("GET {CONFIGMAPS}?watch=1&allowWatchBookmarks=true")).await;
    let mut lines = vec![pull(&mut watch, 2).await];
    server.ask(&format!("POST {CONFIGMAPS}"), r#"{"metadata":{"name":"b"}}"#).await;
    server.ask(&format!("PATCH {CONFIGMAPS}/b merge"), r#"{"data":{"k":"v"}}"#).await;
    server.ask(&format!("DELETE {CONFIGMAPS}/a"), "").await;
    lines.push(pull(&mut watch, 3).await);
    server.gone.send_replace(true);
    lines.push(pull(&mut watch, 3).await);
    expect![[r#"
        ADDED default/a@1
        BOOKMARK 1 initial-events-end
        ADDED default/b@2
        MODIFIED default/b@3
        DELETED default/a@4
        BOOKMARK 4
        end"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let server = Server::start().await;
    let mut watch = server.watch(&format!("GET {CONFIGMAPS}?watch=1&labelSelector=x%3D1")).await;
    for (method, name, body) in [
        ("POST", "", r#"{"metadata":{"name":"a"}}"#),
        ("PATCH", "/a merge", r#"{"metadata":{"labels":{"x":"1"}}}"#),
        ("PATCH", "/a merge", r#"{"data":{"k":"v"}}"#),
        ("PATCH", "/a merge", r#"{"metadata":{"labels":{"x":"2"}}}"#),
        ("PATCH", "/a merge", r#"{"metadata":{"labels":{"x":"1"}}}"#),
        ("DELETE", "/a", ""),
    ] {
        server.ask(&format!("{method} {CONFIGMAPS}{name}"), body).await;
    }
    expect![[r#"
        ADDED default/a@2
        MODIFIED default/a@3
        DELETED default/a@4
        ADDED default/a@5
        DELETED default/a@6"#]]
    .assert_eq(&pull(&mut watch, 5).await);
}

#[tokio::test]
async fn resumes_or_says_that_it_cannot() {
    let server = Server::start().await;
    for name in ["a", "b", "c"] {
        server
            .ask(&format!("POST {CONFIGMAPS}"), &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#))
            .await;
    }
    let mut resumed = server.watch(&format!("GET {CONFIGMAPS}?watch=1&resourceVersion=2")).await;
    let mut lines = vec![pull(&mut resumed, 1).await];
    let from_now = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut now = server.watch(&format!("GET {CONFIGMAPS}?watch=1&{from_now}")).await;
    server.ask(&format!("DELETE {CONFIGMAPS}/c"), "").await;
    lines.push(pull(&mut now, 1).await);
    server.store.compact(server.store.head().await.expect("a head")).await.expect("compact");
    let restarted = Server::start_on(server.store.clone()).await;
    let mut late = restarted.watch(&format!("GET {CONFIGMAPS}?watch=1&resourceVersion=2")).await;
    lines.push(pull(&mut late, 2).await);
    lines.push(server.ask(&format!("GET {CONFIGMAPS}?watch=1&resourceVersion=x"), "").await);
    expect![[r#"
        ADDED default/c@3
        DELETED default/c@4
        ERROR 410 too old resource version: 2 (5)
        end
        400 BadRequest invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#]].assert_eq(&lines.join("\n"));
}
