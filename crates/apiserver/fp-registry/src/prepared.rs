//! Values that are on their way to the store, in served form: the pump meets them again as events
//! of this process's own writes, and need not decode them a second time.
//!
//! Only a shortcut: what is not here, or differs in a byte, the pump decodes itself.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use fp_base::Revision;
use fp_informer::{Entry, ObjectKey};
use fp_keyspace::Served;
use fp_store::Key;
use parking_lot::Mutex;

use crate::store::entry;

/// Writes under way that are remembered. Beyond it the oldest knowledge is dropped, all at once.
const PREPARED_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Prepared {
    slots: Mutex<HashMap<Key, Slot>>,
}

struct Slot {
    value: Bytes,
    key: ObjectKey,
    served: Arc<Served>,
    /// What the writer has answered with, when it was first.
    entry: Option<Arc<Entry>>,
}

impl Prepared {
    /// Before a commit: `value` is about to be written under `key`.
    pub fn put(&self, at: Key, key: ObjectKey, value: Bytes, served: Arc<Served>) {
        let mut slots = self.slots.lock();
        if slots.len() >= PREPARED_MAX {
            slots.clear();
        }
        slots.insert(at, Slot { value, key, served, entry: None });
    }

    /// After the commit: the writer has made the entry.
    pub fn made(&self, at: &Key, entry: &Arc<Entry>, value: &Bytes) {
        if let Some(slot) = self.slots.lock().get_mut(at).filter(|slot| slot.value == *value) {
            slot.entry = Some(entry.clone());
        }
    }

    /// The commit has failed.
    pub fn forget(&self, at: &Key, value: &Bytes) {
        let mut slots = self.slots.lock();
        if slots.get(at).is_some_and(|slot| slot.value == *value) {
            slots.remove(at);
        }
    }

    /// The entry of an event that carries `value`, if the value was written from here.
    pub fn take(&self, at: &Key, value: &Bytes, revision: Revision) -> Option<Arc<Entry>> {
        let slot = self.slots.lock().remove(at)?;
        if slot.value != *value {
            return None;
        }
        match slot.entry {
            Some(made) if made.revision == revision => Some(made),
            _ => Some(entry(slot.key, &slot.served, revision)),
        }
    }
}
