//! What an operator's tools need beside the `Store` contract: a snapshot that takes no lock of the
//! writer's, a load of rows with their own revisions into an empty store, and a look at every row.
//!
//! Invariants: a snapshot changes nothing; a load is one transaction, so that a target is empty or
//! complete; it never moves a revision counter back.

mod check;
mod load;
mod snapshot;
mod usage;

use crate::open::OpenError;
use crate::postgres::PostgresError;

pub use check::Fault;
pub(crate) use check::{Checker, LogLine};
pub use load::SqliteLoad;
pub use snapshot::SqliteSnapshot;
pub(crate) use usage::Tally;
pub use usage::{PrefixUsage, Usage};

/// What a page of a snapshot has at most, if not one row has more.
pub(crate) const PAGE_ROWS: usize = 500;
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// The first id that no row has; it may be the one after the last.
pub(crate) const FREE_ID: &str = "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM kine WHERE id = 1) \
     THEN 1 ELSE (SELECT MIN(a.id) + 1 FROM kine AS a \
     WHERE NOT EXISTS (SELECT 1 FROM kine AS b WHERE b.id = a.id + 1)) END";

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error("{store} does not exist, or holds no kine table")]
    Absent { store: String },
    #[error(
        "{store} is not empty: it holds {n_keys} keys, the first is {first}; name an empty store"
    )]
    NotEmpty { store: String, n_keys: u64, first: String },
    #[error("{store}: {what}: {why}")]
    Refused { store: String, what: &'static str, why: String },
    #[error("{0:?} is a name that the store keeps for itself")]
    Name(String),
}
