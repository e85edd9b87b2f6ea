//! `ferroplane store backup|restore|migrate|verify` with the real program: a server's data goes
//! from SQLite to PostgreSQL and back.

use std::path::Path;
use std::process::Command;

use it::{Server, cluster, program};
use serde_json::{Value, json};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const CONFIGMAPS: &str = "/clusters/root/api/v1/namespaces/default/configmaps";

/// Runs `ferroplane store`: exit code, standard output, standard error.
fn store(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(program()).arg("store").args(args).output().expect("run it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn done(args: &[&str]) -> Value {
    let (code, out, said) = store(&[args, &["-o", "json"]].concat());
    assert_eq!(code, 0, "{args:?}: {said}{out}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// Name, uid and resourceVersion of each object.
fn listed(server: &Server, path: &str) -> Vec<String> {
    let answer = server.admin("GET", path, &Value::Null);
    assert_eq!(answer.code, 200, "{}", answer.text());
    let items = answer.json()["items"].as_array().cloned().unwrap_or_default();
    let one = |item: &Value| {
        let meta = &item["metadata"];
        format!("{} {} {}", meta["name"], meta["uid"], meta["resourceVersion"])
    };
    items.iter().map(one).collect()
}

fn make(server: &Server, path: &str, name: &str) {
    let mut kind = json!({"metadata": {"name": name}});
    if path == WORKSPACES {
        kind["apiVersion"] = "tenancy.kcp.io/v1alpha1".into();
        kind["kind"] = "Workspace".into();
    }
    let made = server.admin("POST", path, &kind);
    assert_eq!(made.code, 201, "{}", made.text());
}

/// Until all workspaces are ready.
fn await_workspaces(server: &Server) {
    let deadline = std::time::Instant::now() + it::PATIENCE;
    loop {
        let list = server.admin("GET", WORKSPACES, &Value::Null).json();
        let items = list["items"].as_array().expect("a list");
        if items.iter().all(|item| item["status"]["phase"] == "Ready") {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "not ready: {list:#}");
    }
}

/// Configmaps and workspaces.
fn content(server: &Server) -> (Vec<String>, Vec<String>) {
    let workspaces = listed(server, WORKSPACES);
    (listed(server, CONFIGMAPS), workspaces)
}

#[test]
fn a_server_moves_to_postgresql_and_back() {
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let sqlite = format!("--etcd-servers=sqlite://{}", dir.path().join("a.db").display());
    let from = sqlite.replace("--etcd-servers", "--endpoint");
    let mut server = Server::start_in(&root, &[&sqlite]).expect("start");
    // Workspaces hold the server's URL: another port would be a write to each.
    let port = server.port();
    let start_on =
        |flag: &str| Server::start_on(&root, port, &[flag]).expect("start at the same port");
    for name in ["one", "two"] {
        make(&server, WORKSPACES, name);
        make(&server, CONFIGMAPS, name);
    }
    // Beside the server, which goes on.
    let online = dir.path().join("online").display().to_string();
    assert!(done(&["backup", &from, &online])["keys"].as_u64().expect("keys") > 10);
    assert_eq!(done(&["verify", &online])["ok"], true);
    let (code, _, said) = store(&["compact", &from, "--keep=0"]);
    assert!(code == 1 && said.contains("is in use by process"), "{code} {said}");
    await_workspaces(&server);
    let mut first = content(&server);
    server.stop();
    // A stop may have come before a controller's last write; a start that changes nothing has none.
    for tries in 0.. {
        let mut server = start_on(&sqlite);
        await_workspaces(&server);
        let before = std::mem::replace(&mut first, content(&server));
        server.stop();
        if before == first {
            break;
        }
        assert!(tries < 10, "it never settles: {before:?} {first:?}");
    }

    let file = dir.path().join("backup").display().to_string();
    let backup = done(&["backup", &from, &file]);
    let url = cluster::fresh_database();
    let to = format!("--endpoint={url}");
    let restored = done(&["restore", &to, &file]);
    assert_eq!((&restored["keys"], &restored["revision"]), (&backup["keys"], &backup["revision"]));
    assert_eq!(done(&["verify", &to])["keys"], backup["keys"]);
    // What both say of themselves, byte by byte, at the same revisions.
    let again = dir.path().join("again").display().to_string();
    done(&["backup", &to, &again]);
    assert_eq!(records(&file), records(&again));

    let mut server = start_on(&format!("--etcd-servers={url}"));
    assert_eq!(content(&server), first);
    assert_eq!(first.1.len(), 2, "{first:?}");
    make(&server, CONFIGMAPS, "three");
    let before = content(&server);
    server.stop();

    let back = dir.path().join("b.db").display().to_string();
    done(&["migrate", &to, &format!("--to=sqlite://{back}")]);
    assert_eq!(done(&["verify", &format!("--endpoint=sqlite://{back}")])["ok"], true);
    let server = start_on(&format!("--etcd-servers=sqlite://{back}"));
    assert_eq!(content(&server), before);
}

/// The blocks of records: everything between header and trailer.
fn records(file: &str) -> Vec<u8> {
    const TRAILER: usize = 1 + 4 + 8 + 8 + 32 + 8;
    let bytes = std::fs::read(file).expect("read");
    let first = bytes.iter().position(|b| *b == b'\n').expect("a first line") + 1;
    let length = u32::from_le_bytes(bytes[first + 1..first + 5].try_into().expect("four"));
    bytes[first + 5 + length as usize + 8..bytes.len() - TRAILER].to_vec()
}

fn refused(args: &[&str], code: i32, expected: &str) {
    let (found, out, said) = store(args);
    assert_eq!(found, code, "{args:?}: {said}{out}");
    assert!(format!("{out}{said}").contains(expected), "{args:?}: {expected}: {said}{out}");
    assert!(code != 1 || said.lines().count() == 1, "{said}");
}

#[test]
fn what_is_wrong_is_said_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("make a folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (from, file) = (format!("--endpoint=sqlite://{}", path("a.db")), path("backup"));
    let root = dir.path().join("root");
    let serve = from.replace("--endpoint", "--etcd-servers");
    Server::start_in(&root, &[&serve]).expect("start").stop();
    done(&["backup", &from, &file]);
    let good = std::fs::read(&file).expect("read");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.path().join(name), bytes).expect("write");
        path(name)
    };
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let bad = [
        (write("cut", &good[..good.len() - 9]), "it is not complete"),
        (write("flipped", &flipped), "its checksum does not match"),
        (write("foreign", b"SQLite format 3\0"), "it is not a backup of Ferroplane"),
        (write("newer", b"ferroplane-backup 7\n"), "it has format version 7"),
    ];
    let to = format!("--endpoint=sqlite://{}", path("b.db"));
    for (name, expected) in &bad {
        refused(&["verify", name], 3, expected);
        refused(&["restore", &to, name], 1, expected);
        assert!(!Path::new(&path("b.db")).exists(), "{name}");
    }
    refused(&["restore", &from, &file], 1, "is not empty: it holds");
    refused(&["backup", &from, &file], 1, "it exists: name another file");
    refused(&["backup", &to, &path("c")], 1, "does not exist, or holds no kine table");
    refused(&["compact", &from, "--revision=999999999"], 1, "is in the future, newest is");
    refused(&["stats", "--endpoint=what"], 2, "is no store");
    let wrong = cluster::fresh_database().replace("kine:", "kine:wr0ng");
    refused(&["stats", &format!("--endpoint={wrong}")], 1, "password authentication failed");
    let names = std::fs::read_dir(dir.path()).expect("read").flatten();
    let partial =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("partial");
    assert!(!names.into_iter().any(|entry| partial(&entry)));
}
