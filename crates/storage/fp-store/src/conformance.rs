//! The conformance suite: what every backend must do.
