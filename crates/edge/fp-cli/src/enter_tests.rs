//! Entering workspaces: paths, contexts, what is printed.

use super::*;
use expect_test::{Expect, expect};

const FRESH: &str = r#"
current-context: root
clusters:
- {name: root, cluster: {server: "https://h/clusters/root", ca: x}}
contexts:
- {name: root, context: {cluster: root, user: me}}
"#;

/// Plays steps on a kubeconfig: a server URL to switch to, or `-`. Shows contexts after each.
fn check(steps: &[&str], expected: Expect) {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("config");
    std::fs::write(&file, FRESH).expect("a file");
    let load = || Kubeconfig::load(file.to_str(), None, None).expect("a kubeconfig");
    let mut shown = String::new();
    for step in steps {
        let config = load();
        let context = current_context(&config).expect("a context");
        let planned = match *step {
            "-" => plan_swap(&config, &context).map(|(edit, _)| edit),
            server => plan_switch(&config, &context, server),
        };
        match planned {
            Ok(edit) => config.commit(&edit).expect("an edit"),
            Err(error) => shown.push_str(&format!("Error: {error}\n")),
        }
        let config = load();
        shown.push_str(&format!("{step}: at {}", config.current_context()));
        for name in [CURRENT, PREVIOUS] {
            if let Some(context) = config.entry(Section::Contexts, name) {
                let cluster = context.text("cluster");
                let server = config
                    .entry(Section::Clusters, &cluster)
                    .map(|c| c.text("server"))
                    .unwrap_or_default();
                shown.push_str(&format!(", {name} = {cluster} {server}"));
            }
        }
        shown.push('\n');
    }
    expected.assert_eq(&shown.replace("workspace.kcp.io/", ""));
}

#[test]
fn contexts_of_a_walk() {
    check(
        &["-", "https://h/clusters/root:a", "https://h/clusters/root:b", "-", "-"],
        expect![[r#"
            Error: no previous workspace found in kubeconfig
            -: at root
            https://h/clusters/root:a: at current, current = current https://h/clusters/root:a, previous = root https://h/clusters/root
            https://h/clusters/root:b: at current, current = current https://h/clusters/root:b, previous = previous https://h/clusters/root:a
            -: at current, current = current https://h/clusters/root:a, previous = previous https://h/clusters/root:b
            -: at current, current = current https://h/clusters/root:b, previous = previous https://h/clusters/root:a
        "#]],
    );
    check(
        &["https://h/clusters/root:a", "-", "-"],
        expect![[r#"
        https://h/clusters/root:a: at current, current = current https://h/clusters/root:a, previous = root https://h/clusters/root
        -: at current, current = root https://h/clusters/root, previous = previous https://h/clusters/root:a
        -: at current, current = current https://h/clusters/root:a, previous = root https://h/clusters/root
    "#]],
    );
}

#[test]
fn current_is_printed() {
    let kind = TypeReference { path: "root".to_owned(), name: "universal".to_owned() };
    for (server, short, kind, expected) in [
        ("https://h/clusters/root:a", false, None, "Current workspace is 'root:a'.\n"),
        (
            "https://h/clusters/root:a",
            false,
            Some(&kind),
            "Current workspace is 'root:a' (type root:universal).\n",
        ),
        ("https://h/clusters/root:a", true, Some(&kind), "root:a\n"),
        ("https://h/x", false, None, "Current workspace is the URL \"https://h/x\".\n"),
        ("https://h/x", true, None, ""),
    ] {
        let mut out = Vec::new();
        print_current(&mut out, server, short, kind).expect("written to memory");
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

#[test]
fn claims_nobody_answered() {
    let bindings: List<Binding> = serde_json::from_str(
        r#"{"items": [{"metadata": {"name": "b"},
          "spec": {"permissionClaims": [
            {"resource": "secrets", "verbs": ["get", "list"], "state": "Accepted"},
            {"group": "x.io", "resource": "things", "identityHash": "h", "verbs": ["get"]}]},
          "status": {"exportPermissionClaims": [
            {"resource": "secrets", "verbs": ["list", "get"]},
            {"group": "x.io", "resource": "things", "identityHash": "h", "verbs": ["*"]},
            {"group": "y.io", "resource": "others", "verbs": ["get"]}]}}]}"#,
    )
    .expect("bindings");
    expect![[r#"
        Warning: claim for things.x.io:h specified on APIBinding b but not accepted or rejected.
        Warning: allowed verbs (get) on claim for things.x.io:h on APIBinding b do not match expected verbs (*).
        Warning: claim for others.y.io exported but not specified on APIBinding b
        Add this claim to the APIBinding's Spec.
        Warning: claim for others.y.io specified on APIBinding b but not accepted or rejected.
        Warning: allowed verbs () on claim for others.y.io on APIBinding b do not match expected verbs ().
    "#]].assert_eq(&claim_warnings(&bindings.items));
}
