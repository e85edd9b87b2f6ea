//! What every controller runs on: a keyed queue, workers, retries.
//!
//! Invariants: a key is worked on by one worker at a time; a key that was added while it was
//! worked on is worked on again; nothing is spawned per key.
//! Deliberately absent: any controller, any kind.

pub mod queue;
pub mod reconciler;

pub use queue::Queue;
pub use reconciler::{Error, Next, Reconciler, Runner};
