//! The reconcilers. Per controller: `x.rs` gathers what a pass looks at and says which changes
//! wake it; `x/plan.rs` decides, purely; [`action`] runs the decision.
//!
//! Invariants: a pass reads the informer and writes through the verbs; nothing is kept between
//! passes; a controller is a row of [`table`].
//! Deliberately absent: HTTP, stores, one controller knowing another.

pub mod action;
mod api_binding;
mod api_binding_deletion;
mod api_export;
mod cluster_roles;
mod content;
mod crd;
mod crd_cleanup;
mod endpoint_slice;
pub mod leader;
mod logical_cluster;
mod logical_cluster_deletion;
mod namespace;
mod namespace_defaults;
mod replicate;
pub mod routes;
pub mod table;
mod workspace;
mod workspace_type;
pub mod world;
