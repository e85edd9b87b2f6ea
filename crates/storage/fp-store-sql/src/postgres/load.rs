//! Rows with their own revisions into an empty PostgreSQL database.

use fp_base::Revision;
use fp_store::Row;
use tokio_postgres::Client;

use crate::postgres::dsn::Dsn;
use crate::postgres::open::{self, PostgresError};
use crate::postgres::session::Owned;
use crate::postgres::snapshot::{PostgresSnapshot, refused};
use crate::record::is_key;
use crate::tools::{FREE_ID, ToolError};

const BEGIN: &str = "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; \
     BEGIN; LOCK TABLE kine IN ACCESS EXCLUSIVE MODE";
const CLEAR: &str =
    "DELETE FROM kine; DELETE FROM fp_expiry; DELETE FROM fp_span; DELETE FROM fp_meta";
const KEYS: &str = "SELECT count(*), min(name) FROM kine WHERE name <> 'compact_rev_key' \
     AND name NOT LIKE 'gap-%' AND deleted = 0";
const INSERT: &str = "INSERT INTO kine (id, name, created, deleted, create_revision, \
     prev_revision, lease, value) SELECT id, name, created, 0, create_revision, 0, lease, value \
     FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[], $5::integer[], $6::bytea[]) \
     AS rows(id, name, created, create_revision, lease, value)";
const COUNTER: &str = "SELECT setval($1::oid::regclass, greatest($2, (SELECT max(id) FROM kine), \
     (SELECT coalesce(last_value, 1) FROM pg_sequences WHERE schemaname::regnamespace = \
      (SELECT relnamespace FROM pg_class WHERE oid = $1::oid) \
      AND sequencename = (SELECT relname FROM pg_class WHERE oid = $1::oid))))";

/// One transaction; dropped before [`PostgresLoad::commit`] it leaves no row.
pub struct PostgresLoad {
    client: Client,
    _drive: Owned,
    dsn: Dsn,
    sequence: u32,
}

impl PostgresLoad {
    /// Makes the database and the table if they are missing.
    pub async fn begin(dsn: Dsn) -> Result<Self, ToolError> {
        // First of all by a look that changes nothing; a database that is missing is made below.
        match PostgresSnapshot::open(dsn.clone()).await {
            Ok(there) => {
                if let Some(row) = there.page("", "").await?.first() {
                    let (store, n_keys) = (dsn.to_string(), there.count("").await?);
                    return Err(ToolError::NotEmpty { store, n_keys, first: row.key.to_string() });
                }
            }
            Err(ToolError::Absent { .. } | ToolError::Postgres(PostgresError::Connect { .. })) => {}
            Err(e) => return Err(e),
        }
        let opened = open::open(dsn.clone()).await?;
        let (client, drive) = open::reach(&dsn, &opened.tls).await?;
        let sequence = opened.sequence;
        let load = Self { client, _drive: drive, dsn, sequence };
        load.run(BEGIN).await?;
        let there = load.client.query_one(KEYS, &[]).await.map_err(|e| load.unwritten(&e))?;
        if let n_keys @ 1.. = there.get::<_, i64>(0) {
            let (store, n_keys) = (load.dsn.to_string(), n_keys.unsigned_abs());
            return Err(ToolError::NotEmpty { store, n_keys, first: there.get(1) });
        }
        load.run(CLEAR).await?;
        Ok(load)
    }

    async fn run(&self, sql: &str) -> Result<(), ToolError> {
        self.client.batch_execute(sql).await.map_err(|e| self.unwritten(&e))
    }

    fn unwritten(&self, e: &tokio_postgres::Error) -> ToolError {
        refused(&self.dsn, "write the kine table", e)
    }

    pub async fn rows(&mut self, rows: &[Row]) -> Result<(), ToolError> {
        if let Some(row) = rows.iter().find(|row| !is_key(&row.key)) {
            return Err(ToolError::Name(row.key.to_string()));
        }
        let ids: Vec<_> = rows.iter().map(|row| row.revision.0).collect();
        let names: Vec<_> = rows.iter().map(|row| &*row.key).collect();
        let created: Vec<_> =
            rows.iter().map(|row| i32::from(row.created == row.revision)).collect();
        let since = |row: &Row| if row.created == row.revision { 0 } else { row.created.0 };
        let create_revisions: Vec<_> = rows.iter().map(since).collect();
        let lease = |row: &Row| i32::try_from(row.lease_ttl_secs).unwrap_or(i32::MAX);
        let leases: Vec<_> = rows.iter().map(lease).collect();
        let values: Vec<&[u8]> = rows.iter().map(|row| &*row.value).collect();
        let done = self
            .client
            .execute(INSERT, &[&ids, &names, &created, &create_revisions, &leases, &values])
            .await;
        done.map(drop).map_err(|e| self.unwritten(&e))
    }

    /// Nothing before `revision` can be read, and none up to it is given again.
    pub async fn commit(self, revision: Revision) -> Result<(), ToolError> {
        let compact_row = format!(
            "INSERT INTO kine (id, name, created, deleted, create_revision, prev_revision, lease, \
             value) SELECT ({FREE_ID}), 'compact_rev_key', 1, 0, 0, {}, 0, ''",
            revision.0
        );
        self.run(&compact_row).await?;
        let moved = self.client.execute(COUNTER, &[&self.sequence, &revision.0]).await;
        moved.map_err(|e| self.unwritten(&e))?;
        self.run("COMMIT").await
    }
}
