//! client-go against the real program: what its informers, clientsets, leader election, mapper and
//! pager make of the server. The scenarios are `tests/tools/clientgo`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use it::{Server, tool};

/// Runs a scenario in a workspace's cluster and compares what it prints.
fn check(server: &Server, scenario: &str, want: &Expect) {
    let output = Command::new(tool("clientgo"))
        .arg(server.kubeconfig())
        .arg(scenario)
        .output()
        .expect("run clientgo");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {told}");
    want.assert_eq(&String::from_utf8_lossy(&output.stdout));
}

#[test]
fn scenarios() {
    let server = Server::start();
    server.kubectl_ok(&["create", "workspace", "acme", "--enter"]);
    check(
        &server,
        "typed",
        &expect![[r#"
        created typed map[value:1] with a uid: true
        with a revision: resourceVersion should not be set on objects to be created
        again: configmaps "typed" already exists true
        updated map[value:2] same uid: true
        from an old revision: conflict true
        secret Opaque k=v
        listed 1 typed
        deleted: configmaps "typed" not found true
        answers not in protobuf: 0
    "#]],
    );
    check(
        &server,
        "leases",
        &expect![[r#"
        first leads: "first" after 0 transitions
        first stopped
        second leads: "second" after 1 transitions
        second stopped
        released: "" after 1 transitions
    "#]],
    );
    check(
        &server,
        "wait",
        &expect![[r#"
        until with sync: map[value:2]
        by initial events: true
        gone
    "#]],
    );
    check(
        &server,
        "pages",
        &expect![[r#"
        chunk [page-0 page-1] continues: true
        chunk [page-2 page-3] continues: true
        chunk [page-4] continues: false
        objects: 5
        after deletecollection: 0
    "#]],
    );
}

#[test]
fn kinds_are_found_by_discovery() {
    let server = Server::start();
    server.kubectl_ok(&["create", "workspace", "acme", "--enter"]);
    check(
        &server,
        "discovery",
        &expect![[r#"
        admissionregistration.k8s.io/v1
        apiextensions.k8s.io/v1
        apis.kcp.io/v1alpha1
        apis.kcp.io/v1alpha2
        authentication.k8s.io/v1
        authorization.k8s.io/v1
        cache.kcp.io/v1alpha1
        certificates.k8s.io/v1
        coordination.k8s.io/v1
        core.kcp.io/v1alpha1
        events.k8s.io/v1
        rbac.authorization.k8s.io/v1
        tenancy.kcp.io/v1alpha1
        topology.kcp.io/v1alpha1
        v1
        requests for all groups: 2
        ConfigMap -> /v1, Resource=configmaps namespace
        Workspace.tenancy.kcp.io -> tenancy.kcp.io/v1alpha1, Resource=workspaces root
        Unheard -> no matches for kind "Unheard" in group "" true
        ws -> tenancy.kcp.io/v1alpha1, Resource=workspaces
    "#]],
    );
}

#[test]
fn an_informer_goes_on_after_a_restart() {
    let mut server = Server::start();
    let mut child = Command::new(tool("clientgo"))
        .arg(server.kubeconfig())
        .arg("informer")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run clientgo");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut told = String::new();
    loop {
        let line = lines.next().expect("it says when to restart").expect("text");
        if line == "restart" {
            break;
        }
        told = told + &line + "\n";
    }
    assert_eq!(server.stop().0, Some(0));
    let again = Server::start_on(&server.root, server.port(), &[]);
    let _again = again.expect("start again on the same port");
    child.stdin.take().expect("its input").write_all(b"\n").expect("tell it");
    for line in lines {
        told = told + &line.expect("text") + "\n";
    }
    assert!(child.wait().expect("wait for it").success(), "{told}");
    expect![[r#"
        added a=1
        began with initial events: true
        added b=1, updated b=2, deleted a=1
        updated b=3, deleted b=3
        lists since the restart: 0
        watched on from a revision: true
        left in the store: 0 pending events: 0
    "#]]
    .assert_eq(&told);
}
