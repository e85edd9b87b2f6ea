//! The rules of kcp's own schemas (`x-kubernetes-validations` in `assets/`) as functions.
//!
//! A rule that speaks of `oldSelf` holds when there is no old value. Keyed by the rule's text, so a
//! schema that Go kcp has stored is enforced by the same functions.

use fp_object::Value;
use fp_schema::structural::RuleFn;

/// The function of a rule's text, if it is one of ours.
pub fn lookup(rule: &str) -> Option<RuleFn> {
    RULES.iter().find(|(text, _)| *text == rule).map(|(_, function)| *function)
}

fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|v| !v.is_null())
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

fn len(value: &Value, key: &str) -> usize {
    match value.get(key) {
        Some(Value::Array(list)) => list.len(),
        Some(Value::Object(map)) => map.len(),
        _ => 0,
    }
}

/// Whether a member is set did not change.
fn same_presence(new: &Value, old: Option<&Value>, key: &str) -> bool {
    old.is_none_or(|old| has(old, key) == has(new, key))
}

fn stays_set(new: &Value, old: Option<&Value>, key: &str) -> bool {
    old.is_none_or(|old| !has(old, key) || has(new, key))
}

/// `^first([rest]{0,max-2}first)?$`, where `first` is alphanumeric.
fn is_label_part(text: &str, max: usize, rest: fn(u8) -> bool, first: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(head), Some(tail)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= max
        && first(*head)
        && first(*tail)
        && bytes.iter().all(|b| first(*b) || rest(*b))
}

fn is_label_name(text: &str) -> bool {
    is_label_part(text, 63, |b| matches!(b, b'-' | b'_' | b'.'), |b| b.is_ascii_alphanumeric())
}

