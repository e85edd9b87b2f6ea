//! The in-memory store, for tests.
