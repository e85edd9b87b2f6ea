//! kine's flags and variables, TLS, sockets, and the pages beside gRPC.

use super::*;

/// What a start that is refused says.
fn refusal(flags: &[&str]) -> String {
    let output = Command::new(program()).arg("store").args(flags).output().expect("run the store");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("text")
}

fn page(store: &Store, path: &str) -> String {
    let url = format!("{}{path}", store.url);
    let mut answer = ureq::get(&url).call().expect("a page");
    answer.body_mut().read_to_string().expect("text")
}

#[test]
fn pages() {
    let store = Store::start(&["--emulated-etcd-version=3.6.12"]);
    store.run("put /a 1");
    expect![[r#"
        {"health":"true","reason":""}
        {"etcdserver":"3.6.12","etcdcluster":"3.6.0"}"#]]
    .assert_eq(&format!("{}\n{}", page(&store, "/health"), page(&store, "/version")));
    let metrics = page(&store, "/metrics");
    let line = r#"grpc_server_handled_total{grpc_service="etcdserverpb.KV",grpc_method="Put",grpc_code="OK"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("etcd_debugging_mvcc_current_revision 2\n"), "{metrics}");
}

#[test]
fn refused() {
    let all: String = [
        &["--endpoint=mysql://h/d"][..],
        &["--s3-bucket=b"],
        &["--server-cert-file=/nope"],
        &["--server-cert-file=/nope", "--server-key-file=/nope", "--listen-address=127.0.0.1:0"],
        &["--endpoint=sqlite:///proc/nope/state.db", "--listen-address=127.0.0.1:0"],
    ]
    .iter()
    .map(|flags| refusal(flags))
    .collect();
    expect![[r#"
        error: --endpoint=mysql://h/d: this kind of store is not supported; use sqlite://<file> or memory://
        error: --s3-bucket=b: it belongs to kine's t4 driver, which is not supported
        error: --server-cert-file=/nope: needs --server-key-file
        error: read /nope: No such file or directory (os error 2)
        error: make /proc/nope: No such file or directory (os error 2)
    "#]].assert_eq(&all);
}

#[test]
fn a_unix_socket() {
    let folder = tempfile::tempdir().expect("make a folder");
    let socket = format!("--listen-address=unix://{}", folder.path().join("kine.sock").display());
    let store = Store::start(&[&socket]);
    assert!(store.url.starts_with("unix:///"), "{}", store.url);
    assert_eq!(store.run("put /a 1"), "OK\n");
    assert_eq!(store.run("get /a --print-value-only"), "1\n");
}

/// With a trusted CA only its clients are served.
#[test]
fn mutual_tls() {
    // A server of ours makes a pair whose CA is in the same file.
    let server = it::Server::start();
    let cert = server.root.join("apiserver.crt").display().to_string();
    let key = server.root.join("apiserver.key").display().to_string();
    let (cert_flag, key_flag) =
        (format!("--server-cert-file={cert}"), format!("--server-key-file={key}"));
    let store = Store::start(&[&cert_flag, &key_flag]);
    assert!(store.url.starts_with("https://"), "{}", store.url);
    let ca = format!("put /a 1 --cacert={cert}");
    assert_eq!(store.run(&ca), "OK\n");
    let ca_flag = format!("--trusted-ca-file={cert}");
    let store = Store::start(&[&cert_flag, &key_flag, &ca_flag]);
    let refused = store.run(&ca);
    assert!(refused.contains("a client certificate of the trusted CA is needed"), "{refused}");
}
