//! Others at the same database: another store of ours, and programs that write as kine does.

use expect_test::expect;
use fp_base::Revision;
use fp_store::{Compare, ListQuery, Outcome, Store, Txn};
use tokio_postgres::Client;

use crate::{cluster, events_up_to, listed, open, put, raw, set, shown, watch};

/// kine's insert of a new key.
const INSERT: &str = "INSERT INTO kine (name, created, deleted, create_revision, prev_revision, \
     lease, value, old_value) SELECT $1, 1, 0, 0, 0, 0, 'kine', NULL RETURNING id";

async fn insert(client: &Client, key: &str) -> Revision {
    Revision(client.query_one(INSERT, &[&key]).await.expect("insert").get(0))
}

async fn execute(client: &Client, sql: &str) {
    client.batch_execute(sql).await.expect(sql);
}

async fn increment(store: &dyn Store) {
    loop {
        let row = store.get("/n", Revision::ZERO).await.expect("get").expect("it is there");
        let n: u32 = std::str::from_utf8(&row.value).expect("text").parse().expect("a number");
        let compares = vec![Compare::At("/n".into(), row.revision)];
        let txn = Txn { compares, ops: vec![set("/n", &(n + 1).to_string())] };
        if let Outcome::Committed(_) = store.commit(txn).await.expect("commit") {
            return;
        }
    }
}

/// Writers on two stores: nothing is lost between them, and both tell the same history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_are_one() {
    const N_TASKS: usize = 8;
    const N_EACH: usize = 25;
    let url = cluster::fresh_database();
    let stores = [open(&url).await, open(&url).await];
    let start = put(&stores[0], "/n", "0").await;
    let mut tasks = Vec::new();
    for task in 0..N_TASKS {
        let store = stores[task % 2].clone();
        tasks.push(tokio::spawn(async move {
            for i in 0..N_EACH {
                increment(&*store).await;
                put(&store, &format!("/of/{task}"), &i.to_string()).await;
            }
        }));
    }
    let mut watchers = [watch(&stores[0], start).await, watch(&stores[1], start).await];
    for task in tasks {
        task.await.expect("the task ends");
    }
    let last = stores[1].head().await.expect("head");
    assert_eq!(last.0 - start.0, (2 * N_TASKS * N_EACH) as i64, "no revision is left unused");
    let one = events_up_to(&mut watchers[0], last).await;
    let two = events_up_to(&mut watchers[1], last).await;
    assert_eq!(one, two);
    assert_eq!(one.len(), 2 * N_TASKS * N_EACH + 1);
    let n = stores[0].get("/n", Revision::ZERO).await.expect("get").expect("it is there");
    assert_eq!(n.value, (N_TASKS * N_EACH).to_string());
}

/// A read through one store sees what the other has acknowledged, every time.
#[tokio::test]
async fn reads_are_never_stale() {
    let url = cluster::fresh_database();
    let (one, two) = (open(&url).await, open(&url).await);
    for i in 0..300 {
        let (writer, reader) = if i % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let written = put(writer, "/a", &i.to_string()).await;
        assert!(reader.head().await.expect("head") >= written);
        let page = reader.list(ListQuery::default()).await.expect("list");
        assert_eq!(page.rows[0].revision, written);
    }
}

/// A writer stands still with an id in its hands: nothing above it is shown, and nothing is lost.
#[tokio::test]
async fn a_stalled_writer_is_waited_for() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/start", "").await;
    let mut watcher = watch(&store, start.next()).await;
    let (stalled, quick) = (raw(&url).await, raw(&url).await);
    execute(&stalled, "BEGIN").await;
    insert(&stalled, "/stalled").await;
    insert(&quick, "/quick").await;
    put(&store, "/ours", "1").await;
    // The second answer comes after the first write has been looked at.
    let last = put(&store, "/ours", "2").await;
    assert_eq!(store.head().await.expect("head"), last);
    execute(&stalled, "COMMIT").await;
    expect![[r#"
        + /stalled "kine" at 1
        + /quick "kine" at 2
        + /ours "1" at 3
        ~ /ours "2" at 4
    "#]]
    .assert_eq(&shown(&events_up_to(&mut watcher, last).await, start));
}

/// The same with a list: it is of a revision below which nothing comes.
#[tokio::test]
async fn a_list_is_of_a_settled_revision() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/start", "").await;
    let stalled = raw(&url).await;
    execute(&stalled, "BEGIN").await;
    insert(&stalled, "/stalled").await;
    put(&store, "/ours", "1").await;
    let mut list = store.list(ListQuery::default());
    // Many times as many questions as a list needs.
    let questions = async {
        for _ in 0..100 {
            store.head().await.expect("head");
        }
    };
    tokio::select! {
        page = &mut list => panic!("a list that may lack a row: {page:?}"),
        () = questions => {}
    }
    let (page, ()) = tokio::join!(list, execute(&stalled, "COMMIT"));
    let page = page.expect("list");
    let keys: Vec<_> = page.rows.iter().map(|row| &*row.key).collect();
    assert_eq!(keys, ["/ours", "/stalled", "/start"]);
    assert_eq!(page.revision.0, start.0 + 2);
}

