//! Deciding a group of transactions: which hold, and which rows they insert. No I/O.
//!
//! Invariant: each transaction sees the writes of those before it in the group. Rows get their ids
//! afterwards, so rows of the group name each other by place.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Compare, Event, EventKind, Key, Op, Outcome, Row, Txn};

use crate::record::Newest;

/// The id of a row: of one that is there, or of a row of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    There(i64),
    New(usize),
}

#[derive(Clone)]
struct Live {
    id: Id,
    created: Id,
    lease_ttl_secs: u32,
    value: Bytes,
}

#[derive(Clone)]
struct State {
    last: Id,
    live: Option<Live>,
}

struct NewRow {
    key: Key,
    kind: EventKind,
    previous_id: Id,
    created: Id,
    lease_ttl_secs: u32,
    value: Bytes,
    previous: Option<Bytes>,
    /// The row whose lease this one ends.
    ended_lease: Option<Id>,
}

enum Decided {
    Committed(Range<usize>),
    /// For every compare its key's row, if it has a key and that is live.
    Failed(Vec<Option<(Key, Live)>>),
}

/// What a group does, before its rows have ids.
pub(crate) struct Plan {
    rows: Vec<NewRow>,
    decided: Vec<Decided>,
}

/// A row to insert.
#[derive(Debug)]
pub(crate) struct Insert {
    pub(crate) event: Event,
    pub(crate) previous_id: i64,
}

/// A plan whose rows have ids.
pub(crate) struct Resolved {
    pub(crate) inserts: Vec<Insert>,
    pub(crate) outcomes: Vec<Outcome>,
    /// First and last id of each transaction of several writes.
    pub(crate) spans: Vec<(i64, i64)>,
    /// Rows that are no longer under a lease.
    pub(crate) ended_leases: Vec<i64>,
}

/// The keys whose newest rows must be known.
pub(crate) fn keys<'t>(txns: impl Iterator<Item = &'t Txn>) -> Vec<&'t str> {
    let of = |txn: &'t Txn| {
        let compared = txn.compares.iter().filter_map(Compare::key);
        compared.chain(txn.ops.iter().map(Op::key)).map(|key| &**key)
    };
    let mut keys: Vec<_> = txns.flat_map(of).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The ranges that must not have been written: from, end, and since when, in order.
pub(crate) fn ranges<'t>(
    txns: impl Iterator<Item = &'t Txn>,
) -> Vec<(&'t str, Option<&'t str>, i64)> {
    let range = |compare: &'t Compare| match compare {
        Compare::Unchanged { from, end, since } => Some((&**from, end.as_deref(), since.0)),
        Compare::Absent(_) | Compare::At(..) => None,
    };
    txns.flat_map(|txn| &txn.compares).filter_map(range).collect()
}

