//! kine's table as kine makes it (`pkg/drivers/sqlite/sqlite.go`), the two of its indexes that we
//! use, and our side tables.
//!
//! Invariant: a file that holds anything else is refused before it is changed.

use rusqlite::{Connection, OptionalExtension};

use crate::record::COMPACT_KEY;

const COLUMNS: [(&str, &str); 9] = [
    ("id", "INTEGER"),
    ("name", "TEXT"),
    ("created", "INTEGER"),
    ("deleted", "INTEGER"),
    ("create_revision", "INTEGER"),
    ("prev_revision", "INTEGER"),
    ("lease", "INTEGER"),
    ("value", "BLOB"),
    ("old_value", "BLOB"),
];

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS kine (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    created INTEGER,
    deleted INTEGER,
    create_revision INTEGER,
    prev_revision INTEGER,
    lease INTEGER,
    value BLOB,
    old_value BLOB
)";

/// Every index costs each write; those dropped here kine makes again when it starts. The list
/// index is the one kine has on PostgreSQL, under kine's name.
const INDEXES: &str = "
CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision);
CREATE INDEX IF NOT EXISTS kine_list_query_index ON kine (name, id DESC, deleted);
DROP INDEX IF EXISTS kine_name_index;
DROP INDEX IF EXISTS kine_name_id_index;
DROP INDEX IF EXISTS kine_id_deleted_index;
DROP INDEX IF EXISTS kine_prev_revision_index;
DROP INDEX IF EXISTS kine_id_compact_rev_key_with_prev_revision_index;
";

/// `fp_expiry`: when the row `id` expires, in milliseconds since 1970. `fp_span`: the first and
/// last id of each transaction of several writes. `fp_meta`: numbers by name.
const SIDE_TABLES: &str = "
CREATE TABLE IF NOT EXISTS fp_expiry (id INTEGER PRIMARY KEY, expires_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fp_span (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fp_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
";

/// Why a file is not ours to write, or the error of looking.
pub(crate) enum Unfit {
    /// No table of kine's, but others.
    Foreign,
    /// kine's table is not as we know it; how it differs.
    Unknown(String),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Unfit {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sqlite(e)
    }
}

/// Is the file kine's, or empty? Changes nothing.
pub(crate) fn check(conn: &Connection) -> Result<(), Unfit> {
    let find = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'kine'";
    let sql: Option<String> = conn.query_row(find, [], |row| row.get(0)).optional()?;
    if let Some(sql) = sql {
        return check_table(conn, &sql);
    }
    let n_things = "SELECT COUNT(*) FROM sqlite_schema";
    if conn.query_row(n_things, [], |row| row.get::<_, i64>(0))? > 0 {
        return Err(Unfit::Foreign);
    }
    Ok(())
}

/// Makes table, indexes, side tables and compact row where they are not as they should be.
pub(crate) fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    let transaction = conn.unchecked_transaction()?;
    conn.execute_batch(TABLE)?;
    conn.execute_batch(INDEXES)?;
    conn.execute_batch(SIDE_TABLES)?;
    settle_compact_row(conn)?;
    transaction.commit()
}

fn check_table(conn: &Connection, sql: &str) -> Result<(), Unfit> {
    let mut statement = conn.prepare("SELECT name, upper(type) FROM pragma_table_info('kine')")?;
    let found = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    let same = |(found, known): (&(String, String), &(&str, &str))| {
        found.0 == known.0 && found.1 == known.1
    };
    if found.len() != COLUMNS.len() || !found.iter().zip(&COLUMNS).all(same) {
        let columns: Vec<_> = found.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        return Err(Unfit::Unknown(format!("its columns are {}", columns.join(", "))));
    }
    if !sql.to_ascii_uppercase().contains("AUTOINCREMENT") {
        return Err(Unfit::Unknown("its id does not autoincrement".into()));
    }
    Ok(())
}

/// There is exactly one compact row; of several (an old bug of kine's) the furthest counts, as in
/// `compactStart` of `pkg/logstructured/sqllog/sql.go`.
fn settle_compact_row(conn: &Connection) -> rusqlite::Result<()> {
    let best = "SELECT id FROM kine WHERE name = ?1 ORDER BY prev_revision DESC, id DESC LIMIT 1";
    match conn.query_row(best, [COMPACT_KEY], |row| row.get::<_, i64>(0)).optional()? {
        Some(id) => {
            conn.execute("DELETE FROM kine WHERE name = ?1 AND id != ?2", (COMPACT_KEY, id))?;
        }
        None => {
            let insert = "INSERT INTO kine(name, created, deleted, create_revision, prev_revision, \
                          lease, value, old_value) VALUES (?1, 1, 0, 0, 0, 0, x'', NULL)";
            conn.execute(insert, [COMPACT_KEY])?;
        }
    }
    Ok(())
}
