//! The election of the one server of a shard whose controllers run: client-go's, over a Lease in
//! `system:admin`, with an epoch that guards every write of the leader.
//!
//! The Lease is renewed all the time; the epoch, a second Lease, is written only when leadership
//! changes hands. The leader's writes ask that the epoch is still the one that it wrote, so a
//! leader that was paused past its lease writes nothing when it wakes, however late it notices.

pub mod plan;

use std::sync::Arc;
use std::time::Duration;

use fp_base::{ClusterName, Gr, Gvr, Revision};
use fp_informer::{Change, ChangeKind, Informer, ObjectKey, TableId};
use fp_kcp::names::system;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, time};
use fp_verbs::LocalClient;
use fp_verbs::local::At;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use crate::world::gvr;
pub use plan::{Config, Loss};
use plan::{Hold, Stand};

const GROUP: &str = "coordination.k8s.io";
const RESOURCE: &str = "leases";

/// A state of the Lease, when this process first saw it, and the epoch.
#[derive(Clone)]
struct Seen {
    lease: Option<Arc<Object>>,
    at: Instant,
    epoch: Option<Revision>,
}

/// One that stands for leadership, for as long as it lives.
pub struct Election {
    config: Config,
    client: LocalClient,
    cluster: ClusterName,
    gvr: Gvr,
    informer: Arc<Informer>,
    follower: u64,
    seen: watch::Receiver<Seen>,
}

/// A time of leading.
pub struct Term {
    /// The Lease as this leader wrote it last.
    lease: Object,
    epoch: Revision,
    /// From before the last write of it that succeeded was begun.
    renewed: Instant,
    tried: Instant,
}

impl Election {
    /// Follows the Lease in memory. `client` writes without a guard.
    pub fn new(config: Config, client: LocalClient, informer: Arc<Informer>) -> Self {
        let cluster = ClusterName::system(system::ADMIN);
        let key = |name: &str| ObjectKey {
            cluster: cluster.clone(),
            namespace: config.namespace.as_str().into(),
            name: name.into(),
        };
        let (key, epoch_key) = (key(&config.name), key(&config.epoch_name()));
        let (send, seen) = watch::channel(Seen { lease: None, at: Instant::now(), epoch: None });
        let table = TableId { gr: Gr::new(GROUP, RESOURCE), segment: "".into() };
        let follower = informer.follow(Arc::new(move |id: &TableId, change: &Change| {
            if *id != table {
                return;
            }
            let entry = (change.kind != ChangeKind::Deleted).then_some(&change.entry);
            if change.entry.key == key {
                let lease = entry.map(|e| Arc::new(e.object()));
                send.send_modify(|seen| (seen.lease, seen.at) = (lease, Instant::now()));
            } else if change.entry.key == epoch_key {
                send.send_modify(|seen| seen.epoch = entry.map(|e| e.revision));
            }
        }));
        let gvr = Gvr::new(GROUP, "v1", RESOURCE);
        Self { config, client, cluster, gvr, informer, follower, seen }
    }

    pub fn identity(&self) -> &str {
        &self.config.identity
    }

    /// Waits until this one leads.
    pub async fn win(&self) -> Term {
        let mut seen = self.seen.clone();
        let mut known = String::new();
        loop {
            let now = seen.borrow_and_update().clone();
            let lease = now.lease.as_deref();
            let holder = lease.map(plan::holder).unwrap_or_default();
            if holder != known {
                known = holder.to_owned();
                if !known.is_empty() && known != self.config.identity {
                    info!(leader = %known, "leader is someone else");
                }
            }
            let patience = match plan::stand(&self.config, lease, now.at.elapsed()) {
                Stand::Wait(left) => left,
                Stand::Acquire => match self.acquire(lease).await {
                    Ok(term) => return term,
                    Err(status) if status.code == 409 => {
                        debug!(%status, "another was faster");
                        self.config.retry_period
                    }
                    Err(status) => {
                        warn!(%status, "stand for leadership");
                        self.config.retry_period
                    }
                },
            };
            tokio::select! {
                // The sender lives as long as the election.
                _ = seen.changed() => {}
                () = sleep(patience) => {}
            }
        }
    }

