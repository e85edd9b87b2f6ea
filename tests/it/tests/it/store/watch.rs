//! Watches: what is told, in which order, and when progress may be told.

use super::*;

fn watch(store: &Store, flags: &str) -> Follower {
    let mut command = store.etcdctl();
    command.arg("watch").args(flags.split(' '));
    Follower::start(command)
}

#[test]
fn from_a_revision_on() {
    let store = Store::start(&[]);
    for command in ["put /a 1", "put /b 1", "put /a 2", "del /a", "put /a 3"] {
        store.run(command);
    }
    // Puts are three lines, a delete is two and what was there two more.
    let mut all = watch(&store, "/a --rev=2 --prev-kv");
    expect![[""]].assert_eq(&all.lines(15));
    let mut range = watch(&store, "/a /c --rev=3");
    store.run("put /b 2");
    store.run("put /c not-in-it");
    store.run("put /b 3");
    expect![[""]].assert_eq(&range.lines(17));
}

#[test]
fn a_server_that_stops_ends_watches() {
    let store = Store::start(&[]);
    let mut now = watch(&store, "/ --prefix --progress-notify");
    // The watch is there when it tells of a write.
    let deadline = Instant::now() + PATIENCE;
    let (heard, hear) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let _ = heard.send(now.lines(3));
    });
    loop {
        store.run("put /seen x");
        if let Ok(lines) = hear.recv_timeout(Duration::from_millis(100)) {
            assert_eq!(lines, "PUT\n/seen\nx\n");
            break;
        }
        assert!(Instant::now() < deadline, "the watch tells of nothing");
    }
    reader.join().expect("the reader ends");
    store.stop();
}
