//! Guarded writes: one transaction each, whose compares carry back what stands in the way.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use fp_informer::{Entry, ObjectKey};
use fp_keyspace::{Encoded, Served};
use fp_object::Object;
use fp_schema::ResourceInfo;
use fp_store::{Compare, Key, Op, Outcome, Row, Txn};

use crate::store::{Shared, codec_error, entry, store_error, tombstone};
use crate::{Error, Guard, ttl_secs};

/// The most objects, and bytes, that [`create_many`] puts into one commit.
const COMMIT_OBJECTS_MAX: usize = 1000;
const COMMIT_BYTES_MAX: usize = 8 << 20;
/// How long a write that is done waits for memory.
const SETTLE: Duration = Duration::from_secs(3);
/// How often a commit is tried again when others create its objects at the same time.
const CREATE_TRIES: usize = 16;

/// Creates (`expected` is `None`) or updates an object.
pub(crate) async fn put(
    shared: &Shared,
    info: &ResourceInfo,
    key: &ObjectKey,
    expected: Option<Revision>,
    object: &Object,
    guards: &[Guard],
) -> Result<Arc<Entry>, Error> {
    let write = Write::new(shared, info, key, object)?;
    let compare = match expected {
        None => Compare::Absent(write.at.clone()),
        Some(revision) => Compare::At(write.at.clone(), revision),
    };
    let txn = Txn { compares: compares(shared, compare, guards)?, ops: vec![write.op()] };
    write.announce(shared);
    match shared.store.commit(txn).await {
        Ok(Outcome::Committed(revisions)) => {
            settle(shared, revisions[0]).await;
            Ok(write.done(shared, revisions[0]))
        }
        Ok(Outcome::Failed(rows)) => {
            shared.prepared.forget(&write.at, &write.value);
            Err(refused(shared, rows, expected, guards))
        }
        Err(error) => {
            // An unknown outcome may still come back as an event, whose value is then decoded.
            shared.prepared.forget(&write.at, &write.value);
            Err(store_error(error))
        }
    }
}

/// Removes an object.
pub(crate) async fn delete(
    shared: &Shared,
    info: &ResourceInfo,
    key: &ObjectKey,
    expected: Revision,
    guards: &[Guard],
) -> Result<Arc<Entry>, Error> {
    let at = shared.key(info, key)?;
    let last = match shared.table(info).get(key) {
        Some(entry) if entry.revision == expected => Some(entry),
        // Memory is behind or ahead; only the store knows the state that is deleted.
        _ => match shared.store.get(&at, Revision::ZERO).await.map_err(store_error)? {
            Some(row) if row.revision == expected => Some(shared.decode_row(&row)?),
            Some(row) => return Err(Error::Conflict(Some(shared.decode_row(&row)?))),
            None => return Err(Error::Conflict(None)),
        },
    };
    let compare = Compare::At(at.clone(), expected);
    let txn =
        Txn { compares: compares(shared, compare, guards)?, ops: vec![Op::Delete { key: at }] };
    match shared.store.commit(txn).await.map_err(store_error)? {
        Outcome::Committed(revisions) => {
            settle(shared, revisions[0]).await;
            tombstone(&last.expect("set above"), revisions[0])
        }
        Outcome::Failed(rows) => Err(refused(shared, rows, Some(expected), guards)),
    }
}

/// Waits until memory shows a write that is durable: whoever is told of a write finds it in every
/// index that follows the informer (paths, definitions, RBAC). A pump that is away delays the
/// answer, but does not take it back.
async fn settle(shared: &Shared, revision: Revision) {
    let _ = shared.informer.wait_for(revision, SETTLE).await;
}

/// See [`crate::store::StoreBackend::create_many`].
pub(crate) async fn create_many(
    shared: &Shared,
    objects: &[(Arc<ResourceInfo>, ObjectKey, Object)],
) -> Result<Vec<Arc<Entry>>, Error> {
    let mut writes = Vec::with_capacity(objects.len());
    for (info, key, object) in objects {
        writes.push(Write::new(shared, info, key, object)?);
    }
    let mut entries = Vec::with_capacity(writes.len());
    let mut rest = &writes[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |write: &&Write| {
            bytes += write.value.len();
            bytes <= COMMIT_BYTES_MAX
        };
        let n = rest.iter().take(COMMIT_OBJECTS_MAX).take_while(fits).count().max(1);
        let (now, later) = rest.split_at(n);
        entries.extend(create_absent(shared, now).await?);
        rest = later;
    }
    Ok(entries)
}

