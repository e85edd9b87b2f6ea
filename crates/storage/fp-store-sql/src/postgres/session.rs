//! Connections: made, checked and kept.
//!
//! Invariant: a session that is handed out is to a server that takes writes, is not a standby, and
//! acknowledges a commit only when it is durable.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use fp_store::Error;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Notification, SimpleQueryMessage, Statement};

use crate::postgres::dsn::{Dsn, chain};
use crate::postgres::sql::{Sql, Statements};
use crate::postgres::tls::Connector;

/// After a failed attempt the next one is so much later, twice as much each time ...
const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// ... up to this.
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Connecting and checking together take no longer.
const SETUP_TIMEOUT: Duration = Duration::from_secs(15);

/// As `server_version_num` has it: 12.
const VERSION_MIN: u32 = 120_000;

/// A transaction of ours that stands still holds up every other writer, so the server ends it.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '10s'; \
     SET lock_timeout = '10s'; SET statement_timeout = '60s'; SET jit = off; \
     SET default_transaction_isolation = 'read committed'";

/// Why a server is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{}", chain(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("it is a standby or read-only: name the primary")]
    Standby,
    #[error("its encoding is {0}, not UTF8")]
    Encoding(String),
    #[error("it is CockroachDB, which lacks the locks that order the writes")]
    Cockroach,
    #[error("its version {0} is not 12 or newer")]
    Version(String),
    #[error("it has not answered in {} s", SETUP_TIMEOUT.as_secs())]
    Silent,
}

/// A task that ends with its owner.
pub(crate) struct Owned(JoinHandle<()>);

impl Owned {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }

    pub(crate) async fn ended(&mut self) {
        // A task that panicked has ended too; the panic is in the log.
        let _ = (&mut self.0).await;
    }

    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) type OnNotification = Arc<dyn Fn(&Notification) + Send + Sync>;

/// A checked connection, and the task that drives it.
pub(crate) async fn connect(
    dsn: &Dsn,
    tls: &Connector,
    on_notification: Option<OnNotification>,
) -> Result<(Client, Owned), ConnectError> {
    let setup = async {
        let (client, drive) = dial(dsn, tls, on_notification).await?;
        set_up(&client).await?;
        Ok((client, drive))
    };
    timeout(SETUP_TIMEOUT, setup).await.unwrap_or(Err(ConnectError::Silent))
}

/// A connection as it comes.
pub(crate) async fn dial(
    dsn: &Dsn,
    tls: &Connector,
    on_notification: Option<OnNotification>,
) -> Result<(Client, Owned), ConnectError> {
    let connected = dsn.config.connect(tls.clone()).await;
    let (client, mut connection) = connected.map_err(|e| match takes_no_writes(&e) {
        true => ConnectError::Standby,
        false => e.into(),
    })?;
    let drive = Owned::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            match (message, &on_notification) {
                (AsyncMessage::Notification(n), Some(hear)) => hear(&n),
                (AsyncMessage::Notice(n), _) => {
                    tracing::debug!(notice = %n.message(), "PostgreSQL");
                }
                _ => {}
            }
        }
    });
    Ok((client, drive))
}

/// The driver looks at this itself while it looks for the primary.
fn takes_no_writes(e: &tokio_postgres::Error) -> bool {
    chain(e).contains("does not allow writes")
}

async fn set_up(client: &Client) -> Result<(), ConnectError> {
    let about = "SELECT pg_is_in_recovery(), current_setting('server_encoding'), \
                 current_setting('synchronous_commit'), current_setting('fsync'), \
                 current_setting('server_version_num'), version()";
    // Unprepared: in front of a pooler, which is found out later, that would fail without a reason.
    let answer = client.simple_query(about).await?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let about = |column| row.and_then(|row| row.get(column)).unwrap_or_default();
    if about(5).to_lowercase().contains("cockroachdb") {
        return Err(ConnectError::Cockroach);
    }
    match about(4).parse() {
        Ok(VERSION_MIN..) => {}
        _ => return Err(ConnectError::Version(about(4).to_owned())),
    }
    if about(0) == "t" {
        return Err(ConnectError::Standby);
    }
    if about(1) != "UTF8" {
        return Err(ConnectError::Encoding(about(1).to_owned()));
    }
    if about(3) != "on" {
        tracing::warn!("PostgreSQL runs with fsync=off: a power loss takes acknowledged writes");
    }
    client.batch_execute(SETTINGS).await?;
    if about(2) == "off" {
        client.batch_execute("SET synchronous_commit = on").await?;
    }
    Ok(())
}

