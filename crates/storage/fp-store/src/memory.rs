//! The in-memory store, for tests: the whole contract, nothing kept.
//!
//! Invariant: `log` holds every event above the compact revision, in order. Expiry is looked at by
//! whoever calls, so there is no task: what nobody asks about does not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fp_base::Revision;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{
    Batch, Compare, Error, Event, EventKind, Key, ListQuery, Op, Outcome, Page, Row, Store, Txn,
    Watcher, check_key, check_prefix,
};

/// A store in memory. Clones of the `Arc` that `new` returns share it.
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The newest revision; closed with the store.
    head: watch::Sender<Revision>,
}

#[derive(Default)]
struct State {
    /// All versions of a key that are not compacted, oldest first; `None` is a delete.
    versions: BTreeMap<Key, Vec<(Revision, Option<Row>)>>,
    log: Vec<Event>,
    head: Revision,
    compacted: Revision,
    expiries: BTreeSet<(Instant, Key, Revision)>,
    closed: bool,
}

struct MemoryWatcher {
    shared: Arc<Shared>,
    head: watch::Receiver<Revision>,
    prefix: String,
    /// Everything up to here has been delivered.
    cursor: Revision,
}

impl MemoryStore {
    pub fn new() -> Arc<Self> {
        Self::starting_at(Revision::ZERO)
    }

    /// An empty store whose newest revision is `head`: etcd's is 1, and its clients take 0 for an
    /// error.
    pub fn starting_at(head: Revision) -> Arc<Self> {
        let state = Mutex::new(State { head, ..State::default() });
        let (head, _) = watch::channel(head);
        Arc::new(Self { shared: Arc::new(Shared { state, head }) })
    }
}

impl Shared {
    /// Runs `f` on the state after what is due has expired; refuses when closed.
    fn with<T>(&self, f: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        state.expire(Instant::now());
        let result = f(&mut state);
        let head = state.head;
        drop(state);
        self.head.send_if_modified(|seen| std::mem::replace(seen, head) != head);
        result
    }
}

impl State {
    fn row(&self, key: &str, at: Revision) -> Option<&Row> {
        newest(self.versions.get(key)?, at)
    }

    /// The revision to read at: `at`, or the newest when it is zero.
    fn readable(&self, at: Revision) -> Result<Revision, Error> {
        if at == Revision::ZERO {
            Ok(self.head)
        } else if at > self.head {
            Err(Error::Future { asked: at, newest: self.head })
        } else if at < self.compacted {
            Err(Error::Compacted { asked: at, oldest: self.compacted })
        } else {
            Ok(at)
        }
    }

    /// The live rows that begin with `prefix` at `at`, in key order.
    fn live<'a>(&'a self, prefix: &'a str, at: Revision) -> impl Iterator<Item = &'a Row> {
        self.versions
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .filter_map(move |(_, versions)| newest(versions, at))
    }

    fn commit(&mut self, txn: &Txn, now: Instant) -> Outcome {
        let newest = self.head;
        let holds = |compare: &Compare| match compare {
            Compare::Absent(key) => self.row(key, newest).is_none(),
            Compare::At(key, at) => self.row(key, newest).is_some_and(|row| row.revision == *at),
            Compare::Unchanged { from, end, since } => {
                let start = self.log.partition_point(|event| event.row.revision <= *since);
                let within = |event: &Event| {
                    *event.row.key >= **from
                        && end.as_ref().is_none_or(|end| *event.row.key < **end)
                };
                *since >= self.compacted && !self.log[start..].iter().any(within)
            }
        };
        if !txn.compares.iter().all(holds) {
            let rows = txn.compares.iter().map(|c| self.row(c.key()?, newest).cloned());
            return Outcome::Failed(rows.collect());
        }
        Outcome::Committed(txn.ops.iter().filter_map(|op| self.write(op, now)).collect())
    }

    fn write(&mut self, op: &Op, now: Instant) -> Option<Revision> {
        let revision = self.head.next();
        let key = op.key().clone();
        let before = self.row(&key, self.head).cloned();
        let event = match op {
            Op::Put { value, lease_ttl_secs, .. } => {
                let created = before.as_ref().map_or(revision, |row| row.created);
                let (value, lease_ttl_secs) = (value.clone(), *lease_ttl_secs);
                let row = Row { key: key.clone(), value, revision, created, lease_ttl_secs };
                if lease_ttl_secs > 0 {
                    let at = now + Duration::from_secs(lease_ttl_secs.into());
                    self.expiries.insert((at, key.clone(), revision));
                }
                let kind = if before.is_some() { EventKind::Updated } else { EventKind::Created };
                let previous_revision = before.as_ref().map_or(Revision::ZERO, |row| row.revision);
                Event { kind, row, previous: before.map(|row| row.value), previous_revision }
            }
            Op::Delete { .. } => {
                let before = before?;
                let (previous, previous_revision) = (Some(before.value.clone()), before.revision);
                let row = Row { revision, lease_ttl_secs: 0, ..before };
                Event { kind: EventKind::Deleted, row, previous, previous_revision }
            }
        };
        let row = (event.kind != EventKind::Deleted).then(|| event.row.clone());
        self.versions.entry(key).or_default().push((revision, row));
        self.log.push(event);
        self.head = revision;
        Some(revision)
    }

