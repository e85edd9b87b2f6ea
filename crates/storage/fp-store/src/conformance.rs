//! The conformance suite: what every backend must do.
//!
//! Each property is a function that takes an empty store of its own; [`run_all`] runs them all.
//! A property panics where it does not hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use futures_util::future::join_all;

use crate::{
    Batch, Compare, Error, Event, EventKind, KEY_BYTES_MAX, Key, ListQuery, Op, Outcome, Page, Row,
    Store, Txn, VALUE_BYTES_MAX, Watcher,
};

/// The most that any single wait of the suite takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs every property, each on a store that `make` has just made.
pub async fn run_all(make: impl AsyncFn() -> Arc<dyn Store>) {
    one_key(make().await).await;
    reads_at_revisions(make().await).await;
    pages(make().await).await;
    prefixes_and_counts(make().await).await;
    compares(make().await).await;
    guards(make().await).await;
    unchanged_ranges(make().await).await;
    counts_of_ranges(make().await).await;
    transactions(make().await).await;
    rivals(make().await).await;
    watch_of_one_key(make().await).await;
    watch_from_everywhere(make().await).await;
    watch_of_whole_transactions(make().await).await;
    watch_under_writers(make().await).await;
    the_future(make().await).await;
    compaction(make().await).await;
    compaction_of_much(make().await).await;
    leases(make().await).await;
    limits(make().await).await;
    closing(make().await).await;
}

/// Create, get, update, delete, create again: revisions grow, `created` follows the life.
pub async fn one_key(store: Arc<dyn Store>) {
    let start = head(&store).await;
    assert_eq!(get(&store, "/a").await, None);
    let created = put(&store, "/a", "1").await;
    assert_eq!(created, start.next());
    assert_eq!(get(&store, "/a").await, Some(row("/a", "1", created, created)));
    let updated = put(&store, "/a", "2").await;
    assert_eq!(get(&store, "/a").await, Some(row("/a", "2", updated, created)));
    let deleted = delete(&store, "/a").await.expect("it is there");
    assert!(created < updated && updated < deleted);
    assert_eq!(get(&store, "/a").await, None);
    assert_eq!(delete(&store, "/a").await, None, "a delete of nothing takes no revision");
    assert_eq!(head(&store).await, deleted);
    let again = put(&store, "/a", "").await;
    assert_eq!(again, deleted.next());
    assert_eq!(get(&store, "/a").await, Some(row("/a", "", again, again)));
}

/// A get, list or count at a revision answers as it was then.
pub async fn reads_at_revisions(store: Arc<dyn Store>) {
    let one = put(&store, "/k/a", "1").await;
    let two = put(&store, "/k/b", "1").await;
    let three = put(&store, "/k/a", "2").await;
    let four = delete(&store, "/k/b").await.expect("it is there");
    let a1 = row("/k/a", "1", one, one);
    let b1 = row("/k/b", "1", two, two);
    let a2 = row("/k/a", "2", three, one);
    let history = [
        (one, vec![a1.clone()]),
        (two, vec![a1, b1.clone()]),
        (three, vec![a2.clone(), b1]),
        (four, vec![a2.clone()]),
        (Revision::ZERO, vec![a2]),
    ];
    for (at, rows) in history {
        let page = list(&store, ListQuery { prefix: "/k/", at, ..ListQuery::default() }).await;
        assert_eq!(page.rows, rows, "at {at}");
        assert_eq!(page.revision, if at == Revision::ZERO { four } else { at });
        assert!(!page.more);
        assert_eq!(store.count("/k/", at).await.expect("count"), rows.len() as u64, "at {at}");
        for key in ["/k/a", "/k/b"] {
            let wanted = rows.iter().find(|row| &*row.key == key).cloned();
            assert_eq!(store.get(key, at).await.expect("get"), wanted, "{key} at {at}");
        }
    }
}

