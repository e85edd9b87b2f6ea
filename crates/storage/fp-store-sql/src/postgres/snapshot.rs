//! A PostgreSQL database as it was in one moment, beside whoever serves it.

use fp_base::Revision;
use fp_store::{Key, Row};
use futures_util::TryStreamExt;
use tokio_postgres::{Client, Row as Record};

use crate::postgres::dsn::{Dsn, chain};
use crate::postgres::open::{PostgresError, settled_head};
use crate::postgres::session::{Owned, connect};
use crate::postgres::sql::{Sql, text};
use crate::postgres::{newest, range_end};
use crate::record::is_key;
use crate::tools::{Checker, Fault, LogLine, PAGE_BYTES, PAGE_ROWS, Tally, ToolError, Usage};

const BEGIN: &str = "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; \
     BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Of each name the newest row up to a revision, if it lives; a page by rows and bytes.
const PAGE: &str = "SELECT id, deleted, created, create_revision, lease, value, name FROM \
     (SELECT kine.*, sum(octet_length(kine.value)::bigint) OVER (ORDER BY kine.name) \
      - coalesce(octet_length(kine.value), 0) AS bytes_before FROM \
      (SELECT id FROM (SELECT DISTINCT ON (name) name, id, deleted FROM kine \
       WHERE name >= $1 AND name < $2 AND name > $3 AND id <= $4 AND name <> 'compact_rev_key' \
       ORDER BY name, id DESC) AS newest WHERE deleted = 0 ORDER BY name LIMIT $5) AS live \
      JOIN kine USING (id)) AS page WHERE bytes_before < $6::bigint ORDER BY name";
const NAMES: &str = "SELECT DISTINCT ON (name) name, deleted, octet_length(value)::bigint \
     FROM kine WHERE name >= $1 AND name < $2 AND id <= $3 ORDER BY name, id DESC";
const LINES: &str = "SELECT id, name, coalesce(created, 0), coalesce(deleted, 0), \
     coalesce(create_revision, 0), coalesce(prev_revision, 0), coalesce(lease, 0) \
     FROM kine WHERE id <= $1 OR name = 'compact_rev_key' ORDER BY name, id";

/// One read transaction. Until it is dropped the server's vacuum keeps what it sees.
pub struct PostgresSnapshot {
    client: Client,
    _drive: Owned,
    dsn: Dsn,
    pub head: Revision,
    pub compacted: Revision,
}

impl PostgresSnapshot {
    /// Changes nothing: a database without kine's table is refused.
    pub async fn open(dsn: Dsn) -> Result<Self, ToolError> {
        let (client, drive, sequence) = reach(&dsn).await?;
        let shown = dsn.to_string();
        // Settled first: a transaction that still holds an older revision would be missed.
        let (head, _) = settled_head(&client, sequence, &shown).await?;
        let read = |e| refused(&dsn, "read the kine table", &e);
        client.batch_execute(BEGIN).await.map_err(read)?;
        let compacted = client.query_one(text(Sql::Compacted), &[]).await.map_err(read)?.get(0);
        let compacted = Revision(compacted);
        if compacted > head {
            let why = format!("it was compacted up to {compacted} meanwhile: try again");
            return Err(ToolError::Refused { store: shown, what: "read revision", why });
        }
        Ok(Self { client, _drive: drive, dsn, head, compacted })
    }

    fn unread(&self, e: &tokio_postgres::Error) -> ToolError {
        refused(&self.dsn, "read the kine table", e)
    }

    /// The head by now.
    pub async fn head_now(&self) -> Result<Revision, ToolError> {
        let (client, _drive, sequence) = reach(&self.dsn).await?;
        let (head, _) = settled_head(&client, sequence, &self.dsn.to_string()).await?;
        Ok(head)
    }

    pub async fn count(&self, prefix: &str) -> Result<u64, ToolError> {
        let mut n = 0;
        self.names(prefix, |_, _| n += 1).await?;
        Ok(n)
    }

