//! RBAC: roles and bindings of every cluster, indexed from the informer, and who may do what.
//!
//! A workspace costs its bindings here, parsed; equal strings and rule lists are not shared, since
//! a fresh workspace has one binding.

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::ClusterName;
use fp_informer::{Entry, ObjectKey};
use fp_object::{Object, Value};
use parking_lot::RwLock;

use crate::effective;
use crate::{Attributes, PolicyRule, User, rules};

/// The four kinds of `rbac.authorization.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

impl Kind {
    /// By resource name, `roles`, ...
    pub fn of(resource: &str) -> Option<Self> {
        Some(match resource {
            "roles" => Self::Role,
            "clusterroles" => Self::ClusterRole,
            "rolebindings" => Self::RoleBinding,
            "clusterrolebindings" => Self::ClusterRoleBinding,
            _ => return None,
        })
    }
}

#[derive(Debug)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
    /// Namespace (empty: the binding's own) and name.
    ServiceAccount(Box<str>, Box<str>),
}

#[derive(Debug)]
struct Binding {
    name: Arc<str>,
    subjects: Box<[Subject]>,
    cluster_role: bool,
    role: Box<str>,
}

type RuleList = Arc<[PolicyRule]>;

#[derive(Default)]
struct ClusterRbac {
    cluster_roles: HashMap<Arc<str>, RuleList>,
    /// By namespace and name.
    roles: HashMap<(Arc<str>, Arc<str>), RuleList>,
    cluster_bindings: Vec<Binding>,
    bindings: HashMap<Arc<str>, Vec<Binding>>,
}

impl ClusterRbac {
    fn is_empty(&self) -> bool {
        self.cluster_roles.is_empty()
            && self.roles.is_empty()
            && self.cluster_bindings.is_empty()
            && self.bindings.is_empty()
    }
}

/// The index. Written by an informer observer, so that it is never behind what a reader sees.
#[derive(Default)]
pub struct Rbac {
    clusters: RwLock<HashMap<ClusterName, ClusterRbac>>,
}

/// Whose bindings count and where their ClusterRoles are looked up, in order.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub bindings: &'a ClusterName,
    pub roles: &'a [&'a ClusterName],
}

impl Rbac {
    /// Takes in an object of one of the four kinds; `None` is a delete.
    pub fn apply(&self, kind: Kind, key: &ObjectKey, entry: Option<&Entry>) {
        let object = entry.map(Entry::object);
        let mut clusters = self.clusters.write();
        let cluster = clusters.entry(key.cluster.clone()).or_default();
        match kind {
            Kind::ClusterRole => {
                set(&mut cluster.cluster_roles, key.name.clone(), object.as_ref().map(rule_list))
            }
            Kind::Role => {
                let at = (key.namespace.clone(), key.name.clone());
                set(&mut cluster.roles, at, object.as_ref().map(rule_list));
            }
            Kind::ClusterRoleBinding => {
                set_binding(&mut cluster.cluster_bindings, &key.name, object.as_ref());
            }
            Kind::RoleBinding => {
                let list = cluster.bindings.entry(key.namespace.clone()).or_default();
                set_binding(list, &key.name, object.as_ref());
                if list.is_empty() {
                    cluster.bindings.remove(&key.namespace);
                }
            }
        }
        if cluster.is_empty() {
            clusters.remove(&key.cluster);
        }
    }

