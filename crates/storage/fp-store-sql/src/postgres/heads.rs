//! The newest revision that the database has: one query for all who ask at the same time.
//!
//! Invariant: an answer comes from a query that began after the question.

use std::sync::Arc;

use fp_base::Revision;
use fp_store::Error;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::postgres::Shared;
use crate::postgres::sql::Sql;

/// How many ask at the same time at most.
const ASKERS_MAX: usize = 16 << 10;

pub(crate) struct Heads {
    /// `None` once closed.
    askers: Mutex<Option<Vec<Asker>>>,
    asked: Notify,
}

type Asker = oneshot::Sender<Result<Revision, String>>;

impl Heads {
    pub(crate) fn new() -> Self {
        Self { askers: Mutex::new(Some(Vec::new())), asked: Notify::new() }
    }

    pub(crate) async fn newest(&self) -> Result<Revision, Error> {
        let (reply, answer) = oneshot::channel();
        {
            let mut askers = self.askers.lock();
            let Some(askers) = &mut *askers else { return Err(unknown("it is closed".into())) };
            if askers.len() >= ASKERS_MAX {
                return Err(unknown("too many ask for it".into()));
            }
            askers.push(reply);
        }
        self.asked.notify_one();
        // Without an answer the store has been closed.
        answer.await.unwrap_or_else(|_| Err("it is closed".into())).map_err(unknown)
    }

    /// Nobody is answered any more.
    pub(crate) fn close(&self) {
        self.askers.lock().take();
    }
}

fn unknown(why: String) -> Error {
    Error::Unavailable {
        what: format!("the newest revision cannot be learnt: {why}"),
        source: None,
    }
}

/// Answers for as long as the store is open.
pub(crate) async fn answer(shared: Arc<Shared>) {
    loop {
        shared.heads.asked.notified().await;
        let askers = shared.heads.askers.lock().as_mut().map(std::mem::take);
        let Some(askers) = askers.filter(|askers| !askers.is_empty()) else { continue };
        let newest = newest(&shared).await;
        if let Ok(newest) = newest
            && shared.hub.head().is_ok_and(|settled| settled < newest)
        {
            shared.queue.poke();
        }
        for asker in askers {
            // Who no longer waits has dropped the receiver.
            drop(asker.send(newest.clone()));
        }
    }
}

async fn newest(shared: &Shared) -> Result<Revision, String> {
    let session = shared.reader().map_err(|e| e.to_string())?;
    let row = session.client.query_one(session.sql(Sql::Head), &[]).await;
    let newest = Revision(row.map_err(|e| crate::postgres::dsn::chain(&e))?.get(0));
    // Own commits may be shown already when a compaction has taken the row away.
    Ok(shared.hub.head().map_or(newest, |settled| settled.max(newest)))
}
