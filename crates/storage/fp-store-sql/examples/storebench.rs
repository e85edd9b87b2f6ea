//! Writes per second and CPU per write of the SQLite store at 1, 8 and 16 callers.
//!
//! `cargo run --release -p fp-store-sql --example storebench [folder] [seconds]`
//! The folder decides which disk is measured; the figure that a shared machine cannot spoil is the
//! CPU per write. Each caller creates keys with a value of 1,000 bytes for half of the time and
//! updates them for the other half.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Compare, Key, Op, Outcome, Store, Txn};
use fp_store_sql::{SqliteStore, Tuning};

const VALUE_BYTES: usize = 1_000;
const CALLERS: [usize; 3] = [1, 8, 16];

type Written = Vec<(Key, Revision)>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().unwrap_or_else(|| ".".into());
    let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    println!("callers  creates/s  CPU us each   updates/s  CPU us each");
    for n_callers in CALLERS {
        let folder = tempfile::tempdir_in(&folder).expect("a folder");
        run(folder.path(), n_callers, Duration::from_secs_f64(seconds / 2.0)).await;
    }
}

async fn run(folder: &Path, n_callers: usize, time: Duration) {
    let tuning = Tuning {
        n_readers: 2,
        ring_bytes_max: 32 << 20,
        compact_interval: None,
        compact_keep: Duration::from_secs(600),
        compact_keep_revisions: 1000,
    };
    let store = SqliteStore::open(&folder.join("state.db"), tuning);
    let store = store.expect("open");
    let (creates, written) = measure(n_callers, |caller| {
        let store = store.clone();
        tokio::spawn(async move { create(&*store, caller, time).await })
    })
    .await;
    let mut written = written.into_iter();
    let (updates, _) = measure(n_callers, |_| {
        let (store, written) = (store.clone(), written.next().expect("one of each caller"));
        tokio::spawn(async move { update(&*store, written, time).await })
    })
    .await;
    println!("{n_callers:7}  {creates}   {updates}");
    store.close().await;
}

async fn create(store: &dyn Store, caller: usize, time: Duration) -> (usize, Written) {
    let (start, mut written) = (Instant::now(), Vec::new());
    while start.elapsed() < time {
        let n = written.len();
        let key = Key::from(format!("/registry/core/configmaps/root/default/{caller}-{n:08}"));
        let at = put(store, &key, Compare::Absent(key.clone())).await;
        written.push((key, at));
    }
    (written.len(), written)
}

async fn update(store: &dyn Store, mut written: Written, time: Duration) -> (usize, Written) {
    let (start, mut n) = (Instant::now(), 0);
    while start.elapsed() < time {
        let i = n % written.len();
        let (key, at) = &mut written[i];
        *at = put(store, key, Compare::At(key.clone(), *at)).await;
        n += 1;
    }
    (n, written)
}

async fn put(store: &dyn Store, key: &Key, compare: Compare) -> Revision {
    let value = Bytes::from_static(&[b'v'; VALUE_BYTES]);
    let ops = vec![Op::Put { key: key.clone(), value, lease_ttl_secs: 0 }];
    match store.commit(Txn { compares: vec![compare], ops }).await {
        Ok(Outcome::Committed(revisions)) => revisions[0],
        other => panic!("{other:?}"),
    }
}

/// Runs the callers; the rate and the CPU time of each write, as text, and what they wrote.
async fn measure(
    n_callers: usize,
    call: impl FnMut(usize) -> tokio::task::JoinHandle<(usize, Written)>,
) -> (String, Vec<Written>) {
    let (start, cpu_before) = (Instant::now(), cpu_time());
    let callers: Vec<_> = (0..n_callers).map(call).collect();
    let (mut n_writes, mut written) = (0, Vec::new());
    for caller in callers {
        let (n, of_one) = caller.await.expect("a caller does not panic");
        n_writes += n;
        written.push(of_one);
    }
    let rate = n_writes as f64 / start.elapsed().as_secs_f64();
    let each_us = (cpu_time() - cpu_before).as_secs_f64() * 1e6 / n_writes as f64;
    (format!("{rate:9.0}  {each_us:11.1}"), written)
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0))
}
