//! What is still true after the store was closed, dropped or killed.

use std::path::Path;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{EventKind, Op, Store};
use fp_store_sql::SqliteStore;
use rusqlite::Connection;

use crate::{PATIENCE, delete, listed, open, put, write};

#[tokio::test]
async fn revisions_grow_across_restarts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let mut newest = Revision::ZERO;
    for life in 0..4 {
        let store = open(&path);
        let head = store.head().await.expect("head");
        assert!(head >= newest, "{head} after {newest}");
        let created = put(&store, "/a", "x").await;
        assert_eq!(created, head.next());
        newest = delete(&store, "/a").await;
        store.compact(newest).await.expect("compact");
        // Closed and dropped by turns.
        if life % 2 == 0 {
            store.close().await;
        }
    }
}

/// The files of a running store are what a `kill -9` leaves: every acknowledged write is in them.
#[tokio::test]
async fn acknowledged_writes_are_in_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let store = open(&path);
    for i in 0..50 {
        put(&store, &format!("/k{i:02}"), &"v".repeat(i * 100)).await;
    }
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["state.db", "state.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).expect("copy");
    }
    let after = open(&copy.path().join("state.db"));
    assert_eq!(after.head().await.expect("head"), store.head().await.expect("head"));
    assert_eq!(listed(&after).await, listed(&store).await);
}

/// A restart gives a key no second life, and a clock that was set back no longer one.
#[tokio::test]
async fn leases_go_on_across_restarts() {
    let cases = [
        // (lease, what happened to the recorded end, and is it gone at once or within its TTL)
        (3600, "UPDATE fp_expiry SET expires_ms = 1000"),
        (1, "UPDATE fp_expiry SET expires_ms = expires_ms + 1000000000000"),
        // kine wrote it, which records no end: its time starts when we first see it.
        (1, "DELETE FROM fp_expiry; UPDATE fp_meta SET value = 0"),
    ];
    for (lease_ttl_secs, meanwhile) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        let leased = |key: &str, lease_ttl_secs| {
            let value = Bytes::from_static(b"x");
            Op::Put { key: key.into(), value, lease_ttl_secs }
        };
        let store = open(&path);
        let at = write(&store, leased("/leased", lease_ttl_secs)).await;
        store.close().await;
        edit(&path, meanwhile);
        let store = open(&path);
        wait_until_deleted(&store, at, meanwhile).await;
        store.close().await;
        let left = Connection::open(&path).expect("open");
        let n: i64 =
            left.query_row("SELECT COUNT(*) FROM fp_expiry", [], |row| row.get(0)).expect("count");
        assert_eq!(n, 0, "{meanwhile}");
    }
}

fn edit(path: &Path, sql: &str) {
    Connection::open(path).expect("open").execute_batch(sql).expect(sql);
}

async fn wait_until_deleted(store: &SqliteStore, at: Revision, case: &str) {
    let mut watcher = store.watch("/leased", at.next()).await.expect("watch");
    let batch = tokio::time::timeout(PATIENCE, watcher.next()).await.expect(case).expect("next");
    let kinds: Vec<_> = batch.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Deleted], "{case}");
}
