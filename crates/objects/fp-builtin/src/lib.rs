//! The table of built-in resources: descriptors, defaults, validation, strategy.

pub mod tables;
