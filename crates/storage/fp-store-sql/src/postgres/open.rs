//! Opening the database, and one line for each thing in the way.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fp_base::Revision;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::postgres::dsn::{Dsn, DsnError, chain};
use crate::postgres::schema::{self, Unfit};
use crate::postgres::session::{ConnectError, connect, dial};
use crate::postgres::settle;
use crate::postgres::sql::{Sql, text};
use crate::postgres::tls::Connector;

/// How long a database that does not answer yet is waited for.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
const CONNECT_PAUSE: Duration = Duration::from_millis(200);
/// How long transactions of others that have taken an id are waited for.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);
const SETTLE_PAUSE: Duration = Duration::from_millis(10);
/// A pooler gives a connection to whoever asks next; so often it is asked.
const POOLER_ROUNDS: usize = 3;

/// Why the store did not open, and what to do about it. `dsn` is shown without its password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(transparent)]
    Dsn(#[from] DsnError),
    #[error("{dsn} cannot be used: {why}")]
    Connect { dsn: String, why: String },
    #[error(
        "{dsn} is behind a pooler that shares sessions between transactions: name the server itself, or set pool_mode=session"
    )]
    Pooler { dsn: String },
    #[error("{dsn} has a kine table of an unknown layout ({what}): use the kine that made it")]
    Schema { dsn: String, what: String },
    #[error(
        "{dsn}: this user may not set the database up ({why}): grant it CREATE, or make it the owner of the table kine"
    )]
    Permission { dsn: String, why: String },
    #[error("{dsn}: set up the kine table: {why}")]
    SetUp { dsn: String, why: String },
    #[error("{dsn}: a transaction has stood still for {} s with an unused revision in its hands: end the server process {pids}", SETTLE_PATIENCE.as_secs())]
    Stalled { dsn: String, pids: String },
}

pub(crate) struct Opened {
    pub(crate) dsn: Arc<Dsn>,
    pub(crate) tls: Connector,
    /// The sequence that gives the ids.
    pub(crate) sequence: u32,
    pub(crate) head: Revision,
    pub(crate) compacted: Revision,
}

pub(crate) async fn open(dsn: Dsn) -> Result<Opened, PostgresError> {
    let tls = dsn.connector()?;
    let shown = dsn.to_string();
    let (client, _drive) = reach(&dsn, &tls).await?;
    let set_up = |e: tokio_postgres::Error| set_up_error(&shown, &e);
    if is_pooled(&dsn, &tls, &client).await? {
        return Err(PostgresError::Pooler { dsn: shown });
    }
    let sequence = schema::prepare(&client).await.map_err(|e| match e {
        Unfit::Unknown(what) => PostgresError::Schema { dsn: shown.clone(), what },
        Unfit::Postgres(e) => set_up(e),
    })?;
    let (head, compacted) = settled_head(&client, sequence, &shown).await?;
    Ok(Opened { dsn: Arc::new(dsn), tls, sequence, head, compacted })
}

fn set_up_error(shown: &str, e: &tokio_postgres::Error) -> PostgresError {
    let (dsn, why) = (shown.to_owned(), chain(e));
    match e.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            PostgresError::Permission { dsn, why }
        }
        _ => PostgresError::SetUp { dsn, why },
    }
}

/// Connects; makes the database if it is missing, as kine does; waits a little for a server that
/// is not up yet, but not for one that says no.
pub(crate) async fn reach(
    dsn: &Dsn,
    tls: &Connector,
) -> Result<(Client, crate::postgres::session::Owned), PostgresError> {
    let give_up = Instant::now() + CONNECT_PATIENCE;
    loop {
        let error = match connect(dsn, tls, None).await {
            Ok(connected) => return Ok(connected),
            Err(e) => e,
        };
        let code = match &error {
            ConnectError::Postgres(e) => e.code().cloned(),
            _ => None,
        };
        if code == Some(SqlState::INVALID_CATALOG_NAME) {
            create_database(dsn, tls).await?;
            continue;
        }
        let passes = match &error {
            ConnectError::Postgres(e) => match &code {
                Some(code) => *code == SqlState::CANNOT_CONNECT_NOW,
                None => !is_final(e),
            },
            _ => false,
        };
        if !passes || Instant::now() > give_up {
            return Err(PostgresError::Connect { dsn: dsn.to_string(), why: error.to_string() });
        }
        sleep(CONNECT_PAUSE).await;
    }
}

