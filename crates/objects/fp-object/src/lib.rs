//! Dynamic Kubernetes objects: metadata, `Status`, selectors, patches, and JSON, YAML and protobuf bodies.
//!
//! Invariant: no kind is known by name here; what differs by kind comes in as data.
//! Deliberately absent: schemas, clusters, the store.

pub mod field;
pub mod go;
pub mod json;
pub mod jsonpath;
pub mod meta;
pub mod names;
pub mod object_meta;
pub mod partial;
pub mod patch;
pub mod proto;
pub mod quantity;
pub mod selector;
pub mod status;
pub mod time;
pub mod uid;
pub mod yaml;

/// A JSON object: what every Kubernetes object is. Keys are sorted, as Go prints a map.
pub type Object = serde_json::Map<String, serde_json::Value>;

pub use serde_json::Value;
