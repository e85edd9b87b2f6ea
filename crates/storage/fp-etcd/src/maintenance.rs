//! What etcd's tools ask of a server: status, hashes, members, leases.

use std::sync::Arc;

use fp_base::Revision;
use fp_store::{Error, ListQuery, Store};
use sha2::{Digest, Sha256};

use crate::proto::{
    AlarmRequest, HashKvRequest, HashResponse, HeaderOnly, LeaseGrantRequest, LeaseGrantResponse,
    Member, MemberListResponse, StatusResponse,
};
use crate::status::{self, Code, Status};
use crate::{MEMBER_ID, RAFT_TERM, header};

/// Rows of a page while everything is read.
const PAGE_ROWS: usize = 500;
/// The longest time to live: etcd's.
const LEASE_TTL_SECS_MAX: i64 = 9_000_000_000;

/// `Maintenance.Status`.
pub async fn status(store: &dyn Store, version: &str) -> Result<StatusResponse, Status> {
    let head = store.head().await?;
    let db_size = store.size_bytes().await?.map_or(0, u64::cast_signed);
    let index = head.0.unsigned_abs();
    Ok(StatusResponse {
        header: Some(header(head)),
        version: version.to_owned(),
        db_size,
        db_size_in_use: db_size,
        leader: MEMBER_ID,
        raft_index: index,
        raft_applied_index: index,
        raft_term: RAFT_TERM,
    })
}

/// `Maintenance.HashKV`: over the keys that live at a revision, with their revisions and values.
pub async fn hash_kv(store: &dyn Store, request: &HashKvRequest) -> Result<HashResponse, Status> {
    let head = store.head().await?;
    let at = if request.revision > 0 { Revision(request.revision) } else { head };
    if at > head {
        return Err(status::FUTURE);
    }
    let hash = hash_at(store, at).await?;
    let compacted = store.compacted().await?;
    Ok(HashResponse {
        header: Some(header(head)),
        hash,
        compact_revision: compacted.0,
        hash_revision: at.0,
    })
}

async fn hash_at(store: &dyn Store, at: Revision) -> Result<u32, Error> {
    let mut hasher = Sha256::new();
    let mut after = None;
    // A store takes zero for the newest.
    let mut more = at > Revision::ZERO;
    while more {
        let start_after = after.as_deref();
        let query = ListQuery { prefix: "", start_after, limit: PAGE_ROWS, at };
        let page = store.list(query).await?;
        for row in &page.rows {
            for part in [row.key.as_bytes(), &row.value] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            hasher.update(row.created.0.to_le_bytes());
            hasher.update(row.revision.0.to_le_bytes());
        }
        after = page.rows.last().map(|row| row.key.clone());
        more = page.more;
    }
    let digest = hasher.finalize();
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    Ok(u32::from_be_bytes(*first))
}

/// `Maintenance.Alarm`: there are none, so none can be raised and any may be lowered.
pub async fn alarm(store: &dyn Store, request: AlarmRequest) -> Result<HeaderOnly, Status> {
    const ACTIVATE: i32 = 1;
    if request.action == ACTIVATE {
        return Err(Status::unimplemented("an alarm that a client raises"));
    }
    Ok(HeaderOnly { header: Some(header(store.head().await?)) })
}

/// `Cluster.MemberList`: one member, reached as the caller reached it.
pub async fn members(store: &dyn Store, url: String) -> Result<MemberListResponse, Status> {
    let member = Member {
        id: MEMBER_ID,
        name: "ferroplane".to_owned(),
        peer_urls: vec![url.clone()],
        client_urls: vec![url],
        is_learner: false,
    };
    Ok(MemberListResponse { header: Some(header(store.head().await?)), members: vec![member] })
}

/// `KV.Compact`.
pub async fn compact(store: &Arc<dyn Store>, revision: i64) -> Result<HeaderOnly, Status> {
    if Revision(revision) <= store.compacted().await? {
        return Err(status::COMPACTED);
    }
    store.compact(Revision(revision)).await?;
    Ok(HeaderOnly { header: Some(header(store.head().await?)) })
}

/// `Lease.LeaseGrant`, as kine has it: the id says how many seconds a key that is written with it
/// lives after that write. An id of the caller's own would say something else.
pub async fn grant(
    store: &dyn Store,
    request: LeaseGrantRequest,
) -> Result<LeaseGrantResponse, Status> {
    let ttl = request.ttl;
    if ttl <= 0 {
        return Err(Status::invalid("etcdserver: a lease lives for at least a second"));
    }
    if ttl > LEASE_TTL_SECS_MAX.min(u32::MAX.into()) {
        return Err(status::LEASE_TTL_TOO_LARGE);
    }
    if request.id != 0 && request.id != ttl {
        return Err(Status {
            code: Code::Unimplemented,
            message: "a lease id of the client's own is not served by ferroplane store: \
                      the id of a lease is its time to live"
                .into(),
        });
    }
    let header = Some(header(store.head().await?));
    Ok(LeaseGrantResponse { header, id: ttl, ttl, error: String::new() })
}
