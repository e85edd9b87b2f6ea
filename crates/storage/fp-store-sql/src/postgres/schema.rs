//! kine's table as kine makes it (`pkg/drivers/pgsql/pgsql.go`), the two of its indexes that we
//! use, and our side tables.
//!
//! Invariant: a table that is not kine's is refused before anything is changed. Starts at the same
//! time, of ours or of kine's, all come up.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::postgres::dsn::chain;
use crate::postgres::session::is_refusal;

const COLUMNS: [&str; 9] = [
    "id",
    "name",
    "created",
    "deleted",
    "create_revision",
    "prev_revision",
    "lease",
    "value",
    "old_value",
];

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS kine (
    id BIGSERIAL PRIMARY KEY,
    name text COLLATE \"C\",
    created INTEGER,
    deleted INTEGER,
    create_revision BIGINT,
    prev_revision BIGINT,
    lease INTEGER,
    value bytea,
    old_value bytea
)";

/// Every index costs each write; those dropped here kine makes again when it starts.
const INDEXES: &str = "
CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision);
CREATE INDEX IF NOT EXISTS kine_list_query_index ON kine (name, id DESC, deleted);
DROP INDEX IF EXISTS kine_name_index;
DROP INDEX IF EXISTS kine_name_id_index;
DROP INDEX IF EXISTS kine_id_deleted_index;
DROP INDEX IF EXISTS kine_prev_revision_index;
";

