//! The one thread that writes: takes what has queued, one transaction, one commit, then answers.
//!
//! Invariant: an answer follows its commit, and so does publishing. An error before `COMMIT` means
//! surely not written; an error of `COMMIT` that may have reached the disk means unknown, and
//! nothing is acknowledged after it until the file is opened again, because the kernel reports a
//! failed sync only once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fp_base::Revision;
use fp_store::{Compare, Error, Event, EventKind, Key, Op, Outcome, Row, Txn};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Statement, params};

use crate::compact::{self, Compactor, Window};
use crate::expiry::{self, Expiry};
use crate::open::{OpenError, Writing};
use crate::queue::{Gather, Queue, Write};
use crate::record::{COMPACT_KEY, Newest};
use crate::{Shared, rows};

/// A checkpoint is due when the WAL has so many pages (16 MiB) ...
const CHECKPOINT_PAGES: i32 = 4 << 10;
/// ... and waits for readers when it has so many (128 MiB).
const WAL_PAGES_MAX: i32 = 32 << 10;
/// The longest wait for company.
const GATHER_MAX: Duration = Duration::from_millis(1);
/// How many keys expire in one commit.
const EXPIRE_MAX: usize = 256;
/// After a commit failed, expiry is tried again so much later.
const EXPIRE_RETRY: Duration = Duration::from_secs(1);

/// Why a transaction did not end well.
enum Fault {
    /// Rolled back: nothing is written.
    Unwritten(rusqlite::Error),
    /// It may be written or not.
    Unknown(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(e: rusqlite::Error) -> Self {
        Self::Unwritten(e)
    }
}

/// What a transaction does beside its rows, done after the commit.
#[derive(Default)]
struct Effects {
    events: Vec<Event>,
    leases: Vec<(i64, Instant)>,
}

struct Writer<'c> {
    conn: &'c Connection,
    statements: Statements<'c>,
    shared: Arc<Shared>,
    head: Revision,
    expiry: Expiry,
    compactor: Compactor,
    /// As of the last commit.
    wal_pages: Arc<AtomicI32>,
    /// The WAL's length at which the next checkpoint is due.
    checkpoint_at: i32,
    gather: Gather,
}

pub(crate) fn spawn(
    shared: Arc<Shared>,
    writing: Writing,
    path: &Path,
    window: Window,
) -> Result<JoinHandle<()>, OpenError> {
    let Writing { mut conn, lock } = writing;
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let wal_pages = Arc::new(AtomicI32::new(0));
    let pages = wal_pages.clone();
    conn.wal_hook(Some(move |_: &mut _, n| {
        pages.store(n, Ordering::Relaxed);
        Ok(())
    }))
    .map_err(sqlite)?;
    let head = rows::head(&conn).map_err(sqlite)?;
    let expiry = Expiry::load(&conn, head).map_err(sqlite)?;
    let compacted = rows::compact_revision(&conn).map_err(sqlite)?;
    let compactor = Compactor::new(window, compacted, Instant::now());
    let thread = std::thread::Builder::new().name("fp-store-sql".into());
    let run = move || {
        // Whatever ends this thread, a panic too, nobody waits for it.
        let closing = Closing(shared.clone());
        let ended = Statements::prepare(&conn).map(|statements| {
            let (conn, checkpoint_at) = (&conn, CHECKPOINT_PAGES);
            let gather = gathering(0, Duration::ZERO);
            Writer {
                conn,
                statements,
                shared,
                head,
                expiry,
                compactor,
                wal_pages,
                checkpoint_at,
                gather,
            }
            .run();
        });
        if let Err(e) = ended {
            tracing::error!(error = %e, "prepare the store's statements");
        }
        drop(closing);
        drop(conn);
        drop(lock);
    };
    thread.spawn(run).map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.queue.abandon("its writer has ended");
        self.0.hub.close();
    }
}

