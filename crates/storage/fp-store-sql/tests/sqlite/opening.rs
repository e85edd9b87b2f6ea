//! What stands in the way of opening a file is told in one line, and the file stays as it is.

use std::path::Path;

use expect_test::{Expect, expect};
use fp_store::Store;
use fp_store_sql::{OpenError, SqliteStore};
use rusqlite::Connection;

use crate::{open, put, tuning};

/// `make` puts something at the path; the error names the path as PATH.
fn check(make: impl FnOnce(&Path), expect: Expect) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    make(&path);
    let before = std::fs::read(&path).ok();
    let error = SqliteStore::open(&path, tuning(0)).err().expect("an error");
    expect.assert_eq(&error.to_string().replace(&path.display().to_string(), "PATH"));
    assert_eq!(std::fs::read(&path).ok(), before);
}

fn database(path: &Path, sql: &str) {
    Connection::open(path).expect("create").execute_batch(sql).expect(sql);
}

#[test]
fn foreign_files_are_refused() {
    check(
        |path| {
            std::fs::write(path, "not a database, and rather long for a file of text".repeat(40))
                .expect("write")
        },
        expect!["PATH is not a kine database: move it away or name another file"],
    );
    check(
        |path| database(path, "CREATE TABLE bookmarks (url TEXT)"),
        expect!["PATH is not a kine database: move it away or name another file"],
    );
    check(
        |path| {
            database(path, "CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
        },
        expect![
            "PATH has a kine table of an unknown layout (its columns are id INTEGER, name TEXT): use the kine that made it"
        ],
    );
    check(
        |path| {
            database(
                path,
                "CREATE TABLE kine (id INTEGER PRIMARY KEY, name TEXT, created INTEGER, deleted INTEGER, \
                 create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)",
            );
        },
        expect![
            "PATH has a kine table of an unknown layout (its id does not autoincrement): use the kine that made it"
        ],
    );
}

#[test]
fn places_that_hold_no_file_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent/state.db");
    let error = SqliteStore::open(&path, tuning(0)).err().expect("an error");
    assert!(matches!(error, OpenError::NoFolder { .. }), "{error}");
    let error = SqliteStore::open(folder.path(), tuning(0)).err().expect("an error");
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[test]
fn a_file_without_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may open everything");
        return;
    }
    check(
        |path| {
            std::fs::write(path, "").expect("write");
            let nobody = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(path, nobody).expect("set permissions");
        },
        expect![
            "no permission for PATH: make it and its folder readable and writable for this user"
        ],
    );
}

#[tokio::test]
async fn a_second_open_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let first = open(&path);
    put(&first, "/a", "1").await;
    let error = SqliteStore::open(&path, tuning(0)).err().expect("an error");
    let pid = std::process::id();
    assert_eq!(
        error.to_string(),
        format!(
            "{} is in use by process {pid}: stop it or use another root directory",
            path.display()
        )
    );
    first.close().await;
    open(&path).close().await;
}
