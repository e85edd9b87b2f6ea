//! One in-memory copy of the store, over all clusters: tables, a bounded event ring, cursors, and
//! observers that keep derived indexes in step.
//!
//! Invariants: entries change in revision order; an observer has seen a change before any reader
//! can; nothing queues without bound (a cursor that falls behind is told so).
//! Deliberately absent: storage keys, who feeds it, who reads it.

pub mod entry;

pub use entry::{Entry, ObjectKey, TableId};
