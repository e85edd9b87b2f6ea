//! Lists, watches, observers, followers and rings, as scripts and what they print.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use expect_test::{Expect, expect};
use fp_base::{ClusterName, ClusterScope, Gr};

use super::*;
use crate::{Cursor, Query};

/// Runs a script against an informer and prints what its readers see. Lines:
///
/// - `load REV: KEY@REV ...` and `apply REV: KEY@REV -KEY@REV ...`; a key is `table/cluster/ns/name`
/// - `list table SCOPE [after KEY] [limit N] [only NAME]`, `SCOPE` is `cluster`, `cluster/ns` or `*`
/// - `watch W table SCOPE after REV` or `snapshot W table SCOPE`; `take W`, `progress W`, `drop W`
/// - `pending` prints the watchers that have something to take
/// - `observe` prints every change from then on
fn check(ring_bytes_max: usize, script: &str, expect: Expect) {
    let mut script_run = Run::new(ring_bytes_max);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        script_run.line(line);
    }
    expect.assert_eq(&script_run.out.lock());
}

struct Run {
    informer: Informer,
    cursors: BTreeMap<String, Cursor>,
    out: Arc<Mutex<String>>,
}

impl Run {
    fn new(ring_bytes_max: usize) -> Self {
        let informer = Informer::with_ring(ring_bytes_max);
        Self { informer, cursors: BTreeMap::new(), out: Arc::default() }
    }

    fn table(&self, name: &str) -> Arc<Table> {
        self.informer.table(&TableId { gr: Gr::new("", name), segment: Arc::default() })
    }

    fn say(&self, text: &str) {
        writeln!(self.out.lock(), "{text}").expect("a String takes all");
    }

    fn line(&mut self, line: &str) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "load" => {
                let (at, items) = items(rest);
                let entries = items.iter().map(|(_, key, rev)| self.entry(key, *rev)).collect();
                self.informer.load(entries, at);
            }
            "apply" => {
                let (at, items) = items(rest);
                let event = |(deleted, key, rev): &(bool, String, i64)| {
                    let (table, entry) = self.entry(key, *rev);
                    Event { table, entry, deleted: *deleted }
                };
                self.informer.apply(items.iter().map(event).collect(), at);
            }
            "list" => self.say(&format!("{line}: {}", self.list(rest))),
            "watch" | "snapshot" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let (scope, namespace) = scope(words[2]);
                let table = self.table(words[1]);
                let cursor = if command == "watch" {
                    table.watch(&scope, namespace.as_deref(), Revision(words[4].parse().unwrap()))
                } else {
                    let (entries, cursor) = table.snapshot(&scope, namespace.as_deref());
                    self.say(&format!("{line}: {}at {}", show(&entries), cursor.delivered()));
                    Ok(cursor)
                };
                match cursor {
                    Ok(cursor) => drop(self.cursors.insert(words[0].into(), cursor)),
                    Err(behind) => self.say(&format!("{line}: {behind}")),
                }
            }
            "take" => {
                let cursor = self.cursors.get_mut(rest).expect("a watcher of the script");
                let text = match cursor.take() {
                    Ok(changes) => changes.iter().map(|c| show_change(c) + " ").collect(),
                    Err(behind) => format!("{behind} "),
                };
                let text = format!("{line}: {text}at {}", cursor.delivered());
                self.say(&text);
            }
            "progress" => {
                let at = self.cursors.get_mut(rest).expect("a watcher of the script").progress();
                self.say(&format!("{line}: {at}"));
            }
            "drop" => drop(self.cursors.remove(rest)),
            "pending" => {
                let pending = self.cursors.iter().filter(|(_, c)| is_pending(c));
                let names: Vec<_> = pending.map(|(name, _)| name.as_str()).collect();
                self.say(&format!("pending: {}", names.join(" ")));
            }
            "observe" => {
                let out = self.out.clone();
                let observer = move |_: &TableId, change: &Change| {
                    writeln!(out.lock(), "observed {}", show_change(change)).expect("as above");
                };
                self.informer.observe(None, Arc::new(observer));
            }
            other => panic!("{other} is no command"),
        }
    }

    fn entry(&self, key: &str, revision: i64) -> (Arc<Table>, Arc<Entry>) {
        let (table, key) = key.split_once('/').expect("a key has a table");
        let entry = Entry::new(
            object_key(key),
            Revision(revision),
            Bytes::from_static(b"{}"),
            Box::default(),
            false,
        );
        (self.table(table), Arc::new(entry))
    }

    fn list(&self, rest: &str) -> String {
        let words: Vec<&str> = rest.split(' ').collect();
        let option = |name| words.iter().position(|w| *w == name).map(|i| words[i + 1]);
        let (scope, namespace) = scope(words[1]);
        let start_after = option("after").map(object_key);
        let only = option("only").map(str::to_owned);
        let filter =
            move |entry: &Entry| only.as_deref().is_none_or(|only| *entry.key.name == *only);
        let query = Query {
            scope: &scope,
            namespace: namespace.as_deref(),
            start_after: start_after.as_ref(),
            limit: option("limit").map_or(0, |n| n.parse().expect("a limit is a number")),
            filter: option("only").is_some().then_some(&filter),
        };
        let listed = self.table(words[0]).list(query);
        let count = self.table(words[0]).count(&scope, namespace.as_deref());
        let remaining = listed.remaining.map_or("?".into(), |n| n.to_string());
        format!(
            "{}at {}, {remaining} of {count} remain, more={}",
            show(&listed.entries),
            listed.revision,
            listed.more
        )
    }
}

