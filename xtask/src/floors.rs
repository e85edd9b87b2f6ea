//! The floors: which crate may use which. The table is that of `ARCHITECTURE.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

/// Floors from the ground up; a crate may use any floor below its own.
const FLOORS: &[&str] = &["base", "objects", "storage", "apiserver", "kcp", "edge"];

/// What a crate may use on its own floor.
const SAME_FLOOR: &[(&str, &[&str])] = &[
    ("fp-net", &["fp-base"]),
    ("fp-schema", &["fp-object"]),
    ("fp-builtin", &["fp-object", "fp-schema"]),
    ("fp-store-sql", &["fp-store"]),
    ("fp-store-backup", &["fp-store"]),
    ("fp-etcd", &["fp-store"]),
    ("fp-keyspace", &["fp-store"]),
    ("fp-registry", &["fp-informer"]),
    ("fp-auth", &["fp-informer"]),
    ("fp-admission", &["fp-auth"]),
    ("fp-verbs", &["fp-informer", "fp-registry", "fp-auth", "fp-admission"]),
    ("fp-http", &["fp-verbs", "fp-auth"]),
    ("fp-controllers", &["fp-kcp", "fp-runtime"]),
];

/// What a crate must not use although its floor would let it.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("fp-store", &["fp-object", "fp-schema", "fp-builtin"]),
    ("fp-store-sql", &["fp-object", "fp-schema", "fp-builtin"]),
    ("fp-store-backup", &["fp-store-sql", "fp-object", "fp-schema", "fp-builtin"]),
    ("fp-informer", &["fp-store", "fp-store-sql", "fp-keyspace", "fp-schema", "fp-builtin"]),
    ("fp-auth", &["fp-store", "fp-store-sql", "fp-keyspace", "hyper", "http"]),
    ("fp-admission", &["fp-store", "fp-store-sql", "fp-keyspace", "hyper", "http", "fp-net"]),
    ("fp-verbs", &["fp-store-sql", "hyper", "http", "fp-net"]),
    ("fp-http", &["fp-registry", "fp-store", "fp-store-sql", "fp-keyspace", "fp-informer"]),
    ("fp-runtime", &["fp-registry", "fp-store", "fp-store-sql", "fp-keyspace"]),
    (
        "fp-controllers",
        &["fp-http", "fp-net", "fp-store", "fp-store-sql", "fp-keyspace", "fp-registry"],
    ),
    (
        "fp-cli",
        &[
            "fp-net",
            "fp-store",
            "fp-store-sql",
            "fp-keyspace",
            "fp-informer",
            "fp-registry",
            "fp-auth",
            "fp-verbs",
            "fp-http",
            "fp-kcp",
        ],
    ),
    ("fp-base", &["tokio", "serde_json", "hyper"]),
];

struct Package {
    name: String,
    floor: Option<usize>,
    uses: Vec<String>,
}

/// Every breach, one line each.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let packages = packages(root)?;
    let floor_of: BTreeMap<&str, usize> =
        packages.iter().filter_map(|p| Some((p.name.as_str(), p.floor?))).collect();
    let mut faults = Vec::new();
    for package in &packages {
        let Some(floor) = package.floor else { continue };
        let list = |table: &'static [(&str, &[&str])]| {
            table.iter().find(|(n, _)| *n == package.name).map(|(_, l)| *l).unwrap_or_default()
        };
        for used in &package.uses {
            let name = &package.name;
            match floor_of.get(used.as_str()) {
                Some(other) if *other > floor => {
                    faults.push(format!("{name} uses {used}, a floor above its own"));
                }
                Some(other) if *other == floor && !list(SAME_FLOOR).contains(&used.as_str()) => {
                    faults.push(format!("{name} uses {used} on its own floor"));
                }
                _ => {}
            }
            if list(FORBIDDEN).contains(&used.as_str()) {
                faults.push(format!("{name} must not know {used}"));
            }
        }
    }
    Ok(faults)
}

fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("read cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    packages.iter().map(|p| package(root, p)).collect()
}

fn package(root: &Path, value: &Value) -> Result<Package> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let manifest = text(&value["manifest_path"]);
    let folder = Path::new(&manifest).strip_prefix(root.join("crates")).ok();
    let floor = folder
        .and_then(|f| f.components().next())
        .and_then(|c| FLOORS.iter().position(|f| c.as_os_str() == *f));
    let uses = value["dependencies"].as_array().context("a package lists dependencies")?;
    let uses = uses.iter().filter(|d| d["kind"].is_null()).map(|d| text(&d["name"])).collect();
    Ok(Package { name: text(&value["name"]), floor, uses })
}
