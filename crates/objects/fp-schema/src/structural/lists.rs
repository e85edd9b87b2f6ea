//! `x-kubernetes-list-type`: the items of a set, and the keys of a map's items, are unique
//! (`apiserver/schema/listtype/validation.go`).

use std::collections::HashMap;

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value};

use super::{ListType, Node};

pub fn validate_object(
    object: &Object,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(child) = node.additional.schema() {
        for (key, value) in object {
            validate(value, child, &path.key(key), errors);
        }
    }
    if node.properties.is_empty() {
        return;
    }
    for (key, value) in object {
        if let Some(child) = node.property(key) {
            validate(value, child, &path.child(key), errors);
        }
    }
}

pub fn validate(value: &Value, node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => validate_object(map, node, path, errors),
        Value::Array(list) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => set(list, path, errors),
                ListType::Map(keys) => map(list, keys, path, errors),
            }
            if let Some(items) = &node.items {
                for (i, item) in list.iter().enumerate() {
                    validate(item, items, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn set(list: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for at in repeated(list.iter().map(Value::to_string)) {
        errors.push(FieldError::duplicate(path.index(at), list[at].clone()));
    }
}

fn map(list: &[Value], keys: &[Box<str>], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(at) = list.iter().position(|item| !item.is_null() && !item.is_object()) {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path.index(at), list[at].clone(), why));
        return;
    }
    if list.len() < 2 {
        return;
    }
    let all: Vec<Value> = list.iter().map(|item| Value::Object(key_of(item, keys))).collect();
    for at in repeated(all.iter().map(Value::to_string)) {
        errors.push(FieldError::duplicate(path.index(at), all[at].clone()));
    }
}

/// The item's key members, those that it has.
pub fn key_of(item: &Value, keys: &[Box<str>]) -> Object {
    let member = |key: &str| item.get(key).map(|value| (key.to_owned(), value.clone()));
    keys.iter().filter_map(|key| member(key)).collect()
}

/// The index of each value's second appearance.
fn repeated(texts: impl ExactSizeIterator<Item = String>) -> Vec<usize> {
    if texts.len() < 2 {
        return Vec::new();
    }
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(texts.len());
    let mut out = Vec::new();
    for (at, text) in texts.enumerate() {
        let n = seen.entry(text).or_default();
        *n += 1;
        if *n == 2 {
            out.push(at);
        }
    }
    out
}
