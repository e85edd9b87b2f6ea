//! The one task that writes and follows.
//!
//! Invariant: an answer follows its commit. An error before COMMIT was sent, or a refusal of the
//! server, means surely not written; anything else after it means unknown. What is shown to
//! watchers is settled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fp_base::Revision;
use fp_store::{Compare, Error, Event, EventKind, Key, Op, Outcome, Txn};
use futures_util::future::{OptionFuture, join5, try_join5};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use crate::compact::{Compactor, STEP_ROWS, Window};
use crate::expiry::Expiry;
use crate::postgres::dsn::chain;
use crate::postgres::plan::{self, Plan, Resolved};
use crate::postgres::session::{Session, away, is_refusal};
use crate::postgres::settle::{self, Suspects, n_without_gap};
use crate::postgres::sql::Sql;
use crate::postgres::{Shared, bound, log_row, newest, range_end};
use crate::queue::{Gather, Write};
use crate::record::{self, Newest};

/// Polls when nobody has written beside us lately ...
const POLL_IDLE: Duration = Duration::from_millis(500);
/// ... and for so long after a row that nobody told us of ...
const FOREIGN_FOR: Duration = Duration::from_secs(10);
/// ... at this pace.
const POLL_FOREIGN: Duration = Duration::from_millis(25);
/// How often the holders of an unused id are looked at.
const POLL_SUSPECTS: Duration = Duration::from_millis(5);
/// The longest wait for company.
const GATHER_MAX: Duration = Duration::from_millis(1);
/// A step of a transaction that takes longer ends its connection.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Rows of others that are shown with their events; of more, watchers read the table.
const ABSORB_ROWS_MAX: i64 = 512;
/// How often a group is tried when a kine writes the same keys at the same time.
const CONFLICTS_MAX: usize = 20;
/// How often ids are taken anew when others take ids in between.
const ALLOCATIONS_MAX: usize = 50;
/// How many keys expire in one commit.
const EXPIRE_MAX: usize = 256;
/// After a failure, expiry is tried again so much later.
const EXPIRE_RETRY: Duration = Duration::from_secs(1);

/// What a writer begins with.
pub(crate) struct Seed {
    pub(crate) sequence: u32,
    pub(crate) head: Revision,
    pub(crate) compacted: Revision,
    pub(crate) window: Window,
    /// Told after each commit.
    pub(crate) committed: Arc<Notify>,
}

/// Why a transaction did not end well.
enum Fault {
    /// Rolled back: nothing is written. With what the server said, if it did.
    Unwritten(String, Option<SqlState>),
    /// It may be written or not.
    Unknown(String),
}

impl From<tokio_postgres::Error> for Fault {
    /// For what comes before COMMIT.
    fn from(e: tokio_postgres::Error) -> Self {
        Self::Unwritten(chain(&e), e.code().cloned())
    }
}

/// Rows of the log after what is settled.
struct Fetched {
    ids: Vec<i64>,
    events: Vec<Event>,
    /// There are no more.
    complete: bool,
}

struct Writer {
    shared: Arc<Shared>,
    sequence: u32,
    settled: i64,
    suspects: Option<Suspects>,
    foreign_until: Instant,
    next_poll: Instant,
    expiry: Expiry,
    /// Leased rows up to here are in `expiry`.
    leases_loaded: bool,
    compactor: Compactor,
    gather: Gather,
    committed: Arc<Notify>,
    /// Of the session that was checked last.
    checked: Option<std::sync::Weak<Session>>,
}

pub(crate) async fn run(shared: Arc<Shared>, seed: Seed) {
    let closing = Closing(shared.clone());
    let now = Instant::now();
    let writer = Writer {
        shared,
        sequence: seed.sequence,
        settled: seed.head.0,
        suspects: None,
        foreign_until: now,
        next_poll: now,
        expiry: Expiry::default(),
        leases_loaded: false,
        compactor: Compactor::new(seed.window, seed.compacted, now),
        gather: gathering(0, Duration::ZERO),
        committed: seed.committed,
        checked: None,
    };
    writer.run().await;
    drop(closing);
}

/// Whatever ends the task, a panic too, nobody waits for it.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.queue.abandon("its writer has ended");
        self.0.hub.close();
    }
}

/// Those who were answered together come back together, a moment later.
fn gathering(n_writes: usize, commit_time: Duration) -> Gather {
    Gather { n_writes, at_most: (commit_time / 4).min(GATHER_MAX) }
}