fn is_label_key(text: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match text.split_once('/') {
        Some((prefix, name)) => {
            is_label_part(prefix, 253, |b| b == b'-', lower) && is_label_name(name)
        }
        None => is_label_name(text),
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(|map| map.keys())
}

const RULES: &[(&str, RuleFn)] = &[
    ("self == oldSelf", |new, old| old.is_none_or(|old| new == old)),
    // Claims and endpoints.
    ("has(self.__namespace__) || has(self.name)", |new, _| {
        has(new, "namespace") || has(new, "name")
    }),
    (
        "(has(self.all) && self.all) != (has(self.resourceSelector) && size(self.resourceSelector) > 0)",
        |new, _| is_true(new, "all") != (len(new, "resourceSelector") > 0),
    ),
    ("!(has(self.matchAll) && self.matchAll && has(self.selector))", |new, _| {
        !(is_true(new, "matchAll") && has(new, "selector"))
    }),
    // Exports and schemas.
    ("has(self.crd) != has(self.virtual)", |new, _| has(new, "crd") != has(new, "virtual")),
    (
        "(self.strategy == 'None' && !has(self.webhook))  || (self.strategy == 'Webhook' && has(self.webhook))",
        |new, _| new["strategy"] == if has(new, "webhook") { "Webhook" } else { "None" },
    ),
    ("size(self.versions) == 1 || (size(self.versions) > 1 && has(self.conversion))", |new, _| {
        len(new, "versions") == 1 || (len(new, "versions") > 1 && has(new, "conversion"))
    }),
    // Workspaces.
    ("has(oldSelf.apiVersion) == has(self.apiVersion)", |new, old| {
        same_presence(new, old, "apiVersion")
    }),
    ("has(oldSelf.kind) == has(self.kind)", |new, old| same_presence(new, old, "kind")),
    ("has(oldSelf.name) == has(self.name)", |new, old| same_presence(new, old, "name")),
    ("has(oldSelf.path) == has(self.path)", |new, old| same_presence(new, old, "path")),
    ("self.name == oldSelf.name", |new, old| old.is_none_or(|old| new["name"] == old["name"])),
    ("!has(oldSelf.path) || !has(self.path) || self.path == oldSelf.path", |new, old| {
        old.is_none_or(|old| !has(old, "path") || !has(new, "path") || new["path"] == old["path"])
    }),
    ("!has(oldSelf.URL) || has(self.URL)", |new, old| stays_set(new, old, "URL")),
    ("!has(oldSelf.cluster) || has(self.cluster)", |new, old| stays_set(new, old, "cluster")),
    // Authentication configurations.
    ("has(self.claim) || has(self.expression)", |new, _| {
        has(new, "claim") || has(new, "expression")
    }),
    ("!(has(self.claim) && has(self.expression))", |new, _| {
        !(has(new, "claim") && has(new, "expression"))
    }),
    ("!(has(self.prefix)) || has(self.claim)", |new, _| !has(new, "prefix") || has(new, "claim")),
    (
        "(has(self.expression) && !has(self.requiredValue)) || (has(self.claim) && has(self.requiredValue))",
        |new, _| {
            (has(new, "expression") && !has(new, "requiredValue"))
                || (has(new, "claim") && has(new, "requiredValue"))
        },
    ),
    (
        "(has(self.expression) && has(self.message)) || (has(self.claim) && !has(self.message))",
        |new, _| {
            (has(new, "expression") && has(new, "message"))
                || (has(new, "claim") && !has(new, "message"))
        },
    ),
    // Selectors of partition sets.
    (LABEL_KEY, |new, _| new.as_str().is_some_and(is_label_key)),
    (LABEL_KEYS, |new, _| keys(new).all(|key| is_label_key(key))),
    (LABEL_VALUES, |new, _| {
        new.as_object().into_iter().flatten().all(|(_, v)| v.as_str().is_some_and(is_label_name))
    }),
    (
        "self.operator in [\"In\", \"NotIn\"] ? size(self.values) > 0 : (self.operator in [\"Exists\", \"DoesNotExist\"] ? !has(self.values) : true)",
        |new, _| match new["operator"].as_str() {
            Some("In" | "NotIn") => len(new, "values") > 0,
            Some("Exists" | "DoesNotExist") => !has(new, "values"),
            _ => true,
        },
    ),
];

const LABEL_KEY: &str = r#"self.contains("/") ? self.split("/", 2)[0].matches("^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$") && self.split("/", 2)[1].matches("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$") : self.matches("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")"#;
const LABEL_KEYS: &str = r#"self.all(k, k.contains("/") ? k.split("/", 2)[0].matches("^[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?$") && k.split("/", 2)[1].matches("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$") : k.matches("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"))"#;
const LABEL_VALUES: &str =
    r#"self.all(k, self[k].matches("^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"))"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn collect(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for rule in map
                    .get("x-kubernetes-validations")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    into.insert(rule["rule"].as_str().unwrap().to_owned());
                }
                map.values().for_each(|v| collect(v, into));
            }
            Value::Array(list) => list.iter().for_each(|v| collect(v, into)),
            _ => {}
        }
    }

    /// Every rule in `assets/` has a function, and no function is without a rule.
    #[test]
    fn complete() {
        let mut rules = BTreeSet::new();
        for text in assets::SYSTEM_CRDS.iter().chain(&assets::ROOT_SCHEMAS) {
            collect(&Value::Object(assets::one(text)), &mut rules);
        }
        let ours: BTreeSet<String> = RULES.iter().map(|(text, _)| (*text).to_owned()).collect();
        assert_eq!(ours.len(), RULES.len());
        assert_eq!(rules.symmetric_difference(&ours).collect::<Vec<_>>(), Vec::<&String>::new());
    }

    fn check(rule: &str, new: Value, old: Option<Value>, want: bool) {
        assert_eq!(lookup(rule).expect(rule)(&new, old.as_ref()), want, "{rule}: {new} {old:?}");
    }

    #[test]
    fn rules() {
        check("self == oldSelf", json!(1), None, true);
        check("self == oldSelf", json!({"a": 1}), Some(json!({"a": 2})), false);
        let claim = "(has(self.all) && self.all) != (has(self.resourceSelector) && size(self.resourceSelector) > 0)";
        check(claim, json!({"all": true}), None, true);
        check(claim, json!({"all": true, "resourceSelector": [{}]}), None, false);
        check(claim, json!({"all": false}), None, false);
        let cluster = "!has(oldSelf.cluster) || has(self.cluster)";
        check(cluster, json!({}), Some(json!({"cluster": "x"})), false);
        check(cluster, json!({"cluster": "x"}), Some(json!({})), true);
        let webhook = "(self.strategy == 'None' && !has(self.webhook))  || (self.strategy == 'Webhook' && has(self.webhook))";
        check(webhook, json!({"strategy": "None"}), None, true);
        check(webhook, json!({"strategy": "Webhook"}), None, false);
        check(webhook, json!({"strategy": "None", "webhook": {}}), None, false);
    }

    #[test]
    fn labels() {
        let long = "a".repeat(64);
        for (text, want) in [
            ("region", true),
            ("example-dev/region_1.x", true),
            ("example.dev/region", false),
            ("a/b/c", false),
            ("/b", false),
            ("a/", false),
            ("-a", false),
            ("", false),
            (long.as_str(), false),
        ] {
            check(LABEL_KEY, json!(text), None, want);
            check(LABEL_KEYS, json!({text: ""}), None, want);
        }
        check(LABEL_VALUES, json!({"a": "B.c"}), None, true);
        check(LABEL_VALUES, json!({"a": ""}), None, false);
    }
}
