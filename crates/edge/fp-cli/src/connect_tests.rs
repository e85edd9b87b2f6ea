//! Credentials and addresses from kubeconfigs.

use super::*;
use crate::flags::{self, Entry as Plugin};
use expect_test::{Expect, expect};

const CONFIG: &str = r#"
current-context: token
clusters:
- {name: c, cluster: {server: "https://h:1/clusters/root", certificate-authority-data: Q0E=, tls-server-name: name}}
- {name: open, cluster: {server: "http://h/clusters/root"}}
- {name: bare, cluster: {server: "h:1", insecure-skip-tls-verify: true}}
- {name: empty, cluster: {}}
- {name: proxied, cluster: {server: "https://h", proxy-url: "http://p"}}
- {name: both, cluster: {server: "https://h", insecure-skip-tls-verify: true, certificate-authority-data: Q0E=}}
contexts:
- {name: token, context: {cluster: c, user: token}}
- {name: open, context: {cluster: open, user: token}}
- {name: bare, context: {cluster: bare, user: basic}}
- {name: empty, context: {cluster: empty, user: token}}
- {name: dangling, context: {cluster: nowhere, user: nobody}}
- {name: proxied, context: {cluster: proxied}}
- {name: both, context: {cluster: both}}
users:
- {name: token, user: {token: 123}}
- {name: basic, user: {username: u, password: p}}
- {name: file, user: {token: old, tokenFile: token.txt}}
- {name: nofile, user: {tokenFile: nowhere.txt}}
- {name: cert, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}
- {name: halfcert, user: {client-certificate-data: Y2VydA==}}
- {name: badcert, user: {client-certificate-data: "%", client-key-data: a2V5}}
- {name: exec, user: {exec: {command: login}}}
- {name: provider, user: {auth-provider: {name: oidc}}}
- {name: as, user: {token: t, as: bob, as-groups: [a, b], as-user-extra: {k: [v]}}}
"#;

fn check(line: &str, expected: Expect) {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("config");
    std::fs::write(&file, CONFIG).expect("a file");
    std::fs::write(dir.path().join("token.txt"), "fresh\n").expect("a file");
    let config = Kubeconfig::load(file.to_str(), None, None).expect("a kubeconfig");
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let flags = flags::parse(Plugin::Workspace, &words).expect("flags").flags;
    let shown = match resolve(&config, &flags) {
        Err(error) => format!("Error: {error}").replace(dir.path().to_str().expect("UTF-8"), "DIR"),
        Ok(c) => {
            let trust = match &c.trust {
                Trust::System => "system".to_owned(),
                Trust::Anything => "anything".to_owned(),
                Trust::Authority(pem) => String::from_utf8_lossy(pem).into_owned(),
            };
            let cert = if c.client_certificate.is_some() { " cert" } else { "" };
            let headers: Vec<String> = c.headers.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let name = c.tls_server_name.map(|n| format!(" as {n}")).unwrap_or_default();
            format!("{}{name} trusts {trust}{cert} {}", c.server, headers.join("; "))
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn connections() {
    check("", expect!["https://h:1/clusters/root as name trusts CA Authorization=Bearer 123"]);
    check(
        "--user basic",
        expect!["https://h:1/clusters/root as name trusts CA Authorization=Basic dTpw"],
    );
    check(
        "--user file",
        expect!["https://h:1/clusters/root as name trusts CA Authorization=Bearer fresh"],
    );
    check(
        "--user file --token mine",
        expect!["https://h:1/clusters/root as name trusts CA Authorization=Bearer mine"],
    );
    check("--user cert", expect!["https://h:1/clusters/root as name trusts CA cert "]);
    check(
        "--user as --as-uid 7",
        expect![
            "https://h:1/clusters/root as name trusts CA Authorization=Bearer t; Impersonate-User=bob; Impersonate-Uid=7; Impersonate-Group=a; Impersonate-Group=b; Impersonate-Extra-k=v"
        ],
    );
    check("--server https://other", expect!["https://other trusts CA Authorization=Bearer 123"]);
    check(
        "--insecure-skip-tls-verify --tls-server-name x",
        expect!["https://h:1/clusters/root as x trusts anything Authorization=Bearer 123"],
    );
    check("--context open", expect!["http://h/clusters/root trusts system "]);
    check("--context bare", expect!["https://h:1 trusts anything Authorization=Basic dTpw"]);
}

#[test]
fn refusals() {
    check("--context nope", expect![[r#"Error: context "nope" does not exist"#]]);
    check(
        "--context dangling",
        expect![
            "Error: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
        ],
    );
    check(
        "--context empty",
        expect![
            "Error: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
        ],
    );
    check("--user nope", expect![[r#"Error: auth info "nope" does not exist"#]]);
    check("--user nofile", expect!["Error: open DIR/nowhere.txt: no such file or directory"]);
    check(
        "--user halfcert",
        expect![
            "Error: invalid configuration: client-key-data or client-key must be specified for halfcert to use the clientCert authentication method."
        ],
    );
    check("--user badcert", expect!["Error: illegal base64 data in client-certificate-data"]);
    check(
        "--user basic --token x",
        expect![
            "Error: invalid configuration: more than one authentication method found for basic; found [token basicAuth], only one is allowed"
        ],
    );
    check(
        "--as-uid 7",
        expect![
            "Error: invalid configuration: requesting uid, groups or user-extra for token without impersonating a user"
        ],
    );
    check(
        "--certificate-authority /nope",
        expect![
            "Error: invalid configuration: unable to read certificate-authority /nope for c due to open /nope: no such file or directory"
        ],
    );
    check(
        "--user exec",
        expect![[
            r#"Error: exec credential plugin "login" of user "exec" is not available in this version"#
        ]],
    );
    check(
        "--user provider",
        expect![[
            r#"Error: auth provider "oidc" of user "provider" is not available in this version"#
        ]],
    );
    check(
        "--context proxied",
        expect!["Error: proxy-url (http://p) is not available in this version"],
    );
    check(
        "--proxy-url http://q",
        expect!["Error: proxy-url (http://q) is not available in this version"],
    );
    check(
        "--context both",
        expect!["Error: specifying a root certificates file with the insecure flag is not allowed"],
    );
}