    /// Visits every rule that applies to `user`, with the binding's description, until `visit`
    /// answers false.
    pub fn visit(
        &self,
        sources: Sources<'_>,
        user: &User,
        at: &ClusterName,
        namespace: &str,
        visit: &mut dyn FnMut(&dyn Fn() -> String, &PolicyRule) -> bool,
    ) {
        let users = effective::users(user, at);
        let clusters = self.clusters.read();
        let Some(own) = clusters.get(sources.bindings) else { return };
        let cluster_role = |name: &str| {
            sources.roles.iter().find_map(|c| clusters.get(*c)?.cluster_roles.get(name))
        };
        let namespaced = own.bindings.get(namespace).map(Vec::as_slice).unwrap_or_default();
        let all = own
            .cluster_bindings
            .iter()
            .map(|b| (b, ""))
            .chain(namespaced.iter().map(|b| (b, namespace)));
        for (binding, namespace) in all {
            let fits = |s: &Subject| users.iter().any(|u| applies(s, u, namespace));
            if !binding.subjects.iter().any(fits) {
                continue;
            }
            let rules = if binding.cluster_role {
                cluster_role(&binding.role)
            } else {
                own.roles.get(&(namespace.into(), (&*binding.role).into()))
            };
            let describe = || describe(binding, namespace);
            for rule in rules.map(|r| r.iter()).into_iter().flatten() {
                if !visit(&describe, rule) {
                    return;
                }
            }
        }
    }

    /// Why the request is allowed, or `None`.
    pub fn allowed_by(
        &self,
        sources: Sources<'_>,
        at: &ClusterName,
        asked: &Attributes<'_>,
    ) -> Option<String> {
        let mut reason = None;
        self.visit(sources, asked.user, at, asked.namespace, &mut |describe, rule| {
            if rules::allows(rule, asked) {
                reason = Some(format!("RBAC: allowed by {}", describe()));
            }
            reason.is_none()
        });
        reason
    }

    /// Every rule that applies to `user`.
    pub fn rules(
        &self,
        sources: Sources<'_>,
        user: &User,
        at: &ClusterName,
        namespace: &str,
    ) -> Vec<PolicyRule> {
        let mut out = Vec::new();
        self.visit(sources, user, at, namespace, &mut |_, rule| {
            out.push(rule.clone());
            true
        });
        out
    }

    /// The rules of a ClusterRole, looked up in `clusters` in order.
    pub fn cluster_role(&self, clusters: &[&ClusterName], name: &str) -> Option<Arc<[PolicyRule]>> {
        let all = self.clusters.read();
        clusters.iter().find_map(|c| all.get(*c)?.cluster_roles.get(name)).cloned()
    }

