//! What a resource is: names, versions, schema, columns, strategy. Built-ins and CRDs alike become
//! an `Arc<ResourceInfo>` and take one path through the server.
//!
//! Deliberately absent: the store, HTTP, clusters.

pub mod crd;
mod docs;
pub mod openapi;
pub mod resource;
pub mod structural;
pub mod table;

pub use crd::from_crd;
pub use resource::{
    Column, Origin, ResourceInfo, Scale, Scope, Segment, Strategy, Sub, VersionInfo,
};
