//! Files that kine wrote, and what kine reads in ours. The statements are kine's
//! (`pkg/drivers/sqlite/sqlite.go`, `pkg/drivers/generic/generic.go`).

use std::path::Path;

use expect_test::{Expect, expect};
use fp_base::Revision;
use fp_store::Store;
use rusqlite::Connection;

use crate::{PATIENCE, delete, events_up_to, listed, open, put, shown_events};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS kine
(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    created INTEGER,
    deleted INTEGER,
    create_revision INTEGER,
    prev_revision INTEGER,
    lease INTEGER,
    value BLOB,
    old_value BLOB
);
CREATE INDEX IF NOT EXISTS kine_name_index ON kine (name);
CREATE INDEX IF NOT EXISTS kine_name_id_index ON kine (name,id);
CREATE INDEX IF NOT EXISTS kine_id_deleted_index ON kine (id,deleted);
CREATE INDEX IF NOT EXISTS kine_prev_revision_index ON kine (prev_revision);
CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision);
CREATE INDEX IF NOT EXISTS kine_id_compact_rev_key_with_prev_revision_index
    ON kine(id, name, prev_revision) WHERE name != 'compact_rev_key' AND prev_revision != 0;
";

/// A file after long use: compacted up to 3,000,000,000, two compact rows (an old bug), a filled
/// gap, a delete as kine writes it now and one as it did before.
const ROWS: &str = "
INSERT INTO kine VALUES
    (1, 'compact_rev_key', 1, 0, 0, 3000000000, 0, x'', NULL),
    (2, '/registry/health', 1, 0, 0, 0, 0, '{\"health\":\"true\"}', NULL),
    (3, 'compact_rev_key', 1, 0, 0, 17, 0, x'', NULL),
    (2999999999, '/old', 0, 0, 2147483649, 2999999990, 0, 'kept', 'compacted away'),
    (3000000001, '/a', 1, 0, 0, 0, 0, 'a1', NULL),
    (3000000002, '/a', 0, 0, 3000000001, 3000000001, 0, 'a2', 'a1'),
    (3000000003, 'gap-3000000003', 0, 1, 0, 0, 0, NULL, NULL),
    (3000000004, '/b', 1, 0, 0, 0, 0, 'b1', NULL),
    (3000000005, '/b', 0, 1, 0, 3000000004, 0, NULL, 'b1'),
    (3000000006, '/b', 1, 0, 0, 3000000005, 0, 'b2', NULL),
    (3000000007, '/c', 1, 0, 0, 0, 3600, 'c1', NULL),
    (3000000008, '/d', 1, 0, 0, 0, 0, 'd1', NULL),
    (3000000009, '/d', 0, 1, 3000000008, 3000000008, 0, 'd1', 'd1');
";

fn kine_file(path: &Path) {
    let conn = Connection::open(path).expect("create");
    conn.execute_batch(SCHEMA).expect("schema");
    conn.execute_batch(ROWS).expect("rows");
}

fn check_query(path: &Path, sql: &str, expect: Expect) {
    let conn = Connection::open(path).expect("open");
    let mut statement = conn.prepare(sql).expect("prepare");
    let n_columns = statement.column_count();
    let mut rows = statement.query([]).expect("query");
    let mut text = String::new();
    while let Some(row) = rows.next().expect("next") {
        for column in 0..n_columns {
            let value: rusqlite::types::Value = row.get(column).expect("a value");
            text.push_str(&match value {
                rusqlite::types::Value::Null => "NULL".to_owned(),
                rusqlite::types::Value::Integer(n) => n.to_string(),
                rusqlite::types::Value::Blob(bytes) => {
                    format!("x'{}'", String::from_utf8_lossy(&bytes))
                }
                other => format!("{other:?}"),
            });
            text.push(if column + 1 == n_columns { '\n' } else { ' ' });
        }
    }
    expect.assert_eq(&text);
}

