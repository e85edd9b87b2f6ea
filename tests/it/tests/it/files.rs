//! Start and stop: files, modes, tokens, second starts, foreign folders.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use it::{Server, program};
use serde_json::{Value, json};

fn fails(args: &[&str]) -> String {
    let output = Command::new(program()).arg("start").args(args).output().expect("run the program");
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().last().unwrap_or_default().to_owned()
}

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

#[test]
fn a_second_start_names_the_holder() {
    let server = Server::start();
    let root = format!("--root-directory={}", server.root.display());
    let told = fails(&[
        &root,
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--experimental-bind-free-port",
    ]);
    assert!(told.contains(&format!("in use by process {}", server.pid())), "{told}");
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let other = tempfile::tempdir().expect("make a folder");
    let root = format!("--root-directory={}", other.path().display());
    let told = fails(&[&root, "--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
    assert!(told.contains(&format!("127.0.0.1:{port}")), "{told}");
}

#[test]
fn refusals_are_one_line() {
    let dir = tempfile::tempdir().expect("make a folder");
    let root = format!("--root-directory={}", dir.path().display());
    std::fs::create_dir(dir.path().join("etcd-server")).expect("make a folder");
    assert!(fails(&[&root]).contains("holds the data of a Go kcp"));
    std::fs::remove_dir(dir.path().join("etcd-server")).expect("remove a folder");
    for (args, want) in [
        (vec!["--etcd-servers=mysql://x"], "mysql is not supported"),
        (vec!["--oidc-issuer-url=https://x"], "--oidc-issuer-url is not available"),
        (vec!["--root-directory="], "give sqlite://<file>"),
        (vec!["--root-directory=/proc/nowhere"], "give a directory that you can write"),
    ] {
        let told = fails(&args);
        assert!(told.starts_with("error: ") && told.contains(want), "{told}");
    }
    std::fs::write(
        dir.path().join("ferroplane.db"),
        "this is not a database at all, not even nearly so",
    )
    .expect("write a file");
    let told = fails(&[
        &root,
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--experimental-bind-free-port",
    ]);
    assert!(told.contains("is not a kine database"), "{told}");
    std::fs::remove_file(dir.path().join("ferroplane.db")).expect("remove a file");
    std::fs::write(dir.path().join("admin.kubeconfig"), "{").expect("write a file");
    let told = fails(&[
        &root,
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--experimental-bind-free-port",
    ]);
    assert!(told.contains("is not a kubeconfig"), "{told}");
}
