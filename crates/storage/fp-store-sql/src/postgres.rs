//! kine's table on PostgreSQL, shared with other servers, ours and kine's.
//!
//! One task writes: it takes every transaction that has queued, makes them one PostgreSQL
//! transaction behind an advisory lock, and answers them all after its commit. The same task
//! follows what others commit, and shows it in order once it is settled (`settle`). Others are told
//! by NOTIFY on a connection of its own after the commit, and poll besides.
//!
//! Invariants: revision = row id; what is shown to watchers has no gap that could still be filled;
//! nothing is answered before its commit is durable; without a connection nothing is answered as if
//! it were fresh.
//! Deliberately absent: reading from a standby; rows that fill gaps.

mod dsn;
mod heads;
mod load;
mod open;
mod plan;
mod schema;
mod session;
mod settle;
mod snapshot;
mod sql;
mod tls;
mod writer;

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fp_base::Revision;
use fp_store::{
    Batch, Error, KEY_BYTES_MAX, Key, ListQuery, Outcome, Page, Row, Store, Txn, Watcher,
    check_key, check_prefix, prefix_end,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::Notification;

use crate::Tuning;
use crate::hub::{Hub, Log, SqlWatcher};
pub use crate::postgres::dsn::{Dsn, DsnError, TlsFiles, shown_dsn};
use crate::postgres::heads::Heads;
pub use crate::postgres::load::PostgresLoad;
use crate::postgres::open::Opened;
pub use crate::postgres::open::PostgresError;
use crate::postgres::session::{Link, OnNotification, Owned, Purpose, Session, unread};
pub use crate::postgres::snapshot::PostgresSnapshot;
use crate::postgres::sql::Sql;
use crate::queue::Queue;
use crate::record::{self, LogRow, Newest, lease_secs};

/// How long a read waits for a transaction of another program that holds an older revision.
const SETTLE_PATIENCE: Duration = Duration::from_secs(3);
/// Reads that run at the same time; they share the connections.
const READS_MAX: usize = 64;
/// What a page of the log has at most, transactions whole.
const PAGE_ROWS_MAX: i64 = 2_000;
const PAGE_BYTES_MAX: i64 = 8 << 20;
/// How often a list of the newest state starts over when compaction overtakes it.
const LIST_TRIES_MAX: usize = 3;
/// The channel of NOTIFY.
const CHANNEL: &str = "ferroplane_kine";

/// kine's table in a PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<Shared>,
    writer: Mutex<Option<Owned>>,
    /// The task that answers for the newest revision, and the one that notifies.
    _tasks: [Owned; 2],
}

/// What watchers and tasks share with the store.
pub(crate) struct Shared {
    pub(crate) hub: Hub,
    pub(crate) queue: Queue,
    heads: Heads,
    writing: Link,
    listening: Arc<Link>,
    readers: Vec<Link>,
    next_reader: AtomicUsize,
    turns: Semaphore,
}

