//! [`Informer`]: all tables, one revision.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fp_base::{ClusterScope, Gr, Revision};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::cursor::Slot;
use crate::table::{Query, Table};
use crate::{Change, ChangeKind, Entry, ObjectKey, TableId};

/// What all rings together may hold, in bytes. It bounds how much memory superseded states take;
/// a watcher that falls behind it reads the store's log instead.
pub const RING_BYTES_MAX: usize = 16 << 20;

/// One change as the feeder hands it in.
pub struct Event {
    pub table: Arc<Table>,
    /// For a delete: the last state, at the revision of the delete.
    pub entry: Arc<Entry>,
    pub deleted: bool,
}

/// Called for every change, in revision order, before any reader can see it. It must be quick,
/// and must not read the informer.
pub type Observer = Arc<dyn Fn(&TableId, &Change) + Send + Sync>;

/// The one copy of the store in memory.
pub struct Informer {
    /// By resource; a resource that several exports bring has a table for each.
    tables: RwLock<HashMap<Gr, Vec<Arc<Table>>>>,
    observers: RwLock<Vec<(Option<TableId>, Observer)>>,
    /// With the number that [`Informer::unfollow`] knows them by.
    followers: RwLock<Vec<(u64, Observer)>>,
    /// Held while changes are made: there is one feeder at a time.
    feed: Mutex<Feed>,
    revision: Arc<AtomicI64>,
    moved: watch::Sender<Revision>,
    ring_bytes_max: usize,
}

struct Feed {
    ring_bytes: usize,
    n_followed: u64,
    /// The revision of the last load: tables made later are known to be empty since then.
    loaded: Revision,
}

impl Informer {
    pub fn new() -> Self {
        Self::with_ring(RING_BYTES_MAX)
    }

    /// An informer whose rings together hold at most `ring_bytes_max`.
    pub fn with_ring(ring_bytes_max: usize) -> Self {
        Self {
            tables: RwLock::default(),
            observers: RwLock::default(),
            followers: RwLock::default(),
            feed: Mutex::new(Feed { ring_bytes: 0, n_followed: 0, loaded: Revision::ZERO }),
            revision: Arc::default(),
            moved: watch::Sender::new(Revision::ZERO),
            ring_bytes_max,
        }
    }

    /// Everything up to this revision is in memory.
    pub fn revision(&self) -> Revision {
        Revision(self.revision.load(Ordering::Acquire))
    }

    /// Waits until memory has reached `revision`. After `timeout` the error says where it stands.
    pub async fn wait_for(&self, revision: Revision, timeout: Duration) -> Result<(), Revision> {
        if self.revision() >= revision {
            return Ok(());
        }
        let mut moved = self.moved.subscribe();
        let reached = moved.wait_for(|now| *now >= revision);
        match tokio::time::timeout(timeout, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(self.revision()),
        }
    }

    /// The table, made when it is asked for the first time.
    pub fn table(&self, id: &TableId) -> Arc<Table> {
        if let Some(table) = find(&self.tables.read(), id) {
            return table.clone();
        }
        // The feed is held, so that no load can pass between reading its revision and the insert.
        let feed = self.feed.lock();
        let mut tables = self.tables.write();
        if let Some(table) = find(&tables, id) {
            return table.clone();
        }
        let table = Arc::new(Table::new(id.clone(), self.revision.clone(), feed.loaded));
        tables.entry(id.gr.clone()).or_default().push(table.clone());
        table
    }

    /// The tables of one resource: one for each of its segments that has been asked for.
    pub fn tables_of(&self, gr: &Gr) -> Vec<Arc<Table>> {
        self.tables.read().get(gr).cloned().unwrap_or_default()
    }

    /// The entries of all tables of a resource in key order, and the revision at which they are
    /// its state. Equal keys can stand in two tables.
    pub fn list_all(
        &self,
        gr: &Gr,
        namespace: Option<&str>,
        start_after: Option<&ObjectKey>,
    ) -> (Vec<Arc<Entry>>, Revision) {
        // While the feed is held nothing changes: the tables are of one revision.
        let feed = self.feed.lock();
        let query =
            Query { scope: &ClusterScope::All, namespace, start_after, limit: 0, filter: None };
        let tables = self.tables_of(gr);
        let mut entries: Vec<_> = tables.iter().flat_map(|t| t.list(query).entries).collect();
        let revision = self.revision();
        drop(feed);
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        (entries, revision)
    }

