//! Rows with their own revisions into an empty SQLite file.

use std::path::{Path, PathBuf};

use fp_base::Revision;
use fp_store::Row;
use rusqlite::{Connection, params};

use crate::open::{self, Writing, sqlite_error};
use crate::record::{COMPACT_KEY, is_key};
use crate::tools::{FREE_ID, SqliteSnapshot, ToolError};

const INSERT: &str = "INSERT INTO kine (id, name, created, deleted, create_revision, \
     prev_revision, lease, value, old_value) VALUES (?1, ?2, ?3, 0, ?4, 0, ?5, ?6, NULL)";

/// One transaction; dropped before [`SqliteLoad::commit`] it leaves what was there.
pub struct SqliteLoad {
    writing: Option<Writing>,
    path: PathBuf,
    existed: bool,
    kept: bool,
}

impl SqliteLoad {
    pub fn begin(path: &Path) -> Result<Self, ToolError> {
        let existed = path.exists();
        // First of all by a look that changes nothing.
        if std::fs::metadata(path).is_ok_and(|about| about.len() > 0) {
            check_empty(path)?;
        }
        let opened = open::open(path, 1)?;
        drop(opened.readers);
        let load =
            Self { writing: Some(opened.writing), path: path.to_owned(), existed, kept: false };
        // Nobody else can have written since: the lock is ours.
        check_empty(path)?;
        load.write(|conn| {
            conn.execute_batch(
                "BEGIN IMMEDIATE; DELETE FROM kine; DELETE FROM fp_expiry; DELETE FROM fp_span; \
                 DELETE FROM fp_meta",
            )
        })?;
        Ok(load)
    }

    fn write<T>(&self, f: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ToolError> {
        let writing = self.writing.as_ref().expect("it is taken only by drop");
        f(&writing.conn).map_err(|e| sqlite_error(&self.path, e).into())
    }

    pub fn rows(&mut self, rows: &[Row]) -> Result<(), ToolError> {
        if let Some(row) = rows.iter().find(|row| !is_key(&row.key)) {
            return Err(ToolError::Name(row.key.to_string()));
        }
        self.write(|conn| {
            let mut insert = conn.prepare_cached(INSERT)?;
            for row in rows {
                let created = row.created == row.revision;
                let create_revision = if created { 0 } else { row.created.0 };
                let (key, value) = (&*row.key, &*row.value);
                let lease = row.lease_ttl_secs;
                insert.execute(params![
                    row.revision.0,
                    key,
                    created,
                    create_revision,
                    lease,
                    value
                ])?;
            }
            Ok(())
        })
    }

    /// Nothing before `revision` can be read, and none up to it is given again.
    pub fn commit(mut self, revision: Revision) -> Result<(), ToolError> {
        self.write(|conn| {
            let free: i64 = conn.query_row(FREE_ID, [], |row| row.get(0))?;
            let insert = "INSERT INTO kine (id, name, created, deleted, create_revision, \
                          prev_revision, lease, value, old_value) \
                          VALUES (?1, ?2, 1, 0, 0, ?3, 0, x'', NULL)";
            conn.execute(insert, params![free, COMPACT_KEY, revision.0])?;
            let counter = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'kine'";
            conn.execute(counter, [revision.0])?;
            conn.execute_batch("COMMIT")
        })?;
        self.kept = true;
        Ok(())
    }
}

fn check_empty(path: &Path) -> Result<(), ToolError> {
    let there = SqliteSnapshot::open(path)?;
    match there.page("", "")?.first() {
        None => Ok(()),
        Some(row) => Err(ToolError::NotEmpty {
            store: path.display().to_string(),
            n_keys: there.count("")?,
            first: row.key.to_string(),
        }),
    }
}

impl Drop for SqliteLoad {
    fn drop(&mut self) {
        // The connection rolls back when it closes.
        let writing = self.writing.take();
        if let Some(Writing { conn, lock }) = writing {
            drop(conn);
            if !self.kept && !self.existed {
                for suffix in ["", "-wal", "-shm"] {
                    let mut path = self.path.as_os_str().to_owned();
                    path.push(suffix);
                    // One that stays holds no key.
                    let _ = std::fs::remove_file(path);
                }
            }
            drop(lock);
        }
    }
}