impl Writer<'_> {
    fn run(mut self) {
        loop {
            let until = [self.expiry.next(), self.compactor.next()].into_iter().flatten().min();
            let taken = self.queue().take(until, self.gather);
            let (now, n_writes) = (Instant::now(), taken.writes.len());
            if let Err(e) = self.write(taken.writes).and_then(|()| self.expire(now)) {
                return self.fail(&e);
            }
            self.gather = gathering(n_writes, now.elapsed());
            for (at, reply) in taken.compactions {
                self.compactor.ask(at, self.head, reply);
            }
            if taken.closed {
                break;
            }
            self.compactor.tick(now, self.head);
            if let Err(e) = self.compact(now, n_writes > 0).and_then(|()| self.checkpoint()) {
                return self.fail(&e);
            }
        }
        let closed = || Error::Unavailable { what: "it is closed".into(), source: None };
        self.compactor.failed(&closed, Instant::now());
        if let Err(e) = self.note_leases() {
            self.fail(&e);
        }
    }

    /// Notes how far leases are recorded, so that the next start need not look at all rows. `Err`
    /// is the end of the store.
    fn note_leases(&mut self) -> Result<(), rusqlite::Error> {
        let begun = self.statements.begin.execute([]).map_err(Fault::Unwritten);
        let noted = begun.and_then(|_| {
            let noted = expiry::note_seen(self.conn, self.head);
            self.end(noted)
        });
        match noted {
            Ok(()) => Ok(()),
            Err(Fault::Unwritten(e)) => {
                tracing::warn!(error = %e, "note the last lease");
                Ok(())
            }
            Err(Fault::Unknown(e)) => Err(e),
        }
    }

    fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    /// Acknowledges nothing more. The WAL stays as it is for whoever opens the file next.
    fn fail(&self, e: &rusqlite::Error) {
        tracing::error!(error = %e, "a write to the disk failed: the store must be opened again");
        self.queue().abandon("a write to the disk failed; restart to recover what is on it");
        let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        if let Err(e) = self.conn.set_db_config(option, true) {
            tracing::warn!(error = %e, "leave the WAL as it is");
        }
    }

    /// Commits all of `writes` together and answers them. `Err` is the end of the store.
    fn write(&mut self, writes: Vec<Write>) -> Result<(), rusqlite::Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let result = self.group(writes.iter().map(|write| &write.txn));
        match result {
            Ok(outcomes) => {
                for (write, outcome) in writes.into_iter().zip(outcomes) {
                    // Who no longer waits has dropped the receiver.
                    drop(write.reply.send(Ok(outcome)));
                }
                Ok(())
            }
            // One bad transaction must not fail its neighbours.
            Err(Fault::Unwritten(e)) if writes.len() > 1 && !is_full(&e) => {
                writes.into_iter().try_for_each(|write| self.write(vec![write]))
            }
            Err(Fault::Unwritten(e)) => {
                tracing::warn!(error = %e, "commit to the store");
                for write in writes {
                    drop(write.reply.send(Err(unwritten(&e))));
                }
                Ok(())
            }
            Err(Fault::Unknown(e)) => {
                for write in writes {
                    drop(write.reply.send(Err(Error::Unknown(Some(text(&e))))));
                }
                Err(e)
            }
        }
    }

    /// One transaction: every compare is checked against what is there, earlier writes of the same
    /// group included.
    fn group<'t>(&mut self, txns: impl Iterator<Item = &'t Txn>) -> Result<Vec<Outcome>, Fault> {
        self.statements.begin.execute([])?;
        let mut effects = Effects::default();
        let done = self.absorb(&mut effects).and_then(|start| {
            let mut head = start;
            let now = Now { instant: Instant::now(), wall_ms: expiry::wall_ms() };
            let outcomes = txns
                .map(|txn| self.statements.apply(txn, &mut head, &now, &mut effects))
                .collect::<Result<Vec<_>, _>>()?;
            Ok((outcomes, head))
        });
        let (outcomes, head) = self.end(done)?;
        for (id, at) in effects.leases {
            self.expiry.add(id, at);
        }
        if head != self.head {
            self.head = head;
            self.shared.hub.publish(effects.events, head);
        }
        Ok(outcomes)
    }

    /// Reads what another program has committed to the file since, and returns the newest id.
    fn absorb(&mut self, effects: &mut Effects) -> rusqlite::Result<Revision> {
        let head = self.statements.head()?;
        if head > self.head {
            let all = usize::MAX;
            effects.events = rows::read_log(self.conn, "", self.head, all, all)?.events;
            self.expiry.absorb(self.conn, self.head)?;
        }
        Ok(head)
    }

    /// Ends the open transaction: commits what went well, rolls back what did not.
    fn end<T>(&mut self, done: rusqlite::Result<T>) -> Result<T, Fault> {
        let fault = match done {
            Ok(value) => match self.statements.commit.execute([]) {
                Ok(_) => return Ok(value),
                // A full disk is found while the pages before the commit record are written.
                Err(e) if is_full(&e) || is_busy(&e) => Fault::Unwritten(e),
                Err(e) => Fault::Unknown(e),
            },
            Err(e) => Fault::Unwritten(e),
        };
        // SQLite has rolled back by itself after some errors.
        if !self.conn.is_autocommit()
            && let Err(e) = self.conn.execute_batch("ROLLBACK")
        {
            return Err(Fault::Unknown(e));
        }
        Err(fault)
    }

    fn expire(&mut self, now: Instant) -> Result<(), rusqlite::Error> {
        let ids = self.expiry.take_due(now, EXPIRE_MAX);
        if ids.is_empty() {
            return Ok(());
        }
        let txns = ids.iter().filter_map(|id| self.statements.expire(*id).transpose());
        let done = match txns.collect::<rusqlite::Result<Vec<_>>>() {
            Ok(txns) => self.group(txns.iter()).map(drop),
            Err(e) => Err(Fault::Unwritten(e)),
        };
        match done {
            Ok(()) => Ok(()),
            Err(Fault::Unwritten(e)) => {
                tracing::warn!(error = %e, "delete expired keys");
                ids.iter().for_each(|id| self.expiry.add(*id, now + EXPIRE_RETRY));
                Ok(())
            }
            Err(Fault::Unknown(e)) => Err(e),
        }
    }

    fn compact(&mut self, now: Instant, busy: bool) -> Result<(), rusqlite::Error> {
        if !self.compactor.step_is_due(now) {
            return Ok(());
        }
        let target = self.compactor.target();
        let begun = self.statements.begin.execute([]).map_err(Fault::Unwritten);
        let done = begun.and_then(|_| {
            let step = compact::step(self.conn, target);
            self.end(step)
        });
        match done {
            Ok(compacted) => {
                self.compactor.stepped(compacted, Instant::now(), busy);
                Ok(())
            }
            Err(Fault::Unwritten(e)) => {
                tracing::warn!(error = %e, "compact the store");
                self.compactor.failed(&|| unwritten(&e), now);
                Ok(())
            }
            Err(Fault::Unknown(e)) => {
                self.compactor.failed(&|| Error::Unknown(Some(text(&e))), now);
                Err(e)
            }
        }
    }

    /// Moves the WAL into the file when it is long. `Err` is the end of the store: a sync failed.
    fn checkpoint(&mut self) -> Result<(), rusqlite::Error> {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < CHECKPOINT_PAGES {
            // SQLite has begun at the front again.
            self.checkpoint_at = CHECKPOINT_PAGES;
        }
        if pages < self.checkpoint_at {
            return Ok(());
        }
        // A reader may keep SQLite from beginning at the front; then the next try is a good deal
        // later, not after each commit.
        self.checkpoint_at = pages + CHECKPOINT_PAGES;
        self.note_leases()?;
        let mode = if pages < WAL_PAGES_MAX { "PASSIVE" } else { "TRUNCATE" };
        match self.conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())) {
            Err(e) if is_full(&e) || is_busy(&e) => {
                tracing::warn!(error = %e, "checkpoint the store");
                Ok(())
            }
            done => done,
        }
    }
}

