//! The queue before the writer: bounded in bytes, taken whole.
//!
//! Invariant: a job that is refused or found in a closed queue was not begun, so its answer is
//! `Unavailable`, never `Unknown`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fp_base::Revision;
use fp_store::{Error, Outcome, Txn};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::record;

/// The most that waits or is being written, in units of [`UNIT_BYTES`]: 64 MiB, 16,384 small writes.
const QUEUE_UNITS_MAX: u32 = 16 << 10;
const UNIT_BYTES: usize = 4 << 10;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

pub(crate) struct Write {
    pub(crate) txn: Txn,
    pub(crate) reply: Reply<Outcome>,
    /// Room in the queue, given back with the answer.
    _room: OwnedSemaphorePermit,
}

#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) writes: Vec<Write>,
    pub(crate) compactions: Vec<(Revision, Reply<Revision>)>,
    /// Somebody else has committed, or may have.
    pub(crate) poked: bool,
    /// Nothing comes after this.
    pub(crate) closed: bool,
}

/// How many writes the writer would like to commit together, and how long it waits for them.
#[derive(Clone, Copy)]
pub(crate) struct Gather {
    pub(crate) n_writes: usize,
    pub(crate) at_most: Duration,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes a writer that is a thread ...
    wake: Condvar,
    /// ... and one that is a task.
    notify: Notify,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Waiting {
    jobs: Taken,
    /// How many writes there must be to wake the writer for; the first job always does.
    wake_at: usize,
    /// Why nothing is taken any more.
    refusal: Option<String>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let room = Arc::new(Semaphore::new(QUEUE_UNITS_MAX as usize));
        Self { waiting: Mutex::default(), wake: Condvar::new(), notify: Notify::new(), room }
    }

    pub(crate) async fn commit(&self, txn: Txn) -> Result<Outcome, Error> {
        txn.check()?;
        record::check_names(&txn)?;
        let units = 1 + txn.size_bytes() / UNIT_BYTES;
        let units = u32::try_from(units).map_or(QUEUE_UNITS_MAX, |n| n.min(QUEUE_UNITS_MAX));
        let room = self.room.clone().acquire_many_owned(units).await;
        let room = room.expect("the semaphore is never closed");
        let (reply, answer) = oneshot::channel();
        self.push(|jobs| jobs.writes.push(Write { txn, reply, _room: room }))?;
        // Without an answer the writer panicked with the job in hand.
        answer.await.unwrap_or(Err(Error::Unknown(None)))
    }

    /// Compactions are few and asked for one at a time, so they take no room.
    pub(crate) async fn compact(&self, at: Revision) -> Result<Revision, Error> {
        let (reply, answer) = oneshot::channel();
        self.push(|jobs| jobs.compactions.push((at, reply)))?;
        answer.await.unwrap_or(Err(Error::Unknown(None)))
    }

    fn push(&self, add: impl FnOnce(&mut Taken)) -> Result<(), Error> {
        let mut waiting = self.waiting.lock();
        if let Some(what) = &waiting.refusal {
            return Err(Error::Unavailable { what: what.clone(), source: None });
        }
        add(&mut waiting.jobs);
        let wakes = waiting.jobs.writes.len() >= waiting.wake_at;
        drop(waiting);
        if wakes {
            self.wake_writer();
        }
        Ok(())
    }

    fn wake_writer(&self) {
        self.wake.notify_one();
        self.notify.notify_one();
    }

    /// Asks the writer to look at what others have committed.
    pub(crate) fn poke(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.refusal.is_none() && !std::mem::replace(&mut waiting.jobs.poked, true) {
            drop(waiting);
            self.wake_writer();
        }
    }

    /// [`Self::take`] for a writer that is a task.
    pub(crate) async fn next(&self, until: Instant, gather: Gather) -> Taken {
        self.wait(until, |waiting| !waiting.jobs.is_empty()).await;
        let wants_company = {
            let mut waiting = self.waiting.lock();
            waiting.wake_at = gather.n_writes;
            !waiting.jobs.writes.is_empty()
        };
        if wants_company {
            let enough = |waiting: &Waiting| waiting.jobs.writes.len() >= gather.n_writes;
            self.wait(Instant::now() + gather.at_most, enough).await;
        }
        let mut waiting = self.waiting.lock();
        waiting.wake_at = 0;
        Taken { closed: waiting.refusal.is_some(), ..std::mem::take(&mut waiting.jobs) }
    }

    /// Waits until `done`, the queue is closed, or `until` has come.
    async fn wait(&self, until: Instant, done: impl Fn(&Waiting) -> bool) {
        loop {
            {
                let waiting = self.waiting.lock();
                if done(&waiting) || waiting.refusal.is_some() {
                    return;
                }
            }
            // A permit of an earlier wake only makes the loop turn once more.
            let notified = self.notify.notified();
            if tokio::time::timeout_at(until.into(), notified).await.is_err() {
                return;
            }
        }
    }

    /// Everything that waits, or nothing once `until` has come; `None` waits for ever. With the
    /// first job at hand it waits a little for company, as `gather` says.
    pub(crate) fn take(&self, until: Option<Instant>, gather: Gather) -> Taken {
        let mut waiting = self.waiting.lock();
        waiting.wake_at = 0;
        while waiting.jobs.is_empty() && waiting.refusal.is_none() {
            match until {
                Some(until) if self.wake.wait_until(&mut waiting, until).timed_out() => break,
                Some(_) => {}
                None => self.wake.wait(&mut waiting),
            }
        }
        let end = Instant::now() + gather.at_most;
        waiting.wake_at = gather.n_writes;
        while !waiting.jobs.is_empty()
            && waiting.jobs.writes.len() < gather.n_writes
            && waiting.refusal.is_none()
            && !self.wake.wait_until(&mut waiting, end).timed_out()
        {}
        Taken { closed: waiting.refusal.is_some(), ..std::mem::take(&mut waiting.jobs) }
    }

    /// Closes, and refuses what waits too: its writer is gone.
    pub(crate) fn abandon(&self, what: &str) {
        self.close(what);
        let left = std::mem::take(&mut self.waiting.lock().jobs);
        let refused = || Error::Unavailable { what: what.to_owned(), source: None };
        // Who no longer waits has dropped the receiver.
        left.writes.into_iter().for_each(|write| drop(write.reply.send(Err(refused()))));
        left.compactions.into_iter().for_each(|(_, reply)| drop(reply.send(Err(refused()))));
    }

    /// Refuses what comes from now on, saying why; the first reason stays.
    pub(crate) fn close(&self, what: &str) {
        self.waiting.lock().refusal.get_or_insert_with(|| what.to_owned());
        self.wake_writer();
    }
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.compactions.is_empty() && !self.poked
    }
}
