//! The table of built-in resources: descriptors, defaults, validation, strategy.
//!
//! [`resources`] is the whole of it: each row is a [`fp_schema::ResourceInfo`] whose strategy,
//! protobuf message and columns stand in the module of its kind.
//!
//! Invariant: nothing here reads or writes anything but the object in hand.
//! Deliberately absent: what a kind means to controllers, authorization and admission.

mod admission;
mod certificate;
mod columns;
pub mod core_v1;
pub mod crd;
mod lease;
pub mod openapi;
mod rbac;
mod resources;
mod review;
mod rules;
pub mod tables;

pub use resources::{
    resource, resources, resources_with, storage_version_hash, stored_as, stored_gv,
};