/// Pages of any size at one revision make the whole, whatever is written meanwhile.
pub async fn pages(store: Arc<dyn Store>) {
    const N: usize = 23;
    for i in 0..N {
        put(&store, &format!("/p/{i:02}"), "x").await;
    }
    put(&store, "/q", "outside").await;
    let at = head(&store).await;
    let all = list(&store, ListQuery { prefix: "/p/", at, ..ListQuery::default() }).await;
    assert_eq!(all.rows.len(), N);
    for limit in [1, 2, 7, N - 1, N, N + 1] {
        let mut rows: Vec<Row> = Vec::new();
        let mut start_after: Option<String> = None;
        loop {
            let start_after_key = start_after.as_deref();
            let query = ListQuery { prefix: "/p/", start_after: start_after_key, limit, at };
            let page = list(&store, query).await;
            assert_eq!(page.revision, at);
            assert!(page.rows.len() <= limit);
            rows.extend(page.rows);
            assert_eq!(page.more, rows.len() < N, "limit {limit}, {} rows", rows.len());
            if !page.more {
                break;
            }
            start_after = rows.last().map(|row| row.key.to_string());
            put(&store, &format!("/p/{:02}x", rows.len()), "later").await;
            put(&store, "/p/22", "later").await;
        }
        assert_eq!(rows, all.rows, "limit {limit}");
    }
    let past = ListQuery { prefix: "/p/", start_after: Some("/p/22z"), ..ListQuery::default() };
    assert!(list(&store, past).await.rows.is_empty());
    let before = ListQuery { prefix: "/p/", start_after: Some("/a"), at, ..ListQuery::default() };
    assert_eq!(list(&store, before).await.rows, all.rows);
}

/// A prefix takes exactly the keys that begin with it, in byte order.
pub async fn prefixes_and_counts(store: Arc<dyn Store>) {
    let keys = ["/a", "/a/", "/a/b", "/a/b/c", "/a0", "/a\u{e9}", "/b", "b", "\u{10ffff}x"];
    for key in keys {
        put(&store, key, "x").await;
    }
    for prefix in ["", "/", "/a", "/a/", "/a/b", "/a\u{e9}", "/c", "b", "\u{10ffff}"] {
        let wanted: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).collect();
        let page = list(&store, ListQuery { prefix, ..ListQuery::default() }).await;
        let found: Vec<_> = page.rows.iter().map(|row| &*row.key).collect();
        assert!(found.iter().eq(wanted.iter().copied()), "{prefix:?}: {found:?}");
        let n = store.count(prefix, Revision::ZERO).await.expect("count");
        assert_eq!(n, wanted.len() as u64, "{prefix:?}");
    }
}

/// Compares hold or fail as the key is; a failure shows every row and writes nothing.
pub async fn compares(store: Arc<dyn Store>) {
    let at = put(&store, "/there", "1").await;
    put(&store, "/gone", "1").await;
    let gone_at = delete(&store, "/gone").await.expect("it is there");
    let absent = |key: &str| Compare::Absent(key.into());
    let is_at = |key: &str, at| Compare::At(key.into(), at);
    let cases = [
        (absent("/never"), true),
        (absent("/gone"), true),
        (absent("/there"), false),
        (is_at("/there", at), true),
        (is_at("/there", Revision(at.0 - 1)), false),
        (is_at("/there", Revision::ZERO), false),
        (is_at("/gone", gone_at), false),
        (is_at("/never", Revision::ZERO), false),
    ];
    for (compare, holds) in cases {
        let before = head(&store).await;
        let there = get(&store, "/there").await;
        let second = is_at("/there", at);
        let ops = vec![set("/other", "x")];
        let txn = Txn { compares: vec![second, compare.clone()], ops };
        match store.commit(txn).await.expect("commit") {
            Outcome::Committed(revisions) => {
                assert!(holds, "{compare:?}");
                assert_eq!(revisions, [before.next()]);
            }
            Outcome::Failed(rows) => {
                assert!(!holds, "{compare:?}");
                let shown = if compare.key().is_some_and(|key| &**key == "/there") {
                    there.clone()
                } else {
                    None
                };
                assert_eq!(rows, [there, shown], "{compare:?}");
                assert_eq!(head(&store).await, before);
            }
        }
    }
}

/// A compare on a key that is not written guards those that are.
pub async fn guards(store: Arc<dyn Store>) {
    let epoch = put(&store, "/epoch", "1").await;
    let guarded = |key: &str, at| Txn {
        compares: vec![Compare::At("/epoch".into(), at)],
        ops: vec![set(key, "x")],
    };
    assert!(matches!(store.commit(guarded("/a", epoch)).await, Ok(Outcome::Committed(_))));
    let later = put(&store, "/epoch", "2").await;
    let old = store.commit(guarded("/b", epoch)).await.expect("commit");
    assert!(
        matches!(old, Outcome::Failed(rows) if rows == [Some(row("/epoch", "2", later, epoch))])
    );
    assert_eq!(get(&store, "/b").await, None);
    assert!(matches!(store.commit(guarded("/b", later)).await, Ok(Outcome::Committed(_))));
}

