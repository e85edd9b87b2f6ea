//! The trait every controller implements, and what runs it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fp_informer::ObjectKey;
use fp_object::status::Status;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::queue::Queue;

/// What to do with the key after a pass that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Done,
    /// Look again after this time.
    After(Duration),
}

/// Why a pass failed; the key is retried with back-off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A refusal of the API: conflicts are usual and logged quietly.
    #[error("{0}")]
    Api(#[from] Status),
    #[error("{0}")]
    Other(String),
}

/// One controller: a pass over one key. State between passes is the informer's and the store's.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// The name in logs and user agents.
    fn name(&self) -> &'static str;
    /// How many keys may be worked on at once.
    fn workers(&self) -> usize {
        2
    }
    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Error>;
}

/// Runs reconcilers until it is stopped, and owns their tasks.
#[derive(Default)]
pub struct Runner {
    tasks: JoinSet<()>,
    queues: Vec<Arc<Queue>>,
}

impl Runner {
    /// Starts the workers of one reconciler over `queue`.
    pub fn start(&mut self, reconciler: Arc<dyn Reconciler>, queue: Arc<Queue>) {
        for _ in 0..reconciler.workers() {
            self.tasks.spawn(work(reconciler.clone(), queue.clone()));
        }
        self.queues.push(queue);
    }

    /// Lets passes that run finish, and returns when all have.
    pub async fn stop(mut self) {
        for queue in &self.queues {
            queue.close();
        }
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn work(reconciler: Arc<dyn Reconciler>, queue: Arc<Queue>) {
    while let Some(key) = queue.next().await {
        match reconciler.reconcile(&key).await {
            Ok(Next::Done) => queue.forget(&key),
            Ok(Next::After(delay)) => {
                queue.forget(&key);
                queue.add_after(key.clone(), delay);
            }
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => {
                debug!(controller = reconciler.name(), ?key, %status, "pass is retried");
                queue.retry(key.clone());
            }
            Err(error) => {
                warn!(controller = reconciler.name(), cluster = %key.cluster, name = %key.name, %error, "pass failed");
                queue.retry(key.clone());
            }
        }
        queue.done(&key);
    }
}
