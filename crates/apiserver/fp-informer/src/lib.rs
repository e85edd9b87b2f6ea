//! One in-memory copy of the store, over all clusters: tables, a bounded event ring, cursors, and
//! observers that keep derived indexes in step.
//!
//! Invariants: entries change in revision order; an observer has seen a change before any reader
//! can; nothing queues without bound (a cursor that falls behind is told so); nothing is spawned,
//! registered or metered per cluster.
//! Deliberately absent: storage keys, who feeds it, who reads it.

pub mod change;
pub mod cursor;
pub mod entry;
pub mod informer;
mod ring;
pub mod table;

pub use change::{Change, ChangeKind};
pub use cursor::Cursor;
pub use entry::{Entry, ObjectKey, TableId};
pub use informer::{Event, Informer, Observer};
pub use table::{Behind, Listed, Query, Table};
