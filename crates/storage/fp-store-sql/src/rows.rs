//! Reading kine's table: one key, a range at a revision, the log after a revision.
//!
//! Invariant: what a function returns together was read in one snapshot, and a snapshot is held
//! only for a bounded number of rows, so that readers never keep the WAL from being reset.

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Batch, Error, Event, Key, Page, Row, prefix_end};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use crate::record::{COMPACT_KEY, LogRow, Newest, is_key, lease_secs};

/// What one snapshot reads at most before it is let go: rows returned, their bytes, and index
/// entries looked at.
const SNAPSHOT_ROWS_MAX: usize = 2_000;
const SNAPSHOT_BYTES_MAX: usize = 8 << 20;
const SNAPSHOT_SCANNED_MAX: usize = 200_000;
/// How often a list of the newest state starts over when compaction overtakes it.
const LIST_TRIES_MAX: usize = 3;

/// The newest row of a name; for its id alone the index is enough.
pub(crate) const NEWEST_ID: &str = "SELECT id, deleted FROM kine \
     INDEXED BY kine_list_query_index WHERE name = ?1 ORDER BY id DESC LIMIT 1";
pub(crate) const NEWEST: &str = "SELECT id, deleted, created, create_revision, lease, value FROM kine \
     INDEXED BY kine_list_query_index WHERE name = ?1 ORDER BY id DESC LIMIT 1";
const NEWEST_AT: &str = "SELECT id, deleted, created, create_revision, lease, value FROM kine \
     INDEXED BY kine_list_query_index WHERE name = ?1 AND id <= ?2 ORDER BY id DESC LIMIT 1";
const SCAN: &str = "SELECT name, id, deleted FROM kine INDEXED BY kine_list_query_index \
     WHERE name >= ?1 AND name < ?2 AND id <= ?3 ORDER BY name, id DESC";
const BY_ID: &str =
    "SELECT id, deleted, created, create_revision, lease, value FROM kine WHERE id = ?1";
const COUNT: &str = "SELECT COUNT(*) FROM (SELECT deleted, MAX(id) FROM kine \
     INDEXED BY kine_list_query_index \
     WHERE name >= ?1 AND name < ?2 AND id <= ?3 AND name != ?4 GROUP BY name) WHERE deleted = 0";
/// Whether a key of a range was written after a revision: a walk over the rows since.
pub(crate) const WRITTEN_SINCE: &str =
    "SELECT 1 FROM kine WHERE id > ?1 AND +name >= ?2 AND +name < ?3 LIMIT 1";
const LOG: &str = "SELECT id, name, created, deleted, create_revision, lease, value, old_value, \
     prev_revision FROM kine WHERE id > ?1 ORDER BY id";
const SPAN_OVER: &str = "SELECT last FROM fp_span WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
pub(crate) const HEAD: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'kine'";
pub(crate) const COMPACTED: &str = "SELECT MAX(prev_revision) FROM kine WHERE name = ?1";

/// The names from `from` on that come before `end`.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) from: String,
    /// Text, or a blob, which sorts after every text.
    pub(crate) end: Value,
}

impl Range {
    /// The keys from `from` on that come before `end`.
    pub(crate) fn between(from: &str, end: Option<&str>) -> Self {
        let end = end.map_or(Value::Blob(Vec::new()), |end| Value::Text(end.to_owned()));
        Self { from: from.to_owned(), end }
    }

    /// The keys that begin with `prefix` and come after `start_after`.
    pub(crate) fn new(prefix: &str, start_after: Option<&str>) -> Self {
        let end = prefix_end(prefix).map_or(Value::Blob(Vec::new()), Value::Text);
        let mut range = Self { from: prefix.to_owned(), end };
        if let Some(after) = start_after.filter(|after| *after >= prefix) {
            range.start_after(after);
        }
        range
    }

    fn start_after(&mut self, key: &str) {
        self.from.clear();
        self.from.push_str(key);
        // The very next string; no key holds a NUL.
        self.from.push('\0');
    }
}

/// The highest id ever given, even if its row is compacted.
pub(crate) fn head(conn: &Connection) -> rusqlite::Result<Revision> {
    let id = conn.prepare_cached(HEAD)?.query_row([], |row| row.get(0)).optional()?;
    Ok(Revision(id.unwrap_or(0)))
}

