//! From JSON to the compact tree. The schema has been through CRD validation or is our own: members
//! of a wrong type are read as absent, constructs that structural schemas forbid are refused.

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value};

use super::format::Format;
use super::{
    Additional, Bound, Checks, Error, ListType, MAX_DEPTH, MAX_NODES, Node, Pattern, Rule, Rules,
    Structural, Types, pattern,
};

/// Constructs of JSON schema that have no place in a structural schema
/// (`apiserver/schema/convert.go`).
pub const UNSUPPORTED: [(&str, &str); 7] = [
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

pub fn compile(schema: &Value, rules: Rules<'_>) -> Result<Structural, Error> {
    size(schema).map_err(|why| Error(FieldError::invalid(Path::Root, "", why)))?;
    let root = Compiler { rules }.node(schema, &Path::Root)?;
    Ok(Structural { has_rules: root.has_rules, root })
}

/// Whether the schema keeps to [`MAX_DEPTH`] and [`MAX_NODES`]; walks without recursion.
pub fn size(schema: &Value) -> Result<(), String> {
    let mut stack = vec![(schema, 1)];
    let mut nodes = 0;
    while let Some((schema, depth)) = stack.pop() {
        nodes += 1;
        if depth > MAX_DEPTH {
            return Err(format!("must not be nested deeper than {MAX_DEPTH} levels"));
        }
        if nodes > MAX_NODES {
            return Err(format!("must not have more than {MAX_NODES} properties"));
        }
        each_child(schema, &mut |child| stack.push((child, depth + 1)));
    }
    Ok(())
}

/// Calls `f` with every schema directly inside this one.
pub fn each_child<'a>(schema: &'a Value, f: &mut dyn FnMut(&'a Value)) {
    let Some(schema) = schema.as_object() else { return };
    for key in ["items", "additionalProperties", "additionalItems", "not"] {
        match schema.get(key) {
            Some(Value::Array(list)) => list.iter().for_each(&mut *f),
            Some(child @ Value::Object(_)) => f(child),
            _ => {}
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            list.iter().for_each(&mut *f);
        }
    }
    for key in ["properties", "patternProperties", "definitions", "dependencies"] {
        if let Some(map) = schema.get(key).and_then(Value::as_object) {
            map.values().for_each(&mut *f);
        }
    }
}

struct Compiler<'a> {
    rules: Rules<'a>,
}

