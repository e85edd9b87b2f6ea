//! `Txn`, and `Put` and `DeleteRange` as transactions of one operation.
//!
//! What fits the store's own compares and writes is one commit. Everything else is read at one
//! revision, decided, and committed on condition that nothing that was read has changed; who
//! loses such a race starts over. So every transaction is serializable, at the place of its commit,
//! or of its revision when it writes nothing.
//!
//! Unlike etcd's, the writes of a transaction have consecutive revisions, not one.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{Error, Key, Op, Outcome, Row, Store, TXN_OPS_MAX, Txn, VALUE_BYTES_MAX};

use crate::bounds::{Bounds, writable};
use crate::compact_key::{self, key_value};
use crate::proto::{
    Against, Answer, Compare, CompareResult, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
    PutResponse, Request, RequestOp, ResponseOp, TxnRequest,
};
use crate::range;
use crate::status::{self, Status};
use crate::view::View;

/// How often a transaction that loses races starts over.
const TRIES_MAX: usize = 64;
/// What a transaction may be long; the store counts what it turns into.
const OPS_MAX: usize = TXN_OPS_MAX;

/// How a transaction ended. The headers of the answers are the caller's.
pub struct Done {
    pub succeeded: bool,
    pub answers: Vec<Answer>,
    /// Where it took place.
    pub revision: Revision,
}

impl Done {
    pub fn responses(self) -> Vec<ResponseOp> {
        self.answers.into_iter().map(|answer| ResponseOp { response: Some(answer) }).collect()
    }
}

pub async fn run(store: &dyn Store, request: &TxnRequest) -> Result<Done, Status> {
    check(request)?;
    if let Some(txn) = direct(request)
        && let Outcome::Committed(revisions) = store.commit(txn).await?
    {
        return committed_directly(store, request, revisions).await;
    }
    for _ in 0..TRIES_MAX {
        let at = store.head().await?;
        match attempt(store, request, at).await {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            // Compaction has overtaken this attempt; a revision that the request names is its own.
            Err(Fault::Store(Error::Compacted { asked, .. })) if asked == at => {}
            Err(Fault::Store(error)) => return Err(error.into()),
            Err(Fault::Refused(status)) => return Err(status),
        }
    }
    Err(status::TOO_MANY_REQUESTS)
}

// Before the store is asked

fn check(request: &TxnRequest) -> Result<(), Status> {
    for n in [request.compare.len(), request.success.len(), request.failure.len()] {
        if n > OPS_MAX {
            return Err(status::TOO_MANY_OPS);
        }
    }
    for compare in &request.compare {
        Bounds::new(&compare.key, &compare.range_end)?;
        check_exact(compare)?;
    }
    check_branch(&request.success)?;
    check_branch(&request.failure)
}

/// Versions are not counted: only what can be said without counting is compared.
fn check_exact(compare: &Compare) -> Result<(), Status> {
    let result = CompareResult::try_from(compare.result)
        .map_err(|_| Status::invalid("etcdserver: unknown compare result"))?;
    let (Target::Version, Some(Against::Version(asked))) = (target(compare)?, &compare.against)
    else {
        return Ok(());
    };
    let known = match result {
        CompareResult::Equal | CompareResult::NotEqual | CompareResult::Greater => *asked < 2,
        CompareResult::Less => *asked <= 2,
    };
    let counted = compare.range_end.is_empty()
        && Bounds::new(&compare.key, &compare.range_end).is_ok_and(
            |bounds| matches!(bounds, Bounds::Key(Some(key)) if compact_key::is_it(&key)),
        );
    if known || counted {
        return Ok(());
    }
    Err(Status::unimplemented("a compare of VERSION with more than 1"))
}

fn check_branch(ops: &[RequestOp]) -> Result<(), Status> {
    let (mut puts, mut deletes) = (BTreeSet::new(), Vec::new());
    for op in ops {
        match &op.request {
            None => {
                return Err(Status::invalid("etcdserver: an operation of a transaction is empty"));
            }
            Some(Request::Txn(_)) => {
                return Err(Status::unimplemented("a transaction within a transaction"));
            }
            Some(Request::Range(range)) => range::check(range)?,
            Some(Request::Put(put)) => {
                if !puts.insert(check_put(put)?) {
                    return Err(status::DUPLICATE_KEY);
                }
            }
            Some(Request::DeleteRange(delete)) => {
                deletes.push(Bounds::new(&delete.key, &delete.range_end)?);
            }
        }
    }
    match puts.iter().any(|key| deletes.iter().any(|bounds| bounds.contains(key))) {
        true => Err(status::DUPLICATE_KEY),
        false => Ok(()),
    }
}

fn check_put(put: &PutRequest) -> Result<Key, Status> {
    let key = writable(&put.key)?;
    if put.ignore_value && !put.value.is_empty() {
        return Err(status::VALUE_PROVIDED);
    }
    if put.ignore_lease && put.lease != 0 {
        return Err(status::LEASE_PROVIDED);
    }
    if put.value.len() > VALUE_BYTES_MAX {
        return Err(status::TOO_LARGE);
    }
    ttl_secs(put.lease)?;
    Ok(key)
}

