//! kine's table on SQLite and PostgreSQL: group commit, ordered watch, compaction, TTL.
//!
//! This file and its siblings are the store on SQLite, and what both share; `postgres` is the other.
//!
//! One thread owns the connection that writes. It takes every transaction that has queued, makes
//! them one SQLite transaction, and answers them all after one `COMMIT` with `synchronous=FULL`:
//! many writers share an fsync, and revision order is commit order. What is committed goes to
//! watchers through a ring that is bounded in bytes; who falls behind it reads the table.
//!
//! Invariants: revision = row id, never reused (`sqlite_sequence` remembers it past compaction);
//! nothing is answered or published before it is durable; after a failed sync nothing is
//! acknowledged until the file is opened again. kine reads and writes the table before and after
//! us; what the table cannot hold lies in tables named `fp_...`, which kine ignores.
//! Deliberately absent: what a key means; two processes on one file (the lock file refuses).

mod compact;
mod expiry;
mod hub;
mod lock;
mod open;
mod postgres;
mod queue;
mod readers;
mod record;
mod rows;
mod schema;
mod tools;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use fp_base::Revision;
use fp_store::{
    Error, ListQuery, Outcome, Page, Row, Store, Txn, Watcher, check_key, check_prefix,
};
use parking_lot::Mutex;

use crate::compact::Window;
use crate::hub::{Hub, Log, SqlWatcher};
pub use crate::open::OpenError;
use crate::open::Opened;
pub use crate::postgres::{
    Dsn, DsnError, PostgresError, PostgresLoad, PostgresSnapshot, PostgresStore, TlsFiles,
    shown_dsn,
};
use crate::queue::Queue;
use crate::readers::Readers;
pub use crate::tools::{Fault, PrefixUsage, SqliteLoad, SqliteSnapshot, ToolError, Usage};

/// How much a store keeps, wherever it is.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Connections that read. On SQLite each has a page cache of about one MiB; on PostgreSQL two
    /// more write and listen.
    pub n_readers: usize,
    /// The most bytes of recent events that are kept in memory for watchers.
    pub ring_bytes_max: usize,
    /// How often history is looked at for compaction; `None` compacts only when told to.
    pub compact_interval: Option<Duration>,
    /// Background compaction keeps at least this much time of history...
    pub compact_keep: Duration,
    /// ... and at least so many revisions (kine keeps 1000).
    pub compact_keep_revisions: u32,
}

impl Tuning {
    fn window(&self) -> Window {
        let (every, keep) = (self.compact_interval, self.compact_keep);
        Window { every, keep, keep_revisions: self.compact_keep_revisions }
    }
}

/// kine's table in one SQLite file, opened by this process alone.
pub struct SqliteStore {
    shared: Arc<Shared>,
    /// Joined on close or drop, whichever is first; the file lock is free after it.
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What watchers share with the store.
struct Shared {
    hub: Hub,
    queue: Queue,
    readers: Readers,
}

impl SqliteStore {
    /// Opens the file, which is created if absent; its folder is not. Blocks for as long as SQLite
    /// takes to recover and look at it.
    pub fn open(path: &Path, tuning: Tuning) -> Result<Arc<Self>, OpenError> {
        Self::start(open::open(path, tuning.n_readers)?, path, tuning)
    }

    fn start(opened: Opened, path: &Path, tuning: Tuning) -> Result<Arc<Self>, OpenError> {
        let shared = Arc::new(Shared {
            hub: Hub::new(opened.head, tuning.ring_bytes_max),
            queue: Queue::new(),
            readers: Readers::new(opened.readers),
        });
        let writer = writer::spawn(shared.clone(), opened.writing, path, tuning.window())?;
        Ok(Arc::new(Self { shared, writer: Mutex::new(Some(writer)) }))
    }

