//! Defaults of a schema keep to the schema (`apiserver/schema/defaulting/validation.go`).

use fp_object::Value;
use fp_object::field::{FieldError, Path};

use crate::structural::{Node, Structural, embedded, prune, value_errors};

pub fn validate(schema: &Structural, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema.root(), path, &mut errors);
    errors
}

/// `additionalProperties` is not followed: defaults have no effect there but for nulls.
fn walk(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(default) = &node.default {
        check(default, node, &path.child("default"), errors);
    }
    if let Some(items) = &node.items {
        walk(items, &path.child("items"), errors);
    }
    let up = path.child("properties");
    for (name, child) in &node.properties {
        walk(child, &up.key(name), errors);
    }
}

fn check(default: &Value, node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    prune::value(&mut pruned, node);
    if pruned != *default {
        errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
    }
    let mut found = Vec::new();
    embedded::validate_value(default, node, path, &mut found);
    if found.is_empty() {
        found = value_errors(&path.to_string(), default, node);
    }
    errors.extend(found);
}