/// A lease's id is its time to live, as kine has it.
fn ttl_secs(lease: i64) -> Result<u32, Status> {
    u32::try_from(lease).map_err(|_| status::LEASE_NOT_FOUND)
}

// In one commit

/// The request as one commit of the store, where it is that simple.
fn direct(request: &TxnRequest) -> Option<Txn> {
    let compares = request.compare.iter().map(direct_compare).collect::<Option<Vec<_>>>()?;
    let alone = request.success.len() == 1;
    let op = |op: &RequestOp| match op.request.as_ref()? {
        Request::Put(put) if !put.prev_kv && !put.ignore_value && !put.ignore_lease => {
            let key = writable(&put.key).ok().filter(|key| !compact_key::is_it(key))?;
            let lease_ttl_secs = ttl_secs(put.lease).ok()?;
            Some(Op::Put { key, value: put.value.clone(), lease_ttl_secs })
        }
        Request::DeleteRange(delete) if !delete.prev_kv && delete.range_end.is_empty() => {
            let Ok(Bounds::Key(Some(key))) = Bounds::new(&delete.key, &delete.range_end) else {
                return None;
            };
            // A delete that finds nothing takes no revision: which one did must be plain.
            let there = |compare: &fp_store::Compare| matches!(compare, fp_store::Compare::At(at, _) if *at == key);
            (alone || compares.iter().any(there)).then_some(Op::Delete { key })
        }
        _ => None,
    };
    let ops = request.success.iter().map(op).collect::<Option<Vec<_>>>()?;
    (!ops.is_empty() && ops.len() + compares.len() <= TXN_OPS_MAX).then_some(Txn { compares, ops })
}

fn direct_compare(compare: &Compare) -> Option<fp_store::Compare> {
    if compare.result != CompareResult::Equal as i32 {
        return None;
    }
    let Ok(Bounds::Key(Some(key))) = Bounds::new(&compare.key, &compare.range_end) else {
        return None;
    };
    if compact_key::is_it(&key) {
        return None;
    }
    match (target(compare).ok()?, compare.against.as_ref()?) {
        (Target::Mod, Against::Mod(at @ 1..)) => Some(fp_store::Compare::At(key, Revision(*at))),
        (Target::Mod, Against::Mod(0))
        | (Target::Create, Against::Create(0))
        | (Target::Version, Against::Version(0)) => Some(fp_store::Compare::Absent(key)),
        _ => None,
    }
}

async fn committed_directly(
    store: &dyn Store,
    request: &TxnRequest,
    revisions: Vec<Revision>,
) -> Result<Done, Status> {
    let revision = match revisions.last() {
        Some(last) => *last,
        None => store.head().await?,
    };
    let deleted = i64::from(!revisions.is_empty());
    let answer = |op: &RequestOp| match op.request {
        Some(Request::DeleteRange(_)) => {
            Answer::DeleteRange(DeleteRangeResponse { deleted, ..Default::default() })
        }
        _ => Answer::Put(PutResponse::default()),
    };
    let answers = request.success.iter().map(answer).collect();
    Ok(Done { succeeded: true, answers, revision })
}

// Read, decide, commit

