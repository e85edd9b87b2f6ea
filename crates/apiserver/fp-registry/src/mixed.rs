//! Reads of one resource under every definition: each export identity and each CRD has a table of
//! its own, and a read of metadata over all clusters sees them together (kcp
//! `pkg/server/apiextensions.go`, `getForWildcardPartialMetadata`).

use std::sync::Arc;

use fp_base::Revision;
use fp_informer::{Entry, ObjectKey};

use crate::store::{Shared, list_history, page};
use crate::{Error, Freshness, ListQuery, Page, Place};

/// A page of the place, in key order. Entries of equal keys stay on one page, since a token can
/// only name the key.
pub(crate) async fn list(
    shared: &Shared,
    place: &Place<'_>,
    query: &ListQuery<'_>,
) -> Result<Page, Error> {
    let (mut entries, revision) = match query.freshness {
        Freshness::Exact(at) => (history(shared, place, query, at).await?, at),
        freshness => {
            shared.fresh(freshness).await?;
            in_memory(shared, place, query.start_after)
        }
    };
    if let Some(filter) = query.filter {
        entries.retain(|entry| filter(entry));
    }
    let more = cut(&mut entries, query.limit);
    let remaining = query.filter.is_none().then_some(more);
    Ok(page(entries, revision, more > 0, remaining))
}

/// Everything of the place, and the revision of that state.
pub(crate) async fn snapshot(
    shared: &Shared,
    place: &Place<'_>,
    fresh: bool,
) -> Result<(Vec<Arc<Entry>>, Revision), Error> {
    if fresh {
        shared.fresh(Freshness::Newest).await?;
    }
    Ok(in_memory(shared, place, None))
}

fn in_memory(
    shared: &Shared,
    place: &Place<'_>,
    start_after: Option<&ObjectKey>,
) -> (Vec<Arc<Entry>>, Revision) {
    let gr = fp_keyspace::stored_gr(place.info);
    shared.informer.list_all(gr, place.namespace, start_after)
}

/// The store keeps definitions apart, a list does not: all of it is read for each page.
async fn history(
    shared: &Shared,
    place: &Place<'_>,
    query: &ListQuery<'_>,
    at: Revision,
) -> Result<Vec<Arc<Entry>>, Error> {
    shared.reach(at).await?;
    let all = ListQuery { freshness: query.freshness, start_after: None, limit: 0, filter: None };
    let mut entries = list_history(shared, place, &all, at).await?.entries;
    entries.retain(|entry| query.start_after.is_none_or(|after| entry.key > *after));
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(entries)
}

/// Keeps the first `limit` (0: all) and those with the last one's key; answers how many are left.
fn cut(entries: &mut Vec<Arc<Entry>>, limit: usize) -> u64 {
    if limit == 0 || entries.len() <= limit {
        return 0;
    }
    let last = entries[limit - 1].key.clone();
    let keep = limit + entries[limit..].iter().take_while(|e| e.key == last).count();
    let left = entries.len() - keep;
    entries.truncate(keep);
    left as u64
}