impl Writer {
    async fn run(mut self) {
        loop {
            let until = [self.expiry.next(), self.compactor.next(), Some(self.next_poll)];
            let until = until.into_iter().flatten().min().unwrap_or(self.next_poll);
            let shared = self.shared.clone();
            let taken = shared.queue.next(until, self.gather).await;
            let (now, n_writes) = (Instant::now(), taken.writes.len());
            let session = match shared.writing.session() {
                Ok(session) => session,
                Err(_) => {
                    self.refuse(taken.writes, taken.compactions);
                    self.next_poll = now + POLL_FOREIGN;
                    if taken.closed {
                        return;
                    }
                    continue;
                }
            };
            if !self.check(&session).await {
                return;
            }
            self.write(&session, taken.writes).await;
            self.gather = gathering(n_writes, now.elapsed());
            if n_writes == 0 && (taken.poked || now >= self.next_poll) {
                self.look(&session, taken.poked).await;
            }
            self.expire(&session, now).await;
            for (at, reply) in taken.compactions {
                self.compactor.ask(at, Revision(self.settled), reply);
            }
            if taken.closed {
                break;
            }
            self.compactor.tick(now, Revision(self.settled));
            self.compact(&session, now, n_writes > 0).await;
        }
        let closed = || Error::Unavailable { what: "it is closed".into(), source: None };
        self.compactor.failed(&closed, Instant::now());
    }

    fn refuse(
        &self,
        writes: Vec<Write>,
        compactions: Vec<(Revision, crate::queue::Reply<Revision>)>,
    ) {
        // Who no longer waits has dropped the receiver.
        writes.into_iter().for_each(|write| drop(write.reply.send(Err(away()))));
        compactions.into_iter().for_each(|(_, reply)| drop(reply.send(Err(away()))));
    }

    /// Looks at a new session before it is used. `false` is the end of the store.
    async fn check(&mut self, session: &Arc<Session>) -> bool {
        let known = self.checked.as_ref().and_then(std::sync::Weak::upgrade);
        if known.is_some_and(|known| Arc::ptr_eq(&known, session)) {
            return true;
        }
        let Ok(row) = session.client.query_one(session.sql(Sql::Head), &[]).await else {
            return true;
        };
        let newest: i64 = row.get(0);
        if newest < self.settled {
            let settled = self.settled;
            tracing::error!(
                newest,
                settled,
                "the database has lost acknowledged writes (a failover to a standby that lagged, or an older backup): restart to go on from what it has"
            );
            self.shared.queue.abandon("the database has lost acknowledged writes; restart");
            return false;
        }
        if !self.leases_loaded {
            match self.adopt(session, 0).await {
                Ok(()) => self.leases_loaded = true,
                Err(e) => tracing::warn!(error = %chain(&e), "read the leases"),
            }
        }
        self.checked = Some(Arc::downgrade(session));
        true
    }

    /// Commits all of `writes` together and answers them.
    async fn write(&mut self, session: &Session, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        match self.group(session, writes.iter().map(|write| &write.txn)).await {
            Ok(outcomes) => {
                for (write, outcome) in writes.into_iter().zip(outcomes) {
                    drop(write.reply.send(Ok(outcome)));
                }
                self.show(session).await;
            }
            // One bad transaction must not fail its neighbours.
            Err(Fault::Unwritten(_, Some(_))) if writes.len() > 1 => {
                for write in writes {
                    Box::pin(self.write(session, vec![write])).await;
                }
            }
            Err(Fault::Unwritten(why, _)) => {
                tracing::warn!(error = why, "commit to the store");
                for write in writes {
                    drop(write.reply.send(Err(unwritten(&why))));
                }
            }
            Err(Fault::Unknown(why)) => {
                tracing::warn!(error = why, "lost the answer to a commit");
                for write in writes {
                    let source = Some(why.clone().into());
                    drop(write.reply.send(Err(Error::Unknown(source))));
                }
            }
        }
    }