/// One commit: all that do not exist, and the entries of those that do.
async fn create_absent(shared: &Shared, writes: &[Write]) -> Result<Vec<Arc<Entry>>, Error> {
    let mut found: Vec<Option<Arc<Entry>>> = vec![None; writes.len()];
    for _ in 0..CREATE_TRIES {
        let absent: Vec<usize> = (0..writes.len()).filter(|i| found[*i].is_none()).collect();
        if absent.is_empty() {
            break;
        }
        let txn = Txn {
            compares: absent.iter().map(|i| Compare::Absent(writes[*i].at.clone())).collect(),
            ops: absent.iter().map(|i| writes[*i].op()).collect(),
        };
        absent.iter().for_each(|i| writes[*i].announce(shared));
        match shared.store.commit(txn).await {
            Ok(Outcome::Committed(revisions)) => {
                settle(shared, revisions.last().copied().unwrap_or_default()).await;
                for (i, revision) in absent.iter().zip(revisions) {
                    found[*i] = Some(writes[*i].done(shared, revision));
                }
            }
            Ok(Outcome::Failed(rows)) => {
                for (i, row) in absent.iter().zip(rows) {
                    shared.prepared.forget(&writes[*i].at, &writes[*i].value);
                    found[*i] = row.map(|row| shared.decode_row(&row)).transpose()?;
                }
            }
            Err(error) => {
                absent
                    .iter()
                    .for_each(|i| shared.prepared.forget(&writes[*i].at, &writes[*i].value));
                return Err(store_error(error));
            }
        }
    }
    // Someone creates and deletes them as fast as we try.
    found.into_iter().collect::<Option<_>>().ok_or(Error::Conflict(None))
}

/// An object on its way to the store.
struct Write {
    at: Key,
    key: ObjectKey,
    value: Bytes,
    served: Arc<Served>,
    table: Arc<fp_informer::Table>,
    lease_ttl_secs: u32,
}

impl Write {
    fn new(
        shared: &Shared,
        info: &ResourceInfo,
        key: &ObjectKey,
        object: &Object,
    ) -> Result<Self, Error> {
        let at = shared.key(info, key)?;
        let Encoded { value, served } = shared.layout.encode(info, object).map_err(codec_error)?;
        let key = shared.strings.key(key.cluster.clone(), &key.namespace, &key.name);
        Ok(Self {
            at,
            key,
            value,
            served: Arc::new(served),
            table: shared.table(info),
            lease_ttl_secs: ttl_secs(info),
        })
    }

    fn op(&self) -> Op {
        Op::Put {
            key: self.at.clone(),
            value: self.value.clone(),
            lease_ttl_secs: self.lease_ttl_secs,
        }
    }

    fn announce(&self, shared: &Shared) {
        shared.prepared.put(
            self.at.clone(),
            self.key.clone(),
            self.value.clone(),
            self.served.clone(),
        );
    }

    /// The entry at the revision of the commit: the pump's, if it was faster, else ours, which the
    /// pump will take.
    fn done(&self, shared: &Shared, revision: Revision) -> Arc<Entry> {
        if let Some(seen) = self.table.get(&self.key).filter(|seen| seen.revision == revision) {
            return seen;
        }
        let entry = entry(self.key.clone(), &self.served, revision);
        shared.prepared.made(&self.at, &entry, &self.value);
        entry
    }
}

/// The write's own compare first, then the guards'.
fn compares(shared: &Shared, own: Compare, guards: &[Guard]) -> Result<Vec<Compare>, Error> {
    let mut compares = vec![own];
    for guard in guards {
        compares.push(Compare::At(shared.key(&guard.info, &guard.key)?, guard.revision));
    }
    Ok(compares)
}

/// Why a transaction was refused, from the rows of its compares. A writer whose guard does not
/// hold may not learn more.
fn refused(
    shared: &Shared,
    rows: Vec<Option<Row>>,
    expected: Option<Revision>,
    guards: &[Guard],
) -> Error {
    let mut rows = rows.into_iter();
    let own = rows.next().flatten();
    if guards
        .iter()
        .zip(rows)
        .any(|(guard, row)| row.map(|row| row.revision) != Some(guard.revision))
    {
        return Error::Guard;
    }
    match (expected, own) {
        (None, _) => Error::Exists,
        (Some(_), None) => Error::Conflict(None),
        (Some(_), Some(row)) => match shared.decode_row(&row) {
            Ok(entry) => Error::Conflict(Some(entry)),
            Err(error) => error,
        },
    }
}
