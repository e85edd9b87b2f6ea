//! Snapshots and loads: from SQLite to PostgreSQL and back nothing changes.

use std::collections::BTreeMap;
use std::path::Path;

use fp_store_sql::{
    PostgresLoad, PostgresSnapshot, SqliteLoad, SqliteSnapshot, SqliteStore, ToolError,
};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};

use super::*;

fn open_sqlite(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(path, Tuning { n_readers: 1, ..tuning(1 << 20) }).expect("open")
}

/// The live rows and the head.
async fn content(store: &dyn Store) -> (Vec<fp_store::Row>, Revision) {
    let page = store.list(ListQuery::default()).await.expect("list");
    (page.rows, page.revision)
}

async fn sqlite_to_postgres(path: &Path, url: &str) -> Result<(), ToolError> {
    let from = SqliteSnapshot::open(path)?;
    let mut to = PostgresLoad::begin(dsn(url)).await?;
    let mut after = String::new();
    loop {
        let page = from.page("", &after)?;
        let Some(last) = page.last() else { break };
        after = last.key.to_string();
        to.rows(&page).await?;
    }
    to.commit(from.head).await
}

async fn postgres_to_sqlite(url: &str, path: &Path) -> Result<(), ToolError> {
    let from = PostgresSnapshot::open(dsn(url)).await?;
    let mut to = SqliteLoad::begin(path)?;
    let mut after = String::new();
    loop {
        let page = from.page("", &after).await?;
        let Some(last) = page.last() else { break };
        after = last.key.to_string();
        to.rows(&page)?;
    }
    to.commit(from.head)
}

async fn round_trip(keys: BTreeMap<String, Vec<(Vec<u8>, u32)>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let store = open_sqlite(&one);
    for (key, writes) in &keys {
        for (value, lease_ttl_secs) in writes {
            let (key, value) = (key.as_str().into(), Bytes::copy_from_slice(value));
            let lease_ttl_secs = if *lease_ttl_secs == 0 { 0 } else { 3600 + lease_ttl_secs };
            let op = match value.first() {
                Some(0) => Op::Delete { key },
                _ => Op::Put { key, value, lease_ttl_secs },
            };
            store.commit(Txn { compares: Vec::new(), ops: vec![op] }).await.expect("commit");
        }
    }
    let before = content(&*store).await;
    // The server runs on: a snapshot needs no lock of its.
    let url = cluster::fresh_database();
    sqlite_to_postgres(&one, &url).await.expect("copy");
    let (faults, _, n_live) = PostgresSnapshot::open(dsn(&url))
        .await
        .expect("open")
        .check(&mut |_| {})
        .await
        .expect("check");
    assert_eq!((faults, n_live), (Vec::new(), before.0.len() as u64));
    let middle = open(&url).await;
    assert_eq!(content(&*middle).await.0, before.0);
    let head = middle.head().await.expect("head");
    assert!(head >= before.1 && head.0 <= before.1.0 + 1, "{head} after {}", before.1);
    postgres_to_sqlite(&url, &two).await.expect("copy");
    let (faults, ..) = SqliteSnapshot::open(&two).expect("open").check(&mut |_| {}).expect("check");
    assert_eq!(faults, Vec::new());
    let end = open_sqlite(&two);
    assert_eq!(content(&*end).await.0, before.0);
    // No revision is given twice, history is gone, and a write goes on from there.
    assert!(end.compacted().await.expect("compacted") >= before.1);
    for store in [&*end as &dyn Store, &*middle] {
        let head = store.head().await.expect("head");
        let txn = Txn { compares: Vec::new(), ops: vec![set("/next", "x")] };
        match store.commit(txn).await.expect("commit") {
            Outcome::Committed(made) => assert!(made[0] > head && made[0] > before.1),
            failed => panic!("{failed:?}"),
        }
        // A compaction of all that was restored takes none of it.
        let rows = content(store).await.0;
        store.compact(store.head().await.expect("head")).await.expect("compact");
        assert_eq!(content(store).await.0, rows);
    }
    let there = PostgresSnapshot::open(dsn(&url)).await.expect("open");
    assert_eq!(there.check(&mut |_| {}).await.expect("check").0, Vec::new());
    let there = SqliteSnapshot::open(&two).expect("open");
    assert_eq!(there.check(&mut |_| {}).expect("check").0, Vec::new());
}

