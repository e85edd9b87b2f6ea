//! The connections that read: a few, each used by one blocking call at a time.

use std::sync::Arc;

use fp_store::Error;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

pub(crate) struct Readers {
    idle: Arc<Mutex<Idle>>,
    turns: Arc<Semaphore>,
}

struct Idle {
    connections: Vec<Connection>,
    closed: bool,
}

impl Readers {
    pub(crate) fn new(connections: Vec<Connection>) -> Self {
        let turns = Arc::new(Semaphore::new(connections.len()));
        Self { idle: Arc::new(Mutex::new(Idle { connections, closed: false })), turns }
    }

    /// Runs `f` on a connection, on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.expect("the semaphore is never closed");
        let idle = self.idle.clone();
        let job = tokio::task::spawn_blocking(move || {
            let Some(conn) = idle.lock().connections.pop() else { return Err(closed()) };
            let result = f(&conn);
            let mut idle = idle.lock();
            if !idle.closed {
                idle.connections.push(conn);
            }
            drop(turn);
            result
        });
        // The job is lost only with its runtime, or by a panic, which also drops the connection.
        job.await.unwrap_or_else(|e| {
            let what = "a read did not finish".into();
            Err(Error::Unavailable { what, source: Some(Box::new(e)) })
        })
    }

    /// Drops the connections: idle ones now, others when their read ends.
    pub(crate) fn close(&self) {
        let mut idle = self.idle.lock();
        idle.closed = true;
        idle.connections.clear();
    }
}

fn closed() -> Error {
    Error::Unavailable { what: "it is closed".into(), source: None }
}
