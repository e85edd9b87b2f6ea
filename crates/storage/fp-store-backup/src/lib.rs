//! The backup format: the live keys of a store at one revision, in one checksummed file.
//! `docs/guide/backup.md` describes it byte by byte.
//!
//! Invariants: a byte that changed anywhere is found; a file is whole or is not there under its
//! name; a record stands alone, and the header says which keys were selected.
//! Deliberately absent: where the keys come from and where they go; what a key means; history.

mod file;
mod format;
mod read;
mod write;

use fp_base::Revision;

pub use file::BackupFile;
pub use read::{Found, Reader, check};
pub use write::Writer;

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of store it was taken from: `sqlite`, `postgres`.
    pub source: String,
    /// The keys are those that lived at this revision.
    pub revision: Revision,
    /// How many there are.
    pub n_keys: u64,
    /// Only keys that begin with this were selected; empty is all.
    pub prefix: String,
    /// When it was taken, in seconds since 1970.
    pub taken_secs: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it is not a backup of Ferroplane")]
    Foreign,
    #[error("it has format version {0}, and this program reads up to {VERSION}: use a newer one")]
    Newer(u32),
    #[error("it ends at byte {at}, before its trailer: it is not complete")]
    Truncated { at: u64 },
    #[error("{place}: {what}")]
    Damaged { place: Place, what: String },
    #[error("the keys given are not those announced: {0}")]
    Given(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Blocks are counted from the header's, which is 0.
    pub block: u64,
    /// Where the block begins.
    pub at: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {} at byte {}", self.block, self.at)
    }
}

#[cfg(test)]
mod tests;
