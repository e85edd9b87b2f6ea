//! Who may do what in a workspace: kcp's order of checks around RBAC.
//!
//! Rules: kcp `pkg/authorization` (surface 8.1): required groups, workspace content, status of system
//! CRDs, maximal permission policy, then RBAC of `system:admin` and of the cluster. The caller learns
//! "access granted" or "access denied" and not which step said so; that is logged.
//!
//! Invariant: whoever is not let into a workspace gets the same words whether it exists or not.

use std::sync::Arc;

use async_trait::async_trait;
use fp_auth::rbac::{Rbac, Sources};
use fp_auth::{Attributes, Authorizer, Rules, User, Verdict, effective};
use fp_base::{ClusterName, ClusterScope};

use crate::api::{ApiExportSpec, Phase};
use crate::bypath::ByPath;
use crate::clusters::Clusters;
use crate::names::{self, group, groups};
use crate::resolver::Tiers;

/// The reason of every refusal: clients and kcp's tests compare it as a whole.
pub const DENIED: &str = "access denied";
const GRANTED: &str = "access granted";
/// Told at the gate of a workspace, the same for all that is wrong there.
pub const NOT_LET_IN: &str =
    "the workspace does not exist, or you are not let in (verb \"access\" on \"/\")";

/// Paths that concern the shard and no workspace (surface 4.2).
const SHARD_PATHS: [&str; 1] = ["/metrics"];

/// The authorizer of everyone but `system:masters`.
pub struct Workspaces {
    pub clusters: Arc<Clusters>,
    pub rbac: Arc<Rbac>,
    pub tiers: Arc<Tiers>,
    /// APIExports, table `customresources`.
    pub exports: Arc<ByPath<ApiExportSpec>>,
}

/// A step's answer: go on, or why not.
type Step = Result<(), Refusal>;

struct Refusal {
    /// What the caller is told beyond [`DENIED`].
    hint: &'static str,
    /// A denial that no later authorizer may overrule.
    final_: bool,
    logged: String,
}

impl Refusal {
    fn gate(logged: impl Into<String>) -> Self {
        Self { hint: NOT_LET_IN, final_: false, logged: logged.into() }
    }

    fn denied(logged: impl Into<String>) -> Self {
        Self { hint: "", final_: false, logged: logged.into() }
    }

    /// Turns "no opinion" into a denial.
    fn deny(self) -> Self {
        Self { final_: true, ..self }
    }
}

#[async_trait]
impl Authorizer for Workspaces {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        let Some(cluster) = attributes.cluster.and_then(ClusterScope::one) else {
            return Verdict::no_opinion(DENIED);
        };
        match self.decide(cluster, attributes) {
            Ok(()) => Verdict::allow(GRANTED),
            Err(refusal) => {
                let (verb, resource) =
                    (attributes.verb, attributes.path.unwrap_or(attributes.resource));
                let user = &attributes.user.name;
                tracing::debug!(%cluster, user, verb, resource, reason = refusal.logged, "request refused");
                let verdict = if refusal.final_ {
                    Verdict::deny(DENIED)
                } else {
                    Verdict::no_opinion(DENIED)
                };
                verdict.with_hint(refusal.hint)
            }
        }
    }

    async fn rules(&self, user: &User, cluster: &ClusterScope, namespace: &str) -> Rules {
        let Some(cluster) = cluster.one() else { return Rules::default() };
        let admin = ClusterName::system(names::system::ADMIN);
        let bootstrap = Sources { bindings: &admin, roles: &[&admin] };
        let mut rules = self.rbac.rules(bootstrap, user, cluster, namespace);
        if *cluster != admin {
            let local = Sources { bindings: cluster, roles: &[cluster, &admin] };
            rules.extend(self.rbac.rules(local, user, cluster, namespace));
        }
        Rules { rules, incomplete: None }
    }
}

impl Workspaces {
    fn decide(&self, cluster: &ClusterName, asked: &Attributes<'_>) -> Step {
        if asked.deep && !cluster.is_system() {
            // The review asks about a right in this cluster, not whether its subject may enter.
            system_crd_status(asked)?;
            return self.rbac(cluster, asked);
        }
        self.required_groups(cluster, asked.user)?;
        if self.content(cluster, asked)? == Content::Attested {
            return Ok(());
        }
        system_crd_status(asked)?;
        self.maximal_permission_policy(cluster, asked)?;
        self.rbac(cluster, asked)
    }