/// The writes of a transaction take consecutive revisions; deletes of nothing take none; a later
/// write sees an earlier one.
pub async fn transactions(store: Arc<dyn Store>) {
    put(&store, "/b", "old").await;
    let before = head(&store).await;
    let ops = vec![
        set("/a", "1"),
        Op::Delete { key: "/nothing".into() },
        Op::Delete { key: "/b".into() },
        set("/c", "1"),
        set("/c", "2"),
        set("/d", "1"),
        Op::Delete { key: "/d".into() },
    ];
    let revisions = match store.commit(Txn { compares: Vec::new(), ops }).await.expect("commit") {
        Outcome::Committed(revisions) => revisions,
        failed => panic!("{failed:?}"),
    };
    let wanted: Vec<_> = (1..=6).map(|i| Revision(before.0 + i)).collect();
    assert_eq!(revisions, wanted);
    assert_eq!(head(&store).await, revisions[5]);
    let page = list(&store, ListQuery::default()).await;
    let [a, _, c1, c2, ..] = revisions[..] else { unreachable!("six revisions") };
    assert_eq!(page.rows, [row("/a", "1", a, a), row("/c", "2", c2, c1)]);
    let nothing = store.commit(Txn::default()).await.expect("commit");
    assert!(matches!(nothing, Outcome::Committed(revisions) if revisions.is_empty()));
}

/// A range that was read is a condition: no write into it since, not even of a key that was absent.
pub async fn unchanged_ranges(store: Arc<dyn Store>) {
    put(&store, "/r/a", "1").await;
    let deleted = put(&store, "/r/b", "1").await;
    put(&store, "/s", "1").await;
    let since = delete(&store, "/r/b").await.expect("it is there");
    let holds = async |from: &str, end: Option<&str>, since| {
        let (from, end) = (from.into(), end.map(Into::into));
        let compares = vec![Compare::Unchanged { from, end, since }];
        match store.commit(Txn { compares, ops: vec![] }).await.expect("commit") {
            Outcome::Committed(none) => none.is_empty(),
            Outcome::Failed(rows) => {
                assert_eq!(rows, [None]);
                false
            }
        }
    };
    assert!(holds("/r/", Some("/r0"), since).await);
    assert!(!holds("/r/", Some("/r0"), deleted).await, "a delete is a write");
    assert!(holds("/r/c", Some("/r0"), deleted).await);
    assert!(holds("", Some("/r/b"), deleted).await, "the end is not in it");
    assert!(!holds("", None, deleted).await);
    let new = put(&store, "/r/new\u{e9}", "1").await;
    assert!(!holds("/r/", Some("/r0"), since).await, "a key that was not there");
    assert!(holds("/r/", Some("/r/new"), since).await);
    assert!(holds("/r/new\0", Some("/r/new\u{e9}"), since).await);
    assert!(holds("", None, new).await);
    // A transaction that does not hold writes nothing.
    let compares = vec![Compare::Unchanged { from: "".into(), end: None, since }];
    let txn = Txn { compares, ops: vec![set("/r/a", "2")] };
    assert!(matches!(store.commit(txn).await.expect("commit"), Outcome::Failed(_)));
    assert_eq!(head(&store).await, new);
    store.compact(new).await.expect("compact");
    assert!(!holds("/never/", Some("/never0"), since).await, "what is compacted is not known");
}

/// Counts between any two strings.
pub async fn counts_of_ranges(store: Arc<dyn Store>) {
    for key in ["/c/a", "/c/b", "/c/b/x", "/c/c", "/d"] {
        put(&store, key, "1").await;
    }
    let then = head(&store).await;
    delete(&store, "/c/b").await;
    let count = async |from: &str, end: Option<&str>, at| {
        store.count_range(from, end, at).await.expect("count")
    };
    assert_eq!(count("", None, Revision::ZERO).await, 4);
    assert_eq!(count("", None, then).await, 5);
    assert_eq!(count("/c/", Some("/c0"), Revision::ZERO).await, 3);
    assert_eq!(count("/c/a", Some("/c/c"), then).await, 3);
    assert_eq!(count("/c/a\0", Some("/c/c"), then).await, 2);
    assert_eq!(count("/c/a\0", Some("/c/c"), Revision::ZERO).await, 1);
    assert_eq!(count("/c/a", Some("/c/a\0"), Revision::ZERO).await, 1);
    assert_eq!(count("/d", None, Revision::ZERO).await, 1);
    assert_eq!(count("/d\0", None, Revision::ZERO).await, 0);
    assert_eq!(count("/c/x", Some("/c/a"), Revision::ZERO).await, 0);
    let future = store.count_range("", None, Revision(then.0 + 9)).await.unwrap_err();
    assert!(matches!(future, Error::Future { .. }));
}

