//! OpenAPI v3 documents per group-version.

use std::sync::Arc;

use fp_object::Value;

/// Where a kind's OpenAPI schema comes from.
#[derive(Clone)]
pub enum Source {
    /// A built-in: the schema's component name; the table is in fp-builtin.
    Builtin(&'static str),
    /// A CRD: its `openAPIV3Schema` as written.
    Crd(Arc<Value>),
    /// Nothing is published.
    None,
}