#[tokio::test]
async fn a_file_of_kines_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    kine_file(&path);
    let store = open(&path);
    let head = store.head().await.expect("head");
    assert_eq!(head, Revision(3_000_000_009));
    assert_eq!(store.compacted().await.expect("compacted"), Revision(3_000_000_000));
    assert_eq!(store.count("", Revision::ZERO).await.expect("count"), 5);
    expect![[r#"
        /a "a2" 3000000001..3000000002 lease 0
        /b "b2" 3000000006..3000000006 lease 0
        /c "c1" 3000000007..3000000007 lease 3600
        /old "kept" 2147483649..2999999999 lease 0
        /registry/health "{\"health\":\"true\"}" 2..2 lease 0
    "#]]
    .assert_eq(&listed(&store).await);
    let mut watcher = store.watch("", Revision(3_000_000_001)).await.expect("watch");
    expect![[r#"
        + /a "a1" 3000000001..3000000001 lease 0 before None
        ~ /a "a2" 3000000001..3000000002 lease 0 before Some("a1")
        + /b "b1" 3000000004..3000000004 lease 0 before None
        - /b "b1" 0..3000000005 lease 0 before Some("b1")
        + /b "b2" 3000000006..3000000006 lease 0 before None
        + /c "c1" 3000000007..3000000007 lease 3600 before None
        + /d "d1" 3000000008..3000000008 lease 0 before None
        - /d "d1" 3000000008..3000000009 lease 0 before Some("d1")
    "#]]
    .assert_eq(&shown_events(&events_up_to(&mut watcher, head).await));
    for own in ["compact_rev_key", "gap-3000000003"] {
        assert_eq!(store.get(own, Revision::ZERO).await.expect("get"), None, "{own}");
    }
    store.close().await;
    let indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'kine' \
                   ORDER BY name";
    check_query(
        &path,
        indexes,
        expect![[r#"
        Text("kine_list_query_index")
        Text("kine_name_prev_revision_uindex")
    "#]],
    );
    let compact = "SELECT id, prev_revision FROM kine WHERE name = 'compact_rev_key'";
    check_query(&path, compact, expect![["1 3000000000\n"]]);
}

#[tokio::test]
async fn kine_reads_what_we_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let store = open(&path);
    put(&store, "/a", "1").await;
    put(&store, "/a", "2").await;
    delete(&store, "/a").await;
    put(&store, "/a", "3").await;
    let last = put(&store, "/b", "").await;
    store.close().await;
    check_query(
        &path,
        "SELECT * FROM kine ORDER BY id",
        expect![[r#"
        1 Text("compact_rev_key") 1 0 0 0 0 x'' NULL
        2 Text("/a") 1 0 0 0 0 x'1' NULL
        3 Text("/a") 0 0 2 2 0 x'2' x'1'
        4 Text("/a") 0 1 2 3 0 NULL x'2'
        5 Text("/a") 1 0 0 4 0 x'3' NULL
        6 Text("/b") 1 0 0 0 0 x'' NULL
    "#]],
    );
    // kine starts: it makes its indexes and goes on writing.
    let conn = Connection::open(&path).expect("open");
    conn.execute_batch(SCHEMA).expect("kine's schema");
    kine_update(&conn, "/a", 5, 5, "4");
    drop(conn);
    let store = open(&path);
    assert_eq!(store.head().await.expect("head"), last.next());
    expect![[r#"
        /a "4" 5..7 lease 0
        /b "" 6..6 lease 0
    "#]]
    .assert_eq(&listed(&store).await);
}

/// kine's insert, for an update.
fn kine_update(conn: &Connection, name: &str, created: i64, previous: i64, value: &str) {
    let insert = "INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, \
                  value, old_value) \
                  SELECT ?, 0, 0, ?, ?, 0, ?, (SELECT value FROM kine WHERE id = ?) AS old_value";
    let value = value.as_bytes();
    conn.execute(insert, (name, created, previous, value, previous)).expect("insert");
}

/// kine compacts as it does, with its own statements, between two lives of ours.
#[tokio::test]
async fn kine_compacts_between_our_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let store = open(&path);
    put(&store, "/a", "1").await;
    put(&store, "/b", "1").await;
    put(&store, "/a", "2").await;
    let last = delete(&store, "/b").await;
    store.close().await;
    let conn = Connection::open(&path).expect("open");
    let compact = "DELETE FROM kine AS kv WHERE kv.id IN (
        SELECT kp.prev_revision AS id FROM kine AS kp
        WHERE kp.name != 'compact_rev_key' AND kp.prev_revision != 0 AND kp.id <= ?1
        UNION SELECT kd.id AS id FROM kine AS kd WHERE kd.deleted != 0 AND kd.id <= ?1)";
    assert_eq!(conn.execute(compact, [last.0]).expect("compact"), 3);
    let set = "UPDATE kine SET prev_revision = ? WHERE name = 'compact_rev_key'";
    conn.execute(set, [last.0]).expect("set");
    drop(conn);
    let store = open(&path);
    assert_eq!(store.head().await.expect("head"), last, "the highest id is gone, not forgotten");
    assert_eq!(store.compacted().await.expect("compacted"), last);
    assert_eq!(put(&store, "/b", "2").await, last.next());
    assert_eq!(listed(&store).await, "/a \"2\" 2..4 lease 0\n/b \"2\" 6..6 lease 0\n");
}

/// The row with the highest id is kine's newest revision: compaction leaves it, even a delete.
#[tokio::test]
async fn our_compaction_keeps_the_highest_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let store = open(&path);
    put(&store, "/a", "1").await;
    let last = delete(&store, "/a").await;
    store.compact(last).await.expect("compact");
    let ids = "SELECT id, name, prev_revision FROM kine ORDER BY id";
    check_query(
        &path,
        ids,
        expect![[r#"
        1 Text("compact_rev_key") 3
        3 Text("/a") 2
    "#]],
    );
    let last = put(&store, "/b", "1").await;
    store.compact(last).await.expect("compact");
    check_query(
        &path,
        ids,
        expect![[r#"
        1 Text("compact_rev_key") 4
        4 Text("/b") 0
    "#]],
    );
}

/// What another program writes beside us is seen by the next commit, in order.
#[tokio::test]
async fn a_row_written_beside_us_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let store = open(&path);
    let one = put(&store, "/a", "1").await;
    let mut watcher = store.watch("", one.next()).await.expect("watch");
    let conn = Connection::open(&path).expect("open");
    kine_update(&conn, "/a", one.0, one.0, "2");
    let leased = "INSERT INTO kine(name, created, deleted, create_revision, prev_revision, lease, \
                  value) VALUES ('/leased', 1, 0, 0, 0, 1, 'x')";
    conn.execute(leased, []).expect("insert");
    let last = put(&store, "/a", "3").await;
    assert_eq!(last, Revision(one.0 + 3));
    expect![[r#"
        ~ /a "2" 2..3 lease 0 before Some("1")
        + /leased "x" 4..4 lease 1 before None
        ~ /a "3" 2..5 lease 0 before Some("2")
    "#]]
    .assert_eq(&shown_events(&events_up_to(&mut watcher, last).await));
    let gone = tokio::time::timeout(PATIENCE, watcher.next()).await.expect("its lease ends");
    expect![["- /leased \"x\" 4..6 lease 0 before Some(\"x\")\n"]]
        .assert_eq(&shown_events(&gone.expect("next").events));
}