/// Of rivals for one key at one revision exactly one wins: no increment is lost.
pub async fn rivals(store: Arc<dyn Store>) {
    const RIVALS: usize = 8;
    const EACH: usize = 10;
    put(&store, "/n", "0").await;
    let increment = async || {
        for _ in 0..EACH {
            loop {
                let now = get(&store, "/n").await.expect("it is there");
                let n: usize = std::str::from_utf8(&now.value).unwrap().parse().unwrap();
                let txn = Txn {
                    compares: vec![Compare::At(now.key, now.revision)],
                    ops: vec![set("/n", &(n + 1).to_string())],
                };
                if let Outcome::Committed(_) = store.commit(txn).await.expect("commit") {
                    break;
                }
            }
        }
    };
    join_all((0..RIVALS).map(|_| increment())).await;
    let end = get(&store, "/n").await.expect("it is there");
    assert_eq!(end.value, (RIVALS * EACH).to_string());
}

/// Kinds, values before and revisions of the events of one key.
pub async fn watch_of_one_key(store: Arc<dyn Store>) {
    let from = head(&store).await.next();
    let mut live = watch(&store, "/a", from).await;
    let one = put(&store, "/a", "1").await;
    let two = put(&store, "/a", "2").await;
    put(&store, "/other", "x").await;
    let three = delete(&store, "/a").await.expect("it is there");
    let four = put(&store, "/a", "3").await;
    let event = |kind, row, previous: Option<(&str, Revision)>| Event {
        kind,
        row,
        previous: previous.map(|(value, _)| Bytes::copy_from_slice(value.as_bytes())),
        previous_revision: previous.map_or(Revision::ZERO, |(_, at)| at),
    };
    let wanted = [
        event(EventKind::Created, row("/a", "1", one, one), None),
        event(EventKind::Updated, row("/a", "2", two, one), Some(("1", one))),
        event(EventKind::Deleted, row("/a", "2", three, one), Some(("2", two))),
        event(EventKind::Created, row("/a", "3", four, four), None),
    ];
    assert_eq!(events_up_to(&mut live, four).await, wanted);
    let mut later = watch(&store, "/a", from).await;
    assert_eq!(events_up_to(&mut later, four).await, wanted);
    // An unrelated write is progress, and nothing else.
    let other = put(&store, "/other", "y").await;
    assert_eq!(events_up_to(&mut live, other).await, []);
}

/// A watch from any revision has exactly the events from there on, so any of them resumes.
pub async fn watch_from_everywhere(store: Arc<dyn Store>) {
    const N: i64 = 20;
    let start = head(&store).await;
    for i in 0..N {
        put(&store, &format!("/w/{}", i % 3), "x").await;
    }
    let end = head(&store).await;
    for from in start.0 + 1..=end.0 + 1 {
        let mut watcher = watch(&store, "/w/", Revision(from)).await;
        if from > end.0 {
            put(&store, "/w/0", "the next").await;
        }
        let last = Revision(end.0.max(from));
        let found = events_up_to(&mut watcher, last).await;
        let revisions: Vec<_> = found.iter().map(|event| event.row.revision.0).collect();
        assert_eq!(revisions, (from..=last.0).collect::<Vec<_>>());
    }
    let mut all = watch(&store, "", Revision::ZERO).await;
    let found = events_up_to(&mut all, end).await;
    assert_eq!(found.len() as i64, N + 1, "zero is from the beginning");
}

