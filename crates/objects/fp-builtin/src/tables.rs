//! Wire descriptors of the built-in kinds, one module per API group, and of `metav1`.
//!
//! The modules are printed by `go run . tables DIR` in `tests/tools/typetables`, then formatted.

pub mod admissionregistration;
pub mod apiextensions;
pub mod apiextensions_v1beta1;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod certificates;
pub mod coordination;
pub mod core;
pub mod events;
pub mod meta;
pub mod rbac;
