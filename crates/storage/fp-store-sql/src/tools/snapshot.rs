//! A SQLite file as it was in one moment, beside whoever serves it.

use std::path::{Path, PathBuf};

use fp_base::Revision;
use fp_store::{Key, Row, prefix_end};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};

use crate::open::{OpenError, open_reader, sqlite_error};
use crate::record::{Newest, is_key};
use crate::rows;
use crate::schema::{self, Unfit};
use crate::tools::{Checker, Fault, LogLine, PAGE_BYTES, PAGE_ROWS, Tally, ToolError, Usage};

/// Which index serves it is SQLite's choice: a file that kine wrote may have other ones.
const SCAN: &str = "SELECT name, id, deleted FROM kine WHERE name > ?1 AND name >= ?2 \
     AND name < ?3 ORDER BY name, id DESC";
const BY_ID: &str =
    "SELECT id, deleted, created, create_revision, lease, value FROM kine WHERE id = ?1";
const SIZES: &str = "SELECT name, deleted, length(value) FROM kine ORDER BY name, id DESC";
const LINES: &str = "SELECT id, name, created, deleted, create_revision, prev_revision, lease \
     FROM kine ORDER BY name, id";

/// One read transaction on a connection that cannot write. Until it is dropped the file's WAL is
/// not reset.
pub struct SqliteSnapshot {
    conn: Connection,
    path: PathBuf,
    pub head: Revision,
    pub compacted: Revision,
}

impl SqliteSnapshot {
    pub fn open(path: &Path) -> Result<Self, ToolError> {
        if !path.exists() {
            return Err(ToolError::Absent { store: path.display().to_string() });
        }
        let conn = open_reader(path).map_err(|e| sqlite_error(path, e))?;
        schema::check(&conn).map_err(|e| match e {
            Unfit::Foreign => OpenError::Foreign { path: path.to_owned() },
            Unfit::Unknown(what) => OpenError::Schema { path: path.to_owned(), what },
            Unfit::Sqlite(e) => sqlite_error(path, e),
        })?;
        let find = "SELECT 1 FROM sqlite_schema WHERE name = 'kine'";
        let found = conn.query_row(find, [], |_| Ok(())).optional();
        if found.map_err(|e| sqlite_error(path, e))?.is_none() {
            return Err(ToolError::Absent { store: path.display().to_string() });
        }
        let begin = || {
            conn.execute_batch("BEGIN")?;
            Ok((rows::head(&conn)?, rows::compact_revision(&conn)?))
        };
        let (head, compacted) = begin().map_err(|e| sqlite_error(path, e))?;
        Ok(Self { conn, path: path.to_owned(), head, compacted })
    }

    fn read<T>(&self, f: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ToolError> {
        f(&self.conn).map_err(|e| sqlite_error(&self.path, e).into())
    }

    /// The head by now.
    pub fn head_now(&self) -> Result<Revision, ToolError> {
        let head = open_reader(&self.path).and_then(|conn| rows::head(&conn));
        head.map_err(|e| sqlite_error(&self.path, e).into())
    }

    pub fn count(&self, prefix: &str) -> Result<u64, ToolError> {
        self.read(|conn| {
            let mut scan = conn.prepare_cached(SCAN)?;
            let mut found = scan.query(params!["", prefix, end(prefix)])?;
            let (mut name, mut n) = (String::new(), 0);
            while let Some(row) = found.next()? {
                let next = row.get_ref(0)?.as_str()?;
                if next == name {
                    continue;
                }
                next.clone_into(&mut name);
                n += u64::from(row.get::<_, i64>(2)? == 0 && is_key(&name));
            }
            Ok(n)
        })
    }

    /// The next live keys after `after`, in order; none is the end.
    pub fn page(&self, prefix: &str, after: &str) -> Result<Vec<Row>, ToolError> {
        self.read(|conn| {
            let (mut scan, mut by_id) = (conn.prepare_cached(SCAN)?, conn.prepare_cached(BY_ID)?);
            let mut found = scan.query(params![after, prefix, end(prefix)])?;
            let (mut name, mut page, mut n_bytes) = (String::new(), Vec::new(), 0);
            while let Some(row) = found.next()? {
                // Of each name the newest comes first; the rest is history.
                let next = row.get_ref(0)?.as_str()?;
                if next == name {
                    continue;
                }
                next.clone_into(&mut name);
                if row.get::<_, i64>(2)? != 0 || !is_key(&name) {
                    continue;
                }
                let newest = by_id.query_row([row.get::<_, i64>(1)?], Newest::read)?;
                let row = newest.into_row(&Key::from(&*name)).expect("it is not deleted");
                n_bytes += row.value.len();
                page.push(row);
                if page.len() == PAGE_ROWS || n_bytes >= PAGE_BYTES {
                    break;
                }
            }
            Ok(page)
        })
    }

    pub fn usage(&self, n_segments: usize) -> Result<Usage, ToolError> {
        let bytes_of = |suffix: &str| {
            let mut path = self.path.as_os_str().to_owned();
            path.push(suffix);
            std::fs::metadata(path).map_or(0, |about| about.len())
        };
        self.read(|conn| {
            let number = |name: &str| {
                conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                    .map(i64::unsigned_abs)
            };
            let page_bytes = number("page_size")?;
            let parts = vec![
                ("file", bytes_of("")),
                ("wal", bytes_of("-wal")),
                ("pages", number("page_count")? * page_bytes),
                ("freePages", number("freelist_count")? * page_bytes),
            ];
            let mut tally = Tally::new(n_segments);
            let mut sizes = conn.prepare(SIZES)?;
            let mut found = sizes.query([])?;
            let (mut name, mut n_rows) = (String::new(), 0);
            while let Some(row) = found.next()? {
                n_rows += 1;
                let next = row.get_ref(0)?.as_str_or_null()?.unwrap_or_default();
                if next == name {
                    continue;
                }
                next.clone_into(&mut name);
                if row.get::<_, i64>(1)? == 0 && is_key(&name) {
                    let bytes = row.get::<_, Option<i64>>(2)?.unwrap_or(0);
                    tally.add(&name, bytes.unsigned_abs());
                }
            }
            Ok(tally.into_usage(n_rows, parts))
        })
    }

    /// Every fault, how many rows there are, and how many live keys.
    pub fn check(
        &self,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Vec<Fault>, u64, u64), ToolError> {
        self.read(|conn| {
            let mut checker = Checker::new(self.head.0, self.compacted.0);
            let mut integrity = conn.prepare("PRAGMA integrity_check")?;
            let said = integrity.query_map([], |row| row.get::<_, String>(0))?;
            for what in said.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|s| s != "ok") {
                let what = format!("SQLite says: {what}");
                checker.faults.push(Fault { id: None, key: String::new(), what });
            }
            let mut lines = conn.prepare(LINES)?;
            let mut found = lines.query([])?;
            while let Some(row) = found.next()? {
                checker.row(line(row)?);
                progress(checker.n_rows);
            }
            checker.end();
            Ok((checker.faults, checker.n_rows, checker.n_live))
        })
    }
}

fn line(row: &rusqlite::Row<'_>) -> rusqlite::Result<LogLine> {
    let number = |i: usize| row.get::<_, Option<i64>>(i).map(|n| n.unwrap_or(0));
    Ok(LogLine {
        id: number(0)?,
        name: row.get(1)?,
        created: number(2)?,
        deleted: number(3)?,
        create_revision: number(4)?,
        previous: number(5)?,
        lease: number(6)?,
    })
}

fn end(prefix: &str) -> Value {
    prefix_end(prefix).map_or(Value::Blob(Vec::new()), Value::Text)
}
