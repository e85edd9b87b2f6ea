//! `Range`: which rows, in which order, and what of them.

use std::cmp::Ordering;

use fp_base::Revision;
use fp_store::{Error, Row};

use crate::bounds::Bounds;
use crate::compact_key::{key_value, version};
use crate::proto::{RangeRequest, RangeResponse, SortOrder, SortTarget};
use crate::status::{SORT_OPTION, Status};
use crate::view::View;

/// What can be said of a request without the store.
pub fn check(request: &RangeRequest) -> Result<(), Status> {
    Bounds::new(&request.key, &request.range_end)?;
    let known = SortOrder::try_from(request.sort_order).is_ok()
        && SortTarget::try_from(request.sort_target).is_ok();
    if known { Ok(()) } else { Err(SORT_OPTION) }
}

/// The answer, without its header.
pub async fn range(view: &mut View<'_>, request: &RangeRequest) -> Result<RangeResponse, Error> {
    let bounds = Bounds::new(&request.key, &request.range_end).expect("it was checked");
    let mut past;
    let view = match request.revision {
        ..=0 => view,
        at if Revision(at) > view.at => {
            return Err(Error::Future { asked: Revision(at), newest: view.at });
        }
        at => {
            past = view.past(Revision(at));
            &mut past
        }
    };
    if request.count_only {
        let count = view.count(&bounds).await?.cast_signed();
        return Ok(RangeResponse { count, ..RangeResponse::default() });
    }
    let plain = is_plain(request);
    let limit = usize::try_from(request.limit).unwrap_or(0);
    // One more tells whether more follow.
    let fetched = if plain && limit > 0 { limit.saturating_add(1) } else { 0 };
    let found = view.find(&bounds, fetched).await?;
    let (mut rows, count) = (found.rows, found.n_keys.cast_signed());
    if !plain {
        rows.retain(|row| is_wanted(request, row));
        sort(request, &mut rows);
    }
    let more = limit > 0 && rows.len() > limit;
    if more {
        rows.truncate(limit);
    }
    let mut kvs: Vec<_> = rows.into_iter().map(key_value).collect();
    if request.keys_only {
        kvs.iter_mut().for_each(|kv| kv.value.clear());
    }
    Ok(RangeResponse { header: None, kvs, more, count })
}

/// In key order and unfiltered.
fn is_plain(request: &RangeRequest) -> bool {
    let filters = [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ];
    filters == [0; 4]
        && request.sort_target == SortTarget::Key as i32
        && request.sort_order != SortOrder::Descend as i32
}

fn is_wanted(request: &RangeRequest, row: &Row) -> bool {
    let within =
        |value: i64, min: i64, max: i64| (min == 0 || value >= min) && (max == 0 || value <= max);
    within(row.revision.0, request.min_mod_revision, request.max_mod_revision)
        && within(row.created.0, request.min_create_revision, request.max_create_revision)
}

/// As in etcd, a target without an order sorts ascending.
fn sort(request: &RangeRequest, rows: &mut [Row]) {
    let by = |a: &Row, b: &Row| -> Ordering {
        match request.sort_target() {
            SortTarget::Key => a.key.cmp(&b.key),
            SortTarget::Version => version(a).cmp(&version(b)),
            SortTarget::Create => a.created.cmp(&b.created),
            SortTarget::Mod => a.revision.cmp(&b.revision),
            SortTarget::Value => a.value.cmp(&b.value),
        }
    };
    if request.sort_order() == SortOrder::Descend {
        rows.sort_by(|a, b| by(b, a));
    } else {
        rows.sort_by(by);
    }
}
