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
    expect![[r#"
        PUT
        /a
        1
        PUT
        /a
        1
        /a
        2
        DELETE
        /a
        2
        /a

        PUT
        /a
        3
    "#]]
    .assert_eq(&all.lines(16));
    let mut range = watch(&store, "/a /c --rev=3");
    store.run("put /b 2");
    store.run("put /c not-in-it");
    store.run("put /b 3");
    expect![[r#"
        PUT
        /b
        1
        PUT
        /a
        2
        DELETE
        /a

        PUT
        /a
        3
        PUT
        /b
        2
        PUT
        /b
        3
    "#]]
    .assert_eq(&range.lines(18));
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

/// A progress request is answered after every event up to the revision that it names, whether the
/// watch is told of the write or not.
#[test]
fn progress_comes_after_the_events() {
    let store = Store::start(&[]);
    let mut command = store.etcdctl();
    command.args(["watch", "-i"]);
    let (mut input, mut output) = Follower::interactive(command);
    // From the first revision on, so that it does not matter when the watch begins.
    input.write_all(b"watch /b --rev=2\n").expect("write");
    store.run("put /b first");
    assert_eq!(output.lines(3), "PUT\n/b\nfirst\n");
    for round in 0..20 {
        store.run(&format!("put /b {round}"));
        store.run("put /other x");
        input.write_all(b"progress\n").expect("write");
        let newest = 4 + 2 * round;
        let wanted = format!("PUT\n/b\n{round}\nprogress notify: {newest}\n");
        assert_eq!(output.lines(4), wanted);
    }
}

/// A quiet watch that asked for it hears how far it is.
#[test]
fn a_quiet_watch_hears_of_its_progress() {
    let store = Store::start(&["--watch-progress-notify-interval=50ms"]);
    store.run("put /other 1");
    let mut quiet = watch(&store, "/quiet --progress-notify");
    assert_eq!(quiet.lines(1), "progress notify: 2\n");
    store.run("put /other 2");
    let mut line = quiet.lines(1);
    while line == "progress notify: 2\n" {
        line = quiet.lines(1);
    }
    assert_eq!(line, "progress notify: 3\n");
}