/// No batch, live or from history, ends inside a transaction.
pub async fn watch_of_whole_transactions(store: Arc<dyn Store>) {
    const N: usize = 40;
    const WRITES: usize = 90;
    let from = head(&store).await.next();
    let mut live = watch(&store, "/t/", from).await;
    let write = async |n: usize| {
        for i in 0..N / 4 {
            let ops = (0..WRITES).map(|j| set(&format!("/t/{n}-{j}"), &i.to_string()));
            store.commit(Txn { compares: vec![], ops: ops.collect() }).await.expect("commit");
        }
    };
    let check = async |watcher: &mut Box<dyn Watcher>| {
        let mut n_events = 0;
        while n_events < N * WRITES {
            let batch = next(watcher).await;
            assert_eq!(batch.events.len() % WRITES, 0, "a transaction came in part");
            n_events += batch.events.len();
        }
    };
    let writers = join_all((0..4).map(write));
    futures_util::future::join(writers, check(&mut live)).await;
    check(&mut watch(&store, "/t/", from).await).await;
}

/// Under many writers each watcher gets every event once, in order, and its copy ends equal.
pub async fn watch_under_writers(store: Arc<dyn Store>) {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let from = head(&store).await.next();
    let write = async |n: usize| {
        for i in 0..EACH {
            let key = format!("/s/{}", (n * 7 + i) % 11);
            if i % 5 == 4 {
                delete(&store, &key).await;
            } else {
                put(&store, &key, &format!("{n} {i}")).await;
            }
        }
        // So that each watcher knows where to end.
        put(&store, &format!("/s/end{n}"), "end").await;
    };
    let follow = async || {
        let mut copy: BTreeMap<Key, Bytes> = BTreeMap::new();
        let mut watcher = watch(&store, "/s/", from).await;
        let (mut last, mut n_ends) = (Revision(from.0 - 1), 0);
        while n_ends < WRITERS {
            let batch = next(&mut watcher).await;
            for Event { kind, row, previous, .. } in batch.events {
                assert!(row.revision > last, "{} after {last}", row.revision);
                last = row.revision;
                n_ends += usize::from(row.key.starts_with("/s/end"));
                let before = match kind {
                    EventKind::Deleted => copy.remove(&row.key),
                    _ => copy.insert(row.key, row.value),
                };
                assert_eq!(before, previous);
                assert_eq!(before.is_none(), kind == EventKind::Created);
            }
            assert!(batch.progress >= last);
        }
        copy
    };
    let writers = join_all((0..WRITERS).map(write));
    let (_, copies) = futures_util::future::join(writers, join_all((0..3).map(|_| follow()))).await;
    let page = list(&store, ListQuery { prefix: "/s/", ..ListQuery::default() }).await;
    let truth: BTreeMap<_, _> = page.rows.into_iter().map(|row| (row.key, row.value)).collect();
    copies.iter().for_each(|copy| assert_eq!(*copy, truth));
}

/// A read of what has not happened is an error that says so; a watch of it waits.
pub async fn the_future(store: Arc<dyn Store>) {
    let newest = put(&store, "/a", "1").await;
    let at = newest.next();
    let future =
        |e: Error| matches!(e, Error::Future { asked, newest: n } if asked == at && n == newest);
    assert!(future(store.get("/a", at).await.unwrap_err()));
    assert!(future(store.list(ListQuery { at, ..ListQuery::default() }).await.unwrap_err()));
    assert!(future(store.count("", at).await.unwrap_err()));
    assert!(future(store.compact(at).await.unwrap_err()));
    let mut watcher = watch(&store, "", Revision(at.0 + 1)).await;
    put(&store, "/a", "2").await;
    let last = put(&store, "/a", "3").await;
    let found = events_up_to(&mut watcher, last).await;
    assert_eq!(found.iter().map(|event| event.row.revision).collect::<Vec<_>>(), [last]);
}