    fn expire(&mut self, now: Instant) {
        while self.expiries.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, key, revision) = self.expiries.pop_first().expect("just seen");
            let compares = vec![Compare::At(key.clone(), revision)];
            self.commit(&Txn { compares, ops: vec![Op::Delete { key }] }, now);
        }
    }

    fn compact(&mut self, at: Revision) -> Result<Revision, Error> {
        if at > self.head {
            return Err(Error::Future { asked: at, newest: self.head });
        }
        if at > self.compacted {
            self.compacted = at;
            self.versions.retain(|_, versions| {
                // The newest version at `at` is still what a read at `at` sees.
                let below = versions.partition_point(|(revision, _)| *revision <= at);
                let keep_from = match below.checked_sub(1) {
                    Some(last) if versions[last].1.is_none() => below,
                    Some(last) => last,
                    None => 0,
                };
                versions.drain(..keep_from);
                !versions.is_empty()
            });
            self.log.retain(|event| event.row.revision > at);
        }
        Ok(self.compacted)
    }

    fn watchable(&self, cursor: Revision) -> Result<(), Error> {
        if cursor < self.compacted {
            return Err(Error::Compacted { asked: cursor.next(), oldest: self.compacted.next() });
        }
        Ok(())
    }

    /// The events after `cursor`.
    fn after(&self, prefix: &str, cursor: Revision) -> Result<Batch, Error> {
        self.watchable(cursor)?;
        let start = self.log.partition_point(|event| event.row.revision <= cursor);
        let wanted = self.log[start..].iter().filter(|event| event.row.key.starts_with(prefix));
        Ok(Batch { events: wanted.cloned().collect(), progress: self.head })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn head(&self) -> Result<Revision, Error> {
        self.shared.with(|state| Ok(state.head))
    }

    async fn get(&self, key: &str, at: Revision) -> Result<Option<Row>, Error> {
        check_key(key)?;
        self.shared.with(|state| Ok(state.row(key, state.readable(at)?).cloned()))
    }

    async fn list(&self, query: ListQuery<'_>) -> Result<Page, Error> {
        check_prefix(query.prefix)?;
        self.shared.with(|state| {
            let revision = state.readable(query.at)?;
            let limit = if query.limit == 0 { usize::MAX } else { query.limit };
            let mut rest = state
                .live(query.prefix, revision)
                .filter(|row| query.start_after.is_none_or(|after| &*row.key > after));
            let rows = rest.by_ref().take(limit).cloned().collect();
            Ok(Page { rows, revision, more: rest.next().is_some() })
        })
    }

    async fn count(&self, prefix: &str, at: Revision) -> Result<u64, Error> {
        check_prefix(prefix)?;
        self.shared.with(|state| Ok(state.live(prefix, state.readable(at)?).count() as u64))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, Error> {
        txn.check()?;
        self.shared.with(|state| Ok(state.commit(&txn, Instant::now())))
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watcher>, Error> {
        check_prefix(prefix)?;
        self.shared.with(|state| {
            let cursor = Revision(from.0 - 1).max(Revision::ZERO);
            state.watchable(cursor)?;
            Ok(Box::new(MemoryWatcher {
                shared: self.shared.clone(),
                head: self.shared.head.subscribe(),
                prefix: prefix.to_owned(),
                cursor,
            }) as Box<dyn Watcher>)
        })
    }

    async fn compact(&self, at: Revision) -> Result<Revision, Error> {
        self.shared.with(|state| state.compact(at))
    }

    async fn compacted(&self) -> Result<Revision, Error> {
        self.shared.with(|state| Ok(state.compacted))
    }

    async fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.head.send_modify(|_| ());
    }
}

#[async_trait]
impl Watcher for MemoryWatcher {
    async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            self.head.borrow_and_update();
            let (batch, due) = self.shared.with(|state| {
                let batch = state.after(&self.prefix, self.cursor)?;
                Ok((batch, state.expiries.first().map(|(at, ..)| *at)))
            })?;
            if batch.progress > self.cursor {
                self.cursor = batch.progress;
                return Ok(batch);
            }
            let changed = self.head.changed();
            // An error of `changed` means that the store is gone, and so is a timeout only a
            // reason to look again: both are seen at the top of the loop.
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, changed).await),
                None => drop(changed.await),
            }
        }
    }
}

fn newest(versions: &[(Revision, Option<Row>)], at: Revision) -> Option<&Row> {
    let below = versions.partition_point(|(revision, _)| *revision <= at);
    versions[..below].last()?.1.as_ref()
}

fn closed() -> Error {
    Error::Unavailable { what: "it is closed".into(), source: None }
}
