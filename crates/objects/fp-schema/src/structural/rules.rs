//! Runs the rules of `x-kubernetes-validations` with Kubernetes' words and correlation of old
//! values (`apiserver/schema/cel/validation.go`).

use fp_object::field::{Bad, ErrorType, FieldError, Path};
use fp_object::{Object, Value};

use super::{ListType, Node, Rule, Types, lists};

/// `errors` holds what the schema itself found: some of it forbids to run rules at all.
pub fn validate(object: &Object, old: Option<&Object>, root: &Node, errors: &mut Vec<FieldError>) {
    let blocking = |e: &FieldError| {
        use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        matches!(e.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
    };
    if errors.iter().any(blocking) {
        let why = "some validation rules were not checked because the object was invalid; \
                   correct the existing errors to complete validation";
        errors.push(FieldError::invalid(Path::Root, Value::Null, why));
        return;
    }
    let object = Value::Object(object.clone());
    let old = old.map(|o| Value::Object(o.clone()));
    walk(&object, old.as_ref(), root, &Path::Root, errors);
}

fn walk(
    value: &Value,
    old: Option<&Value>,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !node.has_rules || value.is_null() {
        return;
    }
    // A null old value is as good as none.
    let old = old.filter(|o| !o.is_null());
    for rule in &node.rules {
        let applies = !rule.transition || old.is_some() || rule.optional_old_self;
        match rule.holds {
            _ if !applies => {}
            Some(holds) if holds(value, old) => {}
            Some(_) => errors.push(broken(rule, value, node, path)),
            None if old.is_some_and(|old| is_same(value, old, path)) => {}
            None => errors.push(unknown(rule, path)),
        }
    }
    match value {
        Value::Array(list) => {
            let Some(items) = &node.items else { return };
            let old = old.and_then(Value::as_array);
            for (i, item) in list.iter().enumerate() {
                let before = old.and_then(|o| same_item(item, o, &node.list));
                walk(item, before, items, &path.index(i), errors);
            }
        }
        Value::Object(map) => {
            let before = |key: &str| old.and_then(|o| o.get(key));
            if let Some(child) = node.additional.schema() {
                for (key, item) in map {
                    walk(item, before(key), child, &path.key(key), errors);
                }
            }
            for (key, item) in map {
                if let Some(child) = node.property(key) {
                    walk(item, before(key), child, &path.child(key), errors);
                }
            }
        }
        _ => {}
    }
}

/// Whether a rule sees the same in both; of the root's metadata it sees the name alone, which cannot
/// change.
fn is_same(value: &Value, old: &Value, path: &Path<'_>) -> bool {
    let (Path::Root, Some(new), Some(old)) = (path, value.as_object(), old.as_object()) else {
        return value == old;
    };
    let seen = |o: &Object| o.iter().filter(|(key, _)| *key != "metadata").count();
    let stays = |(key, v): (&String, &Value)| key == "metadata" || old.get(key) == Some(v);
    seen(new) == seen(old) && new.iter().all(stays)
}

fn unknown(rule: &Rule, path: &Path<'_>) -> FieldError {
    let why =
        "CEL rules are not served by this version of Ferroplane, and this one guards the value";
    FieldError::forbidden(path, format!("{why}: {}", rule.text))
}

/// Only the items of a list of type map have a counterpart in the old list.
fn same_item<'a>(item: &Value, old: &'a [Value], list: &ListType) -> Option<&'a Value> {
    let ListType::Map(keys) = list else { return None };
    let key = lists::key_of(item, keys);
    old.iter().find(|o| lists::key_of(o, keys) == key)
}

fn broken(rule: &Rule, value: &Value, node: &Node, path: &Path<'_>) -> FieldError {
    let at = match (&*rule.field_path, path) {
        ("", _) => path.to_string(),
        (field, Path::Root) => field.to_owned(),
        (field, _) => format!("{path}.{field}"),
    };
    let detail = if rule.message.is_empty() {
        format!("failed rule: {}", rule.text)
    } else {
        rule.message.to_string()
    };
    let shown = if node.types == Types::OBJECT || node.types == Types::ARRAY {
        Bad::Omit
    } else {
        Bad::Value(value.clone())
    };
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(at, detail),
        Some("FieldValueRequired") => FieldError::required(at, detail),
        Some("FieldValueDuplicate") => {
            FieldError { kind: ErrorType::Duplicate, field: at, bad: shown, detail: String::new() }
        }
        _ => FieldError { kind: ErrorType::Invalid, field: at, bad: shown, detail },
    }
}