impl Plan {
    /// `unchanged` says of each of [`ranges`] whether it is unchanged in the table.
    pub(crate) fn new<'t>(
        txns: impl Iterator<Item = &'t Txn>,
        newest: HashMap<String, Newest>,
        unchanged: Vec<bool>,
    ) -> Self {
        let state = |newest: Newest| {
            let id = Id::There(newest.id);
            let Newest { created, lease_ttl_secs, value, deleted, .. } = newest;
            let live = Live { id, created: Id::There(created.0), lease_ttl_secs, value };
            State { last: id, live: (!deleted).then_some(live) }
        };
        let mut states: HashMap<Key, State> =
            newest.into_iter().map(|(name, newest)| (name.into(), state(newest))).collect();
        let mut plan = Self { rows: Vec::new(), decided: Vec::new() };
        let mut unchanged = unchanged.into_iter();
        for txn in txns {
            let decided = plan.decide(txn, &mut states, &mut unchanged);
            plan.decided.push(decided);
        }
        plan
    }

    fn decide(
        &mut self,
        txn: &Txn,
        states: &mut HashMap<Key, State>,
        unchanged: &mut impl Iterator<Item = bool>,
    ) -> Decided {
        let live = |key: &Key| states.get(key).and_then(|state| state.live.as_ref());
        let written = |from: &str, end: Option<&str>| {
            let within = |key: &Key| from <= &**key && end.is_none_or(|end| &**key < end);
            states.iter().any(|(key, state)| matches!(state.last, Id::New(_)) && within(key))
        };
        let holds = |compare: &Compare| match compare {
            Compare::Absent(key) => live(key).is_none(),
            // Nobody outside knows the id of a row of this group.
            Compare::At(key, at) => live(key).is_some_and(|live| live.id == Id::There(at.0)),
            Compare::Unchanged { from, end, .. } => {
                unchanged.next().unwrap_or(false) && !written(from, end.as_deref())
            }
        };
        // All of them are looked at, so that each range meets its own answer.
        let holding: Vec<bool> = txn.compares.iter().map(holds).collect();
        if holding.contains(&false) {
            let row = |compare: &Compare| {
                let key = compare.key()?;
                Some((key.clone(), live(key)?.clone()))
            };
            return Decided::Failed(txn.compares.iter().map(row).collect());
        }
        let start = self.rows.len();
        for op in &txn.ops {
            let state = states.get(op.key()).cloned();
            let last = state.as_ref().map_or(Id::There(0), |state| state.last);
            if let Some(row) = new_row(op, last, state.and_then(|s| s.live), self.rows.len()) {
                let id = Id::New(self.rows.len());
                let live = (row.kind != EventKind::Deleted).then(|| Live {
                    id,
                    created: row.created,
                    lease_ttl_secs: row.lease_ttl_secs,
                    value: row.value.clone(),
                });
                states.insert(op.key().clone(), State { last: id, live });
                self.rows.push(row);
            }
        }
        Decided::Committed(start..self.rows.len())
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Ids for all rows out of the ascending `ids`, those of one transaction consecutive; `None`
    /// when there are not enough such runs. Ids between runs are left unused.
    pub(crate) fn assign(&self, ids: &[i64]) -> Option<Vec<i64>> {
        let mut assigned = Vec::with_capacity(self.rows.len());
        let mut rest = ids;
        for decided in &self.decided {
            let Decided::Committed(rows) = decided else { continue };
            let Some(n_more) = rows.len().checked_sub(1) else { continue };
            let run =
                rest.windows(n_more + 1).position(|run| run[n_more] - run[0] == n_more as i64);
            let start = run?;
            assigned.extend_from_slice(&rest[start..=start + n_more]);
            rest = &rest[start + n_more + 1..];
        }
        Some(assigned)
    }

    pub(crate) fn resolve(self, ids: &[i64]) -> Resolved {
        let id = |id: Id| match id {
            Id::There(id) => id,
            Id::New(place) => ids[place],
        };
        let outcome = |decided: &Decided| match decided {
            Decided::Committed(rows) => {
                Outcome::Committed(ids[rows.clone()].iter().map(|id| Revision(*id)).collect())
            }
            Decided::Failed(rows) => {
                let row = |(key, live): &(Key, Live)| Row {
                    key: key.clone(),
                    value: live.value.clone(),
                    revision: Revision(id(live.id)),
                    created: Revision(id(live.created)),
                    lease_ttl_secs: live.lease_ttl_secs,
                };
                Outcome::Failed(rows.iter().map(|found| found.as_ref().map(row)).collect())
            }
        };
        let outcomes = self.decided.iter().map(outcome).collect();
        let span = |decided: &Decided| match decided {
            Decided::Committed(rows) if rows.len() > 1 => {
                Some((ids[rows.start], ids[rows.end - 1]))
            }
            _ => None,
        };
        let spans = self.decided.iter().filter_map(span).collect();
        let ended_leases = self.rows.iter().filter_map(|row| row.ended_lease.map(id)).collect();
        let insert = |(place, row): (usize, NewRow)| Insert {
            previous_id: id(row.previous_id),
            event: Event {
                previous_revision: Revision(
                    row.previous.as_ref().map_or(0, |_| id(row.previous_id)),
                ),
                kind: row.kind,
                row: Row {
                    key: row.key,
                    value: row.value,
                    revision: Revision(ids[place]),
                    created: Revision(id(row.created)),
                    lease_ttl_secs: row.lease_ttl_secs,
                },
                previous: row.previous,
            },
        };
        let inserts = self.rows.into_iter().enumerate().map(insert).collect();
        Resolved { inserts, outcomes, spans, ended_leases }
    }
}

