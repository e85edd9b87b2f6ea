//! HTTP: the order of the filters, negotiation, encoding, watch streams, discovery, health.
//!
//! One function answers every request, [`Server::handle`]: the target is parsed and its cluster
//! found; the caller is authenticated, perhaps impersonating; authorization speaks; only then the
//! answer is given, a hidden one included (see `place`).
//!
//! Invariants: no route but health answers an unauthenticated caller; no redirect is ever sent;
//! an entry's bytes are not parsed to be sent as JSON.
//! Deliberately absent: registries, stores, what a Workspace is.

pub mod answer;
pub mod body;
mod discovery;
mod encode;
pub mod health;
mod identity;
pub mod metrics;
pub mod negotiate;
mod openapi;
mod paths;
mod place;
mod resource;
mod server;
mod statusz;
mod table;
mod watch;

pub use body::Body;
pub use health::Health;
pub use metrics::Metrics;
pub use server::{Config, DEADLINE, OpenId, Server};
