//! What a resource is: names, versions, schema, columns, strategy. Built-ins and CRDs alike become
//! an `Arc<ResourceInfo>` and take one path through the server.
//!
//! Deliberately absent: the store, HTTP, clusters.

pub mod resource;

pub use resource::{Column, Origin, ResourceInfo, Scale, Scope, Segment, Strategy, Sub, VersionInfo};
pub mod openapi;
pub mod structural;