/// The row of `op`; `None` for a delete of what is not there.
fn new_row(op: &Op, last: Id, live: Option<Live>, place: usize) -> Option<NewRow> {
    let ended_lease = live.as_ref().filter(|live| live.lease_ttl_secs > 0).map(|live| live.id);
    let key = op.key().clone();
    let row = match (op, live) {
        (Op::Put { value, lease_ttl_secs, .. }, live) => NewRow {
            key,
            kind: if live.is_some() { EventKind::Updated } else { EventKind::Created },
            previous_id: last,
            created: live.as_ref().map_or(Id::New(place), |live| live.created),
            lease_ttl_secs: *lease_ttl_secs,
            value: value.clone(),
            previous: live.map(|live| live.value),
            ended_lease,
        },
        (Op::Delete { .. }, Some(live)) => NewRow {
            key,
            kind: EventKind::Deleted,
            previous_id: last,
            created: live.created,
            lease_ttl_secs: 0,
            value: live.value.clone(),
            previous: Some(live.value),
            ended_lease,
        },
        (Op::Delete { .. }, None) => return None,
    };
    Some(row)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// A line per transaction: `absent a; at b 7; unchanged a c; put c; put d 60; del e` (60: a
    /// lease).
    fn txn(line: &str) -> Txn {
        let mut txn = Txn::default();
        for part in line.split("; ") {
            let words: Vec<_> = part.split(' ').collect();
            let number = |i: usize| words.get(i).map_or(0, |n: &&str| n.parse().expect("a number"));
            let key = || Key::from(words[1]);
            match words[0] {
                "absent" => txn.compares.push(Compare::Absent(key())),
                "unchanged" => txn.compares.push(Compare::Unchanged {
                    from: words[1].into(),
                    end: words.get(2).map(|end| (*end).into()),
                    since: Revision(7),
                }),
                "at" => txn.compares.push(Compare::At(key(), Revision(number(2)))),
                "put" => {
                    let (value, lease) = (Bytes::from(part.to_owned()), number(2));
                    let lease_ttl_secs = u32::try_from(lease).expect("a lease");
                    txn.ops.push(Op::Put { key: key(), value, lease_ttl_secs });
                }
                _ => txn.ops.push(Op::Delete { key: key() }),
            }
        }
        txn
    }

    /// `a` is live at 7 with a lease, `d` was deleted at 8; ranges from `m` on have changed.
    fn check(lines: &[&str], ids: &[i64], expect: Expect) {
        let txns: Vec<_> = lines.iter().map(|line| txn(line)).collect();
        let there = |id, deleted| Newest {
            id,
            deleted,
            created: Revision(5),
            lease_ttl_secs: 60,
            value: "there".into(),
        };
        let newest = HashMap::from([("a".into(), there(7, false)), ("d".into(), there(8, true))]);
        let unchanged = ranges(txns.iter()).iter().map(|(from, ..)| *from < "m").collect();
        let plan = Plan::new(txns.iter(), newest, unchanged);
        let Some(ids) = plan.assign(ids) else { return expect.assert_eq("no such runs\n") };
        let resolved = plan.resolve(&ids);
        let mut text = String::new();
        for Insert { event, previous_id } in &resolved.inserts {
            let Row { key, revision, created, lease_ttl_secs, .. } = &event.row;
            let kind = event.kind;
            text += &format!(
                "{kind:?} {key} {created}..{revision} after {previous_id} lease {lease_ttl_secs}\n"
            );
        }
        for outcome in &resolved.outcomes {
            text += &match outcome {
                Outcome::Committed(revisions) => format!("committed {revisions:?}\n"),
                Outcome::Failed(rows) => {
                    let at = |row: &Option<Row>| row.as_ref().map(|row| row.revision.0);
                    format!("failed {:?}\n", rows.iter().map(at).collect::<Vec<_>>())
                }
            };
        }
        text += &format!("spans {:?} ended {:?}\n", resolved.spans, resolved.ended_leases);
        expect.assert_eq(&text);
    }

    #[test]
    fn later_transactions_see_earlier_ones() {
        check(
            &[
                "absent c; put c",
                "absent c; put c",
                "at a 7; put a; del c",
                "at a 7; del a",
                "del x",
            ],
            &[10, 11, 12],
            expect![[r#"
                Created c 10..10 after 0 lease 0
                Updated a 5..11 after 7 lease 0
                Deleted c 10..12 after 10 lease 0
                committed [Revision(10)]
                failed [Some(10)]
                committed [Revision(11), Revision(12)]
                failed [Some(11)]
                committed []
                spans [(11, 12)] ended [7]
            "#]],
        );
    }

    #[test]
    fn a_key_that_was_deleted_begins_anew() {
        check(
            &["absent d; put d 60", "put d", "del d; put d"],
            &[20, 21, 22, 23],
            expect![[r#"
                Created d 20..20 after 8 lease 60
                Updated d 20..21 after 20 lease 0
                Deleted d 20..22 after 21 lease 0
                Created d 23..23 after 22 lease 0
                committed [Revision(20)]
                committed [Revision(21)]
                committed [Revision(22), Revision(23)]
                spans [(22, 23)] ended [20]
            "#]],
        );
    }

    #[test]
    fn ranges_hold_until_they_are_written() {
        check(
            &[
                "unchanged a c; put b",
                "unchanged a c; put x",
                "unchanged n; put x",
                "unchanged c; at a 8; put x",
                "unchanged c; put x",
            ],
            &[40, 41],
            expect![[r#"
                Created b 40..40 after 0 lease 0
                Created x 41..41 after 0 lease 0
                committed [Revision(40)]
                failed [None]
                failed [None]
                failed [None, Some(7)]
                committed [Revision(41)]
                spans [] ended []
            "#]],
        );
    }

    /// Ids that another program took in between split no transaction.
    #[test]
    fn a_transaction_has_consecutive_ids() {
        check(
            &["put x", "put y; put z", "put w"],
            &[30, 31, 33, 34, 36],
            expect![[r#"
                Created x 30..30 after 0 lease 0
                Created y 33..33 after 0 lease 0
                Created z 34..34 after 0 lease 0
                Created w 36..36 after 0 lease 0
                committed [Revision(30)]
                committed [Revision(33), Revision(34)]
                committed [Revision(36)]
                spans [(33, 34)] ended []
            "#]],
        );
        check(&["put x", "put y; put z"], &[30, 31, 33], expect![["no such runs\n"]]);
    }
}
