//! A watcher's place in a table's changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fp_base::{ClusterScope, Revision};
use tokio::sync::Notify;

use crate::Change;
use crate::table::{Behind, Table};

/// The most changes one call returns: a watcher that is far back catches up in steps.
pub const CHANGES_MAX: usize = 1024;

/// What the feeder knows of a watcher. It is touched only for changes that the watcher wants.
pub(crate) struct Slot {
    namespace: Option<Box<str>>,
    /// The first revision the watcher has not seen; 0: it has seen all. Set under the table's
    /// write lock, cleared by the watcher under its read lock.
    unseen: AtomicI64,
    notify: Notify,
}

impl Slot {
    pub fn new(namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(Into::into),
            unseen: AtomicI64::new(0),
            notify: Notify::new(),
        }
    }

    pub fn wants(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Notes a change. True: it is the first one not seen, the watcher is to be woken.
    pub fn mark(&self, revision: Revision) -> bool {
        self.unseen.compare_exchange(0, revision.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Changes up to `revision` are lost to the watcher.
    pub fn mark_lost(&self, revision: Revision) {
        self.unseen.store(revision.0, Ordering::Relaxed);
    }

    pub fn wake(&self) {
        self.notify.notify_one();
    }
}

/// Follows one table's changes in one cluster, or in all. Dropping it ends it.
pub struct Cursor {
    table: Arc<Table>,
    scope: ClusterScope,
    slot: Arc<Slot>,
    delivered: Revision,
}

impl Cursor {
    pub(crate) fn new(
        table: Arc<Table>,
        scope: ClusterScope,
        slot: Arc<Slot>,
        delivered: Revision,
    ) -> Self {
        Self { table, scope, slot, delivered }
    }

    /// Every change up to this revision has been returned by [`Cursor::take`].
    pub fn delivered(&self) -> Revision {
        self.delivered
    }

    /// The changes since the last call, in revision order, at most [`CHANGES_MAX`]. None: nothing
    /// is pending, and `delivered` stands at the informer's revision. `Behind`: the ring has lost
    /// some; they come after `delivered`.
    pub fn take(&mut self) -> Result<Vec<Change>, Behind> {
        let state = self.table.state.read();
        let unseen = Revision(self.slot.unseen.load(Ordering::Relaxed));
        // The informer's revision moves after its tables: what it covers is in the state already.
        let known = self.table.known(&state);
        if unseen == Revision::ZERO {
            self.delivered = self.delivered.max(known);
            return Ok(Vec::new());
        }
        let floor = state.ring.floor();
        if unseen <= floor {
            return Err(Behind { floor });
        }
        let delivered = self.delivered;
        let mut wanted = state.ring.from(unseen).filter(|change| {
            let key = &change.entry.key;
            change.revision() > delivered
                && self.scope.contains(key.cluster.as_str())
                && self.slot.wants(&key.namespace)
        });
        let changes: Vec<Change> = wanted.by_ref().take(CHANGES_MAX).cloned().collect();
        let next = wanted.next().map_or(Revision::ZERO, Change::revision);
        self.slot.unseen.store(next.0, Ordering::Relaxed);
        self.delivered = match changes.last() {
            Some(last) if next != Revision::ZERO => last.revision(),
            _ => delivered.max(known),
        };
        Ok(changes)
    }

    /// Moves `delivered` to the informer's revision when nothing is pending, and returns it.
    pub fn progress(&mut self) -> Revision {
        let state = self.table.state.read();
        if self.slot.unseen.load(Ordering::Relaxed) == 0 {
            self.delivered = self.delivered.max(self.table.known(&state));
        }
        self.delivered
    }

    /// Waits until something is pending.
    pub async fn pending(&self) {
        while self.slot.unseen.load(Ordering::Relaxed) == 0 {
            self.slot.notify.notified().await;
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let mut state = self.table.state.write();
        match &self.scope {
            ClusterScope::All => state.of_all.retain(|slot| !Arc::ptr_eq(slot, &self.slot)),
            ClusterScope::One(cluster) => {
                if let Some(slots) = state.of_cluster.get_mut(cluster) {
                    slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
                    if slots.is_empty() {
                        state.of_cluster.remove(cluster);
                    }
                }
            }
        }
    }
}