/// No password, no TLS: the next attempt would end the same way.
fn is_final(e: &tokio_postgres::Error) -> bool {
    let text = chain(e);
    !text.contains("error connecting to server") && !text.contains("connection closed")
}

async fn create_database(dsn: &Dsn, tls: &Connector) -> Result<(), PostgresError> {
    let name = dsn.config.get_dbname().unwrap_or_default().to_owned();
    let mut beside = dsn.clone();
    beside.config.dbname("postgres");
    let shown = dsn.to_string();
    let refused = |why: String| PostgresError::Connect {
        dsn: shown.clone(),
        why: format!("the database {name} does not exist and cannot be made ({why})"),
    };
    let (client, _drive) = dial(&beside, tls, None).await.map_err(|e| refused(e.to_string()))?;
    tracing::info!(name, "making the database");
    // Names sort by bytes in any case; and the server's own encoding may be another.
    let create = format!(
        "CREATE DATABASE \"{}\" ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        name.replace('"', "\"\"")
    );
    match client.batch_execute(&create).await {
        Ok(()) => Ok(()),
        // Another server that starts at the same time was faster.
        Err(e)
            if e.code().is_some_and(|code| {
                [SqlState::DUPLICATE_DATABASE, SqlState::UNIQUE_VIOLATION].contains(code)
            }) =>
        {
            Ok(())
        }
        Err(e) => Err(refused(chain(&e))),
    }
}

/// Does something in between hand sessions from one connection to the next? Then what is set for a
/// session (LISTEN, settings) is another's. A second connection that opens a transaction takes a
/// shared session away from the first, or is the first's.
async fn is_pooled(dsn: &Dsn, tls: &Connector, one: &Client) -> Result<bool, PostgresError> {
    const PID: &str = "SELECT pg_backend_pid()";
    let shown = dsn.to_string();
    let (other, _drive) = connect(dsn, tls, None)
        .await
        .map_err(|e| PostgresError::Connect { dsn: shown.clone(), why: e.to_string() })?;
    let look = async {
        for _ in 0..POOLER_ROUNDS {
            // Unprepared: a pooler may not know about prepared statements.
            let mine = pid(one, PID).await?;
            other.batch_execute("BEGIN").await?;
            let others = pid(&other, PID).await?;
            let mine_again = pid(one, PID).await?;
            other.batch_execute("COMMIT").await?;
            if mine == others || mine != mine_again {
                return Ok(true);
            }
        }
        Ok(false)
    };
    look.await.map_err(|e: tokio_postgres::Error| set_up_error(&shown, &e))
}

async fn pid(client: &Client, query: &str) -> Result<Option<String>, tokio_postgres::Error> {
    let messages = client.simple_query(query).await?;
    Ok(messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// The newest revision below which nothing can come any more, and the compact revision.
pub(crate) async fn settled_head(
    client: &Client,
    sequence: u32,
    shown: &str,
) -> Result<(Revision, Revision), PostgresError> {
    let read = |e: tokio_postgres::Error| set_up_error(shown, &e);
    // Prepared one by one: a database that only kine has served lacks what others of ours name.
    let head = client.query_one(text(Sql::Head), &[]).await.map_err(read)?.get(0);
    let holders = client.prepare(text(Sql::Holders)).await.map_err(read)?;
    let give_up = Instant::now() + SETTLE_PATIENCE;
    let mut suspects: Option<HashSet<settle::Holder>> = None;
    loop {
        let rows = client.query(&holders, &[&sequence]).await.map_err(read)?;
        let alive = settle::holders(&rows);
        let left: HashSet<_> = match suspects {
            None => alive,
            Some(suspects) => suspects.intersection(&alive).cloned().collect(),
        };
        if left.is_empty() {
            let row = client.query_one(text(Sql::Compacted), &[]).await.map_err(read)?;
            return Ok((Revision(head), Revision(row.get(0))));
        }
        if Instant::now() > give_up {
            let pids: Vec<_> = left.iter().map(|holder| holder.pid.to_string()).collect();
            return Err(PostgresError::Stalled { dsn: shown.into(), pids: pids.join(", ") });
        }
        suspects = Some(left);
        sleep(SETTLE_PAUSE).await;
    }
}
