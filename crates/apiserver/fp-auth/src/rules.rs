//! Whether one RBAC rule allows one request, and whether rules cover other rules.
//!
//! Source: Kubernetes' `pkg/apis/rbac/v1/evaluation_helpers.go` and
//! `component-helpers/auth/rbac/validation/policy_comparator.go`.

use crate::{Attributes, PolicyRule};

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|x| x == "*" || x == item)
}

/// True when the rule allows the request.
pub fn allows(rule: &PolicyRule, asked: &Attributes<'_>) -> bool {
    if !has(&rule.verbs, asked.verb) {
        return false;
    }
    match asked.path {
        Some(path) => rule.non_resource_urls.iter().any(|url| covers_url(url, path)),
        None => {
            has(&rule.api_groups, asked.group)
                && rule
                    .resources
                    .iter()
                    .any(|r| covers_resource(r, asked.resource, asked.subresource))
                && (rule.resource_names.is_empty()
                    || rule.resource_names.iter().any(|n| n == asked.name))
        }
    }
}

fn covers_url(rule: &str, path: &str) -> bool {
    rule == "*"
        || rule == path
        || rule.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

fn covers_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match (rule.split_once('/'), subresource) {
        (None, "") => rule == resource,
        (Some((r, s)), sub) if !sub.is_empty() => s == sub && (r == "*" || r == resource),
        _ => false,
    }
}

/// The rules of `wanted` that `held` does not cover, one verb, group and resource each.
pub fn uncovered(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    wanted
        .iter()
        .flat_map(break_down)
        .filter(|rule| !held.iter().any(|h| covers(h, rule)))
        .collect()
}

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

/// A rule as rules of one verb and one object each.
fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut out = Vec::new();
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let base = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    out.push(base);
                } else {
                    let named =
                        |name: &String| PolicyRule { resource_names: one(name), ..base.clone() };
                    out.extend(rule.resource_names.iter().map(named));
                }
            }
        }
        for url in &rule.non_resource_urls {
            out.push(PolicyRule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..PolicyRule::default()
            });
        }
    }
    out
}

/// `held` covers `wanted`, a rule of [`break_down`].
fn covers(held: &PolicyRule, wanted: &PolicyRule) -> bool {
    if !has(&held.verbs, &wanted.verbs[0]) {
        return false;
    }
    if let Some(url) = wanted.non_resource_urls.first() {
        return held.non_resource_urls.iter().any(|h| covers_url(h, url));
    }
    let (group, resource) = (&wanted.api_groups[0], &wanted.resources[0]);
    let resource_held = held.resources.iter().any(|h| {
        h == "*"
            || h == resource
            || matches!((h.strip_prefix("*/"), resource.split_once('/')), (Some(a), Some((_, b))) if a == b)
    });
    has(&held.api_groups, group)
        && resource_held
        && (held.resource_names.is_empty()
            || wanted.resource_names.first().is_some_and(|n| held.resource_names.contains(n)))
}

/// A rule as Kubernetes prints it in an escalation error.
pub fn compact(rule: &PolicyRule) -> String {
    let mut parts = Vec::new();
    for (name, list) in [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ] {
        if !list.is_empty() {
            let quoted: Vec<String> = list.iter().map(|x| format!("{x:?}")).collect();
            parts.push(format!("{name}:[{}]", quoted.join(" ")));
        }
    }
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> PolicyRule {
        let list = |text: &str| text.split(',').filter(|t| *t != "-").map(str::to_owned).collect();
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn resources() {
        let user = User::default();
        let check =
            |rule: &PolicyRule, verb: &str, group: &str, resource: &str, sub: &str, name: &str| {
                let asked = Attributes {
                    user: &user,
                    cluster: None,
                    verb,
                    group,
                    version: "v1",
                    resource,
                    subresource: sub,
                    namespace: "",
                    name,
                    path: None,
                    deep: false,
                };
                allows(rule, &asked)
            };
        let reader = rule("get,list", "", "configmaps", "-");
        assert!(check(&reader, "get", "", "configmaps", "", "a"));
        assert!(!check(&reader, "get", "", "configmaps", "status", "a"));
        assert!(!check(&reader, "delete", "", "configmaps", "", "a"));
        let named = rule("*", "*", "*", "one");
        assert!(check(&named, "patch", "x", "y", "z", "one"));
        assert!(!check(&named, "patch", "x", "y", "z", ""));
        let scale = rule("update", "apps", "*/scale", "-");
        assert!(check(&scale, "update", "apps", "things", "scale", ""));
        assert!(!check(&scale, "update", "apps", "things", "", ""));
    }

    #[test]
    fn escalation() {
        let held = [rule("get,list", "", "configmaps,secrets", "-")];
        let more = rule("get,delete", "", "configmaps", "-");
        let missing: Vec<String> = uncovered(&held, &[more]).iter().map(compact).collect();
        assert_eq!(missing, [r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}"#]);
        assert!(uncovered(&[rule("*", "*", "*", "-")], &[rule("get", "a", "b/c", "n")]).is_empty());
        assert!(
            !uncovered(&[rule("get", "a", "b", "n")], &[rule("get", "a", "b", "-")]).is_empty()
        );
    }
}
