//! A table's recent changes.

use std::collections::VecDeque;

use fp_base::Revision;

use crate::Change;

/// Every change of a table after `floor`, in revision order.
pub(crate) struct Ring {
    changes: VecDeque<Change>,
    floor: Revision,
    bytes: usize,
}

impl Ring {
    pub fn new(floor: Revision) -> Self {
        Self { changes: VecDeque::new(), floor, bytes: 0 }
    }

    pub fn floor(&self) -> Revision {
        self.floor
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, change: Change) {
        debug_assert!(self.changes.back().is_none_or(|last| last.revision() < change.revision()));
        self.bytes += change.bytes();
        self.changes.push_back(change);
    }

    /// Forgets the oldest change. Returns the bytes it counted for.
    pub fn pop(&mut self) -> usize {
        let Some(change) = self.changes.pop_front() else { return 0 };
        let bytes = change.bytes();
        self.bytes -= bytes;
        self.floor = change.revision();
        if self.changes.is_empty() {
            self.changes.shrink_to_fit();
        }
        bytes
    }

    /// The changes from revision `from` on, inclusive.
    pub fn from(&self, from: Revision) -> impl Iterator<Item = &Change> {
        let at = self.changes.partition_point(|change| change.revision() < from);
        self.changes.range(at..)
    }
}
