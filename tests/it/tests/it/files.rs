//! Start and stop: files, modes, tokens.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use it::Server;
use serde_json::{Value, json};

#[test]
fn files_and_modes() {
    let server = Server::start();
    let mode = |file: &str| {
        let path = server.root.join(file);
        let meta = std::fs::metadata(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        meta.permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    // Scripts read the kubeconfig line by line, as Go kcp writes it.
    let text = std::fs::read_to_string(server.kubeconfig()).expect("read the kubeconfig");
    for line in
        ["    certificate-authority-data: LS0t", "    server: https://", "  name: system:admin\n"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for file in ["admin.kubeconfig", ".admin-token-store", "apiserver.key", "sa.key"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    let contexts = server.kubectl_ok(&["config", "get-contexts", "-o", "name"]);
    assert_eq!(contexts, "base\nroot\nshard-base\nsystem:admin\n");
    assert_eq!(server.kubectl_ok(&["config", "current-context"]), "root\n");
}

#[test]
fn everything_survives_a_restart() {
    let mut server = Server::start();
    let path = "/clusters/root/api/v1/namespaces/default/configmaps";
    let made = server
        .admin("POST", path, &json!({"metadata": {"name": "kept"}, "data": {"a": "1"}}))
        .json();
    let tokens = [server.token("kcp-admin"), server.token("shard-admin")];
    let (code, took) = server.stop();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(2), "{took:?}");
    let again = Server::start_in(&server.root, &[]).expect("start again");
    assert_eq!([again.token("kcp-admin"), again.token("shard-admin")], tokens);
    let found = again.admin("GET", &format!("{path}/kept"), &Value::Null).json();
    assert_eq!(found, made);
}
