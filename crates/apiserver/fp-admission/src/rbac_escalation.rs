//! Nobody grants what they do not hold: writes of roles need the verb `escalate` or every rule of
//! the role, writes of bindings the verb `bind` or every rule of the role they refer to.
//!
//! Sources: Kubernetes' `registry/rbac/{escalation_check,helpers}.go`,
//! `registry/rbac/*/policybased/storage.go`, `registry/rbac/validation`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use fp_auth::{Attributes as Asked, Authorizer, PolicyRule, rules};
use fp_base::{ClusterName, ClusterScope};
use fp_object::meta::Meta;
use fp_object::status::{About, Status};
use fp_object::{Object, Value, go};

use crate::{Attributes, Operation, Plugin};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A role that a binding refers to.
#[derive(Clone, Copy, Debug)]
pub struct RoleRef<'a> {
    pub cluster: &'a ClusterName,
    /// The binding's; empty for a ClusterRoleBinding.
    pub namespace: &'a str,
    /// `ClusterRole` or `Role`.
    pub kind: &'a str,
    pub name: &'a str,
}

/// The rules of a role as its cluster sees it; `None` when there is none.
pub type RoleRules = Arc<dyn Fn(RoleRef<'_>) -> Option<Vec<PolicyRule>> + Send + Sync>;

pub struct RbacEscalation {
    pub authorizer: Arc<dyn Authorizer>,
    pub role_rules: RoleRules,
}

#[async_trait]
impl Plugin for RbacEscalation {
    fn name(&self) -> &'static str {
        "RBACEscalation"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let (Some(object), GROUP) = (object, &*attributes.info.gr.group) else { return Ok(()) };
        if attributes.user.is_master() || attributes.operation == Operation::Delete {
            return Ok(());
        }
        if attributes.old.is_some_and(|old| only_collector_fields(object, old)) {
            return Ok(());
        }
        match &*attributes.info.gr.resource {
            "roles" | "clusterroles" => self.role(attributes, object).await,
            "rolebindings" | "clusterrolebindings" => self.binding(attributes, object).await,
            _ => Ok(()),
        }
    }
}

impl RbacEscalation {
    async fn role(&self, attributes: &Attributes<'_>, role: &Object) -> Result<(), Status> {
        let resource = &attributes.info.gr.resource;
        if self.may(attributes, "escalate", resource, attributes.namespace, role.name()).await {
            return Ok(());
        }
        self.confirm(attributes, role, &rules_of(role)).await?;
        let aggregates = |object: &Object| {
            let selectors =
                object.at(&["aggregationRule", "clusterRoleSelectors"]).and_then(Value::as_array);
            selectors.is_some_and(|list| !list.is_empty())
        };
        if aggregates(role) || attributes.old.is_some_and(aggregates) {
            // What is gathered is not known beforehand.
            if self.confirm(attributes, role, &everything()).await.is_err() {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                return Err(Status::forbidden(about(attributes, role), why));
            }
        }
        Ok(())
    }

    async fn binding(&self, attributes: &Attributes<'_>, binding: &Object) -> Result<(), Status> {
        let kind = binding.text(&["roleRef", "kind"]).unwrap_or("");
        let name = binding.text(&["roleRef", "name"]).unwrap_or("");
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => return Ok(()),
        };
        let namespace = attributes.namespace;
        if self.may(attributes, "bind", resource, namespace, name).await {
            return Ok(());
        }
        let found =
            (self.role_rules)(RoleRef { cluster: attributes.cluster, namespace, kind, name });
        let wanted =
            found.ok_or_else(|| Status::not_found(About { group: GROUP, resource, name }))?;
        self.confirm(attributes, binding, &wanted).await
    }

    async fn may(
        &self,
        attributes: &Attributes<'_>,
        verb: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> bool {
        let cluster = ClusterScope::One(attributes.cluster.clone());
        let asked = Asked {
            user: attributes.user,
            cluster: Some(&cluster),
            verb,
            group: GROUP,
            version: "*",
            resource,
            subresource: "",
            namespace,
            name,
            path: None,
            deep: false,
        };
        self.authorizer.authorize(&asked).await.allowed()
    }

    /// 403 that names what the user does not hold.
    async fn confirm(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
        wanted: &[PolicyRule],
    ) -> Result<(), Status> {
        let cluster = ClusterScope::One(attributes.cluster.clone());
        let held = self.authorizer.rules(attributes.user, &cluster, attributes.namespace).await;
        let missing = rules::uncovered(&held.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let user = attributes.user;
        let described: BTreeSet<String> = compact(missing).iter().map(describe).collect();
        let described: Vec<String> = described.into_iter().collect();
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go::quote(&user.name),
            quoted(&user.groups),
            described.join("\n")
        );
        if let Some(incomplete) = held.incomplete {
            why.push_str(&format!("; resolution errors: [{incomplete}]"));
        }
        Err(Status::forbidden(about(attributes, object), why))
    }
}

fn about<'a>(attributes: &'a Attributes<'_>, object: &'a Object) -> About<'a> {
    About { group: GROUP, resource: &attributes.info.gr.resource, name: object.name() }
}

