//! The SQLite store: conformance, kine's files, restarts, and what stands in the way of opening.

mod kine;
mod opening;
mod restarts;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Event, EventKind, ListQuery, Op, Outcome, Row, Store, Txn, Watcher, conformance};
use fp_store_sql::{SqliteStore, Tuning};
use parking_lot::Mutex;

/// The most that any single wait takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn tuning(ring_bytes_max: usize) -> Tuning {
    Tuning {
        n_readers: 2,
        ring_bytes_max,
        compact_interval: None,
        compact_keep: Duration::from_secs(600),
        compact_keep_revisions: 1000,
    }
}

fn open(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(path, tuning(1 << 20)).expect("open")
}

async fn write(store: &SqliteStore, op: Op) -> Revision {
    match store.commit(Txn { compares: Vec::new(), ops: vec![op] }).await.expect("commit") {
        Outcome::Committed(revisions) => revisions[0],
        failed => panic!("{failed:?}"),
    }
}

async fn put(store: &SqliteStore, key: &str, value: &str) -> Revision {
    let value = Bytes::copy_from_slice(value.as_bytes());
    write(store, Op::Put { key: key.into(), value, lease_ttl_secs: 0 }).await
}

async fn delete(store: &SqliteStore, key: &str) -> Revision {
    write(store, Op::Delete { key: key.into() }).await
}

async fn events_up_to(watcher: &mut Box<dyn Watcher>, last: Revision) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let batch =
            tokio::time::timeout(PATIENCE, watcher.next()).await.expect("the watch goes on");
        let batch = batch.expect("next");
        events.extend(batch.events);
        if batch.progress >= last {
            return events;
        }
    }
}

/// All rows, one a line: key, value, create revision, revision, lease.
async fn listed(store: &SqliteStore) -> String {
    let page = store.list(ListQuery::default()).await.expect("list");
    page.rows.iter().map(|row| format!("{}\n", shown(row))).collect()
}

fn shown(row: &Row) -> String {
    let value = String::from_utf8_lossy(&row.value);
    let Row { key, revision, created, lease_ttl_secs, .. } = row;
    format!("{key} {value:?} {created}..{revision} lease {lease_ttl_secs}")
}

fn shown_events(events: &[Event]) -> String {
    let one = |event: &Event| {
        let kind = match event.kind {
            EventKind::Created => '+',
            EventKind::Updated => '~',
            EventKind::Deleted => '-',
        };
        let previous = event.previous.as_deref().map(String::from_utf8_lossy);
        format!("{kind} {} before {previous:?}\n", shown(&event.row))
    };
    events.iter().map(one).collect()
}

async fn conforms(ring_bytes_max: usize) {
    let folders = Mutex::new(Vec::new());
    conformance::run_all(async || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        folders.lock().push(folder);
        SqliteStore::open(&path, tuning(ring_bytes_max)).expect("open") as Arc<dyn Store>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_from_the_ring() {
    conforms(64 << 20).await;
}

/// Watchers go back and forth between the ring and the table.
#[tokio::test]
async fn conforms_with_a_small_ring() {
    conforms(8 << 10).await;
}

/// Whoever watches reads the table, always.
#[tokio::test]
async fn conforms_without_a_ring() {
    conforms(0).await;
}

/// A watcher that was away while the ring went round reads the table, then the ring again.
#[tokio::test]
async fn a_late_watcher_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("db"), tuning(4 << 10)).expect("open");
    let from = store.head().await.expect("head").next();
    let mut watcher = store.watch("/a", from).await.expect("watch");
    let mut last = Revision::ZERO;
    for i in 0..300 {
        last = put(&store, &format!("/a{}", i % 10), &i.to_string()).await;
    }
    let found = events_up_to(&mut watcher, last).await;
    let found: Vec<_> = found.iter().map(|event| event.row.revision.0).collect();
    assert_eq!(found, (from.0..=last.0).collect::<Vec<_>>());
    for _ in 0..3 {
        let last = put(&store, "/a", "live").await;
        let found = events_up_to(&mut watcher, last).await;
        assert_eq!(found.iter().map(|event| event.row.revision).collect::<Vec<_>>(), [last]);
    }
}
