//! A Go kcp on our store behind kine, and ours on a store that it filled: each serves what the
//! other wrote, and goes on writing.
//!
//! It needs the programs of the two projects. Where the environment names them (`KCP_BIN` and
//! `KINE_BIN`) it runs; elsewhere it says that it did not. Ours is always the one under test.

mod content;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use it::{PATIENCE, Server, free_port};

use content::Content;

/// Go kcp takes ten seconds on a quiet machine of two cores.
const GO_PATIENCE: Duration = Duration::from_secs(300);

struct Others {
    kcp: PathBuf,
    kine: PathBuf,
}

/// The other programs; says so when they are not named.
fn others() -> Option<Others> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let Some((kcp, kine)) = named("KCP_BIN").zip(named("KINE_BIN")) else {
        // Not by a macro, whose text the test runner keeps back when a test passes.
        let told = "exchange: NOT RUN: name a Go kcp in KCP_BIN and a kine in KINE_BIN\n";
        let _ = std::io::stderr().write_all(told.as_bytes());
        return None;
    };
    Some(Others { kcp, kine })
}

/// kine, or what takes its place, on a file; ends with the value.
struct Kine {
    child: Child,
    url: String,
}

impl Kine {
    /// `program` has kine's flags, whichever it is.
    fn start(mut program: Command, file: &Path) -> Self {
        let port = free_port().expect("a free port");
        let url = format!("http://127.0.0.1:{port}");
        let parameters = "_journal=WAL&_busy_timeout=30000&_txlock=immediate&cache=shared";
        let log = std::fs::File::create(file.with_extension("kine.log")).expect("make a log");
        let child = program
            .arg(format!("--endpoint=sqlite://{}?{parameters}", file.display()))
            .args([&format!("--listen-address={url}"), "--metrics-bind-address=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("run kine");
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "kine does not listen after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, url }
    }
}

impl Drop for Kine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `what` against a Go kcp on the file, and stops it and kine.
fn with_go(others: &Others, root: &Path, file: &Path, what: impl FnOnce(&Server)) {
    with_go_on(Command::new(&others.kine), others, root, file, what);
}

/// The same with our endpoint in kine's place.
fn with_go_on_ours(others: &Others, root: &Path, file: &Path, what: impl FnOnce(&Server)) {
    let mut store = Command::new(it::program());
    store.arg("store");
    with_go_on(store, others, root, file, what);
}

fn with_go_on(
    endpoint: Command,
    others: &Others,
    root: &Path,
    file: &Path,
    what: impl FnOnce(&Server),
) {
    let kine = Kine::start(endpoint, file);
    let store = format!("--etcd-servers={}", kine.url);
    let mut server = Server::start_other(&others.kcp, root, &[&store], GO_PATIENCE)
        .expect("start the other kcp");
    what(&server);
    server.stop();
}

fn with_ours(root: &Path, file: &Path, what: impl FnOnce(&Server)) {
    let store = format!("--etcd-servers=sqlite://{}", file.display());
    let mut server = Server::start_in(root, &[&store]).expect("start the server");
    what(&server);
    Content::check_endpoints(&server);
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn go_kcp_serves_our_store_and_we_serve_it_after() {
    let Some(others) = others() else { return };
    let dir = tempfile::tempdir().expect("make a folder");
    let (ours, go) = (dir.path().join("ours"), dir.path().join("go"));
    let mut content = Content::default();
    // Our default store, not one that was named.
    let mut server = Server::start_in(&ours, &[]).expect("start the server");
    content.write(&server, "first");
    assert_eq!(server.stop().0, Some(0));
    let file = ours.join("ferroplane.db");
    with_go(&others, &go, &file, |server| {
        content.check(server);
        content.write(server, "second");
    });
    with_ours(&ours, &file, |server| {
        content.check(server);
        content.write(server, "third");
    });
    // In our folder it uses our key and our tokens besides.
    with_go(&others, &ours, &file, |server| content.check(server));
}

#[test]
fn we_serve_a_store_of_go_kcp_and_it_serves_it_after() {
    let Some(others) = others() else { return };
    let dir = tempfile::tempdir().expect("make a folder");
    let go = dir.path().join("go");
    let file = dir.path().join("kine.db");
    let mut content = Content::default();
    with_go(&others, &go, &file, |server| {
        content.write(server, "first");
        content.write_with_rules(server, "first");
    });
    // In its folder: ours uses its key and its tokens.
    with_ours(&go, &file, |server| {
        content.check(server);
        content.check_rules_are_missed(server, "first");
        content.write(server, "second");
    });
    with_go(&others, &go, &file, |server| {
        content.check(server);
        content.check_rules_hold(server, "first");
    });
}

#[test]
fn go_kcp_runs_on_our_endpoint_and_on_kine_by_turns() {
    let Some(others) = others() else { return };
    let dir = tempfile::tempdir().expect("make a folder");
    let (go, file) = (dir.path().join("go"), dir.path().join("kine.db"));
    let mut content = Content::default();
    with_go_on_ours(&others, &go, &file, |server| content.write(server, "first"));
    with_go(&others, &go, &file, |server| {
        content.check(server);
        content.write(server, "second");
    });
    with_go_on_ours(&others, &go, &file, |server| {
        content.check(server);
        content.write(server, "third");
    });
}
