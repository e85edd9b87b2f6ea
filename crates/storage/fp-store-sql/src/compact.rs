//! Forgetting history, in steps small enough that no writer waits long.
//!
//! Invariant: a step deletes what kine's compaction deletes (`CompactSQL` of its SQLite driver) and
//! moves the compact row, in one transaction that starts from the compact row as it is; so a kill
//! at any point leaves a compaction that ended earlier. The row with the highest id stays even if
//! it is a delete, because kine takes the highest id for the newest revision.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fp_base::Revision;
use fp_store::Error;
use rusqlite::{Connection, params};

use crate::queue::Reply;
use crate::record::COMPACT_KEY;
use crate::rows;

/// Log rows of a step; each deletes at most itself and the row before it.
pub(crate) const STEP_ROWS: i64 = 250;
/// While writers wait, steps are at least this far apart.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// After a step failed (no space, say) the next one waits so long.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// How finely the kept time is measured.
const SAMPLES_MAX: u32 = 64;

/// What background compaction keeps.
pub(crate) struct Window {
    /// How often it looks; `None` is never.
    pub(crate) every: Option<Duration>,
    pub(crate) keep: Duration,
    pub(crate) keep_revisions: u32,
}

pub(crate) struct Compactor {
    sample_every: Option<Duration>,
    keep: Duration,
    keep_revisions: i64,
    /// The head at past moments, oldest first, none older than needed.
    samples: VecDeque<(Instant, Revision)>,
    next_sample: Option<Instant>,
    next_step: Instant,
    compacted: Revision,
    target: Revision,
    waiting: Vec<(Revision, Reply<Revision>)>,
}

impl Compactor {
    pub(crate) fn new(window: Window, compacted: Revision, now: Instant) -> Self {
        let finest = window.keep / SAMPLES_MAX;
        let sample_every = window.every.map(|every| every.max(finest));
        Self {
            sample_every,
            keep: window.keep,
            keep_revisions: window.keep_revisions.into(),
            samples: VecDeque::new(),
            next_sample: sample_every.map(|every| now + every),
            next_step: now,
            compacted,
            target: compacted,
            waiting: Vec::new(),
        }
    }

    /// Asks for a compaction up to `at`, answered when it is done.
    pub(crate) fn ask(&mut self, at: Revision, head: Revision, reply: Reply<Revision>) {
        // An asker that is gone wants no answer.
        if at > head {
            drop(reply.send(Err(Error::Future { asked: at, newest: head })));
        } else if at <= self.compacted {
            drop(reply.send(Ok(self.compacted)));
        } else {
            self.target = self.target.max(at);
            self.waiting.push((at, reply));
        }
    }

    /// Looks at the clock: what is older than the kept window becomes the target.
    pub(crate) fn tick(&mut self, now: Instant, head: Revision) {
        let Some(every) =
            self.sample_every.filter(|_| self.next_sample.is_some_and(|at| at <= now))
        else {
            return;
        };
        self.next_sample = Some(now + every);
        self.samples.push_back((now, head));
        while self.samples.front().is_some_and(|(at, _)| now.duration_since(*at) >= self.keep) {
            let (_, old) = self.samples.pop_front().expect("just seen");
            let kept = Revision(head.0 - self.keep_revisions);
            self.target = self.target.max(old.min(kept));
        }
    }

    /// When there is next something to do here.
    pub(crate) fn next(&self) -> Option<Instant> {
        let step = (self.target > self.compacted).then_some(self.next_step);
        [step, self.next_sample].into_iter().flatten().min()
    }

    pub(crate) fn step_is_due(&self, now: Instant) -> bool {
        self.target > self.compacted && self.next_step <= now
    }

    pub(crate) fn target(&self) -> Revision {
        self.target
    }

    /// A step has been committed.
    pub(crate) fn stepped(&mut self, compacted: Revision, now: Instant, busy: bool) {
        self.next_step = if busy { now + STEP_PAUSE } else { now };
        self.compacted = compacted;
        let (done, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(at, _)| *at <= compacted);
        self.waiting = rest;
        for (_, reply) in Vec::into_iter(done) {
            drop(reply.send(Ok(compacted)));
        }
    }

    /// A step was rolled back: those who wait are told, and the next try is later.
    pub(crate) fn failed(&mut self, why: &dyn Fn() -> Error, now: Instant) {
        self.next_step = now + RETRY_PAUSE;
        for (_, reply) in self.waiting.drain(..) {
            drop(reply.send(Err(why())));
        }
    }
}

/// One step towards `target`, in the caller's transaction. Returns the compact revision after it.
pub(crate) fn step(conn: &Connection, target: Revision) -> rusqlite::Result<Revision> {
    // Another program may have compacted meanwhile: kine compares the same way before it begins.
    let from = rows::compact_revision(conn)?;
    if from >= target {
        return Ok(from);
    }
    let head = rows::head(conn)?;
    let mut log = conn.prepare_cached(
        "SELECT id, prev_revision, deleted FROM kine \
         WHERE id >= ?1 AND id <= ?2 AND name != ?3 ORDER BY id LIMIT ?4",
    )?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let page: Vec<(i64, i64, i64)> = log
        .query_map(params![from.0, target.0, COMPACT_KEY, STEP_ROWS], read)?
        .collect::<Result<_, _>>()?;
    let mut delete = conn.prepare_cached("DELETE FROM kine WHERE id = ?1")?;
    for (id, previous, deleted) in &page {
        if *previous != 0 {
            delete.execute([previous])?;
        }
        if *deleted != 0 && *id != head.0 {
            delete.execute([id])?;
        }
    }
    let full = page.len() as i64 == STEP_ROWS;
    let reached = page.last().filter(|_| full).map_or(target, |(id, ..)| Revision(*id));
    let set = "UPDATE kine SET prev_revision = ?1 WHERE name = ?2";
    conn.prepare_cached(set)?.execute(params![reached.0, COMPACT_KEY])?;
    conn.prepare_cached("DELETE FROM fp_span WHERE last <= ?1")?.execute([reached.0])?;
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Once a minute, with `per_minute` writes in between: the target after each minute.
    fn targets(keep: Duration, keep_revisions: u32, per_minute: i64, minutes: i64) -> Vec<i64> {
        let window = Window { every: Some(MINUTE), keep, keep_revisions };
        let mut now = Instant::now();
        let mut compactor = Compactor::new(window, Revision::ZERO, now);
        let minute = |n| {
            now += MINUTE;
            compactor.tick(now, Revision(n * per_minute));
            compactor.target().0
        };
        (1..=minutes).map(minute).collect()
    }

    #[test]
    fn the_window_is_kept() {
        assert_eq!(targets(3 * MINUTE, 0, 100, 6), [0, 0, 0, 100, 200, 300]);
        assert_eq!(targets(3 * MINUTE, 350, 100, 6), [0, 0, 0, 50, 150, 250]);
        assert_eq!(targets(3 * MINUTE, 1000, 100, 6), [0; 6]);
        assert_eq!(targets(Duration::ZERO, 0, 100, 3), [100, 200, 300]);
        // No finer than a 64th of the window.
        assert_eq!(targets(128 * MINUTE, 0, 1, 132)[127..], [0, 0, 2, 2, 4]);
    }
}
