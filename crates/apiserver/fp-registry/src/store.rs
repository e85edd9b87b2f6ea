//! [`StoreBackend`]: a shard's objects. Reads are answered from memory, as fresh as they are asked
//! to be, or from the store's history; writes go to the store and come back through the pump.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fp_base::{ClusterScope, Revision};
use fp_informer::{Entry, Informer, ObjectKey, Query, Table, TableId};
use fp_keyspace::{Layout, Parts, Served, Spot};
use fp_object::Object;
use fp_schema::ResourceInfo;
use fp_store::{Key, Row, Store};

use crate::prepared::Prepared;
use crate::pump::{Counts, Pump};
use crate::strings::Strings;
use crate::{
    Backend, Error, Freshness, Guard, ListQuery, Page, Place, Watch, WatchFrom, mixed, watch, write,
};

/// How long a read waits for memory to reach the revision it asks for (`cacher.go` of Kubernetes).
pub const FRESHNESS_WAIT: Duration = Duration::from_secs(3);
/// Rows that are read from history at a time.
const HISTORY_PAGE_ROWS: usize = 500;

/// The objects of one store.
pub struct StoreBackend {
    shared: Arc<Shared>,
}

/// What the backend, its watches and the pump share.
pub(crate) struct Shared {
    pub store: Arc<dyn Store>,
    pub informer: Arc<Informer>,
    pub layout: Layout,
    pub prepared: Prepared,
    pub strings: Strings,
    pub counts: Counts,
}