impl PostgresStore {
    /// Connects, and makes what is missing.
    pub async fn open(dsn: Dsn, tuning: Tuning) -> Result<Arc<Self>, PostgresError> {
        let Opened { dsn, tls, sequence, head, compacted } = open::open(dsn).await?;
        let committed = Arc::new(Notify::new());
        // What is told to others names us, so that we need not listen to ourselves.
        let me: Arc<str> = format!("{:016x}", RandomState::new().hash_one(0)).into();
        let shared = Arc::new_cyclic(|weak: &std::sync::Weak<Shared>| {
            let poke = {
                let weak = weak.clone();
                move || {
                    if let Some(shared) = weak.upgrade() {
                        shared.queue.poke();
                    }
                }
            };
            let on_session: Arc<dyn Fn() + Send + Sync> = Arc::new(poke.clone());
            let link = |name, opening: String, listens: bool| {
                let (poke, on_session, me) = (poke.clone(), on_session.clone(), me.clone());
                let hear = move |told: &Notification| {
                    if told.payload() != &*me {
                        poke();
                    }
                };
                let on_notification: Option<OnNotification> =
                    listens.then(|| Arc::new(hear) as OnNotification);
                let purpose = Purpose { name, opening, on_notification, on_session };
                Link::open(dsn.clone(), tls.clone(), purpose)
            };
            let n_readers = tuning.n_readers.max(1);
            Shared {
                hub: Hub::new(head, tuning.ring_bytes_max),
                queue: Queue::new(),
                heads: Heads::new(),
                writing: link("write", String::new(), false),
                listening: Arc::new(link("listen", format!("LISTEN {CHANNEL}"), true)),
                readers: (0..n_readers).map(|_| link("read", String::new(), false)).collect(),
                next_reader: AtomicUsize::new(0),
                turns: Semaphore::new(READS_MAX),
            }
        });
        // The server has just answered; if it is gone by now, calls say so.
        let up = async {
            shared.writing.up().await;
            for reader in &shared.readers {
                reader.up().await;
            }
            shared.listening.up().await;
        };
        let _ = timeout(SETTLE_PATIENCE, up).await;
        let window = tuning.window();
        let seed = writer::Seed { sequence, head, compacted, window, committed: committed.clone() };
        let writer = Owned::spawn(writer::run(shared.clone(), seed));
        let tasks = [
            Owned::spawn(heads::answer(shared.clone())),
            Owned::spawn(notify(shared.listening.clone(), committed, me)),
        ];
        Ok(Arc::new(Self { shared, writer: Mutex::new(Some(writer)), _tasks: tasks }))
    }

