//! The schema of a CRD's version (`apiextensions/validation/validation.go`).

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value};

use super::field_path::{Arrays, valid_field_path};
use super::{defaults, structurality};
use crate::structural::{self, Rules, Structural, Types, UNSUPPORTED, each_child, is_set, size};

/// Whether the version has a status subresource, which restricts the root of its schema.
#[derive(Clone, Copy)]
pub struct Status {
    pub enabled: bool,
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Members of the root that may not be set beside a status subresource; Go's type checks the first
/// three before the type.
const NOT_AT_ROOT: [&str; 21] = [
    "id",
    "$schema",
    "$ref",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];
const AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                       MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required \
                       Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Validates an `openAPIV3Schema`; `path` is its own. A rule that `rules` does not know is refused.
pub fn validate_schema(
    schema: &Value,
    status: Status,
    path: &Path<'_>,
    rules: Rules<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Err(why) = size(schema) {
        errors.push(FieldError::invalid(path, "", why));
        return errors;
    }
    let empty = Object::new();
    let root = schema.as_object().unwrap_or(&empty);
    if status.enabled {
        check_root(root, path, &mut errors);
    }
    if flag(root, "nullable") {
        errors.push(FieldError::forbidden(
            path.child("nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let unsupported = first_unsupported(schema);
    if unsupported.is_none() {
        let found = structurality::validate(root, path);
        if found.is_empty() {
            // Defaults are validated without rules, which are told below.
            match Structural::compile(schema, &|_| Some(|_, _| true)) {
                Ok(compiled) => errors.extend(defaults::validate(&compiled, path)),
                Err(error) => errors.push(FieldError::invalid(path, "", error.to_string())),
            }
        }
        errors.extend(found);
    }
    let mut walk = Walk { rules, errors: Vec::new(), cel: Vec::new() };
    walk.schema(root, true, Context::default(), path);
    errors.extend(walk.errors);
    errors.extend(walk.cel);
    if let Some(key) = unsupported.filter(|_| errors.is_empty()) {
        let why = format!("OpenAPIV3Schema '{key}' is not supported");
        errors.push(FieldError::invalid(path, "", why));
    }
    errors
}

/// Formats that the schema names and nobody enforces, in the order of the schema.
pub fn unrecognized_formats(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![schema];
    while let Some(schema) = stack.pop() {
        if let Some(format) = schema.get("format").and_then(Value::as_str).filter(|f| !f.is_empty())
        {
            let types = schema
                .get("type")
                .and_then(Value::as_str)
                .and_then(Types::parse)
                .unwrap_or_default();
            if structural::format::Format::parse(format, types).is_none() {
                found.push(format.to_owned());
            }
        }
        each_child(schema, &mut |child| stack.push(child));
    }
    found
}

fn flag(schema: &Object, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn text<'a>(schema: &'a Object, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Whether Go would find more than the zero value.
fn is_not_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

fn set(schema: &Object, key: &str) -> bool {
    schema.get(key).is_some_and(is_not_zero)
}

fn check_root(root: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = text(root, "type");
    let forbidden = |keys: &[&str]| keys.iter().any(|k| set(root, k));
    let (before_type, after_type) = NOT_AT_ROOT.split_at(3);
    if !forbidden(before_type) && !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status \
                   subresource is enabled";
        errors.push(FieldError::invalid(path.child("type"), kind, why));
    } else if forbidden(before_type) || flag(root, "nullable") || forbidden(after_type) {
        let why = format!(
            "only {AT_ROOT} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.push(FieldError::invalid(path, Value::Object(root.clone()), why));
    }
}

/// The first construct that keeps the schema from being read as a structural one.
fn first_unsupported(schema: &Value) -> Option<&'static str> {
    let mut stack = vec![schema];
    while let Some(schema) = stack.pop() {
        let object = schema.as_object()?;
        if object.get("items").is_some_and(Value::is_array) {
            return Some("items");
        }
        if let Some((_, shown)) =
            UNSUPPORTED.into_iter().find(|(key, _)| object.get(*key).is_some_and(is_set))
        {
            return Some(shown);
        }
        each_child(schema, &mut |child| {
            if child.is_object() {
                stack.push(child);
            }
        });
    }
    None
}

/// What the place in the schema forbids.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    inside_meta: bool,
    no_defaults: Option<&'a str>,
    /// Inside a junctor: rules have no place, and none is checked.
    nested: bool,
}

struct Walk<'a> {
    rules: Rules<'a>,
    errors: Vec<FieldError>,
    cel: Vec<FieldError>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Object, root: bool, context: Context<'_>, path: &Path<'_>) {
        let before = self.errors.len();
        self.constructs(schema, context, path);
        self.children(schema, root, context, path);
        self.extensions(schema, path);
        self.list_type(schema, path);
        self.list_items(schema, path);
        self.validations(schema, context, before, path);
    }

    fn forbid(&mut self, path: Path<'_>, why: &str) {
        self.errors.push(FieldError::forbidden(path, why));
    }

    fn constructs(&mut self, schema: &Object, context: Context<'_>, path: &Path<'_>) {
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(path.child("type"), kind, &TYPES));
        }
        if let Some(reason) = context.no_defaults.filter(|_| set_default(schema)) {
            self.forbid(path.child("default"), &format!("must not be set {reason}"));
        }
        for key in
            ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
        {
            if set(schema, key) {
                self.forbid(path.child(key), &format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(
                path.child("type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if schema.get("items").is_some_and(Value::is_array) {
            self.forbid(path.child("items"), "items must be a schema object and not an array");
        }
        if context.inside_meta && flag(schema, "x-kubernetes-embedded-resource") {
            let at = path.child("x-kubernetes-embedded-resource");
            self.forbid(at, "must not be used inside of resource meta");
        }
        if flag(schema, "uniqueItems") {
            let why =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path.child("uniqueItems"), why);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let additional =
            schema.get("additionalProperties").filter(|v| !v.is_null() && **v != Value::Bool(true));
        if additional.is_some() && properties.is_some_and(|p| !p.is_empty()) {
            let why = "additionalProperties and properties are mutual exclusive";
            self.forbid(path.child("additionalProperties"), why);
        }
    }

    fn children(&mut self, schema: &Object, root: bool, context: Context<'_>, path: &Path<'_>) {
        let object = |key: &str| schema.get(key).and_then(Value::as_object);
        if let Some(child) = object("additionalProperties") {
            let mut inner = context;
            if context.inside_meta {
                inner.no_defaults = Some("inside additionalProperties applying to object metadata");
            }
            self.schema(child, false, inner, &path.child("additionalProperties"));
        }
        let resource = root || flag(schema, "x-kubernetes-embedded-resource");
        let up = path.child("properties");
        for (name, child) in object("properties").into_iter().flatten() {
            let Some(child) = child.as_object() else { continue };
            let reason = format!("in top-level {name}");
            let mut inner = context;
            if resource && matches!(&**name, "metadata" | "kind" | "apiVersion") {
                inner.inside_meta = true;
                if root {
                    inner.no_defaults = Some(&reason);
                }
            }
            self.schema(child, false, inner, &up.key(name));
        }
        let nested = Context { nested: true, ..context };
        if let Some(child) = object("not") {
            self.schema(child, false, nested, &path.child("not"));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let up = path.child(key);
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            for (i, child) in list.enumerate().filter_map(|(i, c)| Some((i, c.as_object()?))) {
                self.schema(child, false, nested, &up.index(i));
            }
        }
        if let Some(child) = object("items") {
            self.schema(child, false, context, &path.child("items"));
        }
    }

    fn extensions(&mut self, schema: &Object, path: &Path<'_>) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        const MAP_TYPE: &str = "x-kubernetes-map-type";
        if schema.get(PRESERVE) == Some(&Value::Bool(false)) {
            let at = path.child(PRESERVE);
            self.errors.push(FieldError::invalid(at, false, "must be true or undefined"));
        }
        let Some(map_type) = schema.get(MAP_TYPE).and_then(Value::as_str) else { return };
        let kind = text(schema, "type");
        if kind != "object" {
            let why = "must be object if x-kubernetes-map-type is specified";
            self.errors.push(wrong_type(path, kind, why));
        }
        if !matches!(map_type, "atomic" | "granular") {
            let at = path.child(MAP_TYPE);
            self.errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, schema: &Object, path: &Path<'_>) {
        const LIST_TYPE: &str = "x-kubernetes-list-type";
        let list_type = schema.get(LIST_TYPE).and_then(Value::as_str);
        let at = path.child(LIST_TYPE);
        let kind = text(schema, "type");
        let items = schema.get("items").and_then(Value::as_object);
        if list_type.is_some() && kind != "array" {
            let why = "must be array if x-kubernetes-list-type is specified";
            self.errors.push(wrong_type(path, kind, why));
        } else if let (Some("set"), Some(items)) = (list_type, items) {
            let up = path.child("items");
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let inner = items.get(LIST_TYPE).cloned().unwrap_or_default();
            match text(items, "type") {
                "array" if !inner.is_null() && inner != "atomic" => {
                    self.errors.push(FieldError::invalid(up.child(LIST_TYPE), inner, why));
                }
                "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                    self.errors.push(FieldError::invalid(
                        up.child("x-kubernetes-map-type"),
                        inner,
                        why,
                    ));
                }
                _ => {}
            }
        }
        if let Some(other) = list_type.filter(|t| !matches!(*t, "atomic" | "set" | "map")) {
            self.errors.push(FieldError::not_supported(at, other, &["atomic", "set", "map"]));
        }
        if set(schema, "x-kubernetes-list-map-keys") && list_type != Some("map") {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match list_type {
                None => FieldError::required(at, why),
                Some(other) => FieldError::invalid(at, other, why),
            });
        }
        if list_type == Some("map") {
            self.list_map(schema, items, path);
        }
    }

    fn list_map(&mut self, schema: &Object, items: Option<&Object>, path: &Path<'_>) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        let shown = schema.get(KEYS).cloned().unwrap_or_default();
        let keys: Vec<&str> = schema
            .get(KEYS)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(path.child(KEYS), why));
        }
        let Some(items) = items else {
            let why = "must have a schema if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(path.child("items"), why));
            return;
        };
        let up = path.child("items");
        let kind = text(items, "type");
        if kind != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(up.child("type"), kind, why));
            return;
        }
        let properties = items.get("properties").and_then(Value::as_object);
        let at = up.child("properties");
        for (i, key) in keys.iter().enumerate() {
            match properties.and_then(|p| p.get(*key)) {
                Some(property) if matches!(property["type"].as_str(), Some("array" | "object")) => {
                    let why =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let at = at.key(key);
                    self.errors.push(FieldError::invalid(at.child("type"), kind, why));
                }
                Some(_) => {}
                None => {
                    let why = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(path.child(KEYS), shown.clone(), why));
                }
            }
            if keys[..i].contains(key) {
                let why = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(path.child(KEYS), shown.clone(), why));
            }
        }
    }

    /// Items of sets and maps are there, and so are the keys of a map's items.
    fn list_items(&mut self, schema: &Object, path: &Path<'_>) {
        let list_type = text(schema, "x-kubernetes-list-type");
        let Some(items) = schema.get("items").and_then(Value::as_object) else { return };
        if !matches!(list_type, "set" | "map") {
            return;
        }
        let up = path.child("items");
        if flag(items, "nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(up.child("nullable"), &why);
        }
        if list_type != "map" {
            return;
        }
        let texts = |schema: &Object, key: &str| -> Vec<String> {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let required = texts(items, "required");
        let at = up.child("properties");
        for key in texts(schema, "x-kubernetes-list-map-keys") {
            let property =
                items.get("properties").and_then(|p| p.get(&key)).and_then(Value::as_object);
            let Some(property) = property else { continue };
            let at = at.key(&key);
            if !required.contains(&key) && !set_default(property) {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                           be a required property";
                self.errors.push(FieldError::required(at.child("default"), why));
            }
            if flag(property, "nullable") {
                let why =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(at.child("nullable"), why);
            }
        }
    }

    /// `before`: how many errors there were before this schema; with new ones, rules are not judged.
    fn validations(
        &mut self,
        schema: &Object,
        context: Context<'_>,
        before: usize,
        path: &Path<'_>,
    ) {
        let list = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let Some(list) = list.filter(|l| !l.is_empty()) else { return };
        let up = path.child("x-kubernetes-validations");
        for (i, rule) in list.iter().enumerate() {
            self.rule_text(rule, schema, &up.index(i));
        }
        if self.errors.len() > before || context.nested {
            return;
        }
        for (i, rule) in list.iter().enumerate() {
            let at = up.index(i);
            let known = (self.rules)(rule["rule"].as_str().unwrap_or("")).is_some();
            let why = "CEL rules are not served by this version of Ferroplane";
            if !known {
                self.cel.push(FieldError::forbidden(at.child("rule"), why));
            } else if rule["messageExpression"].as_str().is_some_and(|m| !m.is_empty()) {
                self.cel.push(FieldError::forbidden(at.child("messageExpression"), why));
            }
        }
    }

    fn rule_text(&mut self, rule: &Value, schema: &Object, path: &Path<'_>) {
        let text = |key: &str| rule[key].as_str().unwrap_or("");
        let (body, message) = (text("rule").trim(), text("message").trim());
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let invalid = |key: &str, why: &str| FieldError::invalid(path.child(key), text(key), why);
        if body.is_empty() {
            self.errors.push(FieldError::required(path.child("rule"), "rule is not specified"));
        } else if message.is_empty() && !text("message").is_empty() {
            self.errors.push(invalid("message", "must be non-empty if specified"));
        } else if breaks(message) {
            self.errors.push(invalid("message", "must not contain line breaks"));
        } else if breaks(body) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(path.child("message"), why));
        }
        if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(path.child("messageExpression"), why));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|r| !REASONS.contains(r)) {
            self.errors.push(FieldError::not_supported(path.child("reason"), reason, &REASONS));
        }
        let field = text("fieldPath");
        if field.is_empty() {
            return;
        }
        if field.trim().is_empty() {
            self.errors.push(invalid("fieldPath", "must be non-empty if specified"));
        }
        if breaks(field) {
            self.errors.push(invalid("fieldPath", "must not contain line breaks"));
        }
        if valid_field_path(field, &Value::Object(schema.clone()), Arrays::Allowed).is_err() {
            self.errors.push(invalid("fieldPath", "must be a valid path"));
        }
    }
}

fn set_default(schema: &Object) -> bool {
    schema.get("default").is_some_and(|d| !d.is_null())
}

fn wrong_type(path: &Path<'_>, kind: &str, why: &str) -> FieldError {
    let at = path.child("type");
    if kind.is_empty() { FieldError::required(at, why) } else { FieldError::invalid(at, kind, why) }
}
