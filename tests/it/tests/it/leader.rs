//! Two servers with `--enable-leader-election` on one PostgreSQL: one acts, the other's controllers
//! are silent, and whatever happens to the leader the other takes over.
//!
//! Who wrote a row is known for certain: each server connects under a name of its own, and a
//! trigger of the test's notes it.

use std::path::Path;
use std::time::Instant;

use it::Server;
use it::cluster::Cluster;
use serde_json::{Value, json};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const LEASES: &str =
    "/clusters/system:admin/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASE_KEYS: &str = "/registry/coordination.k8s.io/leases/";
/// Longer than any test waits: what takes over within it does not wait for it.
const ENDLESS: [&str; 1] = ["--leader-election-lease-duration=3600s"];
const SHORT: [&str; 3] = [
    "--leader-election-lease-duration=2s",
    "--leader-election-renew-deadline=1s",
    "--leader-election-retry-period=200ms",
];

/// Two servers, the first of which leads.
struct Pair {
    a: Server,
    b: Server,
    cluster: Cluster,
    _dir: tempfile::TempDir,
}

impl Pair {
    fn start(flags: &[&str]) -> Self {
        let cluster = Cluster::start(&[]);
        let dir = tempfile::tempdir().expect("make a folder");
        let a = start(&cluster, dir.path(), "a", flags);
        sql(
            &cluster,
            "CREATE TABLE written (id bigint, name text, app text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               INSERT INTO written VALUES (NEW.id, NEW.name, current_setting('application_name'));
               RETURN NEW; END $$;
             CREATE TRIGGER note AFTER INSERT ON kine FOR EACH ROW EXECUTE FUNCTION note();",
        );
        let b = start(&cluster, dir.path(), "b", flags);
        Self { a, b, cluster, _dir: dir }
    }

    /// The keys that a server has written after a revision, up to an epoch of its own; without the
    /// Leases.
    fn written(&self, app: &str, after: i64) -> Vec<String> {
        let query = format!(
            "SELECT name FROM written WHERE app = '{app}' AND id > {after} AND name NOT LIKE '{LEASE_KEYS}%'
               AND id < COALESCE((SELECT min(id) FROM written WHERE app = '{app}' AND id > {after}
                 AND name LIKE '{LEASE_KEYS}%-epoch'), 9223372036854775807) ORDER BY id"
        );
        sql(&self.cluster, &query).lines().map(str::to_owned).collect()
    }

    /// The one whose epoch it is, and the other.
    fn roles(&self) -> [(&Server, &'static str); 2] {
        let query = format!(
            "SELECT app FROM written WHERE name LIKE '{LEASE_KEYS}%-epoch' ORDER BY id DESC LIMIT 1"
        );
        let (a, b) = ((&self.a, "a"), (&self.b, "b"));
        if sql(&self.cluster, &query).trim() == "b" { [b, a] } else { [a, b] }
    }
}

fn start(cluster: &Cluster, dir: &Path, name: &str, flags: &[&str]) -> Server {
    let store = format!("--etcd-servers={}?application_name={name}", cluster.url("kine"));
    let flags = [&[&*store, "--enable-leader-election", "-v=4"], flags].concat();
    Server::start_in(&dir.join(name), &flags).expect("start the server")
}

/// The lines that a statement answers.
fn sql(cluster: &Cluster, statement: &str) -> String {
    cluster.run("psql", &[&cluster.url("kine"), "-v", "ON_ERROR_STOP=1", "-qAtc", statement]);
    std::fs::read_to_string(cluster.folder().join("psql.out")).expect("read the answer")
}

fn lease(server: &Server, name: &str) -> Value {
    server.master("GET", &format!("{LEASES}/{name}"), &Value::Null).json()
}

/// Asks for a workspace and does not wait for it.
fn ask(server: &Server, name: &str) {
    let workspace = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}},
    });
    let made = server.admin("POST", WORKSPACES, &workspace);
    assert_eq!(made.code, 201, "{}", made.text());
}

fn await_ready(server: &Server, name: &str) {
    server.until("the workspace is Ready", || {
        let found = server.admin("GET", &format!("{WORKSPACES}/{name}"), &Value::Null).json();
        (found["status"]["phase"] == "Ready").then_some(())
    });
}

