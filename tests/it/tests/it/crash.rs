//! kill -9 under write load: no acknowledged write is lost, no revision is used twice, and it
//! always starts again. `CRASH_SECS` says for how long (60 by default).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use it::Server;
use serde_json::{Value, json};

const WRITERS: usize = 4;
const PATH: &str = "/clusters/root/api/v1/namespaces/default/configmaps";

/// What was acknowledged: name to resourceVersion.
type Acknowledged = Arc<Mutex<BTreeMap<String, u64>>>;

#[test]
fn acknowledged_writes_survive_kill_9() {
    let secs = std::env::var("CRASH_SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let end = Instant::now() + Duration::from_secs(secs);
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let acknowledged: Acknowledged = Arc::default();
    let mut rounds = 0;
    while Instant::now() < end {
        let mut server = Server::start_in(&root, &[]).expect("it starts again");
        check(&server, &acknowledged);
        write_until_killed(&mut server, rounds, &acknowledged);
        rounds += 1;
    }
    let server = Server::start_in(&root, &[]).expect("it starts again");
    check(&server, &acknowledged);
    let count = acknowledged.lock().expect("the writers are gone").len();
    println!("{rounds} kills, {count} acknowledged writes, none lost");
    assert!(rounds > 3 && count > 100);
}

fn write_until_killed(server: &mut Server, round: usize, acknowledged: &Acknowledged) {
    let stop = AtomicBool::new(false);
    let (token, this) = (server.token("kcp-admin"), &*server);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (stop, token) = (&stop, &token);
            scope.spawn(move || {
                for n in 0.. {
                    let name = format!("r{round}-w{writer}-{n}");
                    let body = json!({"metadata": {"name": name}, "data": {"x": "y".repeat(500)}})
                        .to_string();
                    let headers = [("Content-Type", "application/json")];
                    match this.request("POST", PATH, Some(token), &headers, body.as_bytes()) {
                        Ok(answer) if answer.code == 201 => {
                            let version = revision(&answer.json());
                            acknowledged
                                .lock()
                                .expect("nobody panics with it")
                                .insert(name, version);
                        }
                        _ if stop.load(Ordering::Acquire) => return,
                        _ => {}
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

/// Every acknowledged object is there at its revision, and no two objects share one.
fn check(server: &Server, acknowledged: &Acknowledged) {
    let list = server.admin("GET", PATH, &Value::Null).json();
    let items = list["items"].as_array().expect("items");
    let found: BTreeMap<String, u64> = items
        .iter()
        .map(|o| (o["metadata"]["name"].as_str().expect("a name").to_owned(), revision(o)))
        .collect();
    for (name, version) in acknowledged.lock().expect("nobody panics with it").iter() {
        assert_eq!(found.get(name), Some(version), "{name}");
    }
    let mut versions: Vec<u64> = found.values().copied().collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), found.len(), "a revision is used twice");
}