    pub fn role(
        &self,
        cluster: &ClusterName,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<[PolicyRule]>> {
        self.clusters.read().get(cluster)?.roles.get(&(namespace.into(), name.into())).cloned()
    }
}

fn set<K: std::hash::Hash + Eq>(map: &mut HashMap<K, RuleList>, key: K, value: Option<RuleList>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

fn set_binding(list: &mut Vec<Binding>, name: &Arc<str>, object: Option<&Object>) {
    list.retain(|b| b.name != *name);
    list.extend(object.and_then(|o| binding(name.clone(), o)));
    list.shrink_to_fit();
}

fn rule_list(role: &Object) -> RuleList {
    let rules = role.get("rules").cloned().unwrap_or_default();
    serde_json::from_value::<Vec<PolicyRule>>(rules).unwrap_or_default().into()
}

fn binding(name: Arc<str>, object: &Object) -> Option<Binding> {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let role = object.get("roleRef")?;
    let subject = |s: &Value| {
        let name: Box<str> = text(s, "name").into();
        Some(match s.get("kind")?.as_str()? {
            "User" => Subject::User(name),
            "Group" => Subject::Group(name),
            "ServiceAccount" => Subject::ServiceAccount(text(s, "namespace").into(), name),
            _ => return None,
        })
    };
    let subjects = object.get("subjects").and_then(Value::as_array);
    Some(Binding {
        name,
        subjects: subjects.map(|l| l.iter().filter_map(subject).collect()).unwrap_or_default(),
        cluster_role: text(role, "kind") == "ClusterRole",
        role: text(role, "name").into(),
    })
}

fn applies(subject: &Subject, user: &User, namespace: &str) -> bool {
    match subject {
        Subject::User(name) => user.name == **name,
        Subject::Group(name) => user.in_group(name),
        Subject::ServiceAccount(of, name) => {
            let of = if of.is_empty() { namespace } else { of };
            let parts =
                user.name.strip_prefix("system:serviceaccount:").and_then(|r| r.split_once(':'));
            !of.is_empty() && parts == Some((of, name))
        }
    }
}

fn describe(binding: &Binding, namespace: &str) -> String {
    let role = if binding.cluster_role { "ClusterRole" } else { "Role" };
    if namespace.is_empty() {
        format!("ClusterRoleBinding {:?} of {role} {:?}", &*binding.name, &*binding.role)
    } else {
        format!("RoleBinding \"{}/{namespace}\" of {role} {:?}", binding.name, &*binding.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fp_base::{ClusterScope, Revision};

    fn put(rbac: &Rbac, cluster: &str, namespace: &str, resource: &str, name: &str, body: &str) {
        let key = ObjectKey {
            cluster: ClusterName::parse(cluster).unwrap(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let entry = Entry::new(
            key.clone(),
            Revision(1),
            body.as_bytes().to_vec().into(),
            Box::default(),
            false,
        );
        rbac.apply(Kind::of(resource).unwrap(), &key, Some(&entry));
    }

    fn world() -> Rbac {
        let rbac = Rbac::default();
        let reader = r#"{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["configmaps"]}]}"#;
        put(
            &rbac,
            "system:admin",
            "",
            "clusterroles",
            "cluster-admin",
            r#"{"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},{"verbs":["*"],"nonResourceURLs":["*"]}]}"#,
        );
        put(
            &rbac,
            "one",
            "",
            "clusterrolebindings",
            "workspace-admin",
            r#"{"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"alice"}]}"#,
        );
        put(&rbac, "one", "ns", "roles", "reader", reader);
        put(
            &rbac,
            "one",
            "ns",
            "rolebindings",
            "robot",
            r#"{"roleRef":{"kind":"Role","name":"reader"},"subjects":[{"kind":"ServiceAccount","name":"robot"},{"kind":"Group","name":"devs"}]}"#,
        );
        rbac
    }

    fn check(rbac: &Rbac, user: &User, cluster: &str, verb: &str, namespace: &str, want: &str) {
        let (own, admin) = (ClusterName::parse(cluster).unwrap(), ClusterName::system("admin"));
        let scope = ClusterScope::One(own.clone());
        let asked = Attributes {
            user,
            cluster: Some(&scope),
            verb,
            group: "",
            version: "v1",
            resource: "configmaps",
            subresource: "",
            namespace,
            name: "",
            path: None,
            deep: false,
        };
        let sources = Sources { bindings: &own, roles: &[&own, &admin] };
        assert_eq!(rbac.allowed_by(sources, &own, &asked).unwrap_or_default(), want);
    }

    #[test]
    fn bindings() {
        let rbac = world();
        let alice = User::new("alice", &["system:authenticated"]);
        let admin = r#"RBAC: allowed by ClusterRoleBinding "workspace-admin" of ClusterRole "cluster-admin""#;
        check(&rbac, &alice, "one", "delete", "ns", admin);
        check(&rbac, &alice, "two", "delete", "ns", "");
        let robot = User::new("system:serviceaccount:ns:robot", &[]);
        let reads = r#"RBAC: allowed by RoleBinding "robot/ns" of Role "reader""#;
        check(&rbac, &robot, "one", "get", "ns", reads);
        check(&rbac, &robot, "one", "get", "other", "");
        check(&rbac, &robot, "one", "list", "ns", "");
        check(&rbac, &User::new("bob", &["devs"]), "one", "get", "ns", reads);
    }

    #[test]
    fn deletes_leave_nothing() {
        let rbac = world();
        for (cluster, namespace, resource, name) in [
            ("system:admin", "", "clusterroles", "cluster-admin"),
            ("one", "", "clusterrolebindings", "workspace-admin"),
            ("one", "ns", "roles", "reader"),
            ("one", "ns", "rolebindings", "robot"),
        ] {
            let cluster = ClusterName::parse(cluster).unwrap();
            let key = ObjectKey { cluster, namespace: namespace.into(), name: name.into() };
            rbac.apply(Kind::of(resource).unwrap(), &key, None);
        }
        assert!(rbac.clusters.read().is_empty());
    }
}
