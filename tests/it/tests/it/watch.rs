//! Watches: order, resumption, bookmarks, what kubectl shows of them.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use it::{Server, tool};
use serde_json::{Value, json};

const CONFIGMAPS: &str = "/clusters/root/api/v1/namespaces/default/configmaps";

/// The events of a watch that ends by itself: `TYPE name`.
fn events(server: &Server, query: &str) -> Vec<String> {
    let answer = server.admin(
        "GET",
        &format!("{CONFIGMAPS}?watch=true&timeoutSeconds=1&{query}"),
        &Value::Null,
    );
    assert_eq!(answer.code, 200, "{}", answer.text());
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("an event");
        let what = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
        format!("{} {what}", event["type"].as_str().unwrap_or(""))
    };
    answer.text().lines().map(event).collect()
}

#[test]
fn a_watch_resumes_where_it_left() {
    let mut server = Server::start();
    let start = server.admin("GET", CONFIGMAPS, &Value::Null).json();
    let from = start["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    for name in ["a", "b"] {
        let made = server.admin(
            "POST",
            CONFIGMAPS,
            &json!({"metadata": {"name": name, "labels": {"l": name}}}),
        );
        assert_eq!(made.code, 201);
    }
    server.admin("PATCH", &format!("{CONFIGMAPS}/a"), &json!({"metadata": {"labels": {"l": "z"}}}));
    server.admin("DELETE", &format!("{CONFIGMAPS}/b"), &Value::Null);
    let all = ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"];
    assert_eq!(events(&server, &format!("resourceVersion={from}")), all);
    // An object that leaves the selection is deleted from it.
    assert_eq!(
        events(&server, &format!("resourceVersion={from}&labelSelector=l%3Da")),
        ["ADDED a", "DELETED a"]
    );
    // The same after a restart: the store's log is the truth.
    server.stop();
    let server = Server::start_in(&server.root, &[]).expect("start again");
    assert_eq!(events(&server, &format!("resourceVersion={from}")), all);
}

#[test]
fn initial_events_end_with_a_bookmark() {
    let server = Server::start();
    server.admin("POST", CONFIGMAPS, &json!({"metadata": {"name": "a"}}));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let got = events(&server, query);
    assert!(got.contains(&"ADDED a".to_owned()), "{got:?}");
    assert!(got.iter().any(|e| e.starts_with("BOOKMARK")), "{got:?}");
}

#[test]
fn kubectl_get_w() {
    let server = Server::start();
    let mut child = Command::new(tool("kubectl"))
        .args([
            "get",
            "cm",
            "-w",
            "--no-headers",
            "-o",
            "custom-columns=N:.metadata.name",
            "--field-selector=metadata.name=x",
        ])
        .env("KUBECONFIG", server.kubeconfig())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run kubectl");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    server.kubectl_ok(&["create", "configmap", "x"]);
    let first = lines.next().expect("a line").expect("text");
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(first, "x");
}
