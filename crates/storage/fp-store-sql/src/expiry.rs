//! When leased keys end. kine's table holds only how long a key lives; the moment it ends lies in
//! `fp_expiry`, written in the same commit, so that a restart does not give a key a second life.
//!
//! Invariant: while the process lives, time is measured by the monotonic clock. Across a restart
//! the wall clock is all there is, and a key never gets more than its TTL.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fp_base::Revision;
use rusqlite::{Connection, OptionalExtension, params};

/// In `fp_meta`: every leased row up to this id has its line in `fp_expiry`.
const SEEN: &str = "leases_seen";

#[derive(Default)]
pub(crate) struct Expiry {
    /// The id of the row that put the key under its lease. A row that is no longer its key's
    /// newest is dropped when its time comes.
    due: BinaryHeap<Reverse<(Instant, i64)>>,
}

impl Expiry {
    /// Reads what is due, and takes over the leased rows that another program wrote.
    pub(crate) fn load(conn: &Connection, head: Revision) -> rusqlite::Result<Self> {
        let seen = "SELECT value FROM fp_meta WHERE name = ?1";
        let seen: Option<i64> = conn.query_row(seen, [SEEN], |row| row.get(0)).optional()?;
        let transaction = conn.unchecked_transaction()?;
        adopt(conn, Revision(seen.unwrap_or(0)))?;
        note_seen(conn, head)?;
        let orphans = "DELETE FROM fp_expiry WHERE id NOT IN (SELECT id FROM kine)";
        conn.execute(orphans, [])?;
        transaction.commit()?;
        let mut expiry = Self::default();
        expiry.read(conn, 0)?;
        Ok(expiry)
    }

    /// Takes over the leased rows after `cursor`, which another program wrote just now.
    pub(crate) fn absorb(&mut self, conn: &Connection, cursor: Revision) -> rusqlite::Result<()> {
        adopt(conn, cursor)?;
        self.read(conn, cursor.0)
    }

    fn read(&mut self, conn: &Connection, after: i64) -> rusqlite::Result<()> {
        let select =
            "SELECT id, expires_ms, lease FROM fp_expiry JOIN kine USING (id) WHERE id > ?1";
        let (now, now_ms) = (Instant::now(), wall_ms());
        let mut statement = conn.prepare(select)?;
        let mut rows = statement.query([after])?;
        while let Some(row) = rows.next()? {
            let (expires_ms, lease): (i64, i64) = (row.get(1)?, row.get(2)?);
            let left_ms = expires_ms.saturating_sub(now_ms).clamp(0, lease.saturating_mul(1000));
            self.add(row.get(0)?, now + Duration::from_millis(left_ms.unsigned_abs()));
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, id: i64, at: Instant) {
        self.due.push(Reverse((at, id)));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Up to `max` ids whose time has come.
    pub(crate) fn take_due(&mut self, now: Instant, max: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        while ids.len() < max && self.next().is_some_and(|at| at <= now) {
            ids.extend(self.due.pop().map(|Reverse((_, id))| id));
        }
        ids
    }
}

fn adopt(conn: &Connection, after: Revision) -> rusqlite::Result<()> {
    let insert = "INSERT OR IGNORE INTO fp_expiry (id, expires_ms) \
                  SELECT id, ?2 + lease * 1000 FROM kine \
                  WHERE id > ?1 AND lease > 0 AND deleted = 0";
    conn.prepare_cached(insert)?.execute(params![after.0, wall_ms()])?;
    Ok(())
}

/// Leased rows up to `head` need not be looked for again.
pub(crate) fn note_seen(conn: &Connection, head: Revision) -> rusqlite::Result<()> {
    let upsert = "INSERT INTO fp_meta (name, value) VALUES (?1, ?2) \
                  ON CONFLICT DO UPDATE SET value = excluded.value WHERE value != excluded.value";
    conn.prepare_cached(upsert)?.execute(params![SEEN, head.0])?;
    Ok(())
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
