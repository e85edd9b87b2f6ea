//! The locks that a LogicalCluster keeps for holders that are gone
//! (kcp `pkg/reconciler/apis/logicalclustercleanup`).

use fp_kcp::api::{self, ResourceLock};
use fp_kcp::names;
use fp_object::Object;

/// The LogicalCluster without the locks of bindings and CRDs that do not exist; `None` when all
/// have their holder. `bindings` and `crds` are names: a CRD's is what its lock is keyed by.
pub fn released(
    logical_cluster: &Object,
    bindings: &[&str],
    crds: &[&str],
    now: &str,
) -> Option<Object> {
    let mut locks = api::resource_locks(logical_cluster).ok()?;
    let n_before = locks.len();
    locks.retain(|gr, lock| {
        if lock.crd {
            crds.contains(&gr.as_str()) || is_provisional(lock, now)
        } else {
            bindings.contains(&lock.binding.as_str())
        }
    });
    if locks.len() == n_before {
        return None;
    }
    let mut new = logical_cluster.clone();
    let text = serde_json::to_string(&locks).expect("locks are plain data");
    fp_object::meta::Meta::set_annotation(&mut new, names::RESOURCE_BINDINGS, &text);
    Some(new)
}

/// Taken for a CRD that may still come. RFC 3339 in UTC sorts as time does.
fn is_provisional(lock: &ResourceLock, now: &str) -> bool {
    lock.expiry.as_deref().is_some_and(|expiry| expiry >= now)
}