/// Compaction forgets what was before and nothing else.
pub async fn compaction(store: Arc<dyn Store>) {
    let live = put(&store, "/live", "1").await;
    put(&store, "/changed", "1").await;
    put(&store, "/deleted", "1").await;
    put(&store, "/changed", "2").await;
    let at = delete(&store, "/deleted").await.expect("it is there");
    let changed = put(&store, "/changed", "3").await;
    let late = delete(&store, "/live").await.expect("it is there");
    let before = store.list(ListQuery { at, ..ListQuery::default() }).await.expect("list").rows;
    let newest = list(&store, ListQuery::default()).await.rows;

    assert_eq!(store.compact(at).await.expect("compact"), at);
    assert_eq!(store.compacted().await.expect("compacted"), at);
    assert_eq!(store.compact(live).await.expect("compact"), at, "an earlier one is done already");
    assert_eq!(list(&store, ListQuery::default()).await.rows, newest);
    assert_eq!(list(&store, ListQuery { at, ..ListQuery::default() }).await.rows, before);
    assert_eq!(head(&store).await, late);

    let old = Revision(at.0 - 1);
    let is_compacted = |e: Error| matches!(e, Error::Compacted { .. });
    assert!(is_compacted(store.get("/live", old).await.unwrap_err()));
    assert!(is_compacted(
        store.list(ListQuery { at: old, ..ListQuery::default() }).await.unwrap_err()
    ));
    assert!(is_compacted(store.count("", old).await.unwrap_err()));
    for from in [Revision::ZERO, old, at] {
        let refused = store.watch("", from).await.err().expect("it is compacted");
        assert!(is_compacted(refused), "from {from}");
    }
    let mut rest = watch(&store, "", at.next()).await;
    let found: Vec<_> = events_up_to(&mut rest, late).await;
    let kinds: Vec<_> = found.iter().map(|event| (event.kind, event.row.revision)).collect();
    assert_eq!(kinds, [(EventKind::Updated, changed), (EventKind::Deleted, late)]);
    assert_eq!(found[0].previous.as_deref(), Some(&b"2"[..]));

    // Up to the newest, which here is a delete: nothing is reused, keys live again.
    assert_eq!(store.compact(late).await.expect("compact"), late);
    assert_eq!(head(&store).await, late);
    assert_eq!(list(&store, ListQuery::default()).await.rows, newest);
    for key in ["/live", "/deleted"] {
        let again = put(&store, key, "again").await;
        assert_eq!(get(&store, key).await, Some(row(key, "again", again, again)));
    }
    assert_eq!(head(&store).await, Revision(late.0 + 2));
}

/// A long history is compacted while it grows, and the live state is what it was.
pub async fn compaction_of_much(store: Arc<dyn Store>) {
    const ROUNDS: usize = 60;
    const KEYS: usize = 20;
    for round in 0..ROUNDS {
        let ops = (0..KEYS).map(|i| {
            let key = format!("/m/{i}");
            if (round + i) % 7 == 0 { Op::Delete { key: key.into() } } else { set(&key, "x") }
        });
        store.commit(Txn { compares: vec![], ops: ops.collect() }).await.expect("commit");
    }
    let truth = list(&store, ListQuery::default()).await;
    let compact = store.compact(truth.revision);
    let (done, _) = futures_util::future::join(compact, put(&store, "/z", "meanwhile")).await;
    assert_eq!(done.expect("compact"), truth.revision);
    let now = list(&store, ListQuery { at: truth.revision, ..ListQuery::default() }).await;
    assert_eq!(now.rows, truth.rows);
}

/// A leased key is deleted when its time is over, and only if it was not written since.
pub async fn leases(store: Arc<dyn Store>) {
    let lease = |key: &str, secs| Txn {
        compares: vec![],
        ops: vec![Op::Put { key: key.into(), value: Bytes::from("x"), lease_ttl_secs: secs }],
    };
    let from = head(&store).await.next();
    let mut watcher = watch(&store, "/l/", from).await;
    for (key, secs) in [("/l/short", 1), ("/l/freed", 1), ("/l/longer", 1), ("/l/long", 3600)] {
        store.commit(lease(key, secs)).await.expect("commit");
    }
    put(&store, "/l/freed", "for ever").await;
    store.commit(lease("/l/longer", 3600)).await.expect("commit");
    assert_eq!(get(&store, "/l/long").await.map(|row| row.lease_ttl_secs), Some(3600));
    let gone = loop {
        let batch = next(&mut watcher).await;
        if let Some(event) = batch.events.into_iter().find(|e| e.kind == EventKind::Deleted) {
            break event;
        }
    };
    assert_eq!((&*gone.row.key, gone.previous.as_deref()), ("/l/short", Some(&b"x"[..])));
    let left = list(&store, ListQuery { prefix: "/l/", ..ListQuery::default() }).await.rows;
    let left: Vec<_> = left.iter().map(|row| (&*row.key, row.lease_ttl_secs)).collect();
    assert_eq!(left, [("/l/freed", 0), ("/l/long", 3600), ("/l/longer", 3600)]);
}

