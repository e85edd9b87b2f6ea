//! Clients that say who they are in ways that are not theirs.

use super::*;

const SECRETS: &str = "/clusters/root/api/v1/secrets";
/// Only `system:masters` may read it.
const SYSTEM: &str = "/clusters/system:admin/api/v1/namespaces";
const WHO: &str = "/clusters/root/apis/authentication.k8s.io/v1/selfsubjectreviews";

#[test]
fn row_24_headers_of_a_front_proxy() {
    let rig = Rig::start();
    let spoofed = [
        ("X-Remote-User", "shard-admin"),
        ("X-Remote-Group", "system:masters"),
        ("X-Remote-Uid", "0"),
        ("X-Remote-Extra-Scopes", "x"),
        (
            "X-Remote-Extra-Authorization.kcp.io%2Fwarrant",
            r#"{"user":"x","groups":["system:masters"]}"#,
        ),
    ];
    // Without credentials they are nobody's.
    for target in [SECRETS, SYSTEM] {
        let nobody = rig.server.send("GET", target, None, &spoofed, b"");
        assert!(matches!(nobody.code, 401 | 403), "{}", nobody.text());
        let plain = rig.server.send("GET", target, None, &[], b"");
        assert_eq!((nobody.code, nobody.body), (plain.code, plain.body), "{target}");
    }
    // With credentials the real user is asked for.
    assert_eq!(rig.ask("GET", SECRETS, &spoofed, b"").code, 200);
    rig.check("kcp-admin", &rig.ask("GET", SYSTEM, &spoofed, b""), "403 [Forbidden]");
    let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    for more in [
        &spoofed[..],
        &[],
        &[("Connection", "X-Remote-User, X-Remote-Group, Authorization, Impersonate-User")],
    ] {
        let headers: Vec<_> = [("Content-Type", JSON)].iter().chain(more).copied().collect();
        let who = rig.ask("POST", WHO, &headers, body.as_bytes()).json();
        assert_eq!(who["status"]["userInfo"]["username"], "kcp-admin", "{who}");
        assert!(!who.to_string().contains("masters"), "{who}");
    }
    // `Connection` nominates headers for removal; naming the credentials takes nothing away, and
    // naming the spoofed ones gives them no weight.
    let nominated = [("Connection", "X-Remote-User, X-Remote-Group")];
    let all: Vec<_> = spoofed.iter().chain(&nominated).copied().collect();
    rig.check("a nomination", &rig.ask("GET", SYSTEM, &all, b""), "403 [Forbidden]");
    assert_eq!(rig.ask("GET", SECRETS, &all, b"").code, 200);
}

#[test]
fn row_24_impersonation() {
    let rig = Rig::start();
    let warrant = (
        "Impersonate-Extra-Authorization.kcp.io%2Fwarrant",
        r#"{"user":"x","groups":["system:masters"]}"#,
    );
    let someone = ("Impersonate-User", "someone");
    for (what, headers) in [
        ("masters", vec![someone, ("Impersonate-Group", "system:masters")]),
        (
            "masters among others",
            vec![someone, ("Impersonate-Group", "a"), ("Impersonate-Group", "system:masters")],
        ),
        (
            "a workspace's admins",
            vec![someone, ("Impersonate-Group", "system:kcp:logical-cluster-admin")],
        ),
        (
            "external admins",
            vec![someone, ("Impersonate-Group", "system:kcp:external-logical-cluster-admin")],
        ),
        (
            "bootstrappers",
            vec![someone, ("Impersonate-Group", "system:kcp:tenancy:workspace-bootstrapper")],
        ),
        ("a warrant", vec![someone, warrant]),
        (
            "scopes",
            vec![
                someone,
                ("Impersonate-Extra-Authentication.kcp.io%2Fscopes", "cluster:system:admin"),
            ],
        ),
        (
            "a service account of a system cluster",
            vec![
                ("Impersonate-User", "system:serviceaccount:default:x"),
                ("Impersonate-Extra-Authentication.kubernetes.io%2Fcluster-Name", "system:admin"),
            ],
        ),
    ] {
        rig.check(what, &rig.ask("GET", SECRETS, &headers, b""), "403 [Forbidden]");
        rig.check(what, &rig.ask("GET", SYSTEM, &headers, b""), "403 [Forbidden]");
    }
    for (what, headers) in [
        ("a group without a user", vec![("Impersonate-Group", "system:masters")]),
        ("an extra without a user", vec![warrant]),
        ("a uid without a user", vec![("Impersonate-Uid", "0")]),
    ] {
        let answer = rig.ask("GET", SYSTEM, &headers, b"");
        assert!(
            (400..=403).contains(&answer.code) || answer.code == 500,
            "{what}: {}",
            answer.text()
        );
        rig.server.assert_alive(what);
    }
}

#[test]
fn credentials_that_are_none() {
    let rig = Rig::start();
    for value in [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic YTpi",
        "Bearer a b",
        "bearer",
        "\u{e9}",
        "Negotiate x",
    ] {
        for target in [SECRETS, SYSTEM, "/version", "/clusters/root/api"] {
            let answer = rig.server.send("GET", target, None, &[("Authorization", value)], b"");
            assert!(matches!(answer.code, 401 | 403), "{value:?} {target}: {}", answer.text());
        }
    }
    let answer = rig.server.send("GET", SECRETS, Some("wrong"), &[], b"");
    rig.check("a wrong token", &answer, "401 [Unauthorized]");
    let long = "x".repeat(1 << 19);
    let answer = rig.server.send("GET", SECRETS, Some(&long), &[], b"");
    rig.check("a long token", &answer, "401 [Unauthorized]");
}
