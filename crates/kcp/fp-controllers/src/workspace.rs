//! The Workspace controller: schedules a workspace, follows its LogicalCluster, ends it.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::{Change, ObjectKey};
use fp_kcp::api::{self, LogicalClusterSpec, ShardSpec, WorkspaceSpec};
use fp_kcp::names::{self, group};
use fp_kcp::{hash, workspacetype};
use fp_object::meta::Meta;
use fp_object::selector::LabelSelector;
use fp_object::time;
use fp_runtime::{Error, Next, Reconciler};

use crate::action;
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, key, seconds, since_secs};
use plan::{ShardView, Snapshot, TypeView};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-workspace",
    routes: &[
        Route { group: group::TENANCY, resource: "workspaces", keys: Keys::Own },
        Route {
            group: group::CORE,
            resource: "logicalclusters",
            keys: Keys::Change(of_logical_cluster),
        },
        Route { group: group::CORE, resource: "shards", keys: Keys::Lookup(all) },
    ],
    make: |world| Arc::new(Workspaces(world)),
};

/// The Workspace that owns a LogicalCluster.
fn of_logical_cluster(change: &Change) -> Vec<ObjectKey> {
    let spec: LogicalClusterSpec = api::part(&change.entry.object(), "spec");
    let owner = spec.owner.filter(|o| o.resource == "workspaces");
    let workspace = owner.and_then(|o| Some(key(&ClusterName::parse(&o.cluster).ok()?, &o.name)));
    workspace.into_iter().collect()
}

/// Shards are few and change seldom; any Workspace may wait for one.
fn all(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let Some(table) = world.workspaces() else { return Vec::new() };
    world.everywhere(&table).iter().map(|e| e.key.clone()).collect()
}

struct Workspaces(Arc<World>);

#[async_trait]
impl Reconciler for Workspaces {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    fn workers(&self) -> usize {
        8
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(entry) = world.workspaces().and_then(|t| t.get(at)) else { return Ok(Next::Done) };
        let workspace = entry.object();
        let spec: WorkspaceSpec = api::part(&workspace, "spec");
        let named = [Some(spec.cluster.as_str()), workspace.annotation(names::WORKSPACE_CLUSTER)];
        let child = named
            .into_iter()
            .flatten()
            .find_map(|name| world.logical_cluster(&ClusterName::parse(name).ok()?));
        let shards = shards(world);
        let candidates: Vec<ShardView> = shards
            .iter()
            .filter(|(s, schedulable)| *schedulable && selected(&spec, s))
            .map(|(s, _)| s.clone())
            .collect();
        let chosen = workspace.annotation(names::SHARD);
        let now = time::now();
        let parent = world.logical_cluster(&at.cluster);
        let snapshot = Snapshot {
            workspace: &workspace,
            cluster: at.cluster.clone(),
            parent: parent.as_ref(),
            child: child.as_ref(),
            candidates: &candidates,
            shard: shards.iter().map(|(s, _)| s).find(|s| Some(s.name.as_str()) == chosen),
            kind: kind(world, &spec),
            fresh_name: hash::random_cluster_name(),
            dice: fastrand(),
            now: &now,
            now_secs: seconds(&now),
            since_secs: since_secs(&workspace, "creationTimestamp"),
        };
        Ok(action::run(world, plan::plan(&snapshot)).await?)
    }
}

/// A number to choose by: which shard takes a workspace needs no secret.
fn fastrand() -> usize {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => usize::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

/// Every Shard, and whether workspaces may be put on it.
fn shards(world: &World) -> Vec<(ShardView, bool)> {
    let Some(table) = world.shards() else { return Vec::new() };
    let view = |entry: &Arc<fp_informer::Entry>| {
        let object = entry.object();
        let spec: ShardSpec = api::part(&object, "spec");
        let external = if spec.external_url.is_empty() { spec.base_url } else { spec.external_url };
        let view = ShardView {
            name: object.name().to_owned(),
            external_url: external.trim_end_matches('/').to_owned(),
            labels: entry.labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        };
        (view, object.annotation(names::UNSCHEDULABLE).is_none())
    };
    world.in_cluster(&table, &ClusterName::root()).iter().map(view).collect()
}

fn selected(spec: &WorkspaceSpec, shard: &ShardView) -> bool {
    let Some(selector) = spec.location.as_ref().and_then(|l| l.selector.as_ref()) else {
        return true;
    };
    let labels: Vec<(Box<str>, Box<str>)> =
        shard.labels.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
    LabelSelector::from_object(Some(selector)).is_ok_and(|s| s.matches(&labels))
}

fn kind(world: &World, spec: &WorkspaceSpec) -> Result<TypeView, String> {
    let kind = spec.kind.clone().unwrap_or_default();
    let closure = world.type_closure(&kind)?;
    Ok(TypeView {
        initializers: workspacetype::initializers(&closure),
        terminators: workspacetype::terminators(&closure),
    })
}