    /// One transaction of the database, tried again when a kine was faster with one of the keys.
    async fn group<'t>(
        &mut self,
        session: &Session,
        txns: impl Iterator<Item = &'t Txn> + Clone,
    ) -> Result<Vec<Outcome>, Fault> {
        for _ in 1..CONFLICTS_MAX {
            match self.group_once(session, txns.clone()).await {
                Err(Fault::Unwritten(_, Some(SqlState::UNIQUE_VIOLATION))) => {}
                result => return result,
            }
        }
        self.group_once(session, txns).await
    }

    async fn group_once<'t>(
        &mut self,
        session: &Session,
        txns: impl Iterator<Item = &'t Txn> + Clone,
    ) -> Result<Vec<Outcome>, Fault> {
        let resolved = match timeout(STEP_TIMEOUT, self.begin(session, txns)).await {
            Ok(Ok(resolved)) => resolved,
            Ok(Err(fault)) => {
                roll_back(session).await;
                return Err(fault);
            }
            Err(_) => {
                self.shared.writing.drop_session();
                return Err(Fault::Unwritten("PostgreSQL does not answer".into(), None));
            }
        };
        match timeout(STEP_TIMEOUT, finish(session, &resolved)).await {
            Ok(finished) => finished?,
            Err(_) => {
                self.shared.writing.drop_session();
                return Err(Fault::Unknown("PostgreSQL does not answer".into()));
            }
        }
        Ok(self.finished(resolved))
    }

    /// Opens the transaction, takes the lock, reads what others committed since and the keys at
    /// hand, decides, and takes ids.
    async fn begin<'t>(
        &mut self,
        session: &Session,
        txns: impl Iterator<Item = &'t Txn> + Clone,
    ) -> Result<Resolved, Fault> {
        let client = &session.client;
        let keys = plan::keys(txns.clone());
        let limit = ABSORB_ROWS_MAX;
        // The statements go out together; each looks at the table when it is its turn.
        let ranges = plan::ranges(txns.clone());
        let last = range_end("");
        let ranges_from: Vec<_> = ranges.iter().map(|(from, ..)| bound(from)).collect();
        let ranges_end: Vec<_> =
            ranges.iter().map(|(_, end, _)| bound(end.unwrap_or(&last))).collect();
        let ranges_since: Vec<_> = ranges.iter().map(|(.., since)| *since).collect();
        let changes: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&ranges_from, &ranges_end, &ranges_since];
        let unchanged = async {
            if ranges.is_empty() {
                return Ok(Vec::new());
            }
            client.query(session.sql(Sql::Unchanged), &changes).await
        };
        let (_, _, log, rows, unchanged) = try_join5(
            client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
            client.query(session.sql(Sql::Lock), &[]),
            client.query(session.sql(Sql::Log), &[&self.settled, &limit]),
            client.query(session.sql(Sql::Newest), &[&keys]),
            unchanged,
        )
        .await?;
        self.absorb(session, fetched(&log)).await?;
        let found: HashMap<String, Newest> =
            rows.iter().map(|row| (row.get(0), newest(row, 1))).collect();
        let unchanged = unchanged.iter().map(|row| row.get(0)).collect();
        let plan = Plan::new(txns, found, unchanged);
        let ids = self.allocate(session, &plan).await?;
        Ok(plan.resolve(&ids))
    }

    async fn allocate(&self, session: &Session, plan: &Plan) -> Result<Vec<i64>, Fault> {
        if plan.n_rows() == 0 {
            return Ok(Vec::new());
        }
        let n_rows = plan.n_rows() as i64;
        let mut ids = Vec::new();
        for _ in 0..ALLOCATIONS_MAX {
            let statement = session.sql(Sql::Allocate);
            let rows = session.client.query(statement, &[&self.sequence, &n_rows]).await?;
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            if let Some(assigned) = plan.assign(&ids) {
                return Ok(assigned);
            }
        }
        Err(Fault::Unwritten("others take too many revisions".into(), None))
    }

    /// After the commit: leases, and the events if nothing is missing before them.
    fn finished(&mut self, resolved: Resolved) -> Vec<Outcome> {
        let Resolved { inserts, outcomes, .. } = resolved;
        if inserts.is_empty() {
            return outcomes;
        }
        self.committed.notify_one();
        let now = Instant::now();
        for row in inserts.iter().map(|insert| &insert.event.row) {
            if row.lease_ttl_secs > 0 {
                let ttl = Duration::from_secs(row.lease_ttl_secs.into());
                self.expiry.add(row.revision.0, now + ttl);
            }
        }
        let ids: Vec<_> = inserts.iter().map(|insert| insert.event.row.revision.0).collect();
        if self.suspects.is_none() && n_without_gap(self.settled, &ids) == ids.len() {
            let events = inserts.into_iter().map(|insert| insert.event).collect();
            self.settled += ids.len() as i64;
            self.shared.hub.publish(events, Revision(self.settled));
        } else {
            // Something below may be missing: `show` looks.
            self.next_poll = now;
        }
        outcomes
    }

    /// Shows what the last commit could not.
    async fn show(&mut self, session: &Session) {
        if self.next_poll <= Instant::now() {
            self.look(session, true).await;
        }
    }

    /// Follows, and settles when to look next. `told`: somebody said that there is something.
    async fn look(&mut self, session: &Session, told: bool) {
        let before = self.settled;
        let followed = match timeout(STEP_TIMEOUT, self.follow(session)).await {
            Ok(followed) => followed.map_err(|e| chain(&e)),
            Err(_) => {
                self.shared.writing.drop_session();
                Err("PostgreSQL does not answer".to_owned())
            }
        };
        if let Err(why) = followed {
            tracing::warn!(error = why, "read what others have committed");
        }
        let now = Instant::now();
        if self.settled > before && !told {
            self.foreign_until = now + FOREIGN_FOR;
        }
        let pause = if self.suspects.is_some() {
            POLL_SUSPECTS
        } else if now < self.foreign_until {
            POLL_FOREIGN
        } else {
            POLL_IDLE
        };
        self.next_poll = now + pause;
    }

    /// Shows all that is settled.
    async fn follow(&mut self, session: &Session) -> Result<(), tokio_postgres::Error> {
        loop {
            let before = self.settled;
            let fetched = self.fetch(session).await?;
            self.absorb(session, fetched).await?;
            if self.settled == before || self.suspects.is_some() {
                return Ok(());
            }
        }
    }

    async fn fetch(&self, session: &Session) -> Result<Fetched, tokio_postgres::Error> {
        let statement = session.sql(Sql::Log);
        let rows = session.client.query(statement, &[&self.settled, &ABSORB_ROWS_MAX]).await?;
        Ok(fetched(&rows))
    }

    /// Shows of `fetched` what is settled, and looks for what may still fill its gaps.
    async fn absorb(
        &mut self,
        session: &Session,
        mut fetched: Fetched,
    ) -> Result<(), tokio_postgres::Error> {
        let Some(last) = fetched.ids.last().copied() else { return Ok(()) };
        let n = n_without_gap(self.settled, &fetched.ids);
        let whole = n == fetched.ids.len();
        // A page that was cut short may end within a transaction; a gap never lies in one.
        if n > 0 && (fetched.complete || !whole) {
            let upto = fetched.ids[n - 1];
            let rest = fetched.events.partition_point(|event| event.row.revision.0 <= upto);
            let later = fetched.events.split_off(rest);
            self.publish(session, std::mem::replace(&mut fetched.events, later), upto).await?;
            if whole {
                self.suspects = None;
                return Ok(());
            }
        }
        self.suspects = self.suspects.take().filter(|suspects| suspects.upto > self.settled);
        // What is suspected goes up to a row that has been seen before the holders are looked at.
        let upto = match &self.suspects {
            Some(suspects) => suspects.upto,
            None if fetched.complete => last,
            None => session.client.query_one(session.sql(Sql::Head), &[]).await?.get(0),
        };
        let holders = session.client.query(session.sql(Sql::Holders), &[&self.sequence]).await?;
        let alive = settle::holders(&holders);
        let suspects =
            self.suspects.get_or_insert_with(|| Suspects { upto, holders: alive.clone() });
        if suspects.are_gone(&alive) {
            self.settle(session, upto).await?;
        }
        Ok(())
    }

    /// Shows everything up to `upto`, which is all there will ever be.
    async fn settle(&mut self, session: &Session, upto: i64) -> Result<(), tokio_postgres::Error> {
        self.suspects = None;
        let Fetched { ids, mut events, complete } = self.fetch(session).await?;
        if complete || ids.last().is_some_and(|last| *last > upto) {
            events.retain(|event| event.row.revision.0 <= upto);
            return self.publish(session, events, upto).await;
        }
        let before = std::mem::replace(&mut self.settled, upto);
        self.adopt(session, before).await?;
        self.shared.hub.skip_to(Revision(upto));
        Ok(())
    }

    async fn publish(
        &mut self,
        session: &Session,
        events: Vec<Event>,
        upto: i64,
    ) -> Result<(), tokio_postgres::Error> {
        let before = std::mem::replace(&mut self.settled, upto);
        let leased = events.iter().any(|event| event.row.lease_ttl_secs > 0);
        self.shared.hub.publish(events, Revision(upto));
        if leased { self.adopt(session, before).await } else { Ok(()) }
    }

    /// Takes over the leases of rows after `after` that others wrote, up to what is settled.
    async fn adopt(&mut self, session: &Session, after: i64) -> Result<(), tokio_postgres::Error> {
        let client = &session.client;
        let upto = self.settled;
        let mut after = after;
        if after == 0 {
            let seen = "SELECT coalesce(max(value), 0) FROM fp_meta WHERE name = 'leases_seen'";
            after = client.query_one(seen, &[]).await?.get(0);
            client.execute(session.sql(Sql::Adopt), &[&after, &upto]).await?;
            client.execute(session.sql(Sql::NoteSeen), &[&upto]).await?;
            let orphans = "DELETE FROM fp_expiry WHERE id NOT IN (SELECT id FROM kine)";
            client.batch_execute(orphans).await?;
            after = 0;
        } else {
            client.execute(session.sql(Sql::Adopt), &[&after, &upto]).await?;
        }
        let now = Instant::now();
        for row in client.query(session.sql(Sql::Leases), &[&after, &upto]).await? {
            let left_ms: i64 = row.get(1);
            self.expiry.add(row.get(0), now + Duration::from_millis(left_ms.unsigned_abs()));
        }
        Ok(())
    }

    async fn expire(&mut self, session: &Session, now: Instant) {
        let ids = self.expiry.take_due(now, EXPIRE_MAX);
        if ids.is_empty() {
            return;
        }
        let rows = session.client.query(session.sql(Sql::NamesOf), &[&ids]).await;
        let done = match rows {
            Ok(rows) => {
                let txns: Vec<_> =
                    rows.iter().map(|row| end_of_lease(row.get(0), row.get(1))).collect();
                if txns.is_empty() {
                    Ok(())
                } else {
                    self.group(session, txns.iter()).await.map(drop)
                }
            }
            Err(e) => Err(e.into()),
        };
        match done {
            Ok(()) => self.show(session).await,
            Err(Fault::Unwritten(why, _) | Fault::Unknown(why)) => {
                tracing::warn!(error = why, "delete expired keys");
                ids.iter().for_each(|id| self.expiry.add(*id, now + EXPIRE_RETRY));
            }
        }
    }

    async fn compact(&mut self, session: &Session, now: Instant, busy: bool) {
        if !self.compactor.step_is_due(now) {
            return;
        }
        let target = self.compactor.target().0;
        let stepped = match timeout(STEP_TIMEOUT, step(session, target)).await {
            Ok(Ok(compacted)) => Ok(compacted),
            Ok(Err(fault)) => {
                roll_back(session).await;
                Err(fault)
            }
            Err(_) => {
                self.shared.writing.drop_session();
                Err(Fault::Unknown("PostgreSQL does not answer".into()))
            }
        };
        match stepped {
            Ok(compacted) => self.compactor.stepped(Revision(compacted), Instant::now(), busy),
            Err(fault) => {
                let why = |fault: &Fault| match fault {
                    Fault::Unwritten(why, _) => unwritten(why),
                    Fault::Unknown(why) => Error::Unknown(Some(why.clone().into())),
                };
                tracing::warn!(error = %why(&fault), "compact the store");
                self.compactor.failed(&|| why(&fault), now);
            }
        }
    }
}

