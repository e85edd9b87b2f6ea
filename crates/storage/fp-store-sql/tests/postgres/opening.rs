//! Opening: databases that are empty, kine's, an older kine's, or somebody else's.

use expect_test::expect;
use fp_base::Revision;
use fp_store::Store;
use fp_store_sql::{Dsn, PostgresStore, TlsFiles};

use crate::cluster::{self, Cluster};
use crate::{dsn, events_up_to, listed, open, put, raw, shown, tuning, watch};

/// kine's schema (`pkg/drivers/pgsql/pgsql.go`), one statement a line.
const SCHEMA: [&str; 7] = [
    "CREATE TABLE IF NOT EXISTS kine (id BIGSERIAL PRIMARY KEY, name text COLLATE \"C\", \
     created INTEGER, deleted INTEGER, create_revision BIGINT, prev_revision BIGINT, \
     lease INTEGER, value bytea, old_value bytea)",
    "CREATE INDEX IF NOT EXISTS kine_name_index ON kine (name)",
    "CREATE INDEX IF NOT EXISTS kine_name_id_index ON kine (name,id)",
    "CREATE INDEX IF NOT EXISTS kine_id_deleted_index ON kine (id,deleted)",
    "CREATE INDEX IF NOT EXISTS kine_prev_revision_index ON kine (prev_revision)",
    "CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision)",
    "CREATE INDEX IF NOT EXISTS kine_list_query_index on kine(name, id DESC, deleted)",
];

/// As in the tests of the SQLite store: compacted up to 3,000,000,000, two compact rows (an old
/// bug), a filled gap, a delete as kine writes it now and one as it did before.
const ROWS: &str = "
INSERT INTO kine VALUES
    (1, 'compact_rev_key', 1, 0, 0, 3000000000, 0, '', NULL),
    (2, '/registry/health', 1, 0, 0, 0, 0, '{\"health\":\"true\"}', NULL),
    (3, 'compact_rev_key', 1, 0, 0, 17, 0, '', NULL),
    (2999999999, '/old', 0, 0, 2147483649, 2999999990, 0, 'kept', 'compacted away'),
    (3000000001, '/a', 1, 0, 0, 0, 0, 'a1', NULL),
    (3000000002, '/a', 0, 0, 3000000001, 3000000001, 0, 'a2', 'a1'),
    (3000000003, 'gap-3000000003', 0, 1, 0, 0, 0, NULL, NULL),
    (3000000004, '/b', 1, 0, 0, 0, 0, 'b1', NULL),
    (3000000005, '/b', 0, 1, 0, 3000000004, 0, NULL, 'b1'),
    (3000000006, '/b', 1, 0, 0, 3000000005, 0, 'b2', NULL),
    (3000000007, '/c', 1, 0, 0, 0, 3600, 'c1', NULL),
    (3000000008, '/d', 1, 0, 0, 0, 0, 'd1', NULL),
    (3000000009, '/d', 0, 1, 3000000008, 3000000008, 0, 'd1', 'd1')";

/// The database is made when a server asks for it.
async fn made(url: &str, sql: &[&str]) {
    let (base, name) = url.rsplit_once('/').expect("a database");
    raw(&format!("{base}/postgres"))
        .await
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .expect("make it");
    let client = raw(url).await;
    for sql in sql {
        client.batch_execute(sql).await.expect(sql);
    }
}

async fn refused(url: &str, tls: TlsFiles) -> String {
    let dsn = Dsn::parse(url, tls, None).expect("a URL");
    match PostgresStore::open(dsn, tuning(0)).await {
        Ok(_) => "it opened".into(),
        Err(e) => e.to_string().split_once("/t").map_or(e.to_string(), |(_, rest)| {
            rest.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned()
        }),
    }
}

/// Several of ours and a kine, all on a database that does not exist yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_all_come_up() {
    for _ in 0..3 {
        let url = cluster::fresh_database();
        let opens = (0..4).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url).await })
        });
        let mut stores = Vec::new();
        for open in opens.collect::<Vec<_>>() {
            stores.push(open.await.expect("it opens"));
        }
        let written = put(&stores[0], "/a", "1").await;
        let rows = raw(&url).await.query_one("SELECT count(*), max(id) FROM kine", &[]).await;
        let rows = rows.expect("count");
        assert_eq!((rows.get::<_, i64>(0), rows.get::<_, i64>(1)), (2, written.0));
    }
}

/// kine runs the schema at the same time, statement by statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kine_that_starts_at_once_is_no_hindrance() {
    for _ in 0..5 {
        let url = cluster::fresh_database();
        made(&url, &[]).await;
        let kine = raw(&url).await;
        let kine = tokio::spawn(async move {
            for sql in SCHEMA {
                // kine itself gives up on what it meets here (its FATAL of seed 002).
                if kine.batch_execute(sql).await.is_err() {
                    return;
                }
            }
        });
        let store = open(&url).await;
        kine.await.expect("kine ends");
        put(&store, "/a", "1").await;
    }
}

