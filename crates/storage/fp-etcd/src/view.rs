//! What a call sees: the store at one revision, and over it what the call itself has written.
//!
//! Invariant: whatever was read at the revision is in the footprint, so that a commit on condition
//! of the footprint is as if everything had happened at once.

use std::collections::BTreeMap;

use fp_base::Revision;
use fp_store::{Compare, Error, Key, ListQuery, Row, Store};

use crate::bounds::Bounds;

/// Rows of a page when the end of a range has to be looked for.
const PAGE_ROWS: usize = 500;

pub struct View<'a> {
    store: &'a dyn Store,
    pub at: Revision,
    /// What the call has written so far; `None` is a delete.
    written: BTreeMap<Key, Option<Row>>,
    keys: BTreeMap<Key, Option<Revision>>,
    ranges: Vec<(String, Option<String>)>,
}

/// Rows in key order, and how many keys there are in all.
pub struct Found {
    pub rows: Vec<Row>,
    pub n_keys: u64,
}

impl<'a> View<'a> {
    pub fn new(store: &'a dyn Store, at: Revision) -> Self {
        let (written, keys) = (BTreeMap::new(), BTreeMap::new());
        Self { store, at, written, keys, ranges: Vec::new() }
    }

    /// The same store at another revision, without what was written.
    pub fn past(&self, at: Revision) -> View<'a> {
        View::new(self.store, at)
    }

    /// Nothing was written up to this revision. (A store takes zero for the newest.)
    fn is_unwritten(&self) -> bool {
        self.at == Revision::ZERO
    }

    pub fn write(&mut self, key: Key, row: Option<Row>) {
        self.written.insert(key, row);
    }

    pub async fn get(&mut self, key: &Key) -> Result<Option<Row>, Error> {
        if let Some(written) = self.written.get(key) {
            return Ok(written.clone());
        }
        let row = if self.is_unwritten() { None } else { self.store.get(key, self.at).await? };
        self.keys.insert(key.clone(), row.as_ref().map(|row| row.revision));
        Ok(row)
    }

    /// The first `limit` rows of the bounds (0: all).
    pub async fn find(&mut self, bounds: &Bounds, limit: usize) -> Result<Found, Error> {
        let (from, end) = match bounds {
            Bounds::Key(None) => return Ok(Found { rows: Vec::new(), n_keys: 0 }),
            Bounds::Key(Some(key)) => {
                let rows: Vec<_> = self.get(key).await?.into_iter().collect();
                return Ok(Found { n_keys: rows.len() as u64, rows });
            }
            Bounds::Range(from, end) => (from, end.as_deref()),
        };
        if bounds.is_empty() {
            return Ok(Found { rows: Vec::new(), n_keys: 0 });
        }
        self.ranges.push((from.clone(), end.map(str::to_owned)));
        let touched = self.written.keys().any(|key| bounds.contains(key));
        let limit = if touched { 0 } else { limit };
        let mut rows = self.list(bounds, from, limit).await?;
        if touched {
            let written = self.written.iter().filter(|(key, _)| bounds.contains(key));
            let mut merged: BTreeMap<Key, Row> =
                rows.into_iter().map(|row| (row.key.clone(), row)).collect();
            for (key, row) in written {
                match row {
                    Some(row) => drop(merged.insert(key.clone(), row.clone())),
                    None => drop(merged.remove(key)),
                }
            }
            rows = merged.into_values().collect();
        }
        let n_keys = match limit {
            _ if limit == 0 || rows.len() < limit => rows.len() as u64,
            _ if self.is_unwritten() => 0,
            _ => self.store.count_range(from, end, self.at).await?,
        };
        Ok(Found { rows, n_keys })
    }

    /// How many keys there are.
    pub async fn count(&mut self, bounds: &Bounds) -> Result<u64, Error> {
        match bounds {
            Bounds::Range(from, end) if self.written.is_empty() && !self.is_unwritten() => {
                self.ranges.push((from.clone(), end.clone()));
                self.store.count_range(from, end.as_deref(), self.at).await
            }
            _ => self.find(bounds, 0).await.map(|found| found.n_keys),
        }
    }

    async fn list(&self, bounds: &Bounds, from: &str, limit: usize) -> Result<Vec<Row>, Error> {
        let prefix = bounds.prefix();
        let mut rows = Vec::new();
        if self.is_unwritten() {
            return Ok(rows);
        }
        let mut after: Option<Key> = match from.strip_suffix('\0') {
            Some(key) => Some(key.into()),
            None if from == prefix => None,
            None => {
                // The key before `from` has no name: `from` is looked at alone.
                rows.extend(self.store.get(from, self.at).await?);
                Some(from.into())
            }
        };
        // A prefix that says all the bounds say makes one list of it.
        let exact = *bounds == Bounds::Range(from.to_owned(), fp_store::prefix_end(prefix));
        let page_rows = if exact { 0 } else { PAGE_ROWS };
        while limit == 0 || rows.len() < limit {
            let left = limit.saturating_sub(rows.len());
            let n = if page_rows == 0 || (left > 0 && left < page_rows) { left } else { page_rows };
            let query = ListQuery { prefix, start_after: after.as_deref(), limit: n, at: self.at };
            let page = self.store.list(query).await?;
            let n_page = page.rows.len();
            after = page.rows.last().map(|row| row.key.clone());
            let before = rows.len();
            rows.extend(page.rows.into_iter().take_while(|row| bounds.contains(&row.key)));
            if !page.more || rows.len() - before < n_page {
                break;
            }
        }
        Ok(rows)
    }

    /// Everything that was read, as conditions of a commit.
    pub fn footprint(self) -> Vec<Compare> {
        let since = self.at;
        let keys = self.keys.into_iter().map(|(key, at)| match at {
            Some(at) => Compare::At(key, at),
            None => Compare::Absent(key),
        });
        let ranges = self.ranges.into_iter().map(|(from, end)| Compare::Unchanged {
            from: from.into(),
            end: end.map(Into::into),
            since,
        });
        keys.chain(ranges).collect()
    }
}