/// Inserts and commits, all in one flight.
async fn finish(session: &Session, resolved: &Resolved) -> Result<(), Fault> {
    let client = &session.client;
    let rows: Vec<_> = resolved.inserts.iter().map(|insert| &insert.event).collect();
    let is = |kind: EventKind| rows.iter().map(|e| i32::from(e.kind == kind)).collect::<Vec<_>>();
    let (created, deleted) = (is(EventKind::Created), is(EventKind::Deleted));
    let ids: Vec<_> = rows.iter().map(|e| e.row.revision.0).collect();
    let names: Vec<_> = rows.iter().map(|e| &*e.row.key).collect();
    // As kine writes them: a create has `create_revision` 0 and is known by `created`; a delete
    // has no value of its own.
    let create_revisions: Vec<_> = rows
        .iter()
        .map(|e| if e.kind == EventKind::Created { 0 } else { e.row.created.0 })
        .collect();
    let previous_ids: Vec<_> = resolved.inserts.iter().map(|insert| insert.previous_id).collect();
    let lease = |secs: u32| i32::try_from(secs).unwrap_or(i32::MAX);
    let leases: Vec<_> = rows.iter().map(|e| lease(e.row.lease_ttl_secs)).collect();
    let values: Vec<_> =
        rows.iter().map(|e| (e.kind != EventKind::Deleted).then_some(&*e.row.value)).collect();
    let old_values: Vec<_> = rows.iter().map(|e| e.previous.as_deref()).collect();
    let (firsts, lasts): (Vec<_>, Vec<_>) = resolved.spans.iter().copied().unzip();
    let leased = rows.iter().filter(|e| e.row.lease_ttl_secs > 0);
    let (leased_ids, ttls): (Vec<_>, Vec<_>) =
        leased.map(|e| (e.row.revision.0, i64::from(e.row.lease_ttl_secs))).unzip();

    let insert: [&(dyn tokio_postgres::types::ToSql + Sync); 9] = [
        &ids,
        &names,
        &created,
        &deleted,
        &create_revisions,
        &previous_ids,
        &leases,
        &values,
        &old_values,
    ];
    let spans: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&firsts, &lasts];
    let expiries: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&leased_ids, &ttls];
    let ended: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&resolved.ended_leases];
    let when = |wanted: bool, which: Sql, params| {
        OptionFuture::from(wanted.then(|| client.execute(session.sql(which), params)))
    };
    let (inserted, spanned, leased, ended, committed) = join5(
        when(!rows.is_empty(), Sql::Insert, &insert[..]),
        when(!firsts.is_empty(), Sql::InsertSpans, &spans[..]),
        when(!leased_ids.is_empty(), Sql::InsertExpiry, &expiries[..]),
        when(!resolved.ended_leases.is_empty(), Sql::DeleteExpiry, &ended[..]),
        client.batch_execute("COMMIT"),
    )
    .await;
    // After the first refusal the COMMIT that follows rolls back.
    for done in [inserted, spanned, leased, ended].into_iter().flatten() {
        done.map_err(|e| after_commit(&e))?;
    }
    committed.map_err(|e| after_commit(&e))
}

