//! The SQLite store conforms.

use std::sync::Arc;
use std::time::Duration;

use fp_store::{Store, conformance};
use fp_store_sql::{Config, SqliteStore};
use parking_lot::Mutex;

fn config(path: std::path::PathBuf, ring_bytes_max: usize) -> Config {
    Config {
        path,
        n_readers: 2,
        ring_bytes_max,
        compact_interval: None,
        compact_keep: Duration::from_secs(600),
        compact_keep_revisions: 1000,
    }
}

async fn conforms(ring_bytes_max: usize) {
    let folders = Mutex::new(Vec::new());
    conformance::run_all(async || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.db");
        folders.lock().push(folder);
        SqliteStore::open(config(path, ring_bytes_max)).expect("open") as Arc<dyn Store>
    })
    .await;
}

#[tokio::test]
async fn conforms_from_the_ring() {
    conforms(64 << 20).await;
}

/// Whoever watches reads the table, always.
#[tokio::test]
async fn conforms_without_a_ring() {
    conforms(0).await;
}
