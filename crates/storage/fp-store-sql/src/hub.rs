//! What watchers read from: a ring of the last commits, bounded in bytes.
//!
//! Invariant: the ring holds every event after its floor, in order, whole commits only. A watcher
//! below the floor reads pages of the table until it is above it again.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use fp_base::Revision;
use fp_store::{Batch, Error, Event, Watcher};
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::{Shared, postgres, rows};

/// About how many events a batch from the ring has at most; a commit is never split.
const BATCH_EVENTS_MAX: usize = 2_000;
/// What an event costs beside its key and values.
const EVENT_BYTES: usize = 160;

pub(crate) struct Hub {
    ring: RwLock<Ring>,
    head: watch::Sender<Head>,
}

#[derive(Clone, Copy, PartialEq)]
struct Head {
    revision: Revision,
    closed: bool,
}

struct Ring {
    commits: VecDeque<Arc<Commit>>,
    /// Every event after this revision is here.
    floor: Revision,
    n_bytes: usize,
    bytes_max: usize,
}

struct Commit {
    events: Vec<Event>,
    last: Revision,
    n_bytes: usize,
}

enum Found {
    Batch(Batch),
    UpToDate,
    /// The ring no longer has it.
    Behind,
}

impl Hub {
    pub(crate) fn new(head: Revision, bytes_max: usize) -> Self {
        let ring = Ring { commits: VecDeque::new(), floor: head, n_bytes: 0, bytes_max };
        let (head, _) = watch::channel(Head { revision: head, closed: false });
        Self { ring: RwLock::new(ring), head }
    }

    pub(crate) fn head(&self) -> Result<Revision, Error> {
        let head = *self.head.borrow();
        if head.closed { Err(closed()) } else { Ok(head.revision) }
    }

    /// Shows what has been committed up to `last`.
    pub(crate) fn publish(&self, events: Vec<Event>, last: Revision) {
        let n_bytes = events.iter().map(size_bytes).sum();
        let commit = Arc::new(Commit { events, last, n_bytes });
        let dropped = self.ring.write().push(commit);
        self.head.send_modify(|head| head.revision = last);
        drop(dropped);
    }

    /// Shows that `last` is committed without its events, which are too many to keep: every
    /// watcher reads them from the table.
    pub(crate) fn skip_to(&self, last: Revision) {
        let dropped = self.ring.write().clear(last);
        self.head.send_modify(|head| head.revision = last);
        drop(dropped);
    }

    /// Waits until `revision` has been shown.
    pub(crate) async fn reaches(&self, revision: Revision) -> Result<(), Error> {
        let mut head = self.head.subscribe();
        let reached = head.wait_for(|head| head.closed || head.revision >= revision).await;
        let closed_now = reached.map_or(true, |head| head.closed);
        if closed_now { Err(closed()) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.head.send_modify(|head| head.closed = true);
    }

    fn find(&self, prefix: &str, cursor: Revision) -> Found {
        let commits = {
            let ring = self.ring.read();
            if cursor < ring.floor {
                return Found::Behind;
            }
            ring.after(cursor)
        };
        let Some(last) = commits.last() else { return Found::UpToDate };
        let wanted =
            |event: &&Event| event.row.revision > cursor && event.row.key.starts_with(prefix);
        let events = commits.iter().flat_map(|commit| &commit.events).filter(wanted);
        Found::Batch(Batch { events: events.cloned().collect(), progress: last.last })
    }
}

impl Ring {
    /// Returns what fell out, to be freed outside the lock.
    fn push(&mut self, commit: Arc<Commit>) -> Vec<Arc<Commit>> {
        self.n_bytes += commit.n_bytes;
        self.commits.push_back(commit);
        let mut dropped = Vec::new();
        while self.n_bytes > self.bytes_max {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.n_bytes -= oldest.n_bytes;
            self.floor = oldest.last;
            dropped.push(oldest);
        }
        dropped
    }

    fn clear(&mut self, floor: Revision) -> VecDeque<Arc<Commit>> {
        (self.floor, self.n_bytes) = (floor, 0);
        std::mem::take(&mut self.commits)
    }

    fn after(&self, cursor: Revision) -> Vec<Arc<Commit>> {
        let start = self.commits.partition_point(|commit| commit.last <= cursor);
        let mut n_events = 0;
        let few = |commit: &&Arc<Commit>| {
            let take = n_events < BATCH_EVENTS_MAX;
            n_events += commit.events.len();
            take
        };
        self.commits.range(start..).take_while(few).cloned().collect()
    }
}

/// Where a watcher that is behind the ring reads on.
#[derive(Clone)]
pub(crate) enum Log {
    Sqlite(Arc<Shared>),
    Postgres(Arc<postgres::Shared>),
}

impl Log {
    fn hub(&self) -> &Hub {
        match self {
            Self::Sqlite(shared) => &shared.hub,
            Self::Postgres(shared) => &shared.hub,
        }
    }

    async fn page(&self, prefix: &Arc<str>, cursor: Revision) -> Result<Batch, Error> {
        match self {
            Self::Sqlite(shared) => {
                let prefix = prefix.clone();
                let page = move |conn: &_| rows::log_page(conn, &prefix, cursor);
                shared.readers.read(page).await
            }
            Self::Postgres(shared) => shared.log_page(prefix, cursor).await,
        }
    }
}

pub(crate) struct SqlWatcher {
    log: Log,
    head: watch::Receiver<Head>,
    prefix: Arc<str>,
    /// Everything up to here has been delivered.
    cursor: Revision,
}

impl SqlWatcher {
    /// Watches from revision `from` on, inclusive; `oldest` is the compact revision.
    pub(crate) fn start(
        log: Log,
        prefix: &str,
        from: Revision,
        oldest: Revision,
    ) -> Result<Box<dyn Watcher>, Error> {
        let cursor = Revision(from.0 - 1).max(Revision::ZERO);
        if cursor < oldest {
            return Err(Error::Compacted { asked: from, oldest: oldest.next() });
        }
        let head = log.hub().head.subscribe();
        Ok(Box::new(Self { log, head, prefix: prefix.into(), cursor }))
    }
}

#[async_trait]
impl Watcher for SqlWatcher {
    async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            if self.head.borrow_and_update().closed {
                return Err(closed());
            }
            let batch = match self.log.hub().find(&self.prefix, self.cursor) {
                Found::Batch(batch) => batch,
                Found::Behind => self.log.page(&self.prefix, self.cursor).await?,
                Found::UpToDate => {
                    // The sender lives in `log`, so this waits for a commit or the end.
                    let _ = self.head.changed().await;
                    continue;
                }
            };
            self.cursor = batch.progress;
            return Ok(batch);
        }
    }
}

fn size_bytes(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |value| value.len());
    EVENT_BYTES + event.row.key.len() + event.row.value.len() + previous
}

fn closed() -> Error {
    Error::Unavailable { what: "it is closed".into(), source: None }
}