enum Fault {
    Store(Error),
    Refused(Status),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// `None`: another write came between.
async fn attempt(
    store: &dyn Store,
    request: &TxnRequest,
    at: Revision,
) -> Result<Option<Done>, Fault> {
    let mut view = View::new(store, at);
    let mut succeeded = true;
    for compare in &request.compare {
        if !holds(&mut view, compare).await? {
            succeeded = false;
            break;
        }
    }
    let mut writes = Vec::new();
    let mut answers = Vec::new();
    for op in if succeeded { &request.success } else { &request.failure } {
        answers.push(match op.request.as_ref().expect("it was checked") {
            Request::Range(request) => Answer::Range(range::range(&mut view, request).await?),
            Request::Put(put) => Answer::Put(plan_put(&mut view, put, &mut writes).await?),
            Request::DeleteRange(delete) => {
                Answer::DeleteRange(plan_delete(&mut view, delete, &mut writes).await?)
            }
            Request::Txn(_) => unreachable!("it was checked"),
        });
    }
    if writes.is_empty() {
        return Ok(Some(Done { succeeded, answers, revision: at }));
    }
    let compares = view.footprint();
    if compares.len() + writes.len() > TXN_OPS_MAX {
        return Err(Fault::Refused(status::TOO_MANY_OPS));
    }
    match store.commit(Txn { compares, ops: writes }).await? {
        Outcome::Failed(_) => Ok(None),
        Outcome::Committed(revisions) => {
            answers.iter_mut().for_each(|answer| settle(answer, at, &revisions));
            let revision = *revisions.last().expect("every planned write changes something");
            Ok(Some(Done { succeeded, answers, revision }))
        }
    }
}

/// The revision that stands for the next write's until the commit has given it one: after `at`, so
/// that it sorts as the real one will.
fn planned(at: Revision, writes: &[Op]) -> Revision {
    Revision(at.0 + 1 + writes.len() as i64)
}

/// Puts the real revisions in the place of the planned ones.
fn settle(answer: &mut Answer, at: Revision, revisions: &[Revision]) {
    let Answer::Range(range) = answer else { return };
    let settle = |revision: &mut i64| {
        if let Ok(n) = usize::try_from(*revision - at.0 - 1) {
            *revision = revisions[n].0;
        }
    };
    for kv in &mut range.kvs {
        settle(&mut kv.create_revision);
        settle(&mut kv.mod_revision);
    }
}

async fn plan_put(
    view: &mut View<'_>,
    put: &PutRequest,
    writes: &mut Vec<Op>,
) -> Result<PutResponse, Fault> {
    let key = writable(&put.key).map_err(Fault::Refused)?;
    let before = view.get(&key).await?;
    if before.is_none() && (put.ignore_value || put.ignore_lease) {
        return Err(Fault::Refused(status::KEY_NOT_FOUND));
    }
    let kept = before.as_ref();
    let value = match kept {
        Some(kept) if put.ignore_value => kept.value.clone(),
        _ if compact_key::is_it(&key) => compact_key::encode(kept, &put.value),
        _ => put.value.clone(),
    };
    let lease_ttl_secs = match kept {
        Some(kept) if put.ignore_lease => kept.lease_ttl_secs,
        _ => ttl_secs(put.lease).map_err(Fault::Refused)?,
    };
    let revision = planned(view.at, writes);
    let created = kept.map_or(revision, |kept| kept.created);
    let row = Row { key: key.clone(), value: value.clone(), revision, created, lease_ttl_secs };
    view.write(key.clone(), Some(row));
    writes.push(Op::Put { key, value, lease_ttl_secs });
    Ok(PutResponse { header: None, prev_kv: before.filter(|_| put.prev_kv).map(key_value) })
}

async fn plan_delete(
    view: &mut View<'_>,
    delete: &DeleteRangeRequest,
    writes: &mut Vec<Op>,
) -> Result<DeleteRangeResponse, Fault> {
    let bounds = Bounds::new(&delete.key, &delete.range_end).map_err(Fault::Refused)?;
    let rows = view.find(&bounds, 0).await?.rows;
    for row in &rows {
        view.write(row.key.clone(), None);
        writes.push(Op::Delete { key: row.key.clone() });
    }
    let deleted = rows.len() as i64;
    let prev_kvs = match delete.prev_kv {
        true => rows.into_iter().map(key_value).collect(),
        false => Vec::new(),
    };
    Ok(DeleteRangeResponse { header: None, deleted, prev_kvs })
}

// Compares

enum Target {
    Version,
    Create,
    Mod,
    Value,
    Lease,
}

fn target(compare: &Compare) -> Result<Target, Status> {
    Ok(match compare.target {
        0 => Target::Version,
        1 => Target::Create,
        2 => Target::Mod,
        3 => Target::Value,
        4 => Target::Lease,
        other => {
            return Err(Status::invalid(format!("etcdserver: unknown compare target {other}")));
        }
    })
}

/// A range holds when every key of it does; no key is compared as zeros, and has no value.
async fn holds(view: &mut View<'_>, compare: &Compare) -> Result<bool, Fault> {
    let bounds = Bounds::new(&compare.key, &compare.range_end).map_err(Fault::Refused)?;
    let rows = view.find(&bounds, 0).await?.rows;
    if rows.is_empty() {
        return row_holds(None, compare).map_err(Fault::Refused);
    }
    for row in &rows {
        if !row_holds(Some(row), compare).map_err(Fault::Refused)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn row_holds(row: Option<&Row>, compare: &Compare) -> Result<bool, Status> {
    let zero = Bytes::new();
    let order = match target(compare)? {
        Target::Value => {
            let Some(row) = row else { return Ok(false) };
            let asked = match &compare.against {
                Some(Against::Value(asked)) => asked,
                _ => &zero,
            };
            let value = match compact_key::is_it(&row.key) {
                true => compact_key::decode(&row.value).1,
                false => row.value.clone(),
            };
            value.cmp(asked)
        }
        Target::Version => number(row.map(compact_key::version), compare),
        Target::Create => number(row.map(|row| row.created.0), compare),
        Target::Mod => number(row.map(|row| row.revision.0), compare),
        Target::Lease => number(row.map(|row| row.lease_ttl_secs.into()), compare),
    };
    Ok(match compare.result() {
        CompareResult::Equal => order == Ordering::Equal,
        CompareResult::NotEqual => order != Ordering::Equal,
        CompareResult::Greater => order == Ordering::Greater,
        CompareResult::Less => order == Ordering::Less,
    })
}

fn number(actual: Option<i64>, compare: &Compare) -> Ordering {
    let asked = match compare.against {
        Some(Against::Version(n) | Against::Create(n) | Against::Mod(n) | Against::Lease(n)) => n,
        _ => 0,
    };
    actual.unwrap_or(0).cmp(&asked)
}

#[cfg(test)]
#[path = "txn_tests.rs"]
mod tests;
