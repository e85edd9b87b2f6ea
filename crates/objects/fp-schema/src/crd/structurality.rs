//! Whether a schema is structural: what has a value is given a type outside of the junctors, which
//! only restrict it (`apiserver/schema/validation.go`, `complete.go`).

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value};
use serde_json::json;

use crate::structural::pattern;

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The errors, sorted by their text.
pub fn validate(schema: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(FieldError::to_string);
    errors
}

fn flag(schema: &Object, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn text<'a>(schema: &'a Object, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or("")
}

fn sub<'a>(schema: &'a Object, key: &str) -> Option<&'a Object> {
    schema.get(key).and_then(Value::as_object)
}

/// `additionalProperties` when it is a schema.
fn additional(schema: &Object) -> Option<&Object> {
    sub(schema, "additionalProperties")
}

fn properties(schema: &Object) -> impl Iterator<Item = (&String, &Object)> {
    sub(schema, "properties").into_iter().flatten().filter_map(|(k, v)| Some((k, v.as_object()?)))
}

fn list<'a>(schema: &'a Object, key: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
    list.enumerate().filter_map(|(i, v)| Some((i, v.as_object()?)))
}

fn invariants(schema: &Object, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    match sub(schema, "items") {
        Some(items) => invariants(items, Level::Item, &path.child("items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(path.child("items"), "must be specified"));
        }
        None => {}
    }
    let up = path.child("properties");
    for (name, child) in properties(schema) {
        invariants(child, Level::Field, &up.key(name), errors);
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if schema.get("additionalProperties").is_some_and(|v| !v.is_null()) {
        let at = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at, "must not be used at the root"));
        }
        if let Some(child) = additional(schema) {
            invariants(child, Level::Field, &at, errors);
        }
        if embedded {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(at, why));
        }
    }
    extensions(schema, path, errors);
    junctors(schema, level, path, errors);
    types(schema, kind, embedded, level, path, errors);
    metadata(schema, embedded, level, path, errors);
}

fn extensions(schema: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, key) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(path.child(key), true, why));
        }
    }
}

fn types(
    schema: &Object,
    kind: &str,
    embedded: bool,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("type");
    let free = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at, why),
            kind => FieldError::invalid(at, kind, why),
        });
    } else if kind.is_empty() && !free {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at, why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` have fixed types, and metadata of the root may restrict only
/// the name.
fn metadata(
    schema: &Object,
    embedded: bool,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let resource = level == Level::Root || embedded;
    let up = path.child("properties");
    let names = sub(schema, "properties");
    let property = |name: &str| names.and_then(|p| sub(p, name));
    for name in ["kind", "apiVersion"] {
        let Some(child) = property(name).filter(|c| resource && text(c, "type") != "string") else {
            continue;
        };
        let at = up.key(name);
        errors.push(FieldError::invalid(at.child("type"), text(child, "type"), "must be string"));
    }
    if let Some(child) = property("metadata") {
        let at = up.key("metadata");
        if resource && text(child, "type") != "object" {
            errors.push(FieldError::invalid(
                at.child("type"),
                text(child, "type"),
                "must be object",
            ));
        }
        if level == Level::Root && !is_plain_metadata(child) {
            let why = "must not specify anything other than name and generateName, but metadata is \
                       implicitly specified";
            errors.push(FieldError::forbidden(at, why));
        }
    }
    let empty = names.is_none_or(Object::is_empty);
    if embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && empty {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(up, why));
    }
}

fn is_plain_metadata(schema: &Object) -> bool {
    schema.iter().all(|(key, value)| match &**key {
        "type" | "default" => true,
        "properties" => {
            value.as_object().is_none_or(|p| p.keys().all(|k| k == "name" || k == "generateName"))
        }
        _ => match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        },
    })
}

/// The one place where a junctor may name types: `x-kubernetes-int-or-string`.
fn is_int_or_string(list: Option<&Value>) -> bool {
    list.is_some_and(|list| *list == json!([{"type": "integer"}, {"type": "string"}]))
}

fn junctors(schema: &Object, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let skip_any = is_int_or_string(schema.get("anyOf"));
    restrictions(schema, skip_any, level, path, errors);
}

fn restrictions(
    schema: &Object,
    skip_any: bool,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any {
        let up = path.child("anyOf");
        for (i, child) in list(schema, "anyOf") {
            nested(child, false, level, &up.index(i), errors);
        }
    }
    let up = path.child("allOf");
    for (i, child) in list(schema, "allOf") {
        let skip = i == 0 && is_int_or_string(child.get("anyOf"));
        nested(child, skip, level, &up.index(i), errors);
    }
    let up = path.child("oneOf");
    for (i, child) in list(schema, "oneOf") {
        nested(child, false, level, &up.index(i), errors);
    }
    if let Some(child) = sub(schema, "not") {
        nested(child, false, level, &path.child("not"), errors);
    }
    let text = text(schema, "pattern");
    if let Some(why) = Some(text).filter(|t| !t.is_empty()).and_then(|t| pattern::compile(t).err())
    {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(path.child("pattern"), text, why));
    }
}

/// A schema under a junctor restricts values; it says nothing of their structure.
fn nested(
    schema: &Object,
    skip_any: bool,
    level: Level,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    restrictions(schema, skip_any, level, path, errors);
    if let Some(items) = sub(schema, "items") {
        nested(items, false, level, &path.child("items"), errors);
    }
    let up = path.child("properties");
    for (name, child) in properties(schema) {
        nested(child, false, Level::Field, &up.key(name), errors);
    }
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, why) in FORBIDDEN {
        let set = match schema.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            Some(_) => true,
        };
        if set {
            errors.push(FieldError::forbidden(path.child(key), why));
        }
    }
    if sub(schema, "properties").is_some_and(|p| p.contains_key("metadata")) {
        errors.push(FieldError::forbidden(
            up.key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// What a junctor restricts is specified outside of it.
fn completeness(
    schema: &Object,
    structure: Option<&Object>,
    at: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(child) = sub(schema, "not") {
        nested_completeness(child, structure, at, &path.child("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let up = path.child(key);
        for (i, child) in list(schema, key) {
            nested_completeness(child, structure, at, &up.index(i), errors);
        }
    }
}

fn nested_completeness(
    schema: &Object,
    structure: Option<&Object>,
    at: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(known) = structure else {
        errors.push(FieldError::required(at, format!("because it is defined in {path}")));
        return;
    };
    completeness(schema, structure, at, path, errors);
    if let Some(items) = sub(schema, "items") {
        nested_completeness(
            items,
            sub(known, "items"),
            &at.child("items"),
            &path.child("items"),
            errors,
        );
    }
    let (at_up, path_up) = (at.child("properties"), path.child("properties"));
    for (name, child) in properties(schema) {
        let structure = sub(known, "properties").and_then(|p| sub(p, name));
        nested_completeness(child, structure, &at_up.key(name), &path_up.key(name), errors);
    }
}
