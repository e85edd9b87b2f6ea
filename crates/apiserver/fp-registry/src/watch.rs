//! A running watch: from the informer's ring, or from the store's log until the ring covers it.

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::{ClusterScope, Revision};
use fp_informer::{Change, ChangeKind, Cursor, Entry, Table};
use fp_schema::ResourceInfo;

use crate::log::Log;
use crate::store::Shared;
use crate::{Error, Freshness, Place, Step, Watch, WatchFrom, mixed};

pub(crate) struct StoreWatch {
    shared: Arc<Shared>,
    table: Arc<Table>,
    info: Arc<ResourceInfo>,
    scope: ClusterScope,
    namespace: Option<Box<str>>,
    mixed: bool,
    /// What exists at the start, until it has been returned.
    initial: Option<Vec<Arc<Entry>>>,
    source: Source,
}

enum Source {
    Ring(Cursor),
    Log(Log),
}

/// Starts a watch. `Compacted`: the revision to start after is gone from the store's log.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    place: Place<'_>,
    from: WatchFrom,
) -> Result<StoreWatch, Error> {
    let table = shared.table(place.info);
    let (initial, source) = match from {
        // The log alone tells of objects whose definition, and so whose table, comes later.
        _ if place.mixed => {
            let (initial, after) = match from {
                WatchFrom::After(revision) => (None, revision),
                WatchFrom::Start { fresh } => {
                    let (entries, at) = mixed::snapshot(shared, &place, fresh).await?;
                    (Some(entries), at)
                }
            };
            (initial, Source::Log(Log::open(shared, &place, after).await?))
        }
        WatchFrom::After(revision) => match table.watch(place.scope, place.namespace, revision) {
            Ok(cursor) => (None, Source::Ring(cursor)),
            Err(_) => (None, Source::Log(Log::open(shared, &place, revision).await?)),
        },
        WatchFrom::Start { fresh } => {
            if fresh {
                shared.fresh(Freshness::Newest).await?;
            }
            let (entries, cursor) = table.snapshot(place.scope, place.namespace);
            (Some(entries), Source::Ring(cursor))
        }
    };
    Ok(StoreWatch {
        shared: shared.clone(),
        table,
        info: place.info.clone(),
        scope: place.scope.clone(),
        namespace: place.namespace.map(Into::into),
        mixed: place.mixed,
        initial,
        source,
    })
}

#[async_trait]
impl Watch for StoreWatch {
    async fn next(&mut self) -> Result<Vec<Step>, Error> {
        if let Some(entries) = self.initial.take() {
            let added = |entry| Step::Change(Change { kind: ChangeKind::Added, entry, old: None });
            let synced = Step::Synced(self.delivered());
            return Ok(entries.into_iter().map(added).chain([synced]).collect());
        }
        loop {
            let changes = match &mut self.source {
                Source::Ring(cursor) => {
                    cursor.pending().await;
                    match cursor.take() {
                        Ok(changes) => changes,
                        Err(_) => {
                            let after = cursor.delivered();
                            self.source =
                                Source::Log(Log::open(&self.shared, &self.place(), after).await?);
                            continue;
                        }
                    }
                }
                Source::Log(log) => {
                    let namespace = self.namespace.as_deref();
                    if !self.mixed
                        && let Ok(cursor) = self.table.watch(&self.scope, namespace, log.delivered)
                    {
                        self.source = Source::Ring(cursor);
                        continue;
                    }
                    log.next(&self.shared).await?
                }
            };
            if !changes.is_empty() {
                return Ok(changes.into_iter().map(Step::Change).collect());
            }
        }
    }

    fn delivered(&self) -> Revision {
        match &self.source {
            _ if self.initial.is_some() => Revision::ZERO,
            Source::Ring(cursor) => cursor.delivered(),
            Source::Log(log) => log.delivered,
        }
    }

    fn progress(&mut self) -> Revision {
        match &mut self.source {
            Source::Ring(cursor) if self.initial.is_none() => cursor.progress(),
            _ => self.delivered(),
        }
    }
}

impl StoreWatch {
    fn place(&self) -> Place<'_> {
        Place {
            info: &self.info,
            scope: &self.scope,
            namespace: self.namespace.as_deref(),
            mixed: self.mixed,
        }
    }
}