impl StoreBackend {
    pub fn new(store: Arc<dyn Store>, informer: Arc<Informer>, layout: Layout) -> Self {
        let shared = Shared {
            store,
            informer,
            layout,
            prepared: Prepared::default(),
            strings: Strings::default(),
            counts: Counts::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Reads the whole store into the informer. The pump that is returned keeps it in step while
    /// it runs; there is one per backend.
    pub async fn load(&self) -> Result<Pump, Error> {
        let pump = Pump::new(self.shared.clone());
        pump.load().await?;
        Ok(pump)
    }

    pub fn informer(&self) -> &Arc<Informer> {
        &self.shared.informer
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// What the pump could not take in.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// The table of a resource, made when it is asked for the first time.
    pub fn table(&self, info: &ResourceInfo) -> Arc<Table> {
        self.shared.table(info)
    }

    /// Creates those objects that do not exist, in few commits, each of which is made in full or
    /// not at all. Returns an entry for each, made now or found.
    pub async fn create_many(
        &self,
        objects: &[(Arc<ResourceInfo>, ObjectKey, Object)],
    ) -> Result<Vec<Arc<Entry>>, Error> {
        write::create_many(&self.shared, objects).await
    }
}

#[async_trait]
impl Backend for StoreBackend {
    async fn get(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        freshness: Freshness,
    ) -> Result<Option<Arc<Entry>>, Error> {
        let shared = &self.shared;
        if let Freshness::Exact(at) = freshness {
            shared.reach(at).await?;
            let row = shared.store.get(&shared.key(info, key)?, at).await.map_err(store_error)?;
            return row.map(|row| shared.decode_row(&row)).transpose();
        }
        shared.fresh(freshness).await?;
        Ok(shared.table(info).get(key))
    }

    async fn list(&self, place: Place<'_>, query: ListQuery<'_>) -> Result<Page, Error> {
        let shared = &self.shared;
        if place.mixed {
            return mixed::list(shared, &place, &query).await;
        }
        let table = shared.table(place.info);
        if let Freshness::Exact(at) = query.freshness {
            shared.reach(at).await?;
            if at >= table.changed()
                && let Some(page) = list_unchanged(&table, &place, &query, at)
            {
                return Ok(page);
            }
            return list_history(shared, &place, &query, at).await;
        }
        shared.fresh(query.freshness).await?;
        let listed = table.list(memory_query(&place, &query));
        Ok(page(listed.entries, listed.revision, listed.more, listed.remaining))
    }

    async fn count(&self, place: Place<'_>) -> Result<u64, Error> {
        Ok(self.shared.table(place.info).count(place.scope, place.namespace))
    }

    async fn create(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        object: &Object,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error> {
        write::put(&self.shared, info, key, None, object, guards).await
    }

    async fn update(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        expected: Revision,
        object: &Object,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error> {
        write::put(&self.shared, info, key, Some(expected), object, guards).await
    }

    async fn delete(
        &self,
        info: &Arc<ResourceInfo>,
        key: &ObjectKey,
        expected: Revision,
        guards: &[Guard],
    ) -> Result<Arc<Entry>, Error> {
        write::delete(&self.shared, info, key, expected, guards).await
    }

    async fn watch(&self, place: Place<'_>, from: WatchFrom) -> Result<Box<dyn Watch>, Error> {
        Ok(Box::new(watch::start(&self.shared, place, from).await?))
    }
}

impl Shared {
    pub fn table(&self, info: &ResourceInfo) -> Arc<Table> {
        let segment = match fp_keyspace::segment(info) {
            "" => Arc::default(),
            segment => segment.into(),
        };
        self.informer.table(&TableId { gr: fp_keyspace::stored_gr(info).clone(), segment })
    }

    /// The beginning of the keys of a place.
    pub fn prefix(&self, place: &Place<'_>) -> Result<String, Error> {
        if place.mixed {
            return Ok(self.layout.prefix_of_all(place.info));
        }
        self.layout.prefix(place.info, place.scope, place.namespace).map_err(codec_error)
    }

    pub fn key(&self, info: &ResourceInfo, key: &ObjectKey) -> Result<Key, Error> {
        let spot = Spot { cluster: &key.cluster, namespace: &key.namespace, name: &key.name };
        self.layout.key(info, spot).map_err(codec_error)
    }

    /// Waits until memory is as fresh as asked.
    pub async fn fresh(&self, freshness: Freshness) -> Result<(), Error> {
        match freshness {
            Freshness::Any => Ok(()),
            Freshness::AtLeast(at) | Freshness::Exact(at) => self.reach(at).await,
            Freshness::Newest => {
                let head = self.store.head().await.map_err(store_error)?;
                self.reach(head).await
            }
        }
    }

    pub async fn reach(&self, asked: Revision) -> Result<(), Error> {
        let reached = self.informer.wait_for(asked, FRESHNESS_WAIT).await;
        reached.map_err(|newest| Error::TooNew { asked, newest })
    }

    /// The entry of a row.
    pub fn decode_row(&self, row: &Row) -> Result<Arc<Entry>, Error> {
        self.decode(&self.split(&row.key)?, &row.value, row.revision)
    }

    pub fn split<'a>(&self, key: &'a str) -> Result<Parts<'a>, Error> {
        self.layout.split(key).ok_or_else(|| Error::Codec(format!("{key:?} is no object's key")))
    }

    /// The entry of a value stored at `parts`.
    pub fn decode(
        &self,
        parts: &Parts<'_>,
        value: &Bytes,
        revision: Revision,
    ) -> Result<Arc<Entry>, Error> {
        let served = self.layout.decode(parts, value).map_err(codec_error)?;
        Ok(entry(self.object_key(parts), &served, revision))
    }

    /// The key within its table, in shared strings.
    pub fn object_key(&self, parts: &Parts<'_>) -> ObjectKey {
        self.strings.key(parts.cluster.clone(), parts.namespace, parts.name)
    }
}

/// An entry of a body at a revision.
pub(crate) fn entry(key: ObjectKey, served: &Served, revision: Revision) -> Arc<Entry> {
    let json = Bytes::from(served.json(&key.cluster, revision));
    Arc::new(Entry::new(key, revision, json, served.labels.clone(), served.deleting))
}

/// The last state of an object that was deleted at `revision`.
pub(crate) fn tombstone(last: &Entry, revision: Revision) -> Result<Arc<Entry>, Error> {
    let json = fp_keyspace::respin(&last.json, &last.key.cluster, revision).map_err(codec_error)?;
    let (key, labels) = (last.key.clone(), last.labels.clone());
    Ok(Arc::new(Entry::new(key, revision, json.into(), labels, last.deleting)))
}

pub(crate) fn codec_error(error: fp_keyspace::Error) -> Error {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    Error::Codec(text)
}

pub(crate) fn store_error(error: fp_store::Error) -> Error {
    match error {
        fp_store::Error::Compacted { asked, oldest } => Error::Compacted { asked, oldest },
        fp_store::Error::Future { asked, newest } => Error::TooNew { asked, newest },
        fp_store::Error::TooLarge { bytes, .. } => Error::TooLarge { bytes },
        fp_store::Error::Unknown(_) => Error::Unknown(error),
        _ => Error::Store(error),
    }
}

fn memory_query<'a>(place: &Place<'a>, query: &ListQuery<'a>) -> Query<'a> {
    Query {
        scope: place.scope,
        namespace: place.namespace,
        start_after: query.start_after,
        limit: query.limit,
        filter: query.filter,
    }
}

pub(crate) fn page(
    entries: Vec<Arc<Entry>>,
    revision: Revision,
    more: bool,
    remaining: Option<u64>,
) -> Page {
    Page { entries, revision, more, remaining }
}

/// A list at a past revision since which the table has not changed: memory has it.
fn list_unchanged(
    table: &Table,
    place: &Place<'_>,
    query: &ListQuery<'_>,
    at: Revision,
) -> Option<Page> {
    let listed = table.list(memory_query(place, query));
    (listed.changed <= at).then(|| page(listed.entries, at, listed.more, listed.remaining))
}

/// A list at a past revision, from the store's history.
pub(crate) async fn list_history(
    shared: &Shared,
    place: &Place<'_>,
    query: &ListQuery<'_>,
    at: Revision,
) -> Result<Page, Error> {
    let prefix = shared.prefix(place)?;
    let mut start_after = match query.start_after {
        Some(key) => Some(shared.key(place.info, key)?),
        None => None,
    };
    // A namespace over all clusters is no prefix.
    let namespace = place.namespace.filter(|_| *place.scope == ClusterScope::All);
    let wanted = |entry: &Entry| {
        namespace.is_none_or(|ns| *entry.key.namespace == *ns)
            && query.filter.is_none_or(|f| f(entry))
    };
    let mut entries = Vec::new();
    loop {
        let page_query = fp_store::ListQuery {
            prefix: &prefix,
            start_after: start_after.as_deref(),
            limit: HISTORY_PAGE_ROWS,
            at,
        };
        let rows = shared.store.list(page_query).await.map_err(store_error)?;
        for row in &rows.rows {
            let entry = shared.decode_row(row)?;
            if !wanted(&entry) {
                continue;
            }
            if query.limit != 0 && entries.len() == query.limit {
                return Ok(page(entries, at, true, None));
            }
            entries.push(entry);
        }
        match rows.rows.last() {
            Some(last) if rows.more => start_after = Some(last.key.clone()),
            _ => return Ok(page(entries, at, false, Some(0))),
        }
    }
}
