//! What a row of kine's table means, whichever database holds it.

use std::sync::Arc;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Error, Event, EventKind, Key, Row, Txn};

/// The row whose `prev_revision` is the compact revision.
pub(crate) const COMPACT_KEY: &str = "compact_rev_key";
/// Rows that kine writes where an id was never used are named `gap-<id>`.
pub(crate) const GAP_PREFIX: &str = "gap-";

/// Names that are kine's own are no keys.
pub(crate) fn is_key(name: &str) -> bool {
    name != COMPACT_KEY && !name.starts_with(GAP_PREFIX)
}

/// Refuses to write the names that kine keeps for itself.
pub(crate) fn check_names(txn: &Txn) -> Result<(), Error> {
    match txn.ops.iter().map(|op| op.key()).find(|key| !is_key(key)) {
        Some(key) => Err(Error::Key(key.to_string())),
        None => Ok(()),
    }
}

/// A row as the log has it.
pub(crate) struct LogRow<'a> {
    pub(crate) id: i64,
    pub(crate) name: &'a str,
    pub(crate) created: bool,
    pub(crate) deleted: bool,
    pub(crate) create_revision: i64,
    pub(crate) lease_secs: i64,
    pub(crate) value: Option<Bytes>,
    pub(crate) old_value: Option<Bytes>,
    /// The row of the write before.
    pub(crate) previous_id: i64,
}

impl LogRow<'_> {
    pub(crate) fn into_event(self) -> Event {
        let (kind, value, previous) = if self.deleted {
            // kine before 0.14 repeats the last value in `value`.
            let last = self.old_value.or(self.value).unwrap_or_default();
            (EventKind::Deleted, last.clone(), Some(last))
        } else if self.created {
            (EventKind::Created, self.value.unwrap_or_default(), None)
        } else {
            let previous = self.old_value.unwrap_or_default();
            (EventKind::Updated, self.value.unwrap_or_default(), Some(previous))
        };
        let row = Row {
            key: Arc::from(self.name),
            value,
            revision: Revision(self.id),
            created: Revision(if self.created { self.id } else { self.create_revision }),
            lease_ttl_secs: lease_secs(self.lease_secs),
        };
        let previous_revision = Revision(if self.created { 0 } else { self.previous_id });
        Event { kind, row, previous, previous_revision }
    }
}

/// The newest row of a name, live or not.
#[derive(Clone)]
pub(crate) struct Newest {
    pub(crate) id: i64,
    pub(crate) deleted: bool,
    pub(crate) created: Revision,
    pub(crate) lease_ttl_secs: u32,
    pub(crate) value: Bytes,
}

impl Newest {
    pub(crate) fn into_row(self, key: &Key) -> Option<Row> {
        let Self { id, deleted, created, lease_ttl_secs, value } = self;
        let row = Row { key: key.clone(), value, revision: Revision(id), created, lease_ttl_secs };
        (!deleted).then_some(row)
    }
}

pub(crate) fn lease_secs(lease: i64) -> u32 {
    u32::try_from(lease.max(0)).unwrap_or(u32::MAX)
}
