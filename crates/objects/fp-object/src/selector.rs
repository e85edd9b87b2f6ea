//! Label and field selectors, with Kubernetes' grammar and messages.

mod fields;
mod labels;
mod parse;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelSelector, Operator, Requirement, validate_label_selector};

/// A selector that cannot be read; its message is the client's (400).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);
