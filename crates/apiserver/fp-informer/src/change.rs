//! One change of one object.

use std::sync::Arc;

use fp_base::Revision;

use crate::Entry;

/// One change. `old` is the entry before: filters need it to tell when an object leaves a selection.
#[derive(Clone, Debug)]
pub struct Change {
    pub kind: ChangeKind,
    /// For a delete: the last state, at the revision of the delete.
    pub entry: Arc<Entry>,
    pub old: Option<Arc<Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn revision(&self) -> Revision {
        self.entry.revision
    }

    /// What a ring counts for it: the bodies it may keep alive, and its own parts.
    pub(crate) fn bytes(&self) -> usize {
        const PARTS: usize = 256;
        PARTS + self.entry.json.len() + self.old.as_ref().map_or(0, |old| old.json.len())
    }
}
