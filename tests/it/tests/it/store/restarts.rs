//! The store is the file: what was acknowledged is there after a restart, and kine's rows are kept.

use super::*;

#[test]
fn a_restart_keeps_everything() {
    let store = Store::start(&[]);
    for command in ["put /a 1", "put /a 2", "put /b 1", "del /b", "put /l x --lease=e10"] {
        store.run(command);
    }
    let before = store.run("get / --prefix -w json");
    let hash = store.run("endpoint hashkv").replace(store.address(), "");
    let store = Store::start_in(store.stop(), &[]);
    assert_eq!(store.run("get / --prefix -w json"), before);
    assert_eq!(store.run("endpoint hashkv").replace(store.address(), ""), hash);
    // History too.
    let mut watch = store.etcdctl();
    watch.args(["watch", "/", "--prefix", "--rev=2"]);
    expect![[r#"
        PUT
        /a
        1
        PUT
        /a
        2
        PUT
        /b
        1
        DELETE
        /b

        PUT
        /l
        x
    "#]]
    .assert_eq(&Follower::start(watch).lines(15));
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged() {
    let mut store = Store::start(&[]);
    for round in 0..5 {
        let key = format!("/r/{round}");
        assert_eq!(store.run(&format!("put {key} {round}")), "OK\n");
        store.child.kill().expect("kill");
        store.child.wait().expect("wait");
        let folder = std::mem::replace(&mut store.folder, tempfile::tempdir().expect("a folder"));
        store = Store::start_in(folder, &[]);
        assert_eq!(store.run(&format!("get {key} --print-value-only")), format!("{round}\n"));
    }
}