/// A connection with its statements.
pub(crate) struct Session {
    pub(crate) client: Client,
    statements: Statements,
}

impl Session {
    pub(crate) fn sql(&self, which: Sql) -> &Statement {
        self.statements.get(which)
    }
}

/// A connection that is made again whenever it is lost.
pub(crate) struct Link {
    sessions: watch::Receiver<Option<Arc<Session>>>,
    broken: Arc<Notify>,
    task: Owned,
}

pub(crate) struct Purpose {
    pub(crate) name: &'static str,
    /// Said in each new session.
    pub(crate) opening: String,
    pub(crate) on_notification: Option<OnNotification>,
    /// Called with each new session.
    pub(crate) on_session: Arc<dyn Fn() + Send + Sync>,
}

impl Link {
    pub(crate) fn open(dsn: Arc<Dsn>, tls: Connector, purpose: Purpose) -> Self {
        let (sender, sessions) = watch::channel(None);
        let broken = Arc::new(Notify::new());
        let task = Owned::spawn(keep(dsn, tls, purpose, sender, broken.clone()));
        Self { sessions, broken, task }
    }

    /// Gives up a session that does not answer; the server rolls back what is open in it.
    pub(crate) fn drop_session(&self) {
        self.broken.notify_one();
    }

    pub(crate) fn session(&self) -> Result<Arc<Session>, Error> {
        self.sessions.borrow().clone().ok_or_else(away)
    }

    /// The session, once there is one.
    pub(crate) async fn up(&self) -> Arc<Session> {
        let mut sessions = self.sessions.clone();
        loop {
            if let Some(session) = sessions.borrow_and_update().clone() {
                return session;
            }
            if sessions.changed().await.is_err() {
                // The link has been stopped: whoever asks is about to be stopped too.
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.task.stop();
    }
}

async fn keep(
    dsn: Arc<Dsn>,
    tls: Connector,
    purpose: Purpose,
    sessions: watch::Sender<Option<Arc<Session>>>,
    broken: Arc<Notify>,
) {
    let mut pause = BACKOFF_MIN;
    let mut said = false;
    loop {
        match begin(&dsn, &tls, &purpose).await {
            Ok((session, mut drive)) => {
                if std::mem::take(&mut said) {
                    tracing::info!(purpose.name, "connected to {dsn} again");
                }
                pause = BACKOFF_MIN;
                sessions.send_replace(Some(Arc::new(session)));
                (purpose.on_session)();
                tokio::select! {
                    () = drive.ended() => {}
                    () = broken.notified() => {}
                }
                drop(drive);
                sessions.send_replace(None);
                said = true;
                tracing::warn!(purpose.name, "lost the connection to {dsn}");
            }
            Err(e) => {
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!(purpose.name, error = %e, "connect to {dsn}");
                }
                sleep(pause).await;
                pause = (pause * 2).min(BACKOFF_MAX);
            }
        }
    }
}

async fn begin(
    dsn: &Dsn,
    tls: &Connector,
    purpose: &Purpose,
) -> Result<(Session, Owned), ConnectError> {
    let (client, drive) = connect(dsn, tls, purpose.on_notification.clone()).await?;
    let statements = Statements::prepare(&client).await?;
    if !purpose.opening.is_empty() {
        client.batch_execute(&purpose.opening).await?;
    }
    Ok((Session { client, statements }, drive))
}

/// There is no connection now.
pub(crate) fn away() -> Error {
    Error::Unavailable { what: "PostgreSQL cannot be reached".into(), source: None }
}

pub(crate) fn unread(e: tokio_postgres::Error) -> Error {
    let what = format!("read the kine table ({})", chain(&e));
    Error::Unavailable { what, source: Some(Box::new(e)) }
}

/// The server has said no and goes on; anything else may have been done.
pub(crate) fn is_refusal(e: &tokio_postgres::Error) -> bool {
    e.as_db_error().is_some_and(|e| e.parsed_severity() == Some(Severity::Error))
}
