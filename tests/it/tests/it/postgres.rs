//! `start` on PostgreSQL: what only that store has. The rest of the tests run on it with
//! STORE=postgres.

use std::path::Path;
use std::process::Command;

use it::{Server, cluster, program};
use serde_json::{Value, json};

const CONFIGMAPS: &str = "/clusters/root/api/v1/namespaces/default/configmaps";

fn on(url: &str, root: &Path) -> Server {
    Server::start_in(root, &[&format!("--etcd-servers={url}")]).expect("start the server")
}

/// Both make the database, the table and the content of root, and both see what either writes.
#[test]
fn two_servers_start_at_once_on_an_empty_database() {
    let url = cluster::fresh_database();
    let dir = tempfile::tempdir().expect("make a folder");
    let roots = ["a", "b"].map(|name| dir.path().join(name));
    let [one, two] = std::thread::scope(|scope| {
        let starts = roots.each_ref().map(|root| scope.spawn(|| on(&url, root)));
        starts.map(|start| start.join().expect("it starts"))
    });
    for (writer, reader) in [(&one, &two), (&two, &one)] {
        let name = format!("of-{}", writer.port());
        let made = writer.admin("POST", CONFIGMAPS, &json!({"metadata": {"name": name}}));
        assert_eq!(made.code, 201, "{}", made.text());
        // Never stale: a read without a version asks the store what is newest.
        let read = reader.admin("GET", &format!("{CONFIGMAPS}/{name}"), &Value::Null);
        assert_eq!(read.code, 200, "{}", read.text());
    }
}

#[test]
fn the_root_directory_holds_no_objects() {
    let dir = tempfile::tempdir().expect("make a folder");
    let mut server = on(&cluster::fresh_database(), &dir.path().join("root"));
    assert_eq!(server.admin("GET", CONFIGMAPS, &Value::Null).code, 200);
    let files = std::fs::read_dir(&server.root).expect("read the root").flatten();
    let mut names: Vec<_> =
        files.map(|file| file.file_name().into_string().expect("text")).collect();
    names.sort();
    assert!(!names.iter().any(|name| name.contains(".db")), "{names:?}");
    server.stop();
}

/// What stands in the way is said in one line, without the password.
#[test]
fn refused_starts() {
    let good = cluster::fresh_database();
    let (_, rest) = good.split_once('@').expect("user@host");
    let cases = [
        (
            format!("postgres://kine:wr0ng@{rest}"),
            "password authentication failed for user \"kine\"",
        ),
        (format!("{good}?sslmode=require"), "server does not support TLS"),
        (format!("{good}?sslmode=verify-full"), "sslmode=verify-full needs sslrootcert=<file>"),
        (format!("{good}?colour=blue"), "unknown option `colour`"),
    ];
    for (url, expected) in cases {
        let dir = tempfile::tempdir().expect("make a folder");
        let output = Command::new(program())
            .args(["start", "--bind-address=127.0.0.1", "--secure-port=0"])
            .arg("--experimental-bind-free-port")
            .arg(format!("--root-directory={}", dir.path().join("root").display()))
            .arg(format!("--etcd-servers={url}"))
            .output()
            .expect("run the program");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        for secret in ["wr0ng", cluster::PASSWORD, "s3%3A"] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}
