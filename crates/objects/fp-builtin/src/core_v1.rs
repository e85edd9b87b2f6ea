//! The rules of the core group's kinds.

pub mod config_map;
pub mod event;
pub mod namespace;
pub mod quota;
pub mod secret;
pub mod service_account;