/// Keys and values have limits, checked before anything is written.
pub async fn limits(store: Arc<dyn Store>) {
    let before = head(&store).await;
    let longest = "k".repeat(KEY_BYTES_MAX);
    for bad in ["", "a\0b", &format!("{longest}k")] {
        let is_key = |e: Error| matches!(e, Error::Key(_));
        assert!(is_key(store.get(bad, Revision::ZERO).await.unwrap_err()), "{bad:?}");
        let txn = Txn { compares: vec![], ops: vec![set("/a", "x"), set(bad, "x")] };
        assert!(is_key(store.commit(txn).await.unwrap_err()), "{bad:?}");
        let txn = Txn { compares: vec![Compare::Absent(bad.into())], ops: vec![set("/a", "x")] };
        assert!(is_key(store.commit(txn).await.unwrap_err()), "{bad:?}");
    }
    let value = |n| Bytes::from(vec![0xff; n]);
    let put = |n| Op::Put { key: "/a".into(), value: value(n), lease_ttl_secs: 0 };
    let txn = Txn { compares: vec![], ops: vec![put(VALUE_BYTES_MAX + 1)] };
    let refused = store.commit(txn).await.unwrap_err();
    assert!(
        matches!(refused, Error::TooLarge { bytes, max: VALUE_BYTES_MAX, .. } if bytes > VALUE_BYTES_MAX)
    );
    assert_eq!(head(&store).await, before);
    let ops = vec![put(VALUE_BYTES_MAX), set(&longest, "x")];
    store.commit(Txn { compares: vec![], ops }).await.expect("commit");
    let stored = get(&store, "/a").await.expect("it is there");
    assert_eq!(stored.value, value(VALUE_BYTES_MAX));
}

/// A closed store refuses everything, and so do its watchers.
pub async fn closing(store: Arc<dyn Store>) {
    let from = put(&store, "/a", "1").await.next();
    let mut watcher = watch(&store, "", from).await;
    store.close().await;
    let is_closed = |e: Error| matches!(e, Error::Unavailable { .. });
    assert!(is_closed(store.head().await.unwrap_err()));
    assert!(is_closed(store.get("/a", Revision::ZERO).await.unwrap_err()));
    let txn = Txn { compares: vec![], ops: vec![set("/a", "2")] };
    assert!(is_closed(store.commit(txn).await.unwrap_err()));
    assert!(is_closed(store.watch("", from).await.err().expect("it is closed")));
    let ended = tokio::time::timeout(PATIENCE, watcher.next()).await.expect("the watch ends");
    assert!(is_closed(ended.unwrap_err()));
    store.close().await;
}

fn row(key: &str, value: &str, revision: Revision, created: Revision) -> Row {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Row { key: key.into(), value, revision, created, lease_ttl_secs: 0 }
}

fn set(key: &str, value: &str) -> Op {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Op::Put { key: key.into(), value, lease_ttl_secs: 0 }
}

async fn head(store: &Arc<dyn Store>) -> Revision {
    store.head().await.expect("head")
}

async fn get(store: &Arc<dyn Store>, key: &str) -> Option<Row> {
    store.get(key, Revision::ZERO).await.expect("get")
}

async fn list(store: &Arc<dyn Store>, query: ListQuery<'_>) -> Page {
    store.list(query).await.expect("list")
}

async fn put(store: &Arc<dyn Store>, key: &str, value: &str) -> Revision {
    write(store, set(key, value)).await.expect("a put takes a revision")
}

async fn delete(store: &Arc<dyn Store>, key: &str) -> Option<Revision> {
    write(store, Op::Delete { key: key.into() }).await
}

async fn write(store: &Arc<dyn Store>, op: Op) -> Option<Revision> {
    match store.commit(Txn { compares: Vec::new(), ops: vec![op] }).await.expect("commit") {
        Outcome::Committed(revisions) => revisions.first().copied(),
        failed => panic!("{failed:?}"),
    }
}

async fn watch(store: &Arc<dyn Store>, prefix: &str, from: Revision) -> Box<dyn Watcher> {
    store.watch(prefix, from).await.expect("watch")
}

async fn next(watcher: &mut Box<dyn Watcher>) -> Batch {
    let batch = tokio::time::timeout(PATIENCE, watcher.next()).await.expect("the watch goes on");
    batch.expect("next")
}

/// All events until everything up to `last` has been delivered.
async fn events_up_to(watcher: &mut Box<dyn Watcher>, last: Revision) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let batch = next(watcher).await;
        events.extend(batch.events);
        if batch.progress >= last {
            return events;
        }
    }
}
