//! One way for keys from any store into a file or any other store.

use anyhow::{Result, bail};
use fp_base::Revision;
use fp_store::Row;
use fp_store_backup::{BackupFile, Writer};
use fp_store_sql::{Fault, PostgresLoad, PostgresSnapshot, SqliteLoad, SqliteSnapshot, Usage};

use super::super::options::Backend;
use super::progress::Progress;

pub enum Snapshot {
    Sqlite(Box<SqliteSnapshot>),
    Postgres(Box<PostgresSnapshot>),
}

impl Snapshot {
    pub async fn open(backend: &Backend) -> Result<Self> {
        Ok(match backend {
            Backend::Memory => bail!("memory:// keeps nothing: name a file or a database"),
            Backend::Sqlite(path) => Self::Sqlite(Box::new(SqliteSnapshot::open(path)?)),
            Backend::Postgres(dsn) => {
                Self::Postgres(Box::new(PostgresSnapshot::open((**dsn).clone()).await?))
            }
        })
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// The head and the compact revision.
    pub fn revisions(&self) -> (Revision, Revision) {
        match self {
            Self::Sqlite(store) => (store.head, store.compacted),
            Self::Postgres(store) => (store.head, store.compacted),
        }
    }

    pub async fn head_now(&self) -> Result<Revision> {
        Ok(match self {
            Self::Sqlite(store) => store.head_now()?,
            Self::Postgres(store) => store.head_now().await?,
        })
    }

    pub async fn count(&self, prefix: &str) -> Result<u64> {
        Ok(match self {
            Self::Sqlite(store) => store.count(prefix)?,
            Self::Postgres(store) => store.count(prefix).await?,
        })
    }

    async fn page(&self, prefix: &str, after: &str) -> Result<Vec<Row>> {
        Ok(match self {
            Self::Sqlite(store) => store.page(prefix, after)?,
            Self::Postgres(store) => store.page(prefix, after).await?,
        })
    }

    pub async fn usage(&self, n_segments: usize) -> Result<Usage> {
        Ok(match self {
            Self::Sqlite(store) => store.usage(n_segments)?,
            Self::Postgres(store) => store.usage(n_segments).await?,
        })
    }

    pub async fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<(Vec<Fault>, u64, u64)> {
        Ok(match self {
            Self::Sqlite(store) => store.check(progress)?,
            Self::Postgres(store) => store.check(progress).await?,
        })
    }
}

/// Dropped before [`Target::finish`] it leaves what was there.
pub enum Target {
    File(Box<Writer<BackupFile>>),
    Sqlite(SqliteLoad),
    Postgres(Box<PostgresLoad>),
}

impl Target {
    /// A store that is empty.
    pub async fn open(backend: &Backend) -> Result<Self> {
        Ok(match backend {
            Backend::Memory => bail!("memory:// keeps nothing: name a file or a database"),
            Backend::Sqlite(path) => Self::Sqlite(SqliteLoad::begin(path)?),
            Backend::Postgres(dsn) => {
                Self::Postgres(Box::new(PostgresLoad::begin((**dsn).clone()).await?))
            }
        })
    }

    pub async fn rows(&mut self, rows: &[Row]) -> Result<()> {
        match self {
            Self::File(out) => rows.iter().try_for_each(|row| out.push(row))?,
            Self::Sqlite(load) => load.rows(rows)?,
            Self::Postgres(load) => load.rows(rows).await?,
        }
        Ok(())
    }

    /// Makes it durable. Returns the bytes of a file.
    pub async fn finish(self, revision: Revision) -> Result<u64> {
        match self {
            Self::File(out) => {
                let (file, n_bytes) = out.finish()?;
                file.keep()?;
                return Ok(n_bytes);
            }
            Self::Sqlite(load) => load.commit(revision)?,
            Self::Postgres(load) => load.commit(revision).await?,
        }
        Ok(0)
    }
}

/// Copies the live keys that begin with `prefix`, page by page. Returns how many.
pub async fn copy(
    from: &Snapshot,
    prefix: &str,
    to: &mut Target,
    progress: &mut Progress,
) -> Result<u64> {
    let (mut after, mut n_done) = (String::new(), 0);
    loop {
        let page = from.page(prefix, &after).await?;
        let Some(last) = page.last() else { return Ok(n_done) };
        after = last.key.to_string();
        to.rows(&page).await?;
        n_done += page.len() as u64;
        progress.at(n_done);
        // Where nothing waits for a server a signal is still heard.
        tokio::task::yield_now().await;
    }
}
