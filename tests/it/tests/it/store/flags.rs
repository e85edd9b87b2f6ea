//! kine's flags and variables, TLS, sockets, and the pages beside gRPC.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

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
        error: --endpoint=mysql://h/d: this kind of store is not supported; use sqlite://<file> or postgres://...
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
    let folder = tempfile::tempdir().expect("make a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("write a file");
    let key = |name: &str| {
        let key = KeyPair::generate().expect("make a key");
        write(name, &key.serialize_pem());
        key
    };
    let mut params = CertificateParams::new(vec![]).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = key("ca.key");
    write("ca.crt", &params.self_signed(&ca_key).expect("sign").pem());
    let ca = Issuer::new(params, ca_key);
    for (name, usage) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages = vec![usage];
        let signed = params.signed_by(&key(&format!("{name}.key")), &ca).expect("sign");
        write(&format!("{name}.crt"), &signed.pem());
    }
    let cert_flag = format!("--server-cert-file={}", path("server.crt"));
    let key_flag = format!("--server-key-file={}", path("server.key"));
    let store = Store::start(&[&cert_flag, &key_flag]);
    assert!(store.url.starts_with("https://"), "{}", store.url);
    let anonymous = format!("put /a 1 --cacert={}", path("ca.crt"));
    assert_eq!(store.run(&anonymous), "OK\n");

    let store =
        Store::start(&[&cert_flag, &key_flag, &format!("--trusted-ca-file={}", path("ca.crt"))]);
    let refused = store.run(&anonymous);
    assert!(refused.contains("a client certificate of the trusted CA is needed"), "{refused}");
    // One of the CA, and not made for clients.
    let wrong = format!("{anonymous} --cert={} --key={}", path("server.crt"), path("server.key"));
    let refused = store.run(&wrong);
    assert!(refused.contains("a client certificate of the trusted CA is needed"), "{refused}");
    let known = format!("{anonymous} --cert={} --key={}", path("client.crt"), path("client.key"));
    assert_eq!(store.run(&known), "OK\n");
}