#[test]
fn one_acts_and_after_its_end_the_other_at_once() {
    let mut pair = Pair::start(&ENDLESS);
    let (first, epoch) =
        (lease(&pair.b, "kcp-controllers"), lease(&pair.b, "kcp-controllers-epoch"));
    let holder = first["spec"]["holderIdentity"].as_str().expect("a holder");
    assert!(holder.contains('_'), "{holder}");
    assert_eq!(first["spec"]["leaseDurationSeconds"], 3600);
    assert_eq!(epoch["spec"]["holderIdentity"], first["spec"]["holderIdentity"]);
    // It has come up beside the leader without a write.
    assert_eq!(pair.written("b", 0), [""; 0]);
    for n in 0..5 {
        ask(&pair.b, &format!("w{n}"));
    }
    for n in 0..5 {
        await_ready(&pair.b, &format!("w{n}"));
    }
    // The requests' writes and no more: what made the workspaces ready was the other.
    let by_b = pair.written("b", 0);
    assert_eq!(by_b.len(), 5, "{by_b:?}");
    assert!(by_b.iter().all(|key| key.contains("/workspaces/")), "{by_b:?}");

    ask(&pair.b, "before");
    let began = Instant::now();
    assert_eq!(pair.a.stop().0, Some(0));
    ask(&pair.b, "after");
    await_ready(&pair.b, "before");
    await_ready(&pair.b, "after");
    println!("ready through the other {:?} after SIGTERM", began.elapsed());
    let second = lease(&pair.b, "kcp-controllers");
    assert_ne!(second["spec"]["holderIdentity"], first["spec"]["holderIdentity"]);
    assert_eq!(second["spec"]["leaseTransitions"], 1);
    assert!(pair.a.log().contains("released the lease"), "{}", pair.a.log());

    // The last one leaves the lease to whoever comes.
    assert_eq!(pair.b.stop().0, Some(0));
    let again = start(&pair.cluster, pair._dir.path(), "a", &ENDLESS);
    again.workspace("third");
    assert_eq!(lease(&again, "kcp-controllers")["spec"]["leaseTransitions"], 2);
}

#[test]
fn after_a_crash_the_other_acts_when_the_lease_has_run_out() {
    let mut pair = Pair::start(&SHORT);
    pair.b.workspace("one");
    pair.a.kill();
    let began = Instant::now();
    ask(&pair.b, "two");
    await_ready(&pair.b, "two");
    println!("ready through the other {:?} after SIGKILL", began.elapsed());
    assert_eq!(lease(&pair.b, "kcp-controllers")["spec"]["leaseTransitions"], 1);
}

/// Paused in the midst of its work, and resumed when another leads, which is paused in its turn so
/// that the work is still undone: whatever the first was about to write is refused.
#[test]
fn a_leader_that_was_paused_past_its_lease_writes_nothing() {
    const ROUNDS: usize = 4;
    let pair = Pair::start(&SHORT);
    let mut n_refused = 0;
    for round in 0..ROUNDS {
        let [(leader, app), (other, _)] = pair.roles();
        let epoch = || {
            let epoch = lease(other, "kcp-controllers-epoch");
            epoch["metadata"]["resourceVersion"].as_str().and_then(|e| e.parse::<i64>().ok())
        };
        let (before, n_lost) = (epoch(), count(leader, "\"stopped leading\""));
        let names: Vec<_> = (0..12).map(|n| format!("r{round}-{n}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| ask(other, name));
            }
        });
        leader.pause();
        let n_before = count(leader, "the writer's epoch is over");
        let epoch = other.until("another leads", || epoch().filter(|e| Some(*e) != before));
        other.pause();
        leader.resume();
        leader.until("it steps down", || {
            (count(leader, "\"stopped leading\"") > n_lost).then_some(())
        });
        other.resume();
        names.iter().for_each(|name| await_ready(other, name));
        assert_eq!(pair.written(app, epoch), [""; 0], "round {round}");
        n_refused += count(leader, "the writer's epoch is over") - n_before;
    }
    println!("{ROUNDS} rounds, {n_refused} writes refused, none stale");
}

/// How often it has logged this.
fn count(server: &Server, what: &str) -> usize {
    server.log().matches(what).count()
}