#[tokio::test]
async fn a_database_of_kines_is_read() {
    let url = cluster::fresh_database();
    made(&url, &[&SCHEMA[..], &[ROWS]].concat()).await;
    let store = open(&url).await;
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
    let mut watcher = watch(&store, Revision(3_000_000_001)).await;
    expect![[r#"
        + /a "a1" at 1
        ~ /a "a2" at 2
        + /b "b1" at 4
        - /b "b1" at 5
        + /b "b2" at 6
        + /c "c1" at 7
        + /d "d1" at 8
        - /d "d1" at 9
    "#]]
    .assert_eq(&shown(&events_up_to(&mut watcher, head).await, Revision(3_000_000_000)));
    for own in ["compact_rev_key", "gap-3000000003"] {
        assert_eq!(store.get(own, Revision::ZERO).await.expect("get"), None, "{own}");
    }
    // The sequence was behind the rows; it is not any more.
    assert_eq!(put(&store, "/new", "1").await, head.next());
    let compact = "SELECT id, prev_revision FROM kine WHERE name = 'compact_rev_key'";
    let rows = raw(&url).await.query(compact, &[]).await.expect("read");
    let rows: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, 3_000_000_000)]);
}

/// kine's table of some years ago: its names sort by a language, its ids have 32 bits.
#[tokio::test]
async fn an_older_table_is_brought_up_to_date() {
    let old = "CREATE TABLE kine (id SERIAL PRIMARY KEY, name VARCHAR(630), created INTEGER, \
         deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, lease INTEGER, \
         value bytea, old_value bytea)";
    let rows = "INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, \
         value) SELECT name, 1, 0, 0, 0, 0, '' FROM unnest(ARRAY['/b', '/B', '/a', '/-']) AS name";
    let url = cluster::fresh_database();
    made(&url, &[old, rows]).await;
    let store = open(&url).await;
    expect![[r#"
        /- "" 4..4 lease 0
        /B "" 2..2 lease 0
        /a "" 3..3 lease 0
        /b "" 1..1 lease 0
    "#]]
    .assert_eq(&listed(&store).await);
    let far = "SELECT setval('kine_id_seq', 3000000000)";
    raw(&url).await.batch_execute(far).await.expect(far);
    assert_eq!(put(&store, "/a", "2").await, Revision(3_000_000_001));
}

#[tokio::test]
async fn unknown_tables_are_refused() {
    let cases = [
        (
            "CREATE TABLE kine (id BIGSERIAL PRIMARY KEY, name text, colour text)",
            " has a kine table of an unknown layout (its columns are id bigint, name text, colour text): use the kine that made it",
        ),
        (
            &format!("{}; ALTER SEQUENCE kine_id_seq INCREMENT 2 CACHE 32", SCHEMA[0]),
            " has a kine table of an unknown layout (its sequence has INCREMENT 2, CACHE 32, CYCLE false): use the kine that made it",
        ),
    ];
    for (sql, expected) in cases {
        let url = cluster::fresh_database();
        made(&url, &[sql]).await;
        assert_eq!(refused(&url, TlsFiles::default()).await, expected);
    }
}

/// What is encrypted and checked, and what is refused.
#[tokio::test]
async fn tls_is_as_libpq_knows_it() {
    let certificate = |name: &str| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
    };
    let cluster = Cluster::start(&[]);
    let (here, key) = certificate("127.0.0.1");
    let (elsewhere, other_key) = certificate("db.example");
    cluster.hand_over("here.crt", &here);
    cluster.hand_over("elsewhere.crt", &elsewhere);
    for (certificate, key, full) in [("here", &key, true), ("elsewhere", &other_key, false)] {
        cluster.hand_over("server.key", key);
        cluster.shut_down();
        let folder = cluster.folder().display().to_string();
        let mut conf = std::fs::read_to_string(cluster.folder().join("data/postgresql.auto.conf"))
            .expect("read");
        conf += &format!(
            "ssl = on\nssl_cert_file = '{folder}/{certificate}.crt'\nssl_key_file = '{folder}/server.key'\n"
        );
        cluster.hand_over("data/postgresql.auto.conf", &conf);
        cluster.up();
        let url = cluster.fresh_database();
        let root = |name: &str| format!("sslrootcert={folder}/{name}.crt");
        let other = if full { "elsewhere" } else { "here" };
        let cases = [
            ("sslmode=require".to_owned(), true),
            ("sslmode=require&channel_binding=require".to_owned(), true),
            (format!("sslmode=verify-ca&{}", root(certificate)), true),
            (format!("sslmode=verify-full&{}", root(certificate)), full),
            (format!("sslmode=verify-ca&{}", root(other)), false),
            (format!("sslmode=require&{}", root(other)), false),
        ];
        for (query, opens) in cases {
            let url = format!("{url}?{query}");
            let opened = PostgresStore::open(dsn(&url), tuning(0)).await.map(drop);
            assert_eq!(opened.is_ok(), opens, "{query}: {opened:?}");
        }
    }
}