/// The rules of a role. What validation lets pass is well-formed, so nothing is left out.
fn rules_of(role: &Object) -> Vec<PolicyRule> {
    let rules = role.get("rules").filter(|v| !v.is_null());
    rules.and_then(|v| serde_json::from_value(v.clone()).ok()).unwrap_or_default()
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
}

/// True when the update changes only what the garbage collector works on.
fn only_collector_fields(object: &Object, old: &Object) -> bool {
    let mut object = object.clone();
    for field in ["finalizers", "managedFields", "ownerReferences", "selfLink"] {
        match old.at(&["metadata", field]) {
            Some(value) => object.set_meta(field, value.clone()),
            None => drop(object.remove_at(&["metadata", field])),
        }
    }
    object == *old
}

/// Joins rules that differ only by verb (`CompactRules`).
fn compact(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut out = Vec::new();
    let mut joined: BTreeMap<(String, String, Vec<String>), PolicyRule> = BTreeMap::new();
    for rule in rules {
        if rule.api_groups.len() != 1 || rule.resources.len() != 1 || rule.resource_names.len() > 1
        {
            out.push(rule);
            continue;
        }
        let key =
            (rule.api_groups[0].clone(), rule.resources[0].clone(), rule.resource_names.clone());
        match joined.get_mut(&key) {
            Some(found) => found.verbs.extend(rule.verbs),
            None => drop(joined.insert(key, rule)),
        }
    }
    out.extend(joined.into_values());
    out
}

/// `["a" "b"]`, as Go prints a list of strings with `%q`.
fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|s| go::quote(s)).collect();
    format!("[{}]", items.join(" "))
}

/// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}` (`CompactString`).
fn describe(rule: &PolicyRule) -> String {
    let parts: Vec<String> = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ]
    .into_iter()
    .filter(|(_, list)| !list.is_empty())
    .map(|(name, list)| format!("{name}:{}", quoted(list)))
    .collect();
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use fp_auth::{Rules, User, Verdict};
    use serde_json::json;

    use super::*;
    use crate::testing::{attributes, info, run};

    /// Holds `get` and `list` of configmaps, and may bind the ClusterRole `free`.
    struct Few;

    #[async_trait]
    impl Authorizer for Few {
        async fn authorize(&self, asked: &Asked<'_>) -> Verdict {
            match (asked.verb, asked.resource, asked.name) {
                ("bind", "clusterroles", "free") => Verdict::allow(""),
                _ => Verdict::no_opinion(""),
            }
        }

        async fn rules(&self, _: &User, _: &ClusterScope, _: &str) -> Rules {
            Rules { rules: vec![rule("configmaps", &["get", "list"])], incomplete: None }
        }
    }

    fn rule(resource: &str, verbs: &[&str]) -> PolicyRule {
        PolicyRule {
            verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
            api_groups: vec![String::new()],
            resources: vec![resource.into()],
            ..PolicyRule::default()
        }
    }

    fn check(resource: &str, object: Value, want: Expect) {
        let plugin = RbacEscalation {
            authorizer: Arc::new(Few),
            role_rules: Arc::new(|role| {
                (role.name == "admin").then(|| vec![rule("secrets", &["get", "delete"])])
            }),
        };
        let info = info(GROUP, resource, false);
        let mut attributes = attributes(&info, Operation::Create, "", "x");
        let user = User::new("alice", &["a", "b"]);
        attributes.user = &user;
        let object = object.as_object().expect("a test's object");
        let got = match run(plugin.validate(&attributes, Some(object))) {
            Ok(()) => "ok".to_owned(),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        want.assert_eq(&got);
    }

    #[test]
    fn nobody_grants_more_than_they_hold() {
        let role = |resource: &str, verbs: Value| {
            json!({ "metadata": { "name": "x" },
                "rules": [{ "apiGroups": [""], "resources": [resource], "verbs": verbs }] })
        };
        check("clusterroles", role("configmaps", json!(["get"])), expect!["ok"]);
        check(
            "clusterroles",
            role("secrets", json!(["get", "list"])),
            expect![[r#"
                403 clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "alice" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held:
                {APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#]],
        );
        let aggregated = json!({ "metadata": { "name": "x" }, "aggregationRule": { "clusterRoleSelectors": [{}] } });
        check(
            "clusterroles",
            aggregated,
            expect![[
                r#"403 clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin privileges to use the aggregationRule"#
            ]],
        );
    }

    #[test]
    fn nobody_binds_more_than_they_hold() {
        let binding = |role: &str| {
            json!({ "metadata": { "name": "x" },
                "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": role } })
        };
        check("clusterrolebindings", binding("free"), expect!["ok"]);
        check(
            "clusterrolebindings",
            binding("admin"),
            expect![[r#"
                403 clusterrolebindings.rbac.authorization.k8s.io "x" is forbidden: user "alice" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held:
                {APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}"#]],
        );
        check(
            "clusterrolebindings",
            binding("none"),
            expect![[r#"404 clusterroles.rbac.authorization.k8s.io "none" not found"#]],
        );
    }
}
