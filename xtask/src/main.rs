//! Checks on the house itself: `cargo xtask tidy`.
//!
//! Fails when a crate uses one that its floor forbids, when a module has no `//!`, or when a
//! crate lies in a folder that is not its floor. Lists long files and functions as places to look
//! at, and fails nothing for them.

mod floors;
mod modules;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        _ => bail!("usage: cargo xtask tidy"),
    }
}

fn tidy() -> Result<()> {
    let root = root();
    let mut faults = floors::check(&root)?;
    let sources = modules::sources(&root)?;
    faults.extend(modules::check(&sources));
    for place in modules::long(&sources) {
        println!("look at {place}");
    }
    if faults.is_empty() {
        println!("tidy: {} source files, no fault", sources.len());
        return Ok(());
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    bail!("{} faults", faults.len())
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace").to_owned()
}
