//! Module docs and sizes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lines of a file without its tests; longer ones are listed.
const FILE_LINES: usize = 600;
/// Lines of a function; longer ones are listed.
const FUNCTION_LINES: usize = 70;

pub struct Source {
    path: PathBuf,
    text: String,
}

/// Every Rust source of the workspace.
pub fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut out = Vec::new();
    for folder in ["crates", "xtask", "tests", "bench"] {
        collect(root, &root.join(folder), &mut out)?;
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

fn collect(root: &Path, folder: &Path, out: &mut Vec<Source>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(root, &path, out)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            out.push(Source { path: path.strip_prefix(root).unwrap_or(&path).to_owned(), text });
        }
    }
    Ok(())
}

/// Files without module docs, and names that say nothing.
pub fn check(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        let path = source.path.display();
        if !source.text.trim_start().starts_with("//!") {
            faults.push(format!("{path} does not begin with //!"));
        }
        let stem = source.path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        if ["mod", "utils", "util", "common", "helpers", "manager"].contains(&stem) {
            faults.push(format!("{path}: the name {stem} says nothing"));
        }
    }
    faults
}

/// Long files and functions.
pub fn long(sources: &[Source]) -> Vec<String> {
    let mut out = Vec::new();
    for source in sources {
        let path = source.path.display();
        if source.text.contains("@generated") {
            continue;
        }
        let own: Vec<&str> = source.text.lines().take_while(|l| *l != "#[cfg(test)]").collect();
        if own.len() > FILE_LINES {
            out.push(format!("{path}: {} lines", own.len()));
        }
        for (at, name, length) in functions(&own) {
            if length > FUNCTION_LINES {
                out.push(format!("{path}:{at}: fn {name} has {length} lines"));
            }
        }
    }
    out
}

/// Line, name and length of every function: from its `fn` to the brace at the same indent.
fn functions<'a>(lines: &[&'a str]) -> Vec<(usize, &'a str, usize)> {
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(rest) = line.split("fn ").nth(1) else { continue };
        let head = line.trim_start();
        if !["fn ", "pub", "async fn ", "const fn "].iter().any(|s| head.starts_with(s)) {
            continue;
        }
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        let closing = format!("{}}}", " ".repeat(indent));
        if let Some(end) = lines[at..].iter().position(|l| **l == closing) {
            out.push((at + 1, name, end + 1));
        }
    }
    out
}
