//! CustomResourceDefinitions (`apiextensions.k8s.io/v1`): what serves them.

pub mod info;

pub use info::{Error, from_crd};