    fn required_groups(&self, cluster: &ClusterName, user: &User) -> Step {
        let member = |group: &str| effective::in_group(user, cluster, group);
        if member(groups::LOGICAL_CLUSTER_ADMIN) || effective::is_service_account(user) {
            return Ok(());
        }
        let facts =
            self.clusters.get(cluster).ok_or_else(|| Refusal::gate("logical cluster not found"))?;
        let Some(required) = &facts.required_groups else { return Ok(()) };
        let clauses = required.split(';').chain([
            groups::ADMIN,
            groups::BOOTSTRAPPER,
            groups::EXTERNAL_LOGICAL_CLUSTER_ADMIN,
        ]);
        if clauses.into_iter().any(|clause| clause.split(',').all(member)) {
            return Ok(());
        }
        Err(Refusal::gate(format!("user is not a member of required groups: {required}")).deny())
    }

    fn content(&self, cluster: &ClusterName, asked: &Attributes<'_>) -> Result<Content, Refusal> {
        if asked.path.is_some_and(|path| SHARD_PATHS.contains(&path)) {
            return Ok(Content::Entered);
        }
        if cluster.is_system() {
            return Err(Refusal::gate("system clusters are for system:masters"));
        }
        let user = asked.user;
        if effective::in_group(user, cluster, groups::LOGICAL_CLUSTER_ADMIN) {
            return Ok(Content::Entered);
        }
        let facts = self
            .clusters
            .get(cluster)
            .ok_or_else(|| Refusal::gate("LogicalCluster not found").deny())?;
        match facts.phase {
            Phase::Scheduling | Phase::Unavailable => {
                return Err(Refusal::gate(format!(
                    "not permitted due to phase {:?}",
                    facts.phase.as_str()
                )));
            }
            // Whoever carries such a group has been checked against the WorkspaceType's permissions by the
            // lifecycle's virtual workspace; nobody can claim it.
            Phase::Initializing | Phase::Terminating | Phase::Deleting
                if has_lifecycle_group(user) =>
            {
                return Ok(Content::Attested);
            }
            _ => {}
        }
        if effective::is_service_account(user) && effective::in_scope(user, cluster.as_str()) {
            return Ok(Content::Entered);
        }
        let access = Attributes {
            deep: asked.deep,
            ..Attributes::of_path(asked.user, asked.cluster, "access", "/")
        };
        match self.allowed(cluster, &access) {
            Some(_) => Ok(Content::Entered),
            None => Err(Refusal::gate("no verb=access permission on /")),
        }
    }

    /// A bound resource of an export with a policy: the policy's roles, in the export's cluster, must
    /// allow it to `apis.kcp.io:binding:<user>`.
    fn maximal_permission_policy(&self, cluster: &ClusterName, asked: &Attributes<'_>) -> Step {
        if asked.path.is_some() {
            return Ok(());
        }
        let Some((path, name)) = self.tiers.bound_export(cluster, asked.group, asked.resource)
        else {
            return Ok(());
        };
        let path = if path.is_empty() { cluster.as_str() } else { &path };
        let Some(export) = self.exports.get("customresources", path, &name) else { return Ok(()) };
        let policy = export.value.maximal_permission_policy.as_ref();
        if policy.is_none_or(|p| p.local.is_none()) {
            return Ok(());
        }
        let user = effective::prefixed(asked.user, groups::BINDING_PREFIX);
        let prefixed = Attributes { user: &user, ..asked.clone() };
        match self.allowed(&export.cluster, &prefixed) {
            Some(_) => Ok(()),
            None => {
                Err(Refusal::denied(format!("maximal permission policy of export {path}:{name}")))
            }
        }
    }

    /// RBAC with the bindings of the cluster and those of `system:admin`; roles of both.
    fn allowed(&self, cluster: &ClusterName, asked: &Attributes<'_>) -> Option<String> {
        let admin = ClusterName::system(names::system::ADMIN);
        let roles = [cluster, &admin];
        [cluster, &admin].iter().find_map(|bindings| {
            self.rbac.allowed_by(Sources { bindings, roles: &roles }, cluster, asked)
        })
    }

    fn rbac(&self, cluster: &ClusterName, asked: &Attributes<'_>) -> Step {
        let admin = ClusterName::system(names::system::ADMIN);
        let bootstrap = Sources { bindings: &admin, roles: &[&admin] };
        let local = Sources { bindings: cluster, roles: &[cluster, &admin] };
        let by = self.rbac.allowed_by(bootstrap, cluster, asked);
        let by = by.or_else(|| self.rbac.allowed_by(local, cluster, asked));
        by.map(|_| ()).ok_or_else(|| Refusal::denied("no role allows it"))
    }
}

#[derive(PartialEq)]
enum Content {
    /// The caller may enter; RBAC says what it may do.
    Entered,
    /// A virtual workspace has checked the request.
    Attested,
}

