//! Who acquires, renews and loses: decisions over a Lease, without a clock of their own.
//!
//! Rules: client-go's `tools/leaderelection`. Times of the record are for people: another host's
//! clock decides nothing. What counts is how long ago, by this process's monotonic clock, a state
//! of the Lease was first seen here, and how long its holder said that it is good for.

use std::time::Duration;

use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

/// How an election is run; the names are client-go's.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who stands: another one in every process.
    pub identity: String,
    pub namespace: String,
    pub name: String,
    /// Whole seconds: the Lease holds no finer number.
    pub lease_duration: Duration,
    /// A leader that has not renewed for this long leads no more.
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

impl Config {
    /// The name of the Lease that is written only when leadership changes hands.
    pub fn epoch_name(&self) -> String {
        format!("{}-epoch", self.name)
    }
}

/// What one that waits does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Writes itself into the Lease: optimistically, so of several one succeeds.
    Acquire,
    /// Looks again when the Lease changes, at the latest after this time.
    Wait(Duration),
}

/// `lease` is the newest state seen; it was first seen `seen_ago`.
pub fn stand(config: &Config, lease: Option<&Object>, seen_ago: Duration) -> Stand {
    let Some(lease) = lease else { return Stand::Acquire };
    let holder = holder(lease);
    if holder.is_empty() || holder == config.identity {
        return Stand::Acquire;
    }
    match duration(lease).saturating_sub(seen_ago) {
        Duration::ZERO => Stand::Acquire,
        left => Stand::Wait(left),
    }
}

/// What one that leads does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    Renew,
    /// Looks again when the Lease changes, at the latest after this time.
    Wait(Duration),
    Lost(Loss),
}

/// Why a leader leads no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    #[error("{0} leads now")]
    Taken(String),
    #[error("the lease was deleted")]
    Deleted,
    #[error("the epoch's lease was written or deleted")]
    Epoch,
    #[error("the lease was not renewed within the deadline")]
    Late,
}

/// `lease` is the newest state seen, perhaps not yet the leader's own last write; `epoch_holds` says
/// that the epoch is as the leader wrote it. `renewed_ago` is counted from before that write was
/// begun, `tried_ago` from the last attempt.
pub fn hold(
    config: &Config,
    lease: Option<&Object>,
    epoch_holds: bool,
    renewed_ago: Duration,
    tried_ago: Duration,
) -> Hold {
    match lease.map(holder) {
        None => return Hold::Lost(Loss::Deleted),
        Some(other) if other != config.identity => return Hold::Lost(Loss::Taken(other.into())),
        // Whoever wrote it: this leader's writes are refused from now on.
        Some(_) if !epoch_holds => return Hold::Lost(Loss::Epoch),
        Some(_) => {}
    }
    if renewed_ago >= config.renew_deadline {
        return Hold::Lost(Loss::Late);
    }
    match config.retry_period.saturating_sub(tried_ago) {
        Duration::ZERO => Hold::Renew,
        left => Hold::Wait(left.min(config.renew_deadline - renewed_ago)),
    }
}

/// The Lease that says that this one leads since `now`; what else the old one holds stays.
pub fn acquired(config: &Config, old: Option<&Object>, now: &str) -> Object {
    let mut lease = old.cloned().unwrap_or_else(|| new(config, &config.name));
    let transitions = match old {
        None => 0,
        Some(old) if holder(old) == config.identity => transitions(old),
        Some(old) => transitions(old).saturating_add(1),
    };
    let since = match old {
        Some(old) if holder(old) == config.identity => old.text(&["spec", "acquireTime"]),
        _ => None,
    };
    let since = since.unwrap_or(now).to_owned();
    let spec = lease.map_mut(&["spec"]);
    spec.insert("holderIdentity".into(), Value::from(&*config.identity));
    spec.insert("leaseDurationSeconds".into(), config.lease_duration.as_secs().into());
    spec.insert("acquireTime".into(), since.into());
    spec.insert("renewTime".into(), now.into());
    spec.insert("leaseTransitions".into(), transitions.into());
    lease
}

/// The same Lease, renewed at `now`.
pub fn renewed(lease: &Object, now: &str) -> Object {
    let mut lease = lease.clone();
    lease.map_mut(&["spec"]).insert("renewTime".into(), now.into());
    lease
}

/// The Lease without a holder, as client-go's ReleaseOnCancel leaves it.
pub fn released(lease: &Object, now: &str) -> Object {
    let mut lease = lease.clone();
    let spec = lease.map_mut(&["spec"]);
    spec.insert("holderIdentity".into(), "".into());
    spec.insert("leaseDurationSeconds".into(), 1.into());
    spec.insert("acquireTime".into(), now.into());
    spec.insert("renewTime".into(), now.into());
    lease
}

/// The epoch of the leader that `lease` names. Once another has led between, or the lease was
/// released, it differs from every earlier one: each change of hands has its own number.
pub fn epoch(config: &Config, old: Option<&Object>, lease: &Object) -> Object {
    let mut epoch = old.cloned().unwrap_or_else(|| new(config, &config.epoch_name()));
    let spec = epoch.map_mut(&["spec"]);
    for member in ["holderIdentity", "acquireTime", "leaseTransitions"] {
        let value = lease.at(&["spec", member]).cloned().unwrap_or_default();
        spec.insert(member.into(), value);
    }
    epoch
}

fn new(config: &Config, name: &str) -> Object {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": config.namespace},
    });
    lease.as_object().cloned().unwrap_or_default()
}

pub fn holder(lease: &Object) -> &str {
    lease.text(&["spec", "holderIdentity"]).unwrap_or("")
}

fn duration(lease: &Object) -> Duration {
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_u64);
    Duration::from_secs(seconds.unwrap_or(0))
}

fn transitions(lease: &Object) -> i64 {
    lease.at(&["spec", "leaseTransitions"]).and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