/// Those who were answered together come back together, a moment later: without waiting for them
/// the first would have a sync for itself, and the rest would wait for it. The wait is short
/// against the sync it saves, and a lone writer never waits.
fn gathering(n_writes: usize, commit_time: Duration) -> Gather {
    Gather { n_writes, at_most: (commit_time / 4).min(GATHER_MAX) }
}

struct Now {
    instant: Instant,
    wall_ms: i64,
}

/// The statements of a write, prepared once.
struct Statements<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    head: Statement<'c>,
    newest_id: Statement<'c>,
    written_since: Statement<'c>,
    compacted: Statement<'c>,
    newest: Statement<'c>,
    insert: Statement<'c>,
    name_of: Statement<'c>,
    insert_span: Statement<'c>,
    insert_expiry: Statement<'c>,
    delete_expiry: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            head: conn.prepare(rows::HEAD)?,
            newest_id: conn.prepare(rows::NEWEST_ID)?,
            written_since: conn.prepare(rows::WRITTEN_SINCE)?,
            compacted: conn.prepare(rows::COMPACTED)?,
            newest: conn.prepare(rows::NEWEST)?,
            insert: conn.prepare(
                "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, \
                 lease, value, old_value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            name_of: conn.prepare("SELECT name FROM kine WHERE id = ?1 AND deleted = 0")?,
            insert_span: conn.prepare("INSERT INTO fp_span (first, last) VALUES (?1, ?2)")?,
            insert_expiry: conn
                .prepare("INSERT OR REPLACE INTO fp_expiry (id, expires_ms) VALUES (?1, ?2)")?,
            delete_expiry: conn.prepare("DELETE FROM fp_expiry WHERE id = ?1")?,
        })
    }

    fn head(&mut self) -> rusqlite::Result<Revision> {
        let id: Option<i64> = self.head.query_row([], |row| row.get(0)).optional()?;
        Ok(Revision(id.unwrap_or(0)))
    }

    fn apply(
        &mut self,
        txn: &Txn,
        head: &mut Revision,
        now: &Now,
        effects: &mut Effects,
    ) -> rusqlite::Result<Outcome> {
        for compare in &txn.compares {
            if !self.holds(compare)? {
                let rows = txn.compares.iter().map(|compare| {
                    let Some(key) = compare.key() else { return Ok(None) };
                    Ok(self.newest(key)?.and_then(|newest| newest.into_row(key)))
                });
                return Ok(Outcome::Failed(rows.collect::<rusqlite::Result<_>>()?));
            }
        }
        let mut revisions = Vec::with_capacity(txn.ops.len());
        for op in &txn.ops {
            if let Some(event) = self.write(op, head.next(), now, effects)? {
                *head = event.row.revision;
                revisions.push(*head);
                effects.events.push(event);
            }
        }
        if let [first, .., last] = revisions[..] {
            self.insert_span.execute([first.0, last.0])?;
        }
        Ok(Outcome::Committed(revisions))
    }

    fn holds(&mut self, compare: &Compare) -> rusqlite::Result<bool> {
        match compare {
            Compare::Absent(key) => Ok(self.live_at(key)?.is_none()),
            Compare::At(key, at) => Ok(self.live_at(key)? == Some(*at)),
            Compare::Unchanged { from, end, since } => {
                let compacted: Option<i64> =
                    self.compacted.query_row([COMPACT_KEY], |row| row.get(0))?;
                let range = rows::Range::between(from, end.as_deref());
                let written = self.written_since.exists(params![since.0, range.from, range.end])?;
                Ok(!written && since.0 >= compacted.unwrap_or(0))
            }
        }
    }

    /// The revision of the key's last write, if the key is live.
    fn live_at(&mut self, key: &Key) -> rusqlite::Result<Option<Revision>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? == 0));
        let newest = self.newest_id.query_row([&**key], read).optional()?;
        Ok(newest.filter(|(_, live)| *live).map(|(id, _)| Revision(id)))
    }

    fn newest(&mut self, key: &Key) -> rusqlite::Result<Option<Newest>> {
        self.newest.query_row([&**key], Newest::read).optional()
    }

    /// Inserts the row of `op` at `revision`; `None` for a delete of what is not there.
    fn write(
        &mut self,
        op: &Op,
        revision: Revision,
        now: &Now,
        effects: &mut Effects,
    ) -> rusqlite::Result<Option<Event>> {
        let key = op.key();
        let last = self.newest(key)?;
        let previous_id = last.as_ref().map_or(0, |last| last.id);
        let live = last.filter(|last| !last.deleted);
        if live.as_ref().is_some_and(|live| live.lease_ttl_secs > 0) {
            self.delete_expiry.execute([previous_id])?;
        }
        let event = match (op, live) {
            (Op::Put { value, lease_ttl_secs, .. }, live) => {
                let created = live.as_ref().map_or(revision, |live| live.created);
                let kind = if live.is_some() { EventKind::Updated } else { EventKind::Created };
                let (value, lease_ttl_secs) = (value.clone(), *lease_ttl_secs);
                let row = Row { key: key.clone(), value, revision, created, lease_ttl_secs };
                let previous_revision =
                    live.as_ref().map_or(Revision::ZERO, |_| Revision(previous_id));
                Event { kind, row, previous: live.map(|live| live.value), previous_revision }
            }
            (Op::Delete { .. }, Some(live)) => {
                let (value, created) = (live.value.clone(), live.created);
                let row = Row { key: key.clone(), value, revision, created, lease_ttl_secs: 0 };
                let previous_revision = Revision(previous_id);
                Event {
                    kind: EventKind::Deleted,
                    row,
                    previous: Some(live.value),
                    previous_revision,
                }
            }
            (Op::Delete { .. }, None) => return Ok(None),
        };
        self.insert_row(&event, previous_id)?;
        if event.row.lease_ttl_secs > 0 {
            let ttl = Duration::from_secs(event.row.lease_ttl_secs.into());
            let ttl_ms = i64::from(event.row.lease_ttl_secs) * 1000;
            self.insert_expiry.execute([revision.0, now.wall_ms.saturating_add(ttl_ms)])?;
            effects.leases.push((revision.0, now.instant + ttl));
        }
        Ok(Some(event))
    }

    /// The columns as kine writes them: a create has `create_revision` 0 and is known by `created`;
    /// a delete has no value of its own.
    fn insert_row(&mut self, event: &Event, previous_id: i64) -> rusqlite::Result<()> {
        let Event { kind, row, previous, .. } = event;
        let (created, deleted) = (*kind == EventKind::Created, *kind == EventKind::Deleted);
        self.insert.execute(params![
            row.revision.0,
            &*row.key,
            created,
            deleted,
            if created { 0 } else { row.created.0 },
            previous_id,
            row.lease_ttl_secs,
            (!deleted).then_some(&*row.value),
            previous.as_deref(),
        ])?;
        Ok(())
    }

    /// The transaction that ends the lease of row `id`, if the row is still there.
    fn expire(&mut self, id: i64) -> rusqlite::Result<Option<Txn>> {
        let name: Option<String> = self.name_of.query_row([id], |row| row.get(0)).optional()?;
        Ok(name.map(|name| {
            let key = Key::from(name);
            let compares = vec![Compare::At(key.clone(), Revision(id))];
            Txn { compares, ops: vec![Op::Delete { key }] }
        }))
    }
}

fn is_full(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

fn is_busy(e: &rusqlite::Error) -> bool {
    matches!(e.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn unwritten(e: &rusqlite::Error) -> Error {
    let what = match is_full(e) {
        true => "no space is left on its disk".to_owned(),
        false => format!("the commit was rolled back ({e})"),
    };
    Error::Unavailable { what, source: Some(text(e)) }
}

/// One error answers many, and SQLite's cannot be cloned.
fn text(e: &rusqlite::Error) -> Box<dyn std::error::Error + Send + Sync> {
    e.to_string().into()
}
