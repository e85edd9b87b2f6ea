//! The WorkspaceType controller: where the virtual workspaces of a type are.

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_informer::ObjectKey;
use fp_kcp::api::{self, ShardSpec};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{condition, group};
use fp_object::meta::Meta;
use fp_object::{Object, Value, time};
use fp_runtime::{Error, Next, Reconciler};
use serde_json::json;

use crate::action::{self, Plan};
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr};

pub const CONTROLLER: Controller = Controller {
    name: "kcp-workspacetype",
    routes: &[
        Route { group: group::TENANCY, resource: "workspacetypes", keys: Keys::Own },
        Route { group: group::CORE, resource: "shards", keys: Keys::Lookup(all) },
    ],
    make: |world| Arc::new(WorkspaceTypes(world)),
};

fn all(world: &World, _: &ObjectKey) -> Vec<ObjectKey> {
    let Some(table) = world.workspace_types() else { return Vec::new() };
    world.everywhere(&table).iter().map(|e| e.key.clone()).collect()
}

struct WorkspaceTypes(Arc<World>);

#[async_trait]
impl Reconciler for WorkspaceTypes {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let Some(entry) = world.workspace_types().and_then(|t| t.get(at)) else {
            return Ok(Next::Done);
        };
        let shards = world.shards().map(|t| world.everywhere(&t)).unwrap_or_default();
        let url = |e: &Arc<fp_informer::Entry>| {
            api::part::<ShardSpec>(&e.object(), "spec").virtual_workspace_url
        };
        let mut urls: Vec<String> = shards.iter().map(url).filter(|u| !u.is_empty()).collect();
        urls.sort();
        Ok(action::run(world, plan(&entry.object(), &at.cluster, &urls, &time::now())).await?)
    }
}

/// Both kinds of virtual workspace on every shard, whether or not the type initializes.
fn plan(object: &Object, cluster: &ClusterName, shard_urls: &[String], now: &str) -> Plan {
    let mut new = object.clone();
    let of_kind = |kind: &'static str| {
        let at = move |url: &String| {
            let url = format!(
                "{}/services/{kind}workspaces/{cluster}:{}",
                url.trim_end_matches('/'),
                object.name()
            );
            json!({"type": kind, "url": url})
        };
        shard_urls.iter().map(at)
    };
    let urls: Vec<Value> = of_kind("initializing").chain(of_kind("terminating")).collect();
    if urls.is_empty() {
        new.remove_at(&["status", "virtualWorkspaces"]);
    } else {
        new.map_mut(&["status"]).insert("virtualWorkspaces".into(), urls.into());
    }
    conditions::set(&mut new, now, Condition::new_true(condition::VIRTUAL_WORKSPACE_URLS_READY));
    conditions::set_summary(&mut new, now, None);
    Plan::none().then(
        action::update(cluster_scoped(cluster, gvr::workspace_types()), object, new)
            .into_iter()
            .collect(),
    )
}
