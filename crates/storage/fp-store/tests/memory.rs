//! The in-memory store conforms.

use std::sync::Arc;

use fp_store::{MemoryStore, Store, conformance};

#[tokio::test]
async fn memory_store_conforms() {
    conformance::run_all(async || MemoryStore::new() as Arc<dyn Store>).await;
}
