//! ClusterRole aggregation: a role with an aggregation rule holds the rules of the roles it
//! selects (kube's clusterroleaggregation controller).

use std::sync::Arc;

use async_trait::async_trait;
use fp_informer::{Entry, ObjectKey};
use fp_kcp::names::group;
use fp_object::meta::Meta;
use fp_object::selector::LabelSelector;
use fp_object::{Object, Value};
use fp_runtime::{Error, Next, Reconciler};

use crate::action::{self, Plan};
use crate::routes::{Controller, Keys, Route};
use crate::world::{World, cluster_scoped, gvr};

pub const CONTROLLER: Controller = Controller {
    name: "kube-cluster-role-aggregation-controller",
    routes: &[Route {
        group: group::RBAC,
        resource: "clusterroles",
        keys: Keys::Lookup(of_cluster),
    }],
    make: |world| Arc::new(Aggregation(world)),
};

fn is_aggregate(entry: &Entry) -> bool {
    // A scan of the bytes: nearly no role has the member.
    memchr_has(&entry.json, b"\"aggregationRule\"")
}

fn memchr_has(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

fn of_cluster(world: &World, at: &ObjectKey) -> Vec<ObjectKey> {
    let all = world.in_cluster(&world.builtin(group::RBAC, "clusterroles"), &at.cluster);
    all.iter().filter(|e| is_aggregate(e)).map(|e| e.key.clone()).collect()
}

struct Aggregation(Arc<World>);

#[async_trait]
impl Reconciler for Aggregation {
    fn name(&self) -> &'static str {
        CONTROLLER.name
    }

    async fn reconcile(&self, at: &ObjectKey) -> Result<Next, Error> {
        let world = &self.0;
        let table = world.builtin(group::RBAC, "clusterroles");
        let Some(entry) = table.get(at) else { return Ok(Next::Done) };
        let role = entry.object();
        let Some(rules) = aggregated(&role, &world.in_cluster(&table, &at.cluster)) else {
            return Ok(Next::Done);
        };
        let mut new = role.clone();
        new.insert("rules".into(), rules.into());
        let update =
            action::update(cluster_scoped(&at.cluster, gvr::rbac("clusterroles")), &role, new);
        Ok(action::run(world, Plan::none().then(update.into_iter().collect())).await?)
    }
}

/// The rules of all selected roles, in order of their names, each rule once.
fn aggregated(role: &Object, all: &[Arc<Entry>]) -> Option<Vec<Value>> {
    let selectors = role.at(&["aggregationRule", "clusterRoleSelectors"])?.as_array()?;
    let selectors: Vec<LabelSelector> =
        selectors.iter().filter_map(|s| LabelSelector::from_object(Some(s)).ok()).collect();
    let mut rules: Vec<Value> = Vec::new();
    for selector in &selectors {
        for entry in
            all.iter().filter(|e| *e.key.name != *role.name() && selector.matches(&e.labels))
        {
            let object = entry.object();
            let list = object.get("rules").and_then(Value::as_array);
            for rule in list.into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}
