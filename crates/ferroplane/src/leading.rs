//! Leading: who runs the controllers, and from when to when.
//!
//! Without an election a server leads as long as it runs. With one it acts only between winning
//! and losing, and whatever it writes then is guarded by the epoch of that time.

use std::sync::Arc;

use fp_auth::User;
use fp_controllers::leader::{Config, Election, Loss, Term};
use fp_controllers::routes::Running;
use fp_informer::Informer;
use fp_object::status::Status;
use fp_verbs::{LocalClient, Surface};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{info, warn};
use uuid::Uuid;

use crate::bootstrap;
use crate::content::Content;
use crate::options::ElectionOptions;

/// Starts the controllers, whose writes go through the client given.
pub type StartControllers = Box<dyn Fn(LocalClient) -> Running + Send + Sync>;

/// What a leader does.
pub struct Duties {
    pub start_controllers: StartControllers,
    pub bootstrap: fp_kcp::bootstrap::Config,
    pub content: Content,
    pub surface: Surface,
}

impl Duties {
    fn client(&self, name: &str) -> LocalClient {
        LocalClient::new(self.surface.clone(), Arc::new(User::new(name, &["system:masters"])))
    }

    /// The client of bootstrap and of the election itself.
    pub fn server_client(&self) -> LocalClient {
        self.client("system:apiserver")
    }

    pub fn controllers_client(&self) -> LocalClient {
        self.client("system:kcp:controllers")
    }
}

/// The controllers of this server.
pub enum Leading {
    /// There are none.
    Never,
    Always(Running),
    Elected {
        stop: watch::Sender<bool>,
        task: JoinHandle<()>,
    },
}

impl Leading {
    /// Stands for leadership, again and again, in a task of its own.
    pub fn stand(options: &ElectionOptions, duties: Arc<Duties>, informer: Arc<Informer>) -> Self {
        let config = Config {
            identity: identity(),
            namespace: options.namespace.clone(),
            name: options.name.clone(),
            lease_duration: options.lease_duration,
            renew_deadline: options.renew_deadline,
            retry_period: options.retry_period,
        };
        let election = Election::new(config, duties.server_client(), informer);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(election, duties, stopped));
        Self::Elected { stop, task }
    }

    /// Ends the controllers; a lease that is held is given back after that.
    pub async fn stop(self) {
        match self {
            Self::Never => {}
            Self::Always(controllers) => controllers.stop().await,
            Self::Elected { stop, task } => {
                stop.send_replace(true);
                if let Err(error) = task.await {
                    warn!(%error, "the election ended before it was told to");
                }
            }
        }
    }
}

/// As kcp's: `hostname_uuid`, another one for every process.
fn identity() -> String {
    let host = rustix::system::uname();
    format!("{}_{}", host.nodename().to_string_lossy(), Uuid::new_v4())
}

async fn run(election: Election, duties: Arc<Duties>, mut stopped: watch::Receiver<bool>) {
    loop {
        let mut term = tokio::select! {
            term = election.win() => term,
            // An error says that the other side is gone, which wants no more either.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match lead(&election, &mut term, &duties, &mut stopped).await {
            Ok(Some(loss)) => warn!(identity = election.identity(), %loss, "stopped leading"),
            Ok(None) => {
                info!(identity = election.identity(), "stopped leading");
                return election.release(term).await;
            }
            Err(status) => {
                warn!(%status, "lead");
                sleep(election.retry_period()).await;
            }
        }
    }
}

/// Acts until the term is lost, or `None` when the server stops. The controllers have ended then.
async fn lead(
    election: &Election,
    term: &mut Term,
    duties: &Duties,
    stopped: &mut watch::Receiver<bool>,
) -> Result<Option<Loss>, Status> {
    let client = election.guarded(term, &duties.server_client())?;
    let controllers =
        (duties.start_controllers)(election.guarded(term, &duties.controllers_client())?);
    let bootstrapped = async {
        while let Err(error) = bootstrap::run(&duties.bootstrap, &duties.content, &client).await {
            warn!(%error, "bootstrap");
            sleep(election.retry_period()).await;
        }
        std::future::pending::<()>().await;
    };
    let loss = tokio::select! {
        loss = election.hold(term) => Some(loss),
        _ = stopped.wait_for(|stopped| *stopped) => None,
        () = bootstrapped => unreachable!("it waits for ever"),
    };
    controllers.stop().await;
    Ok(loss)
}