    fn stop(shared: &Shared, writer: Option<JoinHandle<()>>) {
        shared.queue.close("it is closed");
        shared.readers.close();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        Self::stop(&self.shared, self.writer.get_mut().take());
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn head(&self) -> Result<Revision, Error> {
        self.shared.hub.head()
    }

    async fn get(&self, key: &str, at: Revision) -> Result<Option<Row>, Error> {
        check_key(key)?;
        let key = key.to_owned();
        self.shared.readers.read(move |conn| rows::get(conn, &key, at)).await
    }

    async fn list(&self, query: ListQuery<'_>) -> Result<Page, Error> {
        check_prefix(query.prefix)?;
        let range = rows::Range::new(query.prefix, query.start_after);
        let (limit, at) = (query.limit, query.at);
        self.shared.readers.read(move |conn| rows::list(conn, &range, limit, at)).await
    }

    async fn count(&self, prefix: &str, at: Revision) -> Result<u64, Error> {
        check_prefix(prefix)?;
        let range = rows::Range::new(prefix, None);
        self.shared.readers.read(move |conn| rows::count(conn, &range, at)).await
    }

    async fn count_range(&self, from: &str, end: Option<&str>, at: Revision) -> Result<u64, Error> {
        let range = rows::Range::between(from, end);
        self.shared.readers.read(move |conn| rows::count(conn, &range, at)).await
    }

    async fn size_bytes(&self) -> Result<Option<u64>, Error> {
        self.shared.readers.read(rows::size_bytes).await.map(Some)
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, Error> {
        self.shared.queue.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watcher>, Error> {
        check_prefix(prefix)?;
        let log = Log::Sqlite(self.shared.clone());
        SqlWatcher::start(log, prefix, from, self.compacted().await?)
    }

    async fn compact(&self, at: Revision) -> Result<Revision, Error> {
        self.shared.queue.compact(at).await
    }

    async fn compacted(&self) -> Result<Revision, Error> {
        self.shared.readers.read(rows::compacted).await
    }

    async fn close(&self) {
        let (shared, writer) = (self.shared.clone(), self.writer.lock().take());
        // Joining waits for an fsync; a join error would be a panic of `stop`, which has none.
        let _ = tokio::task::spawn_blocking(move || Self::stop(&shared, writer)).await;
    }
}

#[cfg(test)]
mod tests {
    //! What a full or failing disk does, with SQLite's own means of failing.

    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use fp_store::Op;

    use super::*;

    const TUNING: Tuning = Tuning {
        n_readers: 1,
        ring_bytes_max: 1 << 20,
        compact_interval: None,
        compact_keep: Duration::from_secs(600),
        compact_keep_revisions: 1000,
    };

    async fn put(store: &SqliteStore, key: &str, n_bytes: usize) -> Result<Outcome, Error> {
        let value = Bytes::from(vec![b'v'; n_bytes]);
        let ops = vec![Op::Put { key: key.into(), value, lease_ttl_secs: 0 }];
        store.commit(Txn { compares: Vec::new(), ops }).await
    }

    fn committed(outcome: Result<Outcome, Error>) -> Revision {
        match outcome {
            Ok(Outcome::Committed(revisions)) => revisions[0],
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_full_disk_refuses_and_heals() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        let opened = open::open(&path, 1).expect("open");
        let limit = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let set = "PRAGMA max_page_count = 64";
        opened.writing.conn.query_row(set, [], limit).expect("limit the pages");
        let store = SqliteStore::start(opened, &path, TUNING).expect("start");
        let before = committed(put(&store, "/a", 1).await);
        let large = put(&store, "/large", 1 << 20);
        let (large, small) = tokio::join!(large, put(&store, "/small", 1));
        assert!(matches!(large, Err(Error::Unavailable { .. })), "{large:?}");
        // The small one may have shared the commit, and then its fate.
        let n_small = i64::from(small.is_ok());
        assert_eq!(store.get("/large", Revision::ZERO).await.expect("get"), None);
        let next = committed(put(&store, "/a", 1).await);
        assert_eq!(next, Revision(before.0 + n_small + 1), "what is rolled back takes no revision");
    }

    #[tokio::test]
    async fn a_failed_commit_is_unknown_and_the_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        let mut opened = open::open(&path, 1).expect("open");
        let failing = Arc::new(AtomicBool::new(false));
        let fails = failing.clone();
        let hook = move || fails.load(Ordering::Relaxed);
        opened.writing.conn.commit_hook(Some(hook)).expect("set the hook");
        let store = SqliteStore::start(opened, &path, TUNING).expect("start");
        let written = committed(put(&store, "/a", 1).await);
        failing.store(true, Ordering::Relaxed);
        let unknown = put(&store, "/a", 2).await;
        assert!(matches!(unknown, Err(Error::Unknown(_))), "{unknown:?}");
        failing.store(false, Ordering::Relaxed);
        let refused = put(&store, "/b", 1).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        drop(store);
        let store = SqliteStore::open(&path, TUNING).expect("open again");
        assert_eq!(store.head().await.expect("head"), written);
        committed(put(&store, "/a", 3).await);
    }
}
