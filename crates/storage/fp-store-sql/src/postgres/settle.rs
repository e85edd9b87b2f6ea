//! Which revisions are settled: all up to there is committed and visible, or never will be.
//!
//! Ids come from a sequence, so a kine beside us may commit id 8 while id 7 is still in the hands
//! of another of its transactions. Showing 8 then would lose 7 for every watcher.
//!
//! Why this is right: `nextval` takes a RowExclusiveLock on the sequence before it takes an id, and
//! the server keeps it until the transaction ends (`lock_and_open_sequence`); a transaction's rows
//! become visible before its locks go (`CommitTransaction`). So once a row with id N has been seen,
//! every id below N is visible, or its transaction is among those that hold the lock at some later
//! moment, or it will never be used. When those that held it in that moment have ended, a new look
//! at the table sees all that there is up to N. Ids without a gap need no look at the locks.
//! A compaction or a dump, however long, holds no such lock on the sequence. Rows that are inserted
//! with an id of their own (kine's gap rows) are no events.

use std::collections::HashSet;

use tokio_postgres::Row;

/// A transaction that may hold an id. Prepared transactions have no process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    pub(crate) transaction: String,
    pub(crate) pid: i32,
}

pub(crate) fn holders(rows: &[Row]) -> HashSet<Holder> {
    let holder = |row: &Row| {
        let pid: Option<i32> = row.get(1);
        Holder { transaction: row.get(0), pid: pid.unwrap_or(0) }
    };
    rows.iter().map(holder).collect()
}

/// Everything up to `upto` is settled once none of `holders` lives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suspects {
    pub(crate) upto: i64,
    pub(crate) holders: HashSet<Holder>,
}

impl Suspects {
    /// Forgets those that are gone; is it over?
    pub(crate) fn are_gone(&mut self, alive: &HashSet<Holder>) -> bool {
        self.holders.retain(|holder| alive.contains(holder));
        self.holders.is_empty()
    }
}

/// How many of the ascending `ids` follow `settled` without a gap.
pub(crate) fn n_without_gap(settled: i64, ids: &[i64]) -> usize {
    ids.iter().zip(settled + 1..).take_while(|(id, next)| *id == next).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found() {
        let cases: [(i64, &[i64], usize); 5] = [
            (7, &[], 0),
            (7, &[8, 9], 2),
            (7, &[9], 0),
            (7, &[8, 10, 11], 1),
            (3_000_000_000, &[3_000_000_001, 3_001_000_001], 1),
        ];
        for (settled, ids, n) in cases {
            assert_eq!(n_without_gap(settled, ids), n, "{settled} {ids:?}");
        }
    }

    #[test]
    fn newcomers_are_no_suspects() {
        let holder = |transaction: &str| Holder { transaction: transaction.into(), pid: 1 };
        let set = |names: &[&str]| names.iter().map(|name| holder(name)).collect::<HashSet<_>>();
        let mut suspects = Suspects { upto: 9, holders: set(&["3/1", "4/7"]) };
        assert!(!suspects.are_gone(&set(&["4/7", "5/1"])));
        // The same backend, its next transaction.
        assert!(suspects.are_gone(&set(&["4/8", "3/1", "5/1"])));
    }
}