/// Keys and values of any kind, several writes of each, leases, deletes, and creates after them.
#[test]
fn there_and_back_nothing_changes() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let writes =
        prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), 0..3_u32), 1..4);
    let keys = prop::collection::btree_map("/[^\0]{1,20}", writes, 0..20);
    let cases = Cases { cases: 12, failure_persistence: None, ..Cases::default() };
    let ran = TestRunner::new(cases).run(&keys, |keys| {
        runtime.block_on(round_trip(keys));
        Ok(())
    });
    ran.expect("every case");
}

/// More than a page, by rows and by bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_put_together() {
    let small = |i: usize| (format!("/small/{i:05}"), vec![(vec![1; i % 50], 0)]);
    let large = |i: usize| (format!("/large/{i:05}"), vec![(vec![1; 1_000_000], 0)]);
    round_trip((0..1100).map(small).chain((0..9).map(large)).collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_empty_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let store = open_sqlite(&path);
    let txn = Txn { compares: Vec::new(), ops: vec![set("/a", "b")] };
    store.commit(txn).await.expect("commit");
    store.close().await;
    let url = cluster::fresh_database();
    sqlite_to_postgres(&path, &url).await.expect("copy");
    let refused = [
        sqlite_to_postgres(&path, &url).await.expect_err("refused"),
        postgres_to_sqlite(&url, &path).await.expect_err("refused"),
    ];
    for error in refused {
        let text = error.to_string();
        assert!(text.contains("is not empty: it holds 1 keys, the first is /a"), "{text}");
    }
    assert_eq!(content(&*open_sqlite(&path)).await.0.len(), 1);
}

/// What is dropped before its commit leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_load_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let row = fp_store::Row {
        key: "/a".into(),
        value: Bytes::from_static(b"v"),
        revision: Revision(7),
        created: Revision(7),
        lease_ttl_secs: 0,
    };
    let url = cluster::fresh_database();
    let mut sqlite = SqliteLoad::begin(&path).expect("begin");
    sqlite.rows(std::slice::from_ref(&row)).expect("write");
    drop(sqlite);
    assert!(!path.exists());
    let mut postgres = PostgresLoad::begin(dsn(&url)).await.expect("begin");
    postgres.rows(std::slice::from_ref(&row)).await.expect("write");
    // The same revision twice is refused, and the whole with it.
    postgres.rows(&[row]).await.expect_err("refused");
    drop(postgres);
    assert_eq!(content(&*open(&url).await).await.0, Vec::new());
}

/// A damaged store: each fault is named with its row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_a_store_are_named() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    for (key, value) in [("/a", "1"), ("/a", "2"), ("/b", "3"), ("/b", "4")] {
        put(&store, key, value).await;
    }
    store.close().await;
    let client = raw(&url).await;
    let damage = "DELETE FROM kine WHERE name = '/a' AND created = 1; \
                  UPDATE kine SET prev_revision = 1 WHERE name = '/b' AND created = 0";
    client.batch_execute(damage).await.expect("damage");
    let there = PostgresSnapshot::open(dsn(&url)).await.expect("open");
    let (faults, ..) = there.check(&mut |_| {}).await.expect("check");
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    expect_test::expect![[r#"
        row 3 (/a): the row before it, 2, is missing, and the compact revision is 0
        row 5 (/b): its prev_revision is 1, the row before it is 4"#]]
    .assert_eq(&faults.join("\n"));
}
