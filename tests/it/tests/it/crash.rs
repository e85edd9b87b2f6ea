//! kill -9 under write load: no acknowledged create, update or delete is lost, no revision is used
//! again, and it always starts again. `CRASH_SECS` says for how long (60 by default).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use it::Server;
use serde_json::{Value, json};

const WRITERS: usize = 4;
const PATH: &str = "/clusters/root/api/v1/namespaces/default/configmaps";

/// What is known of an object.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The revision of the last acknowledged write; `None` after a delete.
    revision: Option<u64>,
    /// A write was sent and not answered: it may have happened.
    in_doubt: bool,
}

#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, Known>>);

impl Ledger {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<String, Known>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn sent(&self, name: &str) {
        self.with(|all| {
            let known = all.entry(name.to_owned());
            known.or_insert(Known { revision: None, in_doubt: true }).in_doubt = true;
        });
    }

    fn answered(&self, name: &str, revision: Option<u64>) {
        let known = Known { revision, in_doubt: false };
        self.with(|all| {
            all.insert(name.to_owned(), known);
        });
    }

    fn newest(&self) -> u64 {
        self.with(|all| all.values().filter_map(|known| known.revision).max().unwrap_or(0))
    }
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    let secs = std::env::var("CRASH_SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let end = Instant::now() + Duration::from_secs(secs);
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let ledger = Ledger::default();
    let mut rounds = 0;
    while Instant::now() < end {
        let mut server = Server::start_in(&root, &[]).expect("it starts again");
        check(&server, &ledger);
        write_until_killed(&mut server, rounds, &ledger);
        rounds += 1;
    }
    let server = Server::start_in(&root, &[]).expect("it starts again");
    check(&server, &ledger);
    let count = ledger.with(|all| all.len());
    println!("{rounds} kills, {count} objects written, nothing acknowledged lost");
    assert!(rounds > 3 && count > 100);
}

fn write_until_killed(server: &mut Server, round: usize, ledger: &Ledger) {
    let stop = AtomicBool::new(false);
    let (token, this) = (server.token("kcp-admin"), &*server);
    let floor = ledger.newest();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (stop, token) = (&stop, &token);
            scope.spawn(move || {
                let send = |method: &str, path: &str, body: &Value| {
                    let headers = [("Content-Type", "application/json")];
                    this.request(method, path, Some(token), &headers, body.to_string().as_bytes())
                };
                for n in 0.. {
                    let name = format!("r{round}-w{writer}-{n}");
                    let path = format!("{PATH}/{name}");
                    let mut object =
                        json!({"metadata": {"name": name}, "data": {"x": "y".repeat(500)}});
                    // Every object is created, every second updated, every fourth deleted.
                    let writes = [("POST", 1), ("PUT", 2), ("DELETE", 4)];
                    for (method, _) in writes.into_iter().filter(|(_, every)| n % every == 0) {
                        ledger.sent(&name);
                        object["data"]["by"] = method.into();
                        let at = if method == "POST" { PATH } else { &path };
                        match send(method, at, &object) {
                            Ok(answer) if matches!(answer.code, 200 | 201) => {
                                let written =
                                    (method != "DELETE").then(|| revision(&answer.json()));
                                assert!(
                                    written.is_none_or(|r| r > floor),
                                    "{name} reuses {written:?}"
                                );
                                ledger.answered(&name, written);
                            }
                            _ if stop.load(Ordering::Acquire) => return,
                            _ => {}
                        }
                    }
                }
            });
        }
        // Between one and three seconds, by the round: kills meet every stage of a start's life.
        std::thread::sleep(Duration::from_millis(1000 + 367 * (round as u64 % 6)));
        stop.store(true, Ordering::Release);
        let pid = rustix::process::Pid::from_raw(this.pid() as i32).expect("a pid");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    });
    server.kill();
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).expect("a revision")
}

/// Everything is as it was acknowledged, and no two objects share a revision.
fn check(server: &Server, ledger: &Ledger) {
    let list = server.admin("GET", PATH, &Value::Null).json();
    let items = list["items"].as_array().expect("items");
    let found: BTreeMap<String, u64> = items
        .iter()
        .map(|o| (o["metadata"]["name"].as_str().expect("a name").to_owned(), revision(o)))
        .collect();
    ledger.with(|all| {
        for (name, known) in all.iter_mut() {
            let is = found.get(name).copied();
            assert!(known.in_doubt || is == known.revision, "{name}: {is:?}, expected {known:?}");
            // What was in doubt is settled now, and stays.
            *known = Known { revision: is, in_doubt: false };
        }
    });
    let mut versions: Vec<u64> = found.values().copied().collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), found.len(), "a revision is used twice");
}
