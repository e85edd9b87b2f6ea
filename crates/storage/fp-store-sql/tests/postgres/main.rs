//! The PostgreSQL store on a real server: conformance, several servers, kine's rows, faults.

#[allow(dead_code, reason = "the integration tests share this file and use the rest")]
mod cluster;

mod beside;
mod faults;
mod opening;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Error, Event, EventKind, ListQuery, Op, Outcome, Store, Txn, Watcher, conformance};
use fp_store_sql::{Dsn, PostgresStore, TlsFiles, Tuning};
use tokio_postgres::{Client, NoTls};

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

fn dsn(url: &str) -> Dsn {
    Dsn::parse(url, TlsFiles::default(), None).expect("a URL")
}

async fn open(url: &str) -> Arc<PostgresStore> {
    PostgresStore::open(dsn(url), tuning(1 << 20)).await.expect("open")
}

/// Another program at the same database.
async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    client
}

fn set(key: &str, value: &str) -> Op {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Op::Put { key: key.into(), value, lease_ttl_secs: 0 }
}

async fn try_put(store: &PostgresStore, key: &str, value: &str) -> Result<Revision, Error> {
    let txn = Txn { compares: Vec::new(), ops: vec![set(key, value)] };
    match store.commit(txn).await? {
        Outcome::Committed(revisions) => Ok(revisions[0]),
        failed => panic!("{failed:?}"),
    }
}

async fn put(store: &PostgresStore, key: &str, value: &str) -> Revision {
    try_put(store, key, value).await.expect("commit")
}

async fn watch(store: &PostgresStore, from: Revision) -> Box<dyn Watcher> {
    store.watch("", from).await.expect("watch")
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
async fn listed(store: &PostgresStore) -> String {
    let page = store.list(ListQuery::default()).await.expect("list");
    let line = |row: &fp_store::Row| {
        let value = String::from_utf8_lossy(&row.value);
        let fp_store::Row { key, revision, created, lease_ttl_secs, .. } = row;
        format!("{key} {value:?} {created}..{revision} lease {lease_ttl_secs}\n")
    };
    page.rows.iter().map(line).collect()
}

/// One a line, revisions counted from `start`.
fn shown(events: &[Event], start: Revision) -> String {
    let line = |event: &Event| {
        let kind = match event.kind {
            EventKind::Created => '+',
            EventKind::Updated => '~',
            EventKind::Deleted => '-',
        };
        let value = String::from_utf8_lossy(&event.row.value);
        format!("{kind} {} {value:?} at {}\n", event.row.key, event.row.revision.0 - start.0)
    };
    events.iter().map(line).collect()
}

async fn conforms(ring_bytes_max: usize) {
    conformance::run_all(async || {
        let url = cluster::fresh_database();
        PostgresStore::open(dsn(&url), tuning(ring_bytes_max)).await.expect("open")
            as Arc<dyn Store>
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
