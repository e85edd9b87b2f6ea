//! The verbs over a [`Surface`]: create, update, patch, delete, deletecollection, get, list, watch,
//! subresources, reviews; and [`LocalClient`] for callers in the process.
//!
//! Invariants: every write of the program comes through here; there is one retry loop,
//! `rounds`; which error becomes which `Status` is decided in [`status`].
//! Deliberately absent: hyper, SQL, what a Workspace is.

pub mod request;
pub mod surface;

mod serve;

pub mod authorize;
mod target;

pub mod options;
mod select;
mod token;
mod view;

mod get;
mod list;
mod watch;

mod body;
mod rounds;
mod write;

mod crd;
mod create;
pub mod delete;
mod patch;
mod update;

mod reviews;
mod scale;

pub mod local;
pub mod status;

pub use local::LocalClient;
pub use serve::serve;
pub use surface::{Directory, Located, Resolved, Resolver, Surface};