    /// Every table there is, in no order.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.tables.read().values().flatten().cloned().collect()
    }

    /// Calls `observer` for what exists (as added) and from then on for every change of the table,
    /// or of all tables.
    pub fn observe(&self, table: Option<TableId>, observer: Observer) {
        let _feed = self.feed.lock();
        for known in self.tables().iter().filter(|t| table.as_ref().is_none_or(|id| id == t.id())) {
            let entries: Vec<_> = known.state.read().entries.values().cloned().collect();
            for entry in entries {
                observer(known.id(), &Change { kind: ChangeKind::Added, entry, old: None });
            }
        }
        self.observers.write().push((table, observer));
    }

    /// Like [`Informer::observe`] for all tables, but called when readers can see the change: for
    /// those who go and read, such as controllers. The number is for [`Informer::unfollow`].
    pub fn follow(&self, follower: Observer) -> u64 {
        let mut feed = self.feed.lock();
        feed.n_followed += 1;
        let number = feed.n_followed;
        for known in &self.tables() {
            let entries: Vec<_> = known.state.read().entries.values().cloned().collect();
            for entry in entries {
                follower(known.id(), &Change { kind: ChangeKind::Added, entry, old: None });
            }
        }
        self.followers.write().push((number, follower));
        number
    }

    /// Ends what [`Informer::follow`] began: the follower is not called again, and is dropped.
    pub fn unfollow(&self, number: u64) {
        let _feed = self.feed.lock();
        self.followers.write().retain(|(own, _)| *own != number);
    }

    /// Makes changes, which are in revision order, and moves the revision to `progress`. What is not
    /// after the informer's revision was made before and is passed over. Readers of one table see all of them or none.
    pub fn apply(&self, events: Vec<Event>, progress: Revision) {
        let mut feed = self.feed.lock();
        let changes = self.resolve(events);
        let followers = self.followers.read().clone();
        let followed = if followers.is_empty() { Vec::new() } else { changes.clone() };
        let mut woken = Vec::new();
        for (table, changes) in by_table(changes) {
            let mut state = table.state.write();
            for change in changes {
                feed.ring_bytes += state.apply(change, &mut woken);
            }
        }
        self.advance(progress, &woken);
        tell_all(&followers, &followed);
        if feed.ring_bytes > self.ring_bytes_max {
            self.evict(&mut feed);
        }
    }

    /// Puts `entries`, the whole store at revision `at`, in place of what there is. Observers see
    /// the differences, in no order between tables. Changes between are lost to cursors.
    pub fn load(&self, entries: Vec<(Arc<Table>, Arc<Entry>)>, at: Revision) {
        let mut feed = self.feed.lock();
        feed.loaded = at;
        feed.ring_bytes = 0;
        let mut loaded: HashMap<TableId, BTreeMap<ObjectKey, Arc<Entry>>> = HashMap::new();
        for (table, entry) in entries {
            if let Some(map) = loaded.get_mut(table.id()) {
                map.insert(entry.key.clone(), entry);
            } else {
                loaded.insert(table.id().clone(), BTreeMap::from([(entry.key.clone(), entry)]));
            }
        }
        let mut woken = Vec::new();
        let mut followed = Vec::new();
        for table in self.tables() {
            let new = loaded.remove(table.id()).unwrap_or_default();
            let changes = self.tell_difference(&table, &new, at);
            followed.extend(changes.into_iter().map(|change| (table.clone(), change)));
            table.state.write().replace(new, at, &mut woken);
        }
        self.advance(at, &woken);
        tell_all(&self.followers.read(), &followed);
    }

    /// Finds what was there before each event, and tells the observers.
    fn resolve(&self, events: Vec<Event>) -> Vec<(Arc<Table>, Change)> {
        let observers = self.observers.read();
        let many = events.len() > 1;
        // What earlier events of this batch have made of a key.
        let mut batch: HashMap<(*const Table, ObjectKey), Option<Arc<Entry>>> = HashMap::new();
        let mut changes = Vec::with_capacity(events.len());
        // After a feeder's reconnect events may come again.
        let known = self.revision();
        for Event { table, entry, deleted } in
            events.into_iter().filter(|e| e.entry.revision > known)
        {
            let old = if many {
                let key = (Arc::as_ptr(&table), entry.key.clone());
                let new = (!deleted).then(|| entry.clone());
                batch.insert(key, new).unwrap_or_else(|| table.get(&entry.key))
            } else {
                table.get(&entry.key)
            };
            let kind = match (deleted, &old) {
                (true, None) => continue,
                (true, _) => ChangeKind::Deleted,
                (false, None) => ChangeKind::Added,
                (false, Some(_)) => ChangeKind::Modified,
            };
            let change = Change { kind, entry, old };
            tell(&observers, table.id(), &change);
            changes.push((table, change));
        }
        changes
    }

    /// Tells the observers what a load changes in a table, and returns it.
    fn tell_difference(
        &self,
        table: &Table,
        new: &BTreeMap<ObjectKey, Arc<Entry>>,
        at: Revision,
    ) -> Vec<Change> {
        let observers = self.observers.read();
        let old = table.state.read().entries.clone();
        let mut changes = Vec::new();
        for entry in old.values().filter(|entry| !new.contains_key(&entry.key)) {
            let gone = Entry::new(
                entry.key.clone(),
                at,
                entry.json.clone(),
                entry.labels.clone(),
                entry.deleting,
            );
            let change = Change {
                kind: ChangeKind::Deleted,
                entry: Arc::new(gone),
                old: Some(entry.clone()),
            };
            tell(&observers, table.id(), &change);
            changes.push(change);
        }
        for entry in new.values() {
            let before = old.get(&entry.key);
            if before.is_some_and(|before| before.revision == entry.revision) {
                continue;
            }
            let kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
            let change = Change { kind, entry: entry.clone(), old: before.cloned() };
            tell(&observers, table.id(), &change);
            changes.push(change);
        }
        changes
    }

    fn advance(&self, to: Revision, woken: &[Arc<Slot>]) {
        if to > self.revision() {
            self.revision.store(to.0, Ordering::Release);
            self.moved.send_replace(to);
        }
        for slot in woken {
            slot.wake();
        }
    }

    /// Shortens the longest rings until an eighth of the limit is free: a busy table cannot push
    /// out the changes of the quiet ones.
    fn evict(&self, feed: &mut Feed) {
        let goal = self.ring_bytes_max - self.ring_bytes_max / 8;
        let ring_bytes = |table: &Table| table.state.read().ring.bytes();
        let mut tables: Vec<_> = self.tables().into_iter().map(|t| (ring_bytes(&t), t)).collect();
        tables.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        while feed.ring_bytes > goal {
            // The first `n` tables are cut down to the size of the next one, or to the goal.
            let first = tables[0].0;
            assert!(first > 0, "rings are empty and hold {} bytes", feed.ring_bytes);
            let n = tables.iter().take_while(|(bytes, _)| *bytes == first).count();
            let next = tables.get(n).map_or(0, |(bytes, _)| *bytes);
            let excess = (feed.ring_bytes - goal).div_ceil(n);
            let floor = next.max(first.saturating_sub(excess));
            for (bytes, table) in &mut tables[..n] {
                let mut state = table.state.write();
                while state.ring.bytes() > floor {
                    feed.ring_bytes -= state.ring.pop();
                }
                *bytes = floor;
            }
        }
    }
}

impl Default for Informer {
    fn default() -> Self {
        Self::new()
    }
}

fn find<'a>(tables: &'a HashMap<Gr, Vec<Arc<Table>>>, id: &TableId) -> Option<&'a Arc<Table>> {
    tables.get(&id.gr)?.iter().find(|table| table.id().segment == id.segment)
}

fn tell(observers: &[(Option<TableId>, Observer)], table: &TableId, change: &Change) {
    for (_, observer) in
        observers.iter().filter(|(own, _)| own.as_ref().is_none_or(|id| id == table))
    {
        observer(table, change);
    }
}

fn tell_all(followers: &[(u64, Observer)], changes: &[(Arc<Table>, Change)]) {
    for (_, follower) in followers {
        changes.iter().for_each(|(table, change)| follower(table.id(), change));
    }
}

/// Groups changes, keeping the order within each table.
fn by_table(changes: Vec<(Arc<Table>, Change)>) -> Vec<(Arc<Table>, Vec<Change>)> {
    let mut groups: Vec<(Arc<Table>, Vec<Change>)> = Vec::new();
    for (table, change) in changes {
        match groups.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &table)) {
            Some((_, group)) => group.push(change),
            None => groups.push((table, vec![change])),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