fn items(text: &str) -> (Revision, Vec<(bool, String, i64)>) {
    let (at, items) = text.split_once(':').expect("a revision and a colon");
    let item = |item: &str| {
        let (key, revision) = item.split_once('@').expect("an item has a revision");
        let deleted = key.starts_with('-');
        (deleted, key.trim_start_matches('-').to_owned(), revision.parse().expect("a number"))
    };
    (Revision(at.parse().expect("a number")), items.split_whitespace().map(item).collect())
}

fn object_key(text: &str) -> ObjectKey {
    let mut parts = text.split('/');
    let mut next = || parts.next().expect("a key has three parts");
    let cluster = ClusterName::parse(next()).expect("a cluster name");
    ObjectKey { cluster, namespace: next().into(), name: next().into() }
}

fn scope(text: &str) -> (ClusterScope, Option<String>) {
    let (cluster, namespace) = match text.split_once('/') {
        Some((cluster, namespace)) => (cluster, Some(namespace.to_owned())),
        None => (text, None),
    };
    let one = || ClusterScope::One(ClusterName::parse(cluster).expect("a cluster name"));
    (if cluster == "*" { ClusterScope::All } else { one() }, namespace)
}

fn is_pending(cursor: &Cursor) -> bool {
    pin!(cursor.pending()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn show_key(key: &ObjectKey) -> String {
    format!("{}/{}/{}", key.cluster, key.namespace, key.name)
}

fn show(entries: &[Arc<Entry>]) -> String {
    entries.iter().map(|e| format!("{}@{} ", show_key(&e.key), e.revision)).collect()
}

fn show_change(change: &Change) -> String {
    let old = change.old.as_ref().map(|old| format!("<{}", old.revision)).unwrap_or_default();
    format!("{:?}:{}@{}{old}", change.kind, show_key(&change.entry.key), change.revision())
}

const MUCH: usize = 1 << 20;

#[test]
fn lists_in_the_order_of_keys() {
    check(
        MUCH,
        "
        load 9: cm/aa/n/x@1 cm/aa-b/n/x@2 cm/aa/n-1/x@3 cm/aa/n/x-y@4 cm/aa/n/x.y@5 cm/ab/n/x@6
        list cm *
        list cm aa
        list cm aa/n
        list cm */n limit 2
        list cm */n limit 2 after aa/n/x
        list cm aa limit 3
        list cm ab after aa/n/x
        list cm * only x limit 2
        list cm * only x limit 4
        list cm nobody
        list other *
        ",
        expect![[r#"
            list cm *: aa-b/n/x@2 aa/n-1/x@3 aa/n/x@1 aa/n/x-y@4 aa/n/x.y@5 ab/n/x@6 at 9, 0 of 6 remain, more=false
            list cm aa: aa/n-1/x@3 aa/n/x@1 aa/n/x-y@4 aa/n/x.y@5 at 9, 0 of 4 remain, more=false
            list cm aa/n: aa/n/x@1 aa/n/x-y@4 aa/n/x.y@5 at 9, 0 of 3 remain, more=false
            list cm */n limit 2: aa-b/n/x@2 aa/n/x@1 at 9, 3 of 5 remain, more=true
            list cm */n limit 2 after aa/n/x: aa/n/x-y@4 aa/n/x.y@5 at 9, 1 of 5 remain, more=true
            list cm aa limit 3: aa/n-1/x@3 aa/n/x@1 aa/n/x-y@4 at 9, 1 of 4 remain, more=true
            list cm ab after aa/n/x: ab/n/x@6 at 9, 0 of 1 remain, more=false
            list cm * only x limit 2: aa-b/n/x@2 aa/n-1/x@3 at 9, ? of 6 remain, more=true
            list cm * only x limit 4: aa-b/n/x@2 aa/n-1/x@3 aa/n/x@1 ab/n/x@6 at 9, 0 of 6 remain, more=false
            list cm nobody: at 9, 0 of 0 remain, more=false
            list other *: at 9, 0 of 0 remain, more=false
        "#]],
    );
}

#[test]
fn changes_reach_those_who_watch() {
    check(
        MUCH,
        "
        load 5: cm/c1/n/a@3
        watch one cm c1 after 5
        watch ns cm c1/m after 5
        watch other cm c2 after 5
        watch all cm * after 5
        watch elsewhere secrets * after 5
        pending
        apply 8: cm/c1/n/a@6 cm/c1/n/b@7 -cm/c1/n/a@8
        pending
        take one
        take ns
        progress other
        take all
        take one
        apply 9: secrets/c1/n/s@9
        progress one
        pending
        apply 12: cm/c1/m/z@10 cm/c2/n/z@11 cm/c1/n/q@12
        progress ns
        take ns
        take other
        drop all
        drop one
        apply 13: cm/c1/n/q@13
        pending
        ",
        expect![[r#"
            pending: 
            pending: all one
            take one: Modified:c1/n/a@6<3 Added:c1/n/b@7 Deleted:c1/n/a@8<6 at 8
            take ns: at 8
            progress other: 8
            take all: Modified:c1/n/a@6<3 Added:c1/n/b@7 Deleted:c1/n/a@8<6 at 8
            take one: at 8
            progress one: 9
            pending: elsewhere
            progress ns: 8
            take ns: Added:c1/m/z@10 at 12
            take other: Added:c2/n/z@11 at 12
            pending: elsewhere
        "#]],
    );
}

/// A watch that begins in the past, or with what exists, sees each change once.
#[test]
fn watches_begin_anywhere() {
    check(
        MUCH,
        "
        load 5: cm/c1/n/a@3
        apply 6: cm/c1/n/b@6
        apply 7: cm/c2/n/c@7
        apply 8: cm/c1/n/d@8
        watch w4 cm c1 after 4
        watch w5 cm c1 after 5
        watch w6 cm c1 after 6
        watch w8 cm c1 after 8
        watch w99 cm c1 after 99
        snapshot s cm c1
        pending
        take w5
        take w6
        take w8
        take s
        apply 9: cm/c1/n/d@9
        take w8
        take w99
        take s
        ",
        expect![[r#"
            watch w4 cm c1 after 4: changes are kept only after revision 5
            snapshot s cm c1: c1/n/a@3 c1/n/b@6 c1/n/d@8 at 8
            pending: w5 w6
            take w5: Added:c1/n/b@6 Added:c1/n/d@8 at 8
            take w6: Added:c1/n/d@8 at 8
            take w8: at 8
            take s: at 8
            take w8: Modified:c1/n/d@9<8 at 9
            take w99: at 99
            take s: Modified:c1/n/d@9<8 at 9
        "#]],
    );
}

#[test]
fn observers_see_changes_in_order() {
    check(
        MUCH,
        "
        load 2: cm/c1/n/a@1 cm/c1/n/b@2
        observe
        apply 5: cm/c1/n/a@3 secrets/c1/n/s@4 -cm/c1/n/a@5
        apply 5: cm/c1/n/a@3
        apply 7: cm/c1/n/x@6 -cm/c1/n/x@7 -cm/c1/n/never@7
        list cm *
        ",
        expect![[r#"
            observed Added:c1/n/a@1
            observed Added:c1/n/b@2
            observed Modified:c1/n/a@3<1
            observed Added:c1/n/s@4
            observed Deleted:c1/n/a@5<3
            observed Added:c1/n/x@6
            observed Deleted:c1/n/x@7<6
            list cm *: c1/n/b@2 at 7, 0 of 1 remain, more=false
        "#]],
    );
}

/// A load in the midst: observers learn the differences, watchers that they have lost something.
#[test]
fn loads_again() {
    check(
        MUCH,
        "
        load 2: cm/c1/n/a@1 cm/c1/n/b@2
        watch w cm c1 after 2
        apply 3: cm/c1/n/c@3
        observe
        load 9: cm/c1/n/a@1 cm/c1/n/b@8 cm/c1/n/d@7
        take w
        watch late cm c1 after 8
        watch now cm c1 after 9
        list cm *
        ",
        expect![[r#"
            observed Added:c1/n/a@1
            observed Added:c1/n/b@2
            observed Added:c1/n/c@3
            observed Deleted:c1/n/c@9<3
            observed Modified:c1/n/b@8<2
            observed Added:c1/n/d@7
            take w: changes are kept only after revision 9 at 2
            watch late cm c1 after 8: changes are kept only after revision 9
            list cm *: c1/n/a@1 c1/n/b@8 c1/n/d@7 at 9, 0 of 3 remain, more=false
        "#]],
    );
}

/// Rings are cut where they are longest; who falls behind is told, and where the ring begins now.
#[test]
fn rings_are_bounded() {
    let mut script = String::from(
        "load 0:\nwatch w cm c1 after 0\nwatch q quiet * after 0\napply 1: quiet/c1/n/a@1\n",
    );
    for revision in 2..=40 {
        writeln!(script, "apply {revision}: cm/c1/n/a@{revision}").expect("a String takes all");
    }
    script += "take w\ntake q\nwatch again cm c1 after 1\nwatch late cm c1 after 35\ntake late\n";
    check(
        16 * 260,
        &script,
        expect![[r#"
        take w: changes are kept only after revision 25 at 0
        take q: Added:c1/n/a@1 at 40
        watch again cm c1 after 1: changes are kept only after revision 25
        take late: Modified:c1/n/a@36<35 Modified:c1/n/a@37<36 Modified:c1/n/a@38<37 Modified:c1/n/a@39<38 Modified:c1/n/a@40<39 at 40
    "#]],
    );
}

#[tokio::test]
async fn wakes_who_waits() {
    let run = Run::new(MUCH);
    let cursor = run.table("cm").watch(&scope("c1").0, None, Revision(0)).expect("nothing is lost");
    let waiting = tokio::spawn(async move {
        cursor.pending().await;
        cursor
    });
    let (table, entry) = run.entry("cm/c1/n/a", 1);
    let until_one = run.informer.wait_for(Revision(1), Duration::from_secs(60));
    let apply =
        async { run.informer.apply(vec![Event { table, entry, deleted: false }], Revision(1)) };
    let (reached, ()) = tokio::join!(until_one, apply);
    assert_eq!(reached, Ok(()));
    let mut cursor = waiting.await.expect("the waiter ends");
    assert_eq!(cursor.take().expect("nothing is lost").len(), 1);
    assert_eq!(run.informer.wait_for(Revision(2), Duration::ZERO).await, Err(Revision(1)));
}

/// Who goes and reads after being told finds what it was told of; an observer is before that.
#[test]
fn followers_come_after_readers() {
    let run = Run::new(MUCH);
    let (table, entry) = run.entry("cm/c1/n/a", 1);
    let seen = |table: &Arc<Table>, log: &Arc<parking_lot::Mutex<Vec<bool>>>| -> Observer {
        let (table, log) = (table.clone(), log.clone());
        Arc::new(move |_, change| log.lock().push(table.get(&change.entry.key).is_some()))
    };
    let (before, after) = (Arc::default(), Arc::default());
    run.informer.observe(None, seen(&table, &before));
    let number = run.informer.follow(seen(&table, &after));
    run.informer.apply(vec![Event { table, entry, deleted: false }], Revision(1));
    assert_eq!((&*before.lock(), &*after.lock()), (&vec![false], &vec![true]));
    // One that is told no more is dropped, with what it holds.
    run.informer.unfollow(number);
    let (table, entry) = run.entry("cm/c1/n/b", 2);
    run.informer.apply(vec![Event { table, entry, deleted: false }], Revision(2));
    assert_eq!((before.lock().len(), after.lock().len()), (2, 1));
    assert_eq!(Arc::strong_count(&after), 1);
}