    fn stop(&self) {
        let shared = &self.shared;
        shared.queue.abandon("it is closed");
        shared.hub.close();
        shared.heads.close();
        shared.writing.stop();
        shared.listening.stop();
        shared.readers.iter().for_each(Link::stop);
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Tells the other servers that something is committed. Commits during a NOTIFY share the next one.
async fn notify(link: Arc<Link>, committed: Arc<Notify>, me: Arc<str>) {
    let tell = format!("NOTIFY {CHANNEL}, '{me}'");
    loop {
        committed.notified().await;
        if let Ok(session) = link.session()
            && let Err(e) = session.client.batch_execute(&tell).await
        {
            // The others poll.
            tracing::debug!(error = %dsn::chain(&e), "notify");
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn head(&self) -> Result<Revision, Error> {
        self.shared.hub.head()?;
        self.shared.heads.newest().await
    }

    async fn get(&self, key: &str, at: Revision) -> Result<Option<Row>, Error> {
        check_key(key)?;
        self.shared.readable(at).await?;
        let upto = if at == Revision::ZERO { i64::MAX } else { at.0 };
        let (session, _turn) = self.shared.reading().await?;
        let row = session.client.query_one(session.sql(Sql::Get), &[&key, &upto]).await;
        let row = row.map_err(unread)?;
        check_compacted(at, Revision(row.get(0)))?;
        let found = row.get::<_, Option<i64>>(1).filter(|_| record::is_key(key));
        Ok(found.and_then(|_| newest(&row, 1).into_row(&key.into())))
    }

    async fn list(&self, query: ListQuery<'_>) -> Result<Page, Error> {
        check_prefix(query.prefix)?;
        for _ in 1..LIST_TRIES_MAX {
            match self.shared.list(&query).await {
                Err(Error::Compacted { .. }) if query.at == Revision::ZERO => {}
                result => return result,
            }
        }
        self.shared.list(&query).await
    }

    async fn count(&self, prefix: &str, at: Revision) -> Result<u64, Error> {
        check_prefix(prefix)?;
        self.shared.count(prefix, &range_end(prefix), at).await
    }

    async fn count_range(&self, from: &str, end: Option<&str>, at: Revision) -> Result<u64, Error> {
        let end = end.map_or_else(|| range_end("").into(), bound);
        self.shared.count(&bound(from), &end, at).await
    }

    async fn size_bytes(&self) -> Result<Option<u64>, Error> {
        let (session, _turn) = self.shared.reading().await?;
        let size = "SELECT pg_total_relation_size('kine')";
        let row = session.client.query_one(size, &[]).await.map_err(unread)?;
        Ok(Some(row.get::<_, i64>(0).unsigned_abs()))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, Error> {
        self.shared.queue.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watcher>, Error> {
        check_prefix(prefix)?;
        let log = Log::Postgres(self.shared.clone());
        SqlWatcher::start(log, prefix, from, self.compacted().await?)
    }

    async fn compact(&self, at: Revision) -> Result<Revision, Error> {
        self.shared.settled(at).await?;
        self.shared.queue.compact(at).await
    }

    async fn compacted(&self) -> Result<Revision, Error> {
        self.shared.hub.head()?;
        let (session, _turn) = self.shared.reading().await?;
        let row = session.client.query_one(session.sql(Sql::Compacted), &[]).await;
        Ok(Revision(row.map_err(unread)?.get(0)))
    }

    async fn close(&self) {
        self.shared.queue.close("it is closed");
        let writer = self.writer.lock().take();
        if let Some(mut writer) = writer {
            writer.ended().await;
        }
        self.stop();
    }
}

impl Shared {
    fn reader(&self) -> Result<Arc<Session>, Error> {
        let n = self.readers.len();
        let first = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let session = (0..n).find_map(|i| self.readers[(first + i) % n].session().ok());
        session.ok_or_else(session::away)
    }

    /// A connection and a turn on it.
    async fn reading(&self) -> Result<(Arc<Session>, SemaphorePermit<'_>), Error> {
        let turn = self.turns.acquire().await;
        Ok((self.reader()?, turn.expect("the semaphore is never closed")))
    }

    /// May be read at `at`, now or after a short wait; zero is always the newest.
    async fn readable(&self, at: Revision) -> Result<(), Error> {
        let settled = self.hub.head()?;
        if at <= settled { Ok(()) } else { self.settled(at).await }
    }

    /// Waits until `at` is settled; there must be such a revision.
    async fn settled(&self, at: Revision) -> Result<(), Error> {
        if self.hub.head()? >= at {
            return Ok(());
        }
        let newest = self.heads.newest().await?;
        if at > newest {
            return Err(Error::Future { asked: at, newest });
        }
        self.wait_for(at).await
    }

    async fn wait_for(&self, revision: Revision) -> Result<(), Error> {
        let waited = timeout(SETTLE_PATIENCE, self.hub.reaches(revision)).await;
        waited.unwrap_or_else(|_| {
            let what = "another program holds an older revision in an open transaction".into();
            Err(Error::Unavailable { what, source: None })
        })
    }

    async fn count(&self, from: &str, end: &str, at: Revision) -> Result<u64, Error> {
        self.readable(at).await?;
        let upto = if at == Revision::ZERO { i64::MAX } else { at.0 };
        let (session, _turn) = self.reading().await?;
        let row = session.client.query_one(session.sql(Sql::Count), &[&from, &end, &upto]).await;
        let row = row.map_err(unread)?;
        check_compacted(at, Revision(row.get(0)))?;
        Ok(row.get::<_, i64>(1).unsigned_abs())
    }

    async fn list(&self, query: &ListQuery<'_>) -> Result<Page, Error> {
        let at = if query.at == Revision::ZERO {
            self.hub.head()?;
            self.wait_for(self.heads.newest().await?).await?;
            self.hub.head()?
        } else {
            self.readable(query.at).await?;
            query.at
        };
        let end = range_end(query.prefix);
        let after = query.start_after.unwrap_or_default();
        let limit = i64::try_from(query.limit).ok().filter(|limit| *limit > 0);
        let (session, _turn) = self.reading().await?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&query.prefix, &end, &after, &at.0, &limit.map(|limit| limit.saturating_add(1))];
        let found = session.client.query(session.sql(Sql::List), &params).await.map_err(unread)?;
        let compacted = found.first().map_or(Revision::ZERO, |row| Revision(row.get(0)));
        check_compacted(at, compacted)?;
        let live = |row: &tokio_postgres::Row| {
            row.get::<_, Option<i64>>(1)?;
            newest(row, 1).into_row(&Key::from(row.get::<_, &str>(7)))
        };
        let mut rows: Vec<Row> = found.iter().filter_map(live).collect();
        let more = limit.is_some() && rows.len() > query.limit;
        if more {
            rows.truncate(query.limit);
        }
        Ok(Page { rows, revision: at, more })
    }

    /// A page of the log after `cursor`, as far as it is settled.
    pub(crate) async fn log_page(&self, prefix: &str, cursor: Revision) -> Result<Batch, Error> {
        let settled = self.hub.head()?;
        let (session, _turn) = self.reading().await?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&cursor.0, &settled.0, &PAGE_ROWS_MAX, &PAGE_BYTES_MAX];
        let rows = session.client.query(session.sql(Sql::Page), &params).await.map_err(unread)?;
        let oldest = rows.first().map_or(Revision::ZERO, |row| Revision(row.get(9)));
        if cursor < oldest {
            return Err(Error::Compacted { asked: cursor.next(), oldest: oldest.next() });
        }
        let mut batch = Batch { events: Vec::new(), progress: settled };
        for row in rows.iter().filter(|row| row.get::<_, Option<i64>>(0).is_some()) {
            let logged = log_row(row);
            batch.progress = Revision(logged.id);
            if logged.name.starts_with(prefix) && record::is_key(logged.name) {
                batch.events.push(logged.into_event());
            }
        }
        Ok(batch)
    }
}

fn check_compacted(at: Revision, oldest: Revision) -> Result<(), Error> {
    if at != Revision::ZERO && at < oldest {
        return Err(Error::Compacted { asked: at, oldest });
    }
    Ok(())
}

/// The first name after all that begin with `prefix`; no key is as long as the last resort.
fn range_end(prefix: &str) -> String {
    const LAST: char = char::MAX;
    prefix_end(prefix)
        .unwrap_or_else(|| LAST.to_string().repeat(KEY_BYTES_MAX / LAST.len_utf8() + 1))
}

/// A bound of a range as PostgreSQL can hold it, which knows no NUL. No key has one either, so what
/// is behind it says nothing, and the least key after `a` and NUL begins with `a` and 1.
fn bound(text: &str) -> Cow<'_, str> {
    match text.split_once('\0') {
        Some((head, _)) => Cow::Owned(format!("{head}\u{1}")),
        None => Cow::Borrowed(text),
    }
}

/// From the columns id, deleted, created, create_revision, lease, value, of which `first` is the
/// first.
fn newest(row: &tokio_postgres::Row, first: usize) -> Newest {
    let number = |i: usize| row.get::<_, Option<i32>>(first + i).unwrap_or(0);
    let id: i64 = row.get(first);
    let created = if number(2) != 0 { Some(id) } else { row.get(first + 3) };
    Newest {
        id,
        deleted: number(1) != 0,
        created: Revision(created.unwrap_or(0)),
        lease_ttl_secs: lease_secs(number(4).into()),
        value: bytes(row, first + 5).unwrap_or_default(),
    }
}

/// From the columns id, name, created, deleted, create_revision, lease, value, old_value,
/// prev_revision.
fn log_row(row: &tokio_postgres::Row) -> LogRow<'_> {
    let number = |i: usize| row.get::<_, Option<i32>>(i).unwrap_or(0);
    LogRow {
        id: row.get(0),
        name: row.get::<_, Option<&str>>(1).unwrap_or_default(),
        created: number(2) != 0,
        deleted: number(3) != 0,
        create_revision: row.get::<_, Option<i64>>(4).unwrap_or(0),
        lease_secs: number(5).into(),
        value: bytes(row, 6),
        old_value: bytes(row, 7),
        previous_id: row.get::<_, Option<i64>>(8).unwrap_or(0),
    }
}

fn bytes(row: &tokio_postgres::Row, column: usize) -> Option<Bytes> {
    row.get::<_, Option<&[u8]>>(column).map(Bytes::copy_from_slice)
}