    async fn acquire(&self, old: Option<&Object>) -> Result<Term, Status> {
        let began = Instant::now();
        let lease = plan::acquired(&self.config, old, &time::now_micro());
        let lease = self.write(&self.client, lease, old.is_some()).await?;
        // Guarded by the Lease: one that is paused here writes no epoch over its successor's.
        let guarded = self.client.while_unchanged(self.at(&self.config.name), revision(&lease))?;
        let name = self.config.epoch_name();
        let old = match self.client.get_object(self.at(&name)).await {
            Ok(epoch) => Some(epoch),
            Err(status) if status.code == 404 => None,
            Err(status) => return Err(status),
        };
        let epoch = plan::epoch(&self.config, old.as_ref(), &lease);
        let epoch = self.write(&guarded, epoch, old.is_some()).await?;
        let epoch = revision(&epoch);
        info!(identity = self.identity(), %epoch, "started leading");
        Ok(Term { lease, epoch, renewed: began, tried: began })
    }

    async fn write(
        &self,
        client: &LocalClient,
        lease: Object,
        exists: bool,
    ) -> Result<Object, Status> {
        if exists {
            return client.update(&self.cluster, &self.gvr, lease).await;
        }
        match client.create(&self.cluster, &self.gvr, lease.clone()).await {
            // An empty store: its bootstrap is the leader's, and needs one.
            Err(status) if status.code == 404 => {
                let namespace = json!({"metadata": {"name": self.config.namespace}});
                let namespace = namespace.as_object().cloned().unwrap_or_default();
                let made = client.create(&self.cluster, &gvr::namespaces(), namespace).await;
                if let Some(refused) = made.err().filter(|status| status.code != 409) {
                    return Err(refused);
                }
                client.create(&self.cluster, &self.gvr, lease).await
            }
            outcome => outcome,
        }
    }

    /// A client of the term, whose writes are refused when the term is over.
    pub fn guarded(&self, term: &Term, client: &LocalClient) -> Result<LocalClient, Status> {
        client.while_unchanged(self.at(&self.config.epoch_name()), term.epoch)
    }

    /// Renews the Lease until it is lost.
    pub async fn hold(&self, term: &mut Term) -> Loss {
        let mut seen = self.seen.clone();
        loop {
            let now = seen.borrow_and_update().clone();
            let (renewed, tried) = (term.renewed.elapsed(), term.tried.elapsed());
            let (lease, epoch_holds) = (now.lease.as_deref(), now.epoch == Some(term.epoch));
            match plan::hold(&self.config, lease, epoch_holds, renewed, tried) {
                Hold::Lost(loss) => return loss,
                Hold::Renew => self.renew(term).await,
                Hold::Wait(left) => tokio::select! {
                    _ = seen.changed() => {}
                    () = sleep(left) => {}
                },
            }
        }
    }

    /// One attempt, no longer than the deadline: the store may be away.
    async fn renew(&self, term: &mut Term) {
        let began = Instant::now();
        term.tried = began;
        let left = self.config.renew_deadline.saturating_sub(term.renewed.elapsed());
        let lease = plan::renewed(&term.lease, &time::now_micro());
        match timeout(left, self.client.update(&self.cluster, &self.gvr, lease)).await {
            Ok(Ok(lease)) => {
                term.lease = lease;
                term.renewed = began;
            }
            // Somebody wrote it. If another holds it now, the informer says so; if not, the next
            // attempt is over the newest.
            Ok(Err(status)) if status.code == 409 => {
                debug!(%status, "renew the lease");
                let newest = self.client.get_object(self.at(&self.config.name));
                if let Ok(Ok(newest)) = timeout(left, newest).await
                    && plan::holder(&newest) == self.config.identity
                {
                    term.lease = newest;
                }
            }
            Ok(Err(status)) => warn!(%status, "renew the lease"),
            Err(_) => warn!("renew the lease: no answer"),
        }
    }

    /// Gives the Lease back, so that one that waits leads at once. The term's writers have ended.
    pub async fn release(&self, term: Term) {
        let lease = plan::released(&term.lease, &time::now_micro());
        let written = self.client.update(&self.cluster, &self.gvr, lease);
        match timeout(self.config.renew_deadline, written).await {
            Ok(Ok(_)) => info!("released the lease"),
            Ok(Err(status)) => warn!(%status, "release the lease"),
            Err(_) => warn!("release the lease: no answer"),
        }
    }

    /// How long to wait before what failed is tried again.
    pub fn retry_period(&self) -> Duration {
        self.config.retry_period
    }

    fn at<'a>(&'a self, name: &'a str) -> At<'a> {
        At { cluster: &self.cluster, gvr: &self.gvr, namespace: &self.config.namespace, name }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.informer.unfollow(self.follower);
    }
}

/// Every stored object has one.
fn revision(object: &Object) -> Revision {
    Revision(object.resource_version().parse().unwrap_or_default())
}