/// As beside SQLite: when the row `id` expires, in milliseconds since 1970; the first and last id
/// of each transaction of several writes; numbers by name.
const SIDE_TABLES: &str = "
CREATE TABLE IF NOT EXISTS fp_expiry (id BIGINT PRIMARY KEY, expires_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS fp_span (first BIGINT PRIMARY KEY, last BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS fp_meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
";

/// kine's migrations 1 and 2 (`schemaMigrations`), which it runs when KINE_SCHEMA_MIGRATION says so.
const WIDER_IDS: &str = "
ALTER TABLE kine ALTER COLUMN id SET DATA TYPE BIGINT,
    ALTER COLUMN create_revision SET DATA TYPE BIGINT, ALTER COLUMN prev_revision SET DATA TYPE BIGINT";
const BYTE_ORDER: &str = "
ALTER TABLE kine ALTER COLUMN name SET DATA TYPE TEXT COLLATE \"C\" USING name::TEXT COLLATE \"C\"";

/// One compact row; of several (an old bug of kine's) the furthest counts.
const COMPACT_ROW: &str = "
DELETE FROM kine WHERE name = 'compact_rev_key' AND id <> (SELECT id FROM kine
    WHERE name = 'compact_rev_key' ORDER BY prev_revision DESC, id DESC LIMIT 1);
INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value)
    SELECT 'compact_rev_key', 1, 0, 0, 0, 0, ''
    WHERE NOT EXISTS (SELECT FROM kine WHERE name = 'compact_rev_key')";

const LOCK: &str = "SELECT pg_advisory_xact_lock(5063266103265853)";
/// How often the set-up is tried while others set up too.
const TRIES_MAX: usize = 50;
const RETRY_PAUSE: Duration = Duration::from_millis(100);

pub(crate) enum Unfit {
    /// kine's table is not as we know it; how it differs.
    Unknown(String),
    Postgres(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Unfit {
    fn from(e: tokio_postgres::Error) -> Self {
        Self::Postgres(e)
    }
}

/// Makes table, indexes, side tables and compact row where they are not as they should be. Returns
/// the sequence that gives the ids.
pub(crate) async fn prepare(client: &Client) -> Result<u32, Unfit> {
    for _ in 1..TRIES_MAX {
        match prepare_once(client).await {
            Err(Unfit::Postgres(e)) if is_race(&e) => {
                tracing::info!(error = %chain(&e), "another server sets the database up too");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            result => return result,
        }
    }
    prepare_once(client).await
}

/// What two set-ups at the same time meet: `IF NOT EXISTS` looks before it locks.
fn is_race(e: &tokio_postgres::Error) -> bool {
    let races = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::UNDEFINED_OBJECT,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::INTERNAL_ERROR,
    ];
    is_refusal(e) && e.code().is_some_and(|code| races.contains(code))
}

async fn prepare_once(client: &Client) -> Result<u32, Unfit> {
    client.batch_execute("BEGIN").await?;
    let done = in_transaction(client).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await;
    let sequence = done?;
    ended?;
    Ok(sequence)
}

async fn in_transaction(client: &Client) -> Result<u32, Unfit> {
    client.query(LOCK, &[]).await?;
    check_table(client).await?;
    client.batch_execute(TABLE).await?;
    client.batch_execute(INDEXES).await?;
    client.batch_execute(SIDE_TABLES).await?;
    let sequence = check_sequence(client).await?;
    client.batch_execute(COMPACT_ROW).await?;
    Ok(sequence)
}

/// Is the table kine's, or absent? An older one of kine's is brought up to date.
async fn check_table(client: &Client) -> Result<(), Unfit> {
    let columns = "SELECT attname::text, format_type(atttypid, atttypmod), coalesce(collname, '')::text, \
                   coalesce(datcollate, '')::text \
                   FROM pg_attribute LEFT JOIN pg_collation ON pg_collation.oid = attcollation, \
                   pg_database WHERE datname = current_database() \
                   AND attrelid = to_regclass('kine') AND attnum > 0 AND NOT attisdropped \
                   ORDER BY attnum";
    let rows = client.query(columns, &[]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let column = |i: usize| found.get(i).map_or("", |(_, kind)| kind.as_str());
    let names_match = found.iter().map(|(name, _)| name).eq(COLUMNS);
    let is_id = |kind: &str| kind == "bigint" || kind == "integer";
    let is_text = |kind: &str| kind == "text" || kind.starts_with("character varying");
    let kinds_match = is_id(column(0))
        && is_text(column(1))
        && [2, 3, 6].iter().all(|i| column(*i) == "integer")
        && [4, 5].iter().all(|i| is_id(column(*i)))
        && [7, 8].iter().all(|i| column(*i) == "bytea");
    if !names_match || !kinds_match {
        let columns: Vec<_> = found.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        return Err(Unfit::Unknown(format!("its columns are {}", columns.join(", "))));
    }
    if [0, 4, 5].iter().any(|i| column(*i) == "integer") {
        tracing::warn!("the kine table has 32-bit ids: widening them as kine's own migration does");
        client.batch_execute(WIDER_IDS).await?;
    }
    let (collation, default): (String, String) = (rows[1].get(2), rows[1].get(3));
    let in_bytes = ["C", "POSIX"];
    let sorts_by_bytes =
        in_bytes.contains(&&*collation) || collation == "default" && in_bytes.contains(&&*default);
    if column(1) != "text" || !sorts_by_bytes {
        let kind = column(1);
        tracing::warn!(
            kind,
            collation,
            "changing the kine table's names to text in byte order as kine's own migration does"
        );
        client.batch_execute(BYTE_ORDER).await?;
    }
    Ok(())
}

/// Ids come one by one from a sequence that is ahead of every row.
async fn check_sequence(client: &Client) -> Result<u32, Unfit> {
    let find = "SELECT pg_get_serial_sequence('kine', 'id')::regclass::oid";
    let Some(sequence) = client.query_one(find, &[]).await?.get::<_, Option<u32>>(0) else {
        return Err(Unfit::Unknown("its id has no sequence".into()));
    };
    let about = "SELECT seqincrement, seqcache, seqcycle, format_type(seqtypid, NULL), \
                 (SELECT coalesce(max(id), 0) FROM kine), seqrelid::regclass::text \
                 FROM pg_sequence WHERE seqrelid = $1";
    let row = client.query_one(about, &[&sequence]).await?;
    let (step, cache, cycles): (i64, i64, bool) = (row.get(0), row.get(1), row.get(2));
    if (step, cache, cycles) != (1, 1, false) {
        let what = format!("its sequence has INCREMENT {step}, CACHE {cache}, CYCLE {cycles}");
        return Err(Unfit::Unknown(what));
    }
    let name: String = row.get(5);
    if row.get::<_, &str>(3) != "bigint" {
        tracing::warn!("the kine table's sequence is 32 bits wide: widening it");
        client.batch_execute(&format!("ALTER SEQUENCE {name} AS BIGINT")).await?;
    }
    let highest: i64 = row.get(4);
    let next = format!("SELECT last_value FROM {name}");
    let last: i64 = client.query_one(&next, &[]).await?.get(0);
    if last < highest {
        tracing::warn!(last, highest, "the kine table's sequence is behind its rows: moving it on");
        client.query("SELECT setval($1::oid::regclass, $2)", &[&sequence, &highest]).await?;
    }
    Ok(sequence)
}
