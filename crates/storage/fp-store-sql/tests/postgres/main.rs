//! The PostgreSQL store on a real server: conformance, several servers, kine's rows, faults.

#[allow(dead_code, reason = "the integration tests share this file and use the rest")]
mod cluster;

use std::sync::Arc;
use std::time::Duration;

use fp_store::{Store, conformance};
use fp_store_sql::{Dsn, PostgresConfig, PostgresStore, TlsFiles};

fn config(url: &str, ring_bytes_max: usize) -> PostgresConfig {
    PostgresConfig {
        dsn: Dsn::parse(url, TlsFiles::default(), None).expect("a URL"),
        n_readers: 2,
        ring_bytes_max,
        compact_interval: None,
        compact_keep: Duration::from_secs(600),
        compact_keep_revisions: 1000,
    }
}

async fn open(url: &str) -> Arc<PostgresStore> {
    PostgresStore::open(config(url, 1 << 20)).await.expect("open")
}

async fn conforms(ring_bytes_max: usize) {
    conformance::run_all(async || {
        let url = cluster::fresh_database();
        PostgresStore::open(config(&url, ring_bytes_max)).await.expect("open") as Arc<dyn Store>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_from_the_ring() {
    conforms(64 << 20).await;
}

/// Watchers go back and forth between the ring and the table.
#[tokio::test]
async fn conforms_with_a_small_ring() {
    conforms(8 << 10).await;
}

/// Whoever watches reads the table, always.
#[tokio::test]
async fn conforms_without_a_ring() {
    conforms(0).await;
}