/// Only the server itself (which is a master) writes these.
fn system_crd_status(asked: &Attributes<'_>) -> Step {
    let status =
        asked.path.is_none() && asked.group == group::APIS && asked.subresource == "status";
    if status && matches!(asked.resource, "apibindings" | "apiexports") {
        return Err(
            Refusal::denied(format!("{} status updates not permitted", asked.resource)).deny()
        );
    }
    Ok(())
}

fn has_lifecycle_group(user: &User) -> bool {
    let lifecycle = |g: &String| {
        g.starts_with(groups::INITIALIZER_PREFIX) || g.starts_with(groups::TERMINATOR_PREFIX)
    };
    user.groups.iter().any(lifecycle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, key};
    use fp_auth::rbac::Kind;
    use fp_auth::{AUTHENTICATED, Decision};
    use serde_json::{Value, json};

    struct World(Workspaces);

    impl World {
        fn new() -> Self {
            let world = Self(Workspaces {
                clusters: Arc::default(),
                rbac: Arc::default(),
                tiers: Arc::new(Tiers::new(Vec::new())),
                exports: Arc::new(ByPath::new(|o| crate::api::part(o, "spec"))),
            });
            for object in crate::assets::many(crate::assets::ADMIN_KUBE_RBAC)
                .into_iter()
                .chain(crate::assets::many(crate::assets::ADMIN_KCP_RBAC))
            {
                let kind = object["kind"].as_str().unwrap().to_lowercase() + "s";
                world.rbac("system:admin", &kind, Value::Object(object));
            }
            for object in crate::assets::many(crate::assets::ROOT_RBAC) {
                let kind = object["kind"].as_str().unwrap().to_lowercase() + "s";
                world.rbac("root", &kind, Value::Object(object));
            }
            for (name, phase, annotations) in [
                ("root", "Ready", json!({})),
                ("team", "Ready", json!({})),
                ("early", "Scheduling", json!({})),
                ("dying", "Terminating", json!({})),
                ("closed", "Ready", json!({names::REQUIRED_GROUPS: "devs,leads;ops"})),
            ] {
                let object = json!({"metadata": {"name": "cluster", "annotations": annotations}, "status": {"phase": phase}});
                let key = key(name, "", "cluster");
                world.0.clusters.apply(&key, Some(&entry(&key, object)));
                world.rbac(name, "clusterrolebindings", admin_of("alice"));
            }
            world
        }

        fn rbac(&self, cluster: &str, resource: &str, object: Value) {
            let text = |path: &str| object["metadata"][path].as_str().unwrap_or("").to_owned();
            let key = key(cluster, &text("namespace"), &text("name"));
            self.0.rbac.apply(Kind::of(resource).unwrap(), &key, Some(&entry(&key, object)));
        }

        /// `asked`: `verb resource.group[/subresource]` or `verb /path`.
        fn check(&self, user: &User, cluster: &str, asked: &str, want: &str) {
            self.check_deep(user, cluster, asked, want, false);
        }

        fn check_deep(&self, user: &User, cluster: &str, asked: &str, want: &str, deep: bool) {
            let (verb, what) = asked.split_once(' ').unwrap();
            let path = what.starts_with('/').then_some(what);
            let (what, subresource) =
                what.split_once('/').filter(|_| path.is_none()).unwrap_or((what, ""));
            let (resource, group) = what.split_once('.').unwrap_or((what, ""));
            let scope = ClusterScope::One(crate::testing::cluster(cluster));
            let attributes = Attributes {
                user,
                cluster: Some(&scope),
                verb,
                group: if path.is_some() { "" } else { group },
                version: "v1",
                resource: if path.is_some() { "" } else { resource },
                subresource,
                namespace: "",
                name: "",
                path,
                deep,
            };
            let step = self.0.decide(scope.one().unwrap(), &attributes);
            let got = match step {
                Ok(()) => "allowed".to_owned(),
                Err(r) => format!("{}{}", r.logged, if r.final_ { "!" } else { "" }),
            };
            assert_eq!(got, want, "{} {cluster} {asked}", user.name);
        }
    }

    fn admin_of(user: &str) -> Value {
        json!({
            "metadata": {"name": "workspace-admin"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": user}],
        })
    }

    #[test]
    fn gate() {
        let world = World::new();
        let alice = User::new("alice", &[AUTHENTICATED]);
        let bob = User::new("bob", &[AUTHENTICATED]);
        world.check(&alice, "team", "delete configmaps", "allowed");
        world.check(&bob, "team", "get configmaps", "no verb=access permission on /");
        world.check(&bob, "nowhere", "get configmaps", "logical cluster not found");
        world.check(&alice, "early", "get configmaps", "not permitted due to phase \"Scheduling\"");
        world.check(&alice, "dying", "get configmaps", "allowed");
        world.check(&bob, "root", "get /api", "allowed");
        world.check(&bob, "root", "list configmaps", "no role allows it");
        world.check(&bob, "root", "use workspacetypes.tenancy.kcp.io", "no role allows it");
        world.check(&alice, "system:admin", "get configmaps", "logical cluster not found");
        world.check(
            &User::new("kcp-admin", &["system:kcp:admin", AUTHENTICATED]),
            "team",
            "get secrets",
            "allowed",
        );
        let initializer = User::new("vw", &["system:kcp:initializer:root:x"]);
        world.check(&initializer, "dying", "delete secrets", "allowed");
        world.check(&initializer, "team", "delete secrets", "no verb=access permission on /");
        world.check(&bob, "root", "get /metrics", "no role allows it");
    }

    #[test]
    fn required_groups() {
        let world = World::new();
        let refused = "user is not a member of required groups: devs,leads;ops!";
        world.check(
            &User::new("alice", &[AUTHENTICATED, "devs"]),
            "closed",
            "get secrets",
            refused,
        );
        world.check(
            &User::new("alice", &[AUTHENTICATED, "devs", "leads"]),
            "closed",
            "get secrets",
            "allowed",
        );
        world.check(
            &User::new("alice", &[AUTHENTICATED, "ops"]),
            "closed",
            "get secrets",
            "allowed",
        );
        world.check(&User::new("x", &[groups::ADMIN]), "closed", "get secrets", "allowed");
        world.check_deep(&User::new("alice", &[]), "closed", "get secrets", "allowed", true);
    }

    #[test]
    fn status_of_system_crds() {
        let world = World::new();
        let alice = User::new("alice", &[AUTHENTICATED]);
        let refused = "apibindings status updates not permitted!";
        world.check(&alice, "team", "update apibindings.apis.kcp.io/status", refused);
        world.check_deep(&alice, "team", "update apibindings.apis.kcp.io/status", refused, true);
        world.check(&alice, "team", "update apibindings.apis.kcp.io", "allowed");
    }

    #[test]
    fn maximal_permission_policy() {
        let world = World::new();
        let export = key("root", "", "tenancy.kcp.io");
        let object = json!({
            "metadata": {"name": "tenancy.kcp.io", "annotations": {names::PATH: "root"}},
            "spec": {"maximalPermissionPolicy": {"local": {}}},
        });
        world.0.exports.apply(&"customresources".into(), &export, Some(&entry(&export, object)));
        let binding = key("team", "", "b");
        let identity = "8b12fa27a3c48b89e06f37d21638ebe26171f1f0ec18dbdc04f4dbeac38c0322";
        let object = json!({
            "spec": {"reference": {"export": {"path": "root", "name": "tenancy.kcp.io"}}},
            "status": {"boundResources": [{
                "group": "tenancy.kcp.io", "resource": "workspaces", "storageVersions": ["v1alpha1"],
                "schema": {"name": "s", "UID": "u", "identityHash": identity},
            }]},
        });
        world.0.tiers.apply_binding(&binding, Some(&entry(&binding, object)));
        let alice = User::new("alice", &[AUTHENTICATED]);
        let refused = "maximal permission policy of export root:tenancy.kcp.io";
        world.check(&alice, "team", "create workspaces.tenancy.kcp.io", "allowed");
        world.check(&alice, "team", "list workspaces.tenancy.kcp.io/status", "allowed");
        world.check(&alice, "team", "update workspaces.tenancy.kcp.io/status", refused);
        world.check(&User::new("alice", &[]), "team", "create workspaces.tenancy.kcp.io", refused);
        world.check_deep(
            &User::new("alice", &[]),
            "team",
            "create workspaces.tenancy.kcp.io",
            "allowed",
            true,
        );
    }

    /// The same bytes whether the workspace exists or not.
    #[tokio::test]
    async fn nothing_leaks_at_the_gate() {
        let world = World::new();
        let bob = User::new("bob", &[AUTHENTICATED]);
        for cluster in ["team", "early", "closed", "nowhere", "system:admin"] {
            let scope = ClusterScope::One(crate::testing::cluster(cluster));
            let attributes = Attributes {
                user: &bob,
                cluster: Some(&scope),
                verb: "get",
                group: "",
                version: "v1",
                resource: "configmaps",
                subresource: "",
                namespace: "",
                name: "",
                path: None,
                deep: false,
            };
            let verdict = world.0.authorize(&attributes).await;
            assert_ne!(verdict.decision, Decision::Allow);
            assert_eq!((verdict.reason.as_str(), verdict.hint), (DENIED, NOT_LET_IN), "{cluster}");
        }
    }
}