pub(crate) fn compact_revision(conn: &Connection) -> rusqlite::Result<Revision> {
    let id: Option<i64> =
        conn.prepare_cached(COMPACTED)?.query_row([COMPACT_KEY], |row| row.get(0))?;
    Ok(Revision(id.unwrap_or(0)))
}

pub(crate) fn compacted(conn: &Connection) -> Result<Revision, Error> {
    compact_revision(conn).map_err(unread)
}

pub(crate) fn get(conn: &Connection, key: &str, at: Revision) -> Result<Option<Row>, Error> {
    let _snapshot = conn.unchecked_transaction().map_err(unread)?;
    let at = readable(conn, at)?;
    if !is_key(key) {
        return Ok(None);
    }
    let mut statement = conn.prepare_cached(NEWEST_AT).map_err(unread)?;
    let newest = statement.query_row(params![key, at.0], Newest::read).optional();
    Ok(newest.map_err(unread)?.and_then(|newest| newest.into_row(&key.into())))
}

pub(crate) fn list(
    conn: &Connection,
    range: &Range,
    limit: usize,
    at: Revision,
) -> Result<Page, Error> {
    for _ in 1..LIST_TRIES_MAX {
        match list_once(conn, range.clone(), limit, at) {
            Err(Error::Compacted { .. }) if at == Revision::ZERO => {}
            result => return result,
        }
    }
    list_once(conn, range.clone(), limit, at)
}

/// A list in as many snapshots as it takes, all read at the first one's revision.
fn list_once(
    conn: &Connection,
    mut range: Range,
    limit: usize,
    mut at: Revision,
) -> Result<Page, Error> {
    let mut rows = Vec::new();
    loop {
        let snapshot = conn.unchecked_transaction().map_err(unread)?;
        at = readable(conn, at)?;
        let end = scan(conn, &mut range, limit, at, &mut rows).map_err(unread)?;
        drop(snapshot);
        match end {
            ScanEnd::Snapshot => {}
            ScanEnd::Range => return Ok(Page { rows, revision: at, more: false }),
            ScanEnd::Limit => return Ok(Page { rows, revision: at, more: true }),
        }
    }
}

enum ScanEnd {
    Range,
    /// A live key follows the last of `limit` rows.
    Limit,
    /// The snapshot has been held long enough; `range` starts where it ended.
    Snapshot,
}

fn scan(
    conn: &Connection,
    range: &mut Range,
    limit: usize,
    at: Revision,
    rows: &mut Vec<Row>,
) -> rusqlite::Result<ScanEnd> {
    let mut names = conn.prepare_cached(SCAN)?;
    let mut by_id = conn.prepare_cached(BY_ID)?;
    let mut found = names.query(params![range.from, range.end, at.0])?;
    let (mut name, mut n_scanned, mut n_rows, mut n_bytes) = (String::new(), 0, 0, 0);
    while let Some(row) = found.next()? {
        n_scanned += 1;
        let next = row.get_ref(0)?.as_str()?;
        // Of each name the newest comes first; the rest is history.
        if next == name && n_scanned > 1 {
            continue;
        }
        if n_rows == SNAPSHOT_ROWS_MAX
            || n_bytes >= SNAPSHOT_BYTES_MAX
            || n_scanned >= SNAPSHOT_SCANNED_MAX
        {
            range.start_after(&name);
            return Ok(ScanEnd::Snapshot);
        }
        next.clone_into(&mut name);
        if row.get::<_, i64>(2)? != 0 || !is_key(&name) {
            continue;
        }
        if limit > 0 && rows.len() == limit {
            return Ok(ScanEnd::Limit);
        }
        let newest = by_id.query_row([row.get::<_, i64>(1)?], Newest::read)?;
        let row = newest.into_row(&Key::from(&*name)).expect("the index says it is not deleted");
        n_rows += 1;
        n_bytes += row.value.len();
        rows.push(row);
    }
    Ok(ScanEnd::Range)
}

pub(crate) fn count(conn: &Connection, range: &Range, at: Revision) -> Result<u64, Error> {
    let _snapshot = conn.unchecked_transaction().map_err(unread)?;
    let at = readable(conn, at)?;
    let mut statement = conn.prepare_cached(COUNT).map_err(unread)?;
    let params = params![range.from, range.end, at.0, COMPACT_KEY];
    let n: i64 = statement.query_row(params, |row| row.get(0)).map_err(unread)?;
    Ok(n.unsigned_abs())
}

