//! Names: clusters, paths, resources, revisions, identities, and the one URL parser.
//!
//! Invariant: an identity is parsed once, at the edge; inside the house it is a type, never a `String`.
//! Deliberately absent: async, I/O, JSON.

pub mod cluster;
pub mod resource;
pub mod revision;
pub mod url;

pub use cluster::{ClusterName, ClusterPath, ClusterScope};
pub use resource::{Gr, Gv, Gvk, Gvr};
pub use revision::{Identity, Revision};