fn after_commit(e: &tokio_postgres::Error) -> Fault {
    match is_refusal(e) {
        true => Fault::Unwritten(chain(e), e.code().cloned()),
        false => Fault::Unknown(chain(e)),
    }
}

/// One step of compaction towards `target`; the compact revision after it. kine compares the same
/// row in its own compaction.
async fn step(session: &Session, target: i64) -> Result<i64, Fault> {
    let client = &session.client;
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    client.query(session.sql(Sql::Lock), &[]).await?;
    let from: i64 = client.query_one(session.sql(Sql::Compacted), &[]).await?.get(0);
    if from >= target {
        client.batch_execute("ROLLBACK").await?;
        return Ok(from);
    }
    let page = client.query_one(session.sql(Sql::Step), &[&from, &target, &STEP_ROWS]).await?;
    let (n_rows, last): (i64, Option<i64>) = (page.get(0), page.get(1));
    let reached = last.filter(|_| n_rows == STEP_ROWS).unwrap_or(target);
    let moved = client.execute(session.sql(Sql::SetCompacted), &[&from, &reached]).await?;
    if moved == 0 {
        // Somebody else has compacted meanwhile: the next step starts from there.
        client.batch_execute("ROLLBACK").await?;
        return Ok(from);
    }
    client.execute(session.sql(Sql::DeleteSpans), &[&reached]).await?;
    client.batch_execute("COMMIT").await.map_err(|e| after_commit(&e))?;
    Ok(reached)
}

/// Nothing is open after this, or the connection is lost, and with it the transaction.
async fn roll_back(session: &Session) {
    if let Err(e) = session.client.batch_execute("ROLLBACK").await {
        tracing::debug!(error = %chain(&e), "roll back");
    }
}

fn fetched(rows: &[tokio_postgres::Row]) -> Fetched {
    let ids = rows.iter().map(|row| row.get(0)).collect();
    let events = rows.iter().map(log_row).filter(|row| record::is_key(row.name));
    let events = events.map(record::LogRow::into_event).collect();
    Fetched { ids, events, complete: (rows.len() as i64) < ABSORB_ROWS_MAX }
}

/// The transaction that ends the lease of row `id`.
fn end_of_lease(id: i64, name: &str) -> Txn {
    let key = Key::from(name);
    let compares = vec![Compare::At(key.clone(), Revision(id))];
    Txn { compares, ops: vec![Op::Delete { key }] }
}

fn unwritten(why: &str) -> Error {
    let what = format!("the commit was rolled back ({why})");
    Error::Unavailable { what, source: None }
}
