//! Which groups need an object on other shards.

use fp_kcp::names::{self, group};
use fp_object::meta::Meta;
use fp_object::{Object, Value};

fn has(rule: &Value, key: &str, any: &[&str]) -> bool {
    let list = rule.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).any(|x| any.contains(&x))
}

fn some_rule(role: &Object, fits: impl Fn(&Value) -> bool) -> bool {
    role.get("rules").and_then(Value::as_array).into_iter().flatten().any(fits)
}

/// Grants binding an export, or seeing an export's content.
fn binds(role: &Object) -> bool {
    some_rule(role, |r| {
        has(r, "apiGroups", &[group::APIS, "*"])
            && ((has(r, "resources", &["apiexports", "*"]) && has(r, "verbs", &["bind", "*"]))
                || has(r, "resources", &["apiexports/content", "*"]))
    })
}

/// Grants using a workspace type.
fn uses(role: &Object) -> bool {
    some_rule(role, |r| {
        has(r, "apiGroups", &[group::TENANCY, "*"])
            && has(r, "resources", &["workspacetypes", "*"])
            && has(r, "verbs", &["use", "initialize", "terminate", "*"])
    })
}

/// Grants entering a workspace.
fn accesses(role: &Object) -> bool {
    some_rule(role, |r| {
        has(r, "nonResourceURLs", &["/", "*", "/*"]) && has(r, "verbs", &["access", "*"])
    })
}

/// Names a subject of a maximal permission policy.
fn is_policy(binding: &Object) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().any(|s| {
        let text = |key: &str| s.get(key).and_then(Value::as_str).unwrap_or("");
        text("name").starts_with(names::groups::BINDING_PREFIX)
            && ["User", "Group"].contains(&text("kind"))
            && text("apiGroup") == group::RBAC
    })
}

fn of_role(role: &Object, cluster_groups: &[String]) -> Vec<&'static str> {
    let mut out = Vec::new();
    if binds(role) {
        out.push(group::APIS);
    }
    if accesses(role) && !cluster_groups.is_empty() {
        out.push(group::CORE);
    }
    if uses(role) {
        out.push(group::TENANCY);
    }
    out
}

/// `bindings` are those that refer to the role; `cluster_groups` what its cluster is replicated for.
pub fn role_groups(
    role: &Object,
    bindings: &[Object],
    cluster_groups: &[String],
) -> Vec<&'static str> {
    let mut out = of_role(role, cluster_groups);
    if !out.contains(&group::APIS) && bindings.iter().any(is_policy) {
        out.insert(0, group::APIS);
    }
    out
}

pub fn binding_groups(
    binding: &Object,
    role: Option<&Object>,
    cluster_groups: &[String],
) -> Vec<&'static str> {
    let by_role = binding.text(&["roleRef", "kind"]) == Some("ClusterRole");
    let mut out = role.filter(|_| by_role).map(|r| of_role(r, cluster_groups)).unwrap_or_default();
    if !out.contains(&group::APIS) && is_policy(binding) {
        out.insert(0, group::APIS);
    }
    out
}

/// Writes the annotation: these groups of ours, and any other that stands there.
pub fn annotate(object: &mut Object, groups: &[&str]) {
    const OURS: [&str; 3] = [group::APIS, group::CORE, group::TENANCY];
    let old = object.annotation(names::REPLICATE).unwrap_or("").to_owned();
    let mut all: Vec<&str> =
        old.split(',').filter(|g| !g.is_empty() && !OURS.contains(g)).collect();
    all.extend(groups);
    all.sort_unstable();
    let new = all.join(",");
    if new == old {
        return;
    }
    if new.is_empty() {
        object.remove_at(&["metadata", "annotations", names::REPLICATE]);
    } else {
        object.set_annotation(names::REPLICATE, &new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn roles_and_bindings() {
        let admin = object(json!({"rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]}));
        let binding = object(json!({"roleRef": {"kind": "ClusterRole"}, "subjects": []}));
        assert_eq!(binding_groups(&binding, Some(&admin), &[]), ["apis.kcp.io", "tenancy.kcp.io"]);
        let replicated = ["apis.kcp.io".to_owned()];
        let all = ["apis.kcp.io", "core.kcp.io", "tenancy.kcp.io"];
        assert_eq!(binding_groups(&binding, Some(&admin), &replicated), all);
        let policy = object(json!({"roleRef": {"kind": "ClusterRole"}, "subjects": [{
            "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "apis.kcp.io:binding:system:authenticated",
        }]}));
        let plain =
            object(json!({"rules": [{"apiGroups": ["a"], "resources": ["b"], "verbs": ["get"]}]}));
        assert_eq!(role_groups(&plain, &[policy], &[]), ["apis.kcp.io"]);
        assert!(role_groups(&plain, &[], &replicated).is_empty());
    }

    #[test]
    fn the_annotation_keeps_others() {
        let mut o =
            object(json!({"metadata": {"annotations": {names::REPLICATE: "core.kcp.io,x.io"}}}));
        annotate(&mut o, &["apis.kcp.io"]);
        assert_eq!(o.annotation(names::REPLICATE), Some("apis.kcp.io,x.io"));
        annotate(&mut o, &[]);
        assert_eq!(o.annotation(names::REPLICATE), Some("x.io"));
    }
}
