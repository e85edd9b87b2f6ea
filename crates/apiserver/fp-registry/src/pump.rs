//! The pump: the process's one watch of the store. It fills the informer, in revision order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fp_base::{Gr, Revision};
use fp_informer::{Entry, Event, Table, TableId};
use fp_keyspace::Parts;
use fp_store::{EventKind, Row};

use crate::Error;
use crate::store::{Shared, store_error};

/// Rows that the load reads at a time.
const LOAD_PAGE_ROWS: usize = 1000;
/// How long the pump waits before it opens its watch again, at first and at most.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Rows that could not be taken in, since the start.
#[derive(Default)]
pub struct Counts {
    undecodable: AtomicU64,
    foreign: AtomicU64,
}

impl Counts {
    /// Values that could not be read: encrypted, broken, of an unknown version.
    pub fn undecodable(&self) -> u64 {
        self.undecodable.load(Ordering::Relaxed)
    }

    /// Keys of another layout than kcp's.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }
}

/// Feeds the informer from the store.
pub struct Pump {
    shared: Arc<Shared>,
}

impl Pump {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Reads everything at one revision. When that is compacted on the way, begins again.
    pub(crate) async fn load(&self) -> Result<(), Error> {
        loop {
            match self.load_at_once().await {
                Err(Error::Compacted { .. }) => continue,
                other => return other,
            }
        }
    }

    async fn load_at_once(&self) -> Result<(), Error> {
        let prefix = self.shared.layout.root();
        let mut entries = Vec::new();
        let mut tables = Tables::default();
        let mut start_after = None;
        let mut at = Revision::ZERO;
        loop {
            let query = fp_store::ListQuery {
                prefix: &prefix,
                start_after: start_after.as_deref(),
                limit: LOAD_PAGE_ROWS,
                at,
            };
            let page = self.shared.store.list(query).await.map_err(store_error)?;
            at = page.revision;
            for row in &page.rows {
                if let Some(found) = self.decode(&mut tables, row) {
                    entries.push(found);
                }
            }
            match page.rows.last() {
                Some(last) if page.more => start_after = Some(last.key.clone()),
                _ => break,
            }
        }
        self.shared.informer.load(entries, at);
        Ok(())
    }

    /// Keeps the informer in step until it is dropped. A store that is away is tried again and
    /// again; what was missed meanwhile is read from its log, or all of it when that is gone.
    pub async fn run(self) {
        let mut wait = RETRY_MIN;
        let mut tables = Tables::default();
        loop {
            let before = self.shared.informer.revision();
            let error = self.follow(&mut tables).await;
            if self.shared.informer.revision() > before {
                wait = RETRY_MIN;
            }
            let compacted = matches!(error, Error::Compacted { .. });
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "watch of the store has ended"
            );
            if compacted && let Err(error) = self.load().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "read the store again");
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// Applies changes until the watch ends; why it did.
    async fn follow(&self, tables: &mut Tables) -> Error {
        let from = self.shared.informer.revision().next();
        let prefix = self.shared.layout.root();
        let mut watcher = match self.shared.store.watch(&prefix, from).await {
            Ok(watcher) => watcher,
            Err(error) => return store_error(error),
        };
        loop {
            match watcher.next().await {
                Ok(batch) => {
                    let events =
                        batch.events.into_iter().filter_map(|event| self.event(tables, event));
                    self.shared.informer.apply(events.collect(), batch.progress);
                }
                Err(error) => return store_error(error),
            }
        }
    }

    fn event(&self, tables: &mut Tables, event: fp_store::Event) -> Option<Event> {
        let row = &event.row;
        if event.kind == EventKind::Deleted {
            return self.deleted(tables, row, &row.value);
        }
        match self.shared.prepared.take(&row.key, &row.value, row.revision) {
            Some(entry) => {
                let parts = self.shared.layout.split(&row.key)?;
                Some(Event { table: tables.of(&self.shared, &parts), entry, deleted: false })
            }
            None => match self.decode(tables, row) {
                Some((table, entry)) => Some(Event { table, entry, deleted: false }),
                // Rather no object than one that is no longer so.
                None => self.deleted(tables, row, event.previous.as_ref()?),
            },
        }
    }

    /// The delete of the object whose last value that can be read is `last`. One that could never
    /// be read is not in memory.
    fn deleted(&self, tables: &mut Tables, row: &Row, last: &Bytes) -> Option<Event> {
        let parts = self.shared.layout.split(&row.key)?;
        let entry = self.shared.decode(&parts, last, row.revision).ok()?;
        Some(Event { table: tables.of(&self.shared, &parts), entry, deleted: true })
    }

    fn decode(&self, tables: &mut Tables, row: &Row) -> Option<(Arc<Table>, Arc<Entry>)> {
        let Some(parts) = self.shared.layout.split(&row.key) else {
            self.shared.counts.foreign.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(key = &*row.key, "key is of another layout");
            return None;
        };
        match self.shared.decode(&parts, &row.value, row.revision) {
            Ok(entry) => Some((tables.of(&self.shared, &parts), entry)),
            Err(error) => {
                self.shared.counts.undecodable.fetch_add(1, Ordering::Relaxed);
                tracing::error!(key = &*row.key, revision = row.revision.0, %error, "skip stored object");
                None
            }
        }
    }
}

/// The table of the last key: keys of one table mostly come together.
#[derive(Default)]
struct Tables {
    last: Option<Arc<Table>>,
}

impl Tables {
    fn of(&mut self, shared: &Shared, parts: &Parts<'_>) -> Arc<Table> {
        let same = |id: &TableId| {
            *id.gr.group == *parts.group
                && *id.gr.resource == *parts.resource
                && *id.segment == *parts.segment
        };
        if let Some(last) = self.last.as_ref().filter(|table| same(table.id())) {
            return last.clone();
        }
        let id =
            TableId { gr: Gr::new(parts.group, parts.resource), segment: parts.segment.into() };
        let table = shared.informer.table(&id);
        self.last = Some(table.clone());
        table
    }
}
