//! Pruning of unknown fields and of nulls, and defaulting
//! (`apiserver/schema/pruning`, `apiserver/schema/defaulting`).

use fp_object::field::Path;
use fp_object::{Object, Value};

use super::{Additional, Node};

/// Members that every resource has, whether its schema names them or not.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub fn prune(object: &mut Object, root: &Node, report: bool) -> Vec<String> {
    let mut pruner = Pruner { report, unknown: Vec::new() };
    if root.preserve_unknown {
        pruner.descend_object(object, root, true, &Path::Root);
    } else {
        pruner.object(object, root, true, &Path::Root);
    }
    pruner.unknown.sort();
    pruner.unknown
}

/// Prunes a value that is no resource of its own.
pub fn value(value: &mut Value, node: &Node) {
    Pruner { report: false, unknown: Vec::new() }.value(value, Some(node), &Path::Root);
}

struct Pruner {
    report: bool,
    unknown: Vec<String>,
}

impl Pruner {
    /// `node` is `None` where nothing is known of the value: its members all go.
    fn value(&mut self, value: &mut Value, node: Option<&Node>, path: &Path<'_>) {
        if let Some(node) = node.filter(|n| n.preserve_unknown) {
            return self.descend(value, node, path);
        }
        match value {
            Value::Object(map) => match node {
                Some(node) => self.object(map, node, node.embedded, path),
                None => {
                    map.keys().for_each(|key| self.note(&path.child(key)));
                    map.clear();
                }
            },
            Value::Array(list) => {
                let items = node.and_then(|n| n.items.as_deref());
                for (i, item) in list.iter_mut().enumerate() {
                    self.value(item, items, &path.index(i));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Object, node: &Node, resource: bool, path: &Path<'_>) {
        let at_root = matches!(path, Path::Root);
        map.retain(|key, value| {
            if resource && META.contains(&&**key) {
                return true;
            }
            let here = path.child(key);
            if let Some(child) = node.property(key) {
                self.value(value, Some(child), &here);
                return true;
            }
            match &node.additional {
                Additional::None => {
                    if !at_root || !META.contains(&&**key) {
                        self.note(&here);
                    }
                    false
                }
                other => {
                    self.value(value, other.schema(), &here);
                    true
                }
            }
        });
    }

    /// Under `x-kubernetes-preserve-unknown-fields` only what the schema names is pruned inside.
    fn descend(&mut self, value: &mut Value, node: &Node, path: &Path<'_>) {
        match value {
            Value::Object(map) => self.descend_object(map, node, node.embedded, path),
            Value::Array(list) => {
                let Some(items) = &node.items else { return };
                for (i, item) in list.iter_mut().enumerate() {
                    self.descend(item, items, &path.index(i));
                }
            }
            _ => {}
        }
    }

    fn descend_object(&mut self, map: &mut Object, node: &Node, resource: bool, path: &Path<'_>) {
        for (key, value) in map {
            if resource && META.contains(&&**key) {
                continue;
            }
            let here = path.child(key);
            if let Some(child) = node.property(key) {
                self.value(value, Some(child), &here);
            } else if !matches!(node.additional, Additional::None) {
                self.value(value, node.additional.schema(), &here);
            }
        }
    }

    fn note(&mut self, path: &Path<'_>) {
        if self.report {
            self.unknown.push(path.to_string());
        }
    }
}

/// Removes members that are null where their schema neither allows null nor has a default.
pub fn nulls(object: &mut Object, node: &Node) {
    object.retain(|key, value| {
        let Some(child) = node.member(key) else { return true };
        if value.is_null() {
            return child.nullable || child.default.is_some();
        }
        nulls_in(value, child);
        true
    });
}

fn nulls_in(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => nulls(map, node),
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|item| nulls_in(item, items));
            }
        }
        _ => {}
    }
}

/// Fills in defaults where a member is absent, or null against its schema.
pub fn default(object: &mut Object, node: &Node) {
    for (name, child) in &node.properties {
        let Some(default) = &child.default else { continue };
        let replace = match object.get(&**name) {
            None => true,
            Some(value) => value.is_null() && !child.nullable,
        };
        if replace {
            object.insert((**name).to_owned(), default.clone());
        }
    }
    for (key, value) in object {
        if let Some(child) = node.property(key) {
            default_in(value, child);
        } else if let Some(child) = node.additional.schema() {
            default_null(value, child);
            default_in(value, child);
        }
    }
}

fn default_in(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => default(map, node),
        Value::Array(list) => {
            let Some(items) = &node.items else { return };
            for item in list {
                default_null(item, items);
                default_in(item, items);
            }
        }
        _ => {}
    }
}

fn default_null(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