impl Compiler<'_> {
    fn node(&self, schema: &Value, path: &Path<'_>) -> Result<Node, Error> {
        let Some(schema) = schema.as_object() else { return Ok(Node::default()) };
        for (key, shown) in UNSUPPORTED {
            if schema.get(key).is_some_and(is_set) {
                let why = format!("OpenAPIV3Schema '{shown}' is not supported");
                return Err(Error(FieldError::invalid(path, "", why)));
            }
        }
        let mut node = Node {
            types: types(schema),
            nullable: flag(schema, "nullable"),
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            list: list_type(schema),
            default: schema.get("default").filter(|v| !v.is_null()).cloned(),
            rules: self.rules(schema),
            ..Node::default()
        };
        node.format =
            schema.get("format").and_then(Value::as_str).and_then(|f| Format::parse(f, node.types));
        if let Some(items) = schema.get("items") {
            if items.is_array() {
                let why = "OpenAPIV3Schema 'items' must be a schema, but is an array";
                return Err(Error(FieldError::invalid(path, "", why)));
            }
            node.items = Some(Box::new(self.node(items, &path.child("items"))?));
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let up = path.child("properties");
            let mut out = Vec::with_capacity(properties.len());
            for (name, child) in properties {
                out.push((name.as_str().into(), self.node(child, &up.key(name))?));
            }
            out.sort_by(|(a, _): &(Box<str>, Node), (b, _)| a.cmp(b));
            node.properties = out.into();
        }
        node.additional = match schema.get("additionalProperties") {
            None | Some(Value::Null) => Additional::None,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(child @ Value::Object(_)) => {
                Additional::Schema(Box::new(self.node(child, &path.child("additionalProperties"))?))
            }
            Some(_) => Additional::Any,
        };
        node.checks = self.checks(schema, path)?;
        node.has_rules = has_rules(&node);
        Ok(node)
    }

    fn checks(&self, schema: &Object, path: &Path<'_>) -> Result<Option<Box<Checks>>, Error> {
        const KEYS: [&str; 17] = [
            "maximum",
            "minimum",
            "multipleOf",
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "maxProperties",
            "minProperties",
            "required",
            "enum",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        if !KEYS.iter().any(|k| schema.contains_key(*k)) {
            return Ok(None);
        }
        let bound = |key, exclusive| {
            let value = schema.get(key).and_then(Value::as_f64)?;
            Some(Bound { value, exclusive: flag(schema, exclusive) })
        };
        let pattern = match schema.get("pattern").and_then(Value::as_str) {
            None | Some("") => None,
            Some(text) => {
                let regex = pattern::compile(text).map_err(|why| {
                    let why = format!("must be a valid regular expression, but isn't: {why}");
                    Error(FieldError::invalid(path.child("pattern"), text, why))
                })?;
                Some(Pattern { text: text.into(), regex })
            }
        };
        let not = match schema.get("not") {
            Some(child @ Value::Object(_)) => {
                Some(Box::new(self.nested(child, &path.child("not"))?))
            }
            _ => None,
        };
        Ok(Some(Box::new(Checks {
            maximum: bound("maximum", "exclusiveMaximum"),
            minimum: bound("minimum", "exclusiveMinimum"),
            multiple_of: schema.get("multipleOf").and_then(Value::as_f64),
            max_length: integer(schema, "maxLength"),
            min_length: integer(schema, "minLength"),
            pattern,
            max_items: integer(schema, "maxItems"),
            min_items: integer(schema, "minItems"),
            unique_items: flag(schema, "uniqueItems"),
            max_properties: integer(schema, "maxProperties"),
            min_properties: integer(schema, "minProperties"),
            required: texts(schema, "required"),
            values: schema
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
                .into(),
            all_of: self.nodes(schema, "allOf", path)?,
            any_of: self.nodes(schema, "anyOf", path)?,
            one_of: self.nodes(schema, "oneOf", path)?,
            not,
        })))
    }

    fn nodes(&self, schema: &Object, key: &str, path: &Path<'_>) -> Result<Box<[Node]>, Error> {
        let Some(list) = schema.get(key).and_then(Value::as_array) else {
            return Ok(Box::default());
        };
        let up = path.child(key);
        list.iter().enumerate().map(|(i, child)| self.nested(child, &up.index(i))).collect()
    }

    /// A schema under a junctor, where rules have no place.
    fn nested(&self, schema: &Value, path: &Path<'_>) -> Result<Node, Error> {
        let node = self.node(schema, path)?;
        if node.has_rules {
            let at = path.child("x-kubernetes-validations");
            return Err(Error(FieldError::forbidden(at, "must be empty to be structural")));
        }
        Ok(node)
    }

    fn rules(&self, schema: &Object) -> Box<[Rule]> {
        let list = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let rule = |rule: &Value| {
            let text = |key| rule.get(key).and_then(Value::as_str).unwrap_or("");
            let is_plain = text("messageExpression").is_empty();
            Rule {
                text: text("rule").trim().into(),
                message: text("message").trim().into(),
                reason: rule.get("reason").and_then(Value::as_str).map(Into::into),
                field_path: text("fieldPath").trim_start_matches('.').into(),
                transition: text("rule").contains("oldSelf"),
                optional_old_self: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
                holds: (self.rules)(text("rule")).filter(|_| is_plain),
            }
        };
        list.map(|list| list.iter().map(rule).collect()).unwrap_or_default()
    }
}

fn has_rules(node: &Node) -> bool {
    !node.rules.is_empty()
        || node.items.as_ref().is_some_and(|n| n.has_rules)
        || node.additional.schema().is_some_and(|n| n.has_rules)
        || node.properties.iter().any(|(_, n)| n.has_rules)
}

fn types(schema: &Object) -> Types {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Types::INTEGER.union(Types::STRING);
    }
    schema.get("type").and_then(Value::as_str).and_then(Types::parse).unwrap_or_default()
}

fn list_type(schema: &Object) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

/// Whether a member says anything: Go reads an empty string or map as absent.
pub fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

fn flag(schema: &Object, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn integer(schema: &Object, key: &str) -> Option<i64> {
    let value = schema.get(key)?;
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

fn texts(schema: &Object, key: &str) -> Box<[Box<str>]> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}