/// A transaction that is prepared has no process; it may still commit.
#[tokio::test]
async fn a_prepared_transaction_is_waited_for() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/start", "").await;
    let mut watcher = watch(&store, start.next()).await;
    let other = raw(&url).await;
    execute(&other, "BEGIN").await;
    insert(&other, "/prepared").await;
    execute(&other, "PREPARE TRANSACTION 'one'").await;
    put(&store, "/ours", "1").await;
    let last = put(&store, "/ours", "2").await;
    execute(&other, "COMMIT PREPARED 'one'").await;
    expect![[r#"
        + /prepared "kine" at 1
        + /ours "1" at 2
        ~ /ours "2" at 3
    "#]]
    .assert_eq(&shown(&events_up_to(&mut watcher, last).await, start));
}

/// Ids that are never used cost nothing: no row fills them, and a long compaction of kine's, which
/// holds no id, is not waited for.
#[tokio::test]
async fn unused_ids_are_passed_at_once() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/start", "").await;
    let mut watcher = watch(&store, start.next()).await;
    let (compacting, failing) = (raw(&url).await, raw(&url).await);
    execute(&compacting, "BEGIN; DELETE FROM kine WHERE id = 0").await;
    execute(&failing, "BEGIN").await;
    insert(&failing, "/never").await;
    execute(&failing, "ROLLBACK").await;
    let one = put(&store, "/ours", "1").await;
    assert_eq!(one.0, start.0 + 2);
    let jump = "SELECT setval('kine_id_seq', last_value + 1000000) FROM kine_id_seq";
    execute(&failing, jump).await;
    let two = put(&store, "/ours", "2").await;
    assert_eq!(two.0, one.0 + 1_000_001);
    let beside = insert(&failing, "/beside").await;
    let events = events_up_to(&mut watcher, beside).await;
    expect![[r#"
        + /ours "1" at 2
        ~ /ours "2" at 1000003
        + /beside "kine" at 1000004
    "#]]
    .assert_eq(&shown(&events, start));
    let n_rows = failing.query_one("SELECT count(*) FROM kine", &[]).await.expect("count");
    assert_eq!(n_rows.get::<_, i64>(0), 5, "the compact row and four of ours");
}

/// A kine that is at the same key is faster: our write comes after it.
#[tokio::test]
async fn a_rival_for_one_key_is_seen() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/a", "1").await;
    let mut watcher = watch(&store, start.next()).await;
    let kine = raw(&url).await;
    execute(&kine, "BEGIN").await;
    let update = "INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, \
         value, old_value) VALUES ('/a', 0, 0, $1, $1, 0, 'kine', '1')";
    kine.execute(update, &[&start.0]).await.expect("update");
    let guarded = Txn {
        compares: vec![Compare::At("/a".into(), start)],
        ops: vec![set("/a", "lost"), set("/b", "lost")],
    };
    let (guarded, ours, ()) =
        tokio::join!(store.commit(guarded), put(&store, "/a", "ours"), execute(&kine, "COMMIT"));
    assert!(matches!(guarded.expect("commit"), Outcome::Failed(_)));
    let events = events_up_to(&mut watcher, ours).await;
    let values: Vec<_> = events.iter().map(|event| (&event.previous, &event.row.value)).collect();
    assert_eq!(
        values,
        [(&Some("1".into()), &"kine".into()), (&Some("kine".into()), &"ours".into())]
    );
}

/// What kine writes beside us is told though nobody writes through us, and its lease ends.
#[tokio::test]
async fn a_row_written_beside_us_is_told() {
    let url = cluster::fresh_database();
    let store = open(&url).await;
    let start = put(&store, "/start", "").await;
    let mut watcher = watch(&store, start.next()).await;
    let kine = raw(&url).await;
    let leased = "INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, \
         value) VALUES ('/leased', 1, 0, 0, 0, 1, 'x')";
    execute(&kine, leased).await;
    let events = events_up_to(&mut watcher, Revision(start.0 + 2)).await;
    expect![[r#"
        + /leased "x" at 1
        - /leased "x" at 2
    "#]]
    .assert_eq(&shown(&events, start));
    assert_eq!(listed(&store).await, format!("/start \"\" {start}..{start} lease 0\n"));
}
