//! Transactions on the in-memory store: what they promise among rivals.

use std::collections::BTreeSet;
use std::sync::Arc;

use fp_store::MemoryStore;

use super::*;
use crate::proto::RangeRequest;

fn put(key: &str, value: &str) -> RequestOp {
    let (key, value) = (Bytes::from(key.to_owned()), Bytes::from(value.to_owned()));
    RequestOp { request: Some(Request::Put(PutRequest { key, value, ..Default::default() })) }
}

fn delete_all(prev_kv: bool) -> RequestOp {
    let (key, range_end) = (Bytes::from("/q/"), Bytes::from("/q0"));
    let delete = DeleteRangeRequest { key, range_end, prev_kv };
    RequestOp { request: Some(Request::DeleteRange(delete)) }
}

fn list() -> RequestOp {
    let (key, range_end) = (Bytes::from("/q/"), Bytes::from("/q0"));
    let range = RangeRequest { key, range_end, ..Default::default() };
    RequestOp { request: Some(Request::Range(range)) }
}

async fn commit(store: &dyn Store, success: Vec<RequestOp>) -> Done {
    let request = TxnRequest { success, ..Default::default() };
    run(store, &request).await.expect("it commits")
}

/// The keys of an answer, with their revisions.
fn keys(answer: &Answer) -> Vec<(String, i64, i64)> {
    let kvs = match answer {
        Answer::Range(range) => &range.kvs,
        Answer::DeleteRange(delete) => &delete.prev_kvs,
        Answer::Put(_) => return Vec::new(),
    };
    let shown = |kv: &crate::proto::KeyValue| {
        let key = String::from_utf8(kv.key.to_vec()).expect("text");
        (key, kv.create_revision, kv.mod_revision)
    };
    kvs.iter().map(shown).collect()
}

/// Whoever takes everything takes everything: a key that comes while it looks is not missed and
/// not taken twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ranges_have_no_phantoms() {
    const WRITERS: usize = 4;
    const EACH: usize = 100;
    let store: Arc<dyn Store> = MemoryStore::new();
    let writers = (0..WRITERS).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            for i in 0..EACH {
                commit(&*store, vec![put(&format!("/q/{n}-{i}"), "x")]).await;
                tokio::task::yield_now().await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut taken, mut emptied) = (BTreeSet::new(), 0);
    while taken.len() < WRITERS * EACH {
        // The list says what the delete will find: both are of one moment.
        let done = commit(&*store, vec![list(), delete_all(true), list()]).await;
        assert_eq!(keys(&done.answers[0]), keys(&done.answers[1]));
        assert_eq!(keys(&done.answers[2]), []);
        for (key, created, _) in keys(&done.answers[1]) {
            assert!(created > emptied, "{key} was there when all was taken");
            assert!(taken.insert(key.clone()), "{key} was taken twice");
        }
        if !keys(&done.answers[1]).is_empty() {
            emptied = done.revision.0;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("a writer ends");
    }
}

#[tokio::test]
async fn a_transaction_sees_its_own_writes() {
    let store: Arc<dyn Store> = MemoryStore::new();
    commit(&*store, vec![put("/q/old", "1")]).await;
    let done = commit(&*store, vec![put("/q/new", "1"), put("/q/old", "2"), list()]).await;
    let seen = [("/q/new".to_owned(), 2, 2), ("/q/old".to_owned(), 1, 3)];
    assert_eq!(keys(&done.answers[2]), seen);
    assert_eq!(done.revision, Revision(3));
    // And they are what is there.
    assert_eq!(keys(&commit(&*store, vec![list()]).await.answers[0]), seen);
}

#[tokio::test]
async fn refused_before_anything_is_written() {
    let store: Arc<dyn Store> = MemoryStore::new();
    let nested = RequestOp { request: Some(Request::Txn(crate::proto::Empty {})) };
    let cases = [
        (
            vec![put("/a", "1"), nested],
            "a transaction within a transaction is not served by ferroplane store",
        ),
        (vec![put("/a", "1"), put("/a", "2")], "etcdserver: duplicate key given in txn request"),
        (
            vec![put("/q/a", "1"), delete_all(false)],
            "etcdserver: duplicate key given in txn request",
        ),
        (vec![put("/a", "1"), put("", "2")], "etcdserver: key is not provided"),
        (
            vec![put("/a", "1"), RequestOp { request: None }],
            "etcdserver: an operation of a transaction is empty",
        ),
        (
            (0..=OPS_MAX).map(|i| put(&format!("/{i}"), "1")).collect(),
            "etcdserver: too many operations in txn request",
        ),
    ];
    for (ops, message) in cases {
        for request in [
            TxnRequest { success: ops.clone(), ..Default::default() },
            // The branch that is not taken is checked too.
            TxnRequest {
                success: vec![put("/b", "1")],
                failure: ops.clone(),
                ..Default::default()
            },
        ] {
            let status = run(&*store, &request).await.err().expect("it is refused");
            assert_eq!(status.message, message);
        }
    }
    assert_eq!(store.head().await.expect("head"), Revision::ZERO);
}

#[test]
fn versions_are_compared_where_they_are_known() {
    let row = |created, revision| Row {
        key: "/a".into(),
        value: Bytes::new(),
        revision: Revision(revision),
        created: Revision(created),
        lease_ttl_secs: 0,
    };
    let mut out = String::new();
    for result in
        [CompareResult::Equal, CompareResult::Greater, CompareResult::Less, CompareResult::NotEqual]
    {
        for asked in [0, 1, 2, 3] {
            let compare = Compare {
                result: result as i32,
                key: Bytes::from("/a"),
                against: Some(Against::Version(asked)),
                ..Default::default()
            };
            let holds = |row: Option<Row>| row_holds(row.as_ref(), &compare);
            let known = check_exact(&compare).map(|()| {
                let all = [holds(None), holds(Some(row(1, 1))), holds(Some(row(1, 9)))];
                all.map(|holds| holds.expect("it is known"))
            });
            match known {
                Ok(holds) => {
                    out.push_str(&format!("{result:?} {asked}: absent, once, more: {holds:?}\n"))
                }
                Err(_) => out.push_str(&format!("{result:?} {asked}: not served\n")),
            }
        }
    }
    expect_test::expect![[r#"
        Equal 0: absent, once, more: [true, false, false]
        Equal 1: absent, once, more: [false, true, false]
        Equal 2: not served
        Equal 3: not served
        Greater 0: absent, once, more: [false, true, true]
        Greater 1: absent, once, more: [false, false, true]
        Greater 2: not served
        Greater 3: not served
        Less 0: absent, once, more: [false, false, false]
        Less 1: absent, once, more: [true, false, false]
        Less 2: absent, once, more: [true, true, false]
        Less 3: not served
        NotEqual 0: absent, once, more: [false, true, true]
        NotEqual 1: absent, once, more: [true, false, true]
        NotEqual 2: not served
        NotEqual 3: not served
    "#]]
    .assert_eq(&out);
}
