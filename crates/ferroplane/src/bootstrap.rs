//! Brings the store's content to what a server needs: runs fp-kcp's plan until nothing is left.

use std::time::Duration;

use fp_base::{ClusterName, ClusterScope, Gr, Gvr};
use fp_kcp::bootstrap::{self, Config, Level, Write, WriteKind};
use fp_kcp::names::system;
use fp_object::Object;
use fp_object::status::Status;
use fp_verbs::local::At;
use fp_verbs::{LocalClient, Resolved};
use futures_util::future::join_all;
use tracing::debug;

use crate::content::Content;

/// How long a level waits for what it needs to be served.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks. The controllers that make it served run beside.
const POLL: Duration = Duration::from_millis(2);
/// A wait of so long is told in an Event, which also shows whether the store still takes writes: the
/// controllers that are waited for may be what a full disk has stopped.
const TELL_AFTER: Duration = Duration::from_secs(4);
/// Plans are made again after conflicts; more often than this is a fault.
const ROUNDS_MAX: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("bootstrap level {level}: {resource} in {cluster} is not served")]
    NotServed { level: &'static str, cluster: ClusterName, resource: Gr },
    #[error("bootstrap level {level}: write {resource} {name} in {cluster}{}", advice(source))]
    Write {
        level: &'static str,
        cluster: ClusterName,
        resource: Gr,
        name: String,
        source: Box<Status>,
    },
    #[error("bootstrap does not come to an end")]
    Endless,
}

/// What to do about a write that the store did not take.
fn advice(status: &Status) -> &'static str {
    if status.code < 500 {
        return "";
    }
    ": see that the store's disk works and has space (free some), then start again"
}

/// Runs levels until the plan is empty.
pub async fn run(config: &Config, content: &Content, client: &LocalClient) -> Result<(), Error> {
    for _ in 0..ROUNDS_MAX {
        let levels = bootstrap::plan(config, &|cluster, gr, namespace, name| {
            content.get(cluster, gr, namespace, name)
        });
        if levels.is_empty() {
            return Ok(());
        }
        for level in levels {
            run_level(level, client).await?;
        }
    }
    Err(Error::Endless)
}

/// Waits until all that a bootstrap makes is there, whoever makes it.
pub async fn completed(config: &Config, content: &Content) {
    loop {
        let seen = content.0.revision();
        if is_complete(config, content) {
            return;
        }
        // Nothing is lost when the wait ends early: it only looks again.
        let _ = content.0.wait_for(fp_base::Revision(seen.0 + 1), PATIENCE).await;
    }
}

/// What a server would write otherwise than another (its own URLs, once it leads) does not count.
fn is_complete(config: &Config, content: &Content) -> bool {
    let levels = bootstrap::plan(config, &|cluster, gr, namespace, name| {
        content.get(cluster, gr, namespace, name)
    });
    levels.iter().flat_map(|l| &l.writes).all(|write| write.kind == WriteKind::Update)
}

async fn run_level(level: Level, client: &LocalClient) -> Result<(), Error> {
    debug!(level = level.name, writes = level.writes.len(), "bootstrap");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut told = tokio::time::Instant::now();
    for (cluster, resource) in level.needs {
        let scope = ClusterScope::One(cluster.clone());
        let is_served = || {
            let found = client.surface().resolver.resolve(
                &scope,
                &resource.group,
                &resource.resource,
                None,
                false,
            );
            matches!(found, Resolved::Found(_))
        };
        while !is_served() {
            if tokio::time::Instant::now() > deadline {
                return Err(Error::NotServed { level: level.name, cluster, resource });
            }
            if told.elapsed() > TELL_AFTER {
                tell(client, level.name, &cluster, &resource).await?;
                told = tokio::time::Instant::now();
            }
            tokio::time::sleep(POLL).await;
        }
    }
    let writes = level.writes.iter().map(|write| async move { (write, act(client, write).await) });
    for (write, outcome) in join_all(writes).await {
        match outcome {
            // Somebody else was faster; the next plan sees what there is. What comes after needs
            // it in memory, which a write of our own would have waited for and this read does.
            Err(status) if status.code == 409 => {
                if let Err(status) = client.get(at(write)).await {
                    debug!(level = level.name, %status, "read what another has written");
                }
            }
            Err(status) => {
                let name = fp_object::meta::Meta::name(&write.object).to_owned();
                let (cluster, resource) = (write.cluster.clone(), write.gvr.gr());
                return Err(Error::Write {
                    level: level.name,
                    cluster,
                    resource,
                    name,
                    source: Box::new(status),
                });
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Notes down what is waited for. Fails when the store takes no write.
async fn tell(
    client: &LocalClient,
    level: &'static str,
    cluster: &ClusterName,
    resource: &Gr,
) -> Result<(), Error> {
    let (admin, gvr) = (ClusterName::system(system::ADMIN), Gvr::new("", "v1", "events"));
    let event = serde_json::json!({
        "metadata": {"generateName": "bootstrap-", "namespace": "default"},
        "involvedObject":
            {"apiVersion": "v1", "kind": "Namespace", "namespace": "default", "name": "default"},
        "type": "Normal",
        "reason": "WaitingForResource",
        "message": format!("bootstrap level {level}: waiting until {resource} is served in {cluster}"),
        "source": {"component": "ferroplane"},
    });
    let serde_json::Value::Object(event) = event else { return Ok(()) };
    match client.create(&admin, &gvr, event).await {
        Err(status) if status.code >= 500 => Err(Error::Write {
            level,
            cluster: admin,
            resource: gvr.gr(),
            name: "bootstrap".into(),
            source: Box::new(status),
        }),
        // What else stands in the way of an Event does not end the wait.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn at(write: &Write) -> At<'_> {
    let meta =
        |key: &str| fp_object::meta::Meta::text(&write.object, &["metadata", key]).unwrap_or("");
    let (namespace, name) = (meta("namespace"), meta("name"));
    At { cluster: &write.cluster, gvr: &write.gvr, namespace, name }
}

async fn act(client: &LocalClient, write: &Write) -> Result<Object, Status> {
    let (cluster, gvr, object) = (&write.cluster, &write.gvr, write.object.clone());
    match write.kind {
        WriteKind::Create => client.create(cluster, gvr, object).await,
        WriteKind::Update => client.update(cluster, gvr, object).await,
        WriteKind::Status => {
            let status = object.get("status").cloned().unwrap_or_default();
            let patch = serde_json::json!({"status": status});
            client.merge(at(write), fp_schema::Sub::Status, &patch).await
        }
    }
}
