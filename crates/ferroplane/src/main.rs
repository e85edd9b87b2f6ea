//! The one binary: `ferroplane start`, and the kubectl plugins by the name it is called.

mod admin;
mod flags;
mod keys;
mod logging;
mod options;
mod root_dir;

fn main() {}
