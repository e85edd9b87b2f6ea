//! What makes it kcp: its API types, the tiers of resource definitions, the path index, binding,
//! authorizers, admission, and the content that a new server starts with.
//!
//! Invariants: decisions here are pure or answer from memory; nothing waits, nothing is spawned.
//! Deliberately absent: tasks, queues, sockets.

pub mod admission;
pub mod api;
pub mod assets;
pub mod authorizer;
pub mod bootstrap;
pub mod bound;
pub mod bypath;
pub mod clusters;
pub mod conditions;
pub mod conversion;
pub mod crds;
pub mod directory;
pub mod hash;
pub mod indexes;
pub mod names;
pub mod resolver;
pub mod rules;
pub mod workspacetype;

#[cfg(test)]
mod testing;
