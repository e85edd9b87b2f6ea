//! The table of built-in resources: descriptors, defaults, validation, strategy.