/// Bytes of the file's pages.
pub(crate) fn size_bytes(conn: &Connection) -> Result<u64, Error> {
    let number = |pragma: &str| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let bytes = number("page_count").map_err(unread)? * number("page_size").map_err(unread)?;
    Ok(bytes.unsigned_abs())
}

/// A page of the log after `cursor`: the events of keys that begin with `prefix`, and how far it
/// went. It ends with a whole transaction.
pub(crate) fn log_page(conn: &Connection, prefix: &str, cursor: Revision) -> Result<Batch, Error> {
    let _snapshot = conn.unchecked_transaction().map_err(unread)?;
    let oldest = compacted(conn)?;
    if cursor < oldest {
        return Err(Error::Compacted { asked: cursor.next(), oldest: oldest.next() });
    }
    read_log(conn, prefix, cursor, SNAPSHOT_ROWS_MAX, SNAPSHOT_BYTES_MAX).map_err(unread)
}

pub(crate) fn read_log(
    conn: &Connection,
    prefix: &str,
    cursor: Revision,
    rows_max: usize,
    bytes_max: usize,
) -> rusqlite::Result<Batch> {
    let mut batch = Batch { events: Vec::new(), progress: cursor };
    let (mut n_rows, mut n_bytes) = (0, 0);
    // Where a transaction that began within the limits ends.
    let mut until = None;
    let mut log = conn.prepare_cached(LOG)?;
    let mut found = log.query([cursor.0])?;
    while let Some(row) = found.next()? {
        let id: i64 = row.get(0)?;
        if n_rows >= rows_max || n_bytes >= bytes_max {
            let until = match until {
                Some(until) => until,
                None => *until.insert(span_end(conn, batch.progress)?),
            };
            if id > until {
                return Ok(batch);
            }
        }
        n_rows += 1;
        batch.progress = Revision(id);
        let name = row.get_ref(1)?.as_str()?;
        if name.starts_with(prefix) && is_key(name) {
            let event = read_event(row, name)?;
            n_bytes += event.row.value.len() + event.previous.as_ref().map_or(0, Bytes::len);
            batch.events.push(event);
        }
    }
    batch.progress = head(conn)?.max(batch.progress);
    Ok(batch)
}

/// The last id of the transaction that wrote `revision`.
fn span_end(conn: &Connection, revision: Revision) -> rusqlite::Result<i64> {
    let mut statement = conn.prepare_cached(SPAN_OVER)?;
    let last = statement.query_row([revision.0], |row| row.get::<_, i64>(0)).optional()?;
    Ok(last.unwrap_or(0).max(revision.0))
}

fn read_event(row: &rusqlite::Row<'_>, name: &str) -> rusqlite::Result<Event> {
    Ok(LogRow {
        id: row.get(0)?,
        name,
        created: row.get::<_, i64>(2)? != 0,
        deleted: row.get::<_, i64>(3)? != 0,
        create_revision: row.get::<_, Option<i64>>(4)?.unwrap_or(0),
        lease_secs: row.get::<_, Option<i64>>(5)?.unwrap_or(0),
        value: blob(row, 6)?,
        old_value: blob(row, 7)?,
        previous_id: row.get::<_, Option<i64>>(8)?.unwrap_or(0),
    }
    .into_event())
}

impl Newest {
    /// From the columns of [`NEWEST`].
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let id: i64 = row.get(0)?;
        let created = row.get::<_, i64>(2)? != 0;
        Ok(Self {
            id,
            deleted: row.get::<_, i64>(1)? != 0,
            created: Revision(if created { id } else { row.get(3)? }),
            lease_ttl_secs: lease_secs(row.get::<_, Option<i64>>(4)?.unwrap_or(0)),
            value: blob(row, 5)?.unwrap_or_default(),
        })
    }
}

fn blob(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Bytes>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    })
}

/// The revision to read at in this snapshot: `at`, or the newest when it is zero.
fn readable(conn: &Connection, at: Revision) -> Result<Revision, Error> {
    let newest = head(conn).map_err(unread)?;
    if at == Revision::ZERO {
        return Ok(newest);
    }
    if at > newest {
        return Err(Error::Future { asked: at, newest });
    }
    let oldest = compacted(conn)?;
    if at < oldest {
        return Err(Error::Compacted { asked: at, oldest });
    }
    Ok(at)
}

fn unread(e: rusqlite::Error) -> Error {
    Error::Unavailable { what: "read the kine table".into(), source: Some(Box::new(e)) }
}
