//! Reading a place's changes from the store's log, for a watch that the ring no longer covers.

use std::sync::Arc;

use fp_base::{ClusterScope, Revision};
use fp_informer::{Change, ChangeKind};
use fp_store::{Event, EventKind, Watcher};

use crate::store::{Shared, store_error};
use crate::{Error, Place};

/// A place's changes from the log.
pub(crate) struct Log {
    watcher: Box<dyn Watcher>,
    /// Set where the store's prefix does not tell it: a namespace over all clusters.
    namespace: Option<Arc<str>>,
    /// Everything up to here has been returned.
    pub delivered: Revision,
}

impl Log {
    /// Changes after `after`.
    pub async fn open(shared: &Shared, place: &Place<'_>, after: Revision) -> Result<Self, Error> {
        let prefix = shared.prefix(place)?;
        let watcher =
            shared.store.watch(&prefix, after.next()).await.map_err(|e| expired(e, after))?;
        let namespace =
            place.namespace.filter(|_| *place.scope == ClusterScope::All).map(Into::into);
        Ok(Self { watcher, namespace, delivered: after })
    }

    /// The next changes; none when only `delivered` has moved.
    pub async fn next(&mut self, shared: &Shared) -> Result<Vec<Change>, Error> {
        let batch = self.watcher.next().await.map_err(|e| expired(e, self.delivered))?;
        let changes = batch.events.iter().filter_map(|event| self.change(shared, event)).collect();
        self.delivered = self.delivered.max(batch.progress);
        Ok(changes)
    }

    /// `None`: of another namespace, or not readable (the pump counts and reports it).
    fn change(&self, shared: &Shared, event: &Event) -> Option<Change> {
        let row = &event.row;
        let parts = shared.layout.split(&row.key)?;
        if self.namespace.as_ref().is_some_and(|ns| **ns != *parts.namespace) {
            return None;
        }
        let entry = shared.decode(&parts, &row.value, row.revision).ok()?;
        // The log does not tell the revision of the state before; filters do not ask for it.
        let previous = event.previous.as_ref();
        let old = previous.and_then(|value| shared.decode(&parts, value, Revision::ZERO).ok());
        let kind = match event.kind {
            EventKind::Created => ChangeKind::Added,
            EventKind::Updated => ChangeKind::Modified,
            EventKind::Deleted => ChangeKind::Deleted,
        };
        Some(Change { kind, entry, old })
    }
}

/// Names the revision the watcher asked for.
fn expired(error: fp_store::Error, asked: Revision) -> Error {
    match store_error(error) {
        Error::Compacted { oldest, .. } => Error::Compacted { asked, oldest },
        other => other,
    }
}