    /// Calls `f` with each live key and the length of its value.
    async fn names(&self, prefix: &str, mut f: impl FnMut(&str, u64)) -> Result<(), ToolError> {
        let end = range_end(prefix);
        let bounds: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&prefix, &end, &self.head.0];
        let found = self.client.query_raw(NAMES, bounds).await.map_err(|e| self.unread(&e))?;
        let mut found = std::pin::pin!(found);
        while let Some(row) = found.try_next().await.map_err(|e| self.unread(&e))? {
            let (name, deleted): (&str, i32) = (row.get(0), row.get(1));
            if deleted == 0 && is_key(name) {
                f(name, row.get::<_, Option<i64>>(2).unwrap_or(0).unsigned_abs());
            }
        }
        Ok(())
    }

    /// The next live keys after `after`, in order; none is the end.
    pub async fn page(&self, prefix: &str, after: &str) -> Result<Vec<Row>, ToolError> {
        let end = range_end(prefix);
        let mut after = after.to_owned();
        loop {
            let (rows_max, bytes_max) = (PAGE_ROWS as i64, PAGE_BYTES as i64);
            let found = self
                .client
                .query(PAGE, &[&prefix, &end, &after, &self.head.0, &rows_max, &bytes_max])
                .await
                .map_err(|e| self.unread(&e))?;
            let one = |record: &Record| {
                let key = Key::from(record.get::<_, &str>(6));
                newest(record, 0).into_row(&key)
            };
            let page: Vec<_> =
                found.iter().filter_map(one).filter(|row| is_key(&row.key)).collect();
            match found.last() {
                // A page of names that are no keys.
                Some(last) if page.is_empty() => after = last.get(6),
                _ => return Ok(page),
            }
        }
    }

    pub async fn usage(&self, n_segments: usize) -> Result<Usage, ToolError> {
        let sizes = "SELECT pg_table_size('kine'), pg_indexes_size('kine'), \
                     pg_database_size(current_database()), \
                     (SELECT count(*) FROM kine)";
        let sizes = self.client.query_one(sizes, &[]).await.map_err(|e| self.unread(&e))?;
        let number = |i: usize| sizes.get::<_, i64>(i).unsigned_abs();
        let parts = vec![("table", number(0)), ("indexes", number(1)), ("database", number(2))];
        let mut tally = Tally::new(n_segments);
        self.names("", |name, bytes| tally.add(name, bytes)).await?;
        Ok(tally.into_usage(number(3), parts))
    }

    /// Every fault, how many rows there are, and how many live keys.
    pub async fn check(
        &self,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Vec<Fault>, u64, u64), ToolError> {
        let mut checker = Checker::new(self.head.0, self.compacted.0);
        let upto: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&self.head.0];
        let found = self.client.query_raw(LINES, upto).await.map_err(|e| self.unread(&e))?;
        let mut found = std::pin::pin!(found);
        while let Some(row) = found.try_next().await.map_err(|e| self.unread(&e))? {
            checker.row(line(&row));
            progress(checker.n_rows);
        }
        checker.end();
        Ok((checker.faults, checker.n_rows, checker.n_live))
    }
}

fn line(row: &Record) -> LogLine {
    LogLine {
        id: row.get(0),
        name: row.get(1),
        created: row.get::<_, i32>(2).into(),
        deleted: row.get::<_, i32>(3).into(),
        create_revision: row.get(4),
        previous: row.get(5),
        lease: row.get::<_, i32>(6).into(),
    }
}

/// A connection to a database that has kine's table, and the sequence of its ids.
async fn reach(dsn: &Dsn) -> Result<(Client, Owned, u32), ToolError> {
    let shown = dsn.to_string();
    let tls = dsn.connector().map_err(PostgresError::Dsn)?;
    let (client, drive) = connect(dsn, &tls, None)
        .await
        .map_err(|e| PostgresError::Connect { dsn: shown.clone(), why: e.to_string() })?;
    let find = "SELECT CASE WHEN to_regclass('kine') IS NULL THEN NULL \
                ELSE pg_get_serial_sequence('kine', 'id')::regclass::oid END";
    let found = client.query_one(find, &[]).await;
    let sequence: Option<u32> =
        found.map_err(|e| refused(dsn, "look for kine's table", &e))?.get(0);
    let sequence = sequence.ok_or(ToolError::Absent { store: shown })?;
    Ok((client, drive, sequence))
}

pub(crate) fn refused(dsn: &Dsn, what: &'static str, e: &tokio_postgres::Error) -> ToolError {
    ToolError::Refused { store: dsn.to_string(), what, why: chain(e) }
}
