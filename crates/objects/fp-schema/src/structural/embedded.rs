//! `apiVersion`, `kind` and `metadata` at the root and in embedded resources: decoded as Kubernetes'
//! `ObjectMeta` would be, and validated where embedded (`apiserver/schema/objectmeta`).

use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::{Object, Value, go, names, object_meta, time};

use super::Node;

/// How a member of `ObjectMeta` is decoded.
enum Kind {
    Text,
    Int,
    Bool,
    Time,
    TextMap,
    TextList,
    List(&'static str, &'static [(&'static str, Kind)]),
    Any,
}

const OBJECT_META: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("generateName", Kind::Text),
    ("namespace", Kind::Text),
    ("selfLink", Kind::Text),
    ("uid", Kind::Text),
    ("resourceVersion", Kind::Text),
    ("generation", Kind::Int),
    ("creationTimestamp", Kind::Time),
    ("deletionTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::Int),
    ("labels", Kind::TextMap),
    ("annotations", Kind::TextMap),
    ("ownerReferences", Kind::List("OwnerReference", OWNER_REFERENCE)),
    ("finalizers", Kind::TextList),
    ("managedFields", Kind::List("ManagedFieldsEntry", MANAGED_FIELDS)),
];

const OWNER_REFERENCE: &[(&str, Kind)] = &[
    ("apiVersion", Kind::Text),
    ("kind", Kind::Text),
    ("name", Kind::Text),
    ("uid", Kind::Text),
    ("controller", Kind::Bool),
    ("blockOwnerDeletion", Kind::Bool),
];

const MANAGED_FIELDS: &[(&str, Kind)] = &[
    ("manager", Kind::Text),
    ("operation", Kind::Text),
    ("apiVersion", Kind::Text),
    ("time", Kind::Time),
    ("fieldsType", Kind::Text),
    ("fieldsV1", Kind::Any),
    ("subresource", Kind::Text),
];

/// Decodes the root's metadata. The paths of unknown members are returned when `report` is set; an
/// error is Go's message.
pub fn coerce_root(object: &mut Object, report: bool, drop: bool) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { report, drop, unknown: Vec::new() };
    for key in ["apiVersion", "kind"] {
        if let Some(value) = object.get(key).filter(|v| !v.is_string()) {
            return Err(format!(
                ".{key} accessor error: {value} is of the type {}, expected string",
                go_type(value)
            ));
        }
    }
    decoder.metadata(object, &Path::Root)?;
    Ok(decoder.unknown)
}

/// Decodes the metadata of embedded resources, wherever the schema has some.
pub fn coerce(
    object: &mut Object,
    root: &Node,
    report: bool,
    drop: bool,
) -> Result<Vec<String>, FieldError> {
    let mut decoder = Decoder { report, drop, unknown: Vec::new() };
    decoder.object(object, root, false, &Path::Root)?;
    decoder.unknown.sort();
    Ok(decoder.unknown)
}

struct Decoder {
    report: bool,
    drop: bool,
    unknown: Vec<String>,
}

impl Decoder {
    fn value(&mut self, value: &mut Value, node: &Node, path: &Path<'_>) -> Result<(), FieldError> {
        match value {
            Value::Object(map) => self.object(map, node, node.embedded, path),
            Value::Array(list) => {
                let Some(items) = &node.items else { return Ok(()) };
                list.iter_mut()
                    .enumerate()
                    .try_for_each(|(i, v)| self.value(v, items, &path.index(i)))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        map: &mut Object,
        node: &Node,
        embedded: bool,
        path: &Path<'_>,
    ) -> Result<(), FieldError> {
        if embedded {
            for key in ["apiVersion", "kind"] {
                let Some(value) = map.get(key).filter(|v| !v.is_string()) else { continue };
                if !self.drop {
                    return Err(FieldError::invalid(
                        path.child(key),
                        value.clone(),
                        "must be a string",
                    ));
                }
                map.remove(key);
            }
            let shown = map.get("metadata").cloned();
            self.metadata(map, path).map_err(|why| {
                FieldError::invalid(path.child("metadata"), shown.unwrap_or_default(), why)
            })?;
        }
        for (key, value) in map {
            if let Some(child) = node.property(key) {
                self.value(value, child, &path.child(key))?;
            } else if let Some(child) = node.additional.schema() {
                self.value(value, child, &path.key(key))?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, map: &mut Object, path: &Path<'_>) -> Result<(), String> {
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        let here = path.child("metadata");
        if metadata.is_null() {
            *metadata = Value::Object(Object::new());
            return Ok(());
        }
        let Some(members) = metadata.as_object_mut() else {
            let why = format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                json_type(metadata)
            );
            return if self.drop { Ok(()) } else { Err(why) };
        };
        self.members(members, OBJECT_META, "ObjectMeta", "", &here)
    }

    /// Keeps known members of the right type. Empty ones go, as Go leaves them out.
    fn members(
        &mut self,
        map: &mut Object,
        kinds: &[(&str, Kind)],
        struct_name: &str,
        within: &str,
        path: &Path<'_>,
    ) -> Result<(), String> {
        let keys: Vec<String> = map.keys().cloned().collect();
        for key in keys {
            let here = path.child(&key);
            let Some((_, kind)) = kinds.iter().find(|(name, _)| *name == key) else {
                if self.report {
                    self.unknown.push(here.to_string());
                }
                map.remove(&key);
                continue;
            };
            let value = map.get_mut(&key).expect("the key is from the map");
            let at = if within.is_empty() { key.clone() } else { format!("{within}.{key}") };
            match self.member(value, kind, struct_name, &at, &here) {
                Ok(true) => {}
                Ok(false) => {
                    map.remove(&key);
                }
                Err(_) if self.drop => {
                    map.remove(&key);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Whether the member is worth keeping.
    fn member(
        &mut self,
        value: &mut Value,
        kind: &Kind,
        owner: &str,
        at: &str,
        path: &Path<'_>,
    ) -> Result<bool, String> {
        let wrong = |value: &Value, wanted: &str| {
            Err(format!(
                "json: cannot unmarshal {} into Go struct field {owner}.{at} of type {wanted}",
                json_type(value)
            ))
        };
        if value.is_null() {
            return Ok(false);
        }
        match (kind, &mut *value) {
            (Kind::Any, _) => Ok(true),
            (Kind::Text, Value::String(text)) => Ok(!text.is_empty()),
            (Kind::Text, other) => wrong(other, "string"),
            (Kind::Int, other) => match other.as_i64() {
                Some(_) => Ok(true),
                None => wrong(other, "int64"),
            },
            (Kind::Bool, Value::Bool(_)) => Ok(true),
            (Kind::Bool, other) => wrong(other, "bool"),
            (Kind::Time, Value::String(text)) => {
                if time::parse(text).is_some() {
                    return Ok(true);
                }
                let text = go::quote(text);
                Err(format!(
                    "parsing time {text} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text} as \"2006\""
                ))
            }
            (Kind::Time, other) => wrong(other, "string"),
            (Kind::TextMap, Value::Object(map)) => {
                for item in map.values_mut() {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = "".into(),
                        other => return wrong(other, "string"),
                    }
                }
                Ok(!map.is_empty())
            }
            (Kind::TextMap, other) => wrong(other, "map[string]string"),
            (Kind::TextList, Value::Array(list)) => {
                match list.iter().find(|item| !item.is_string()) {
                    Some(other) => wrong(other, "string"),
                    None => Ok(!list.is_empty()),
                }
            }
            (Kind::TextList, other) => wrong(other, "[]string"),
            (Kind::List(name, kinds), Value::Array(list)) => {
                for (i, item) in list.iter_mut().enumerate() {
                    match item {
                        Value::Object(map) => self.members(map, kinds, name, at, &path.index(i))?,
                        other => return wrong(other, &format!("v1.{name}")),
                    }
                }
                Ok(!list.is_empty())
            }
            (Kind::List(name, _), other) => wrong(other, &format!("[]v1.{name}")),
        }
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Validates embedded resources below the root; the root's own metadata is not looked at.
pub fn validate(object: &Object, root: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in object {
        if let Some(child) = root.property(key) {
            validate_value(value, child, &path.child(key), errors);
        } else if let Some(child) = root.additional.schema() {
            validate_value(value, child, &path.key(key), errors);
        }
    }
}

pub fn validate_value(value: &Value, node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if node.embedded {
                resource(map, path, errors);
            }
            validate(map, node, path, errors);
        }
        Value::Array(list) => {
            let Some(items) = &node.items else { return };
            for (i, item) in list.iter().enumerate() {
                validate_value(item, items, &path.index(i), errors);
            }
        }
        _ => {}
    }
}

/// `apiVersion`, `kind` and `metadata` of one embedded resource, or of a default that is one.
pub fn resource(map: &Object, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let here = path.child(key);
        match map.get(key) {
            None => errors.push(FieldError::required(here, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(here, "", "must not be empty"));
            }
            Some(Value::String(text)) if key == "kind" => {
                let why = names::is_dns1035_label(&text.to_lowercase());
                if !why.is_empty() {
                    let why = format!(
                        "may have mixed case, but should otherwise match: {}",
                        why.join(",")
                    );
                    errors.push(FieldError::invalid(here, text.as_str(), why));
                }
            }
            Some(Value::String(text)) if text.matches('/').count() > 1 => {
                let why = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(here, text.as_str(), why));
            }
            Some(Value::String(_)) => {}
            Some(other) => {
                errors.push(FieldError::invalid(here, other.clone(), "must be a string"))
            }
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let mut decoded = Object::from_iter([("metadata".to_owned(), metadata.clone())]);
    let mut decoder = Decoder { report: false, drop: false, unknown: Vec::new() };
    match decoder.metadata(&mut decoded, path) {
        Err(why) => {
            errors.push(FieldError::invalid(path.child("metadata"), metadata.clone(), why));
        }
        Ok(()) => {
            // A name is not asked for, and the namespace decides whether there is to be one.
            if decoded.name().is_empty() {
                decoded.set_meta("name", "fakename");
            }
            let namespaced = !decoded.namespace().is_empty();
            let here = path.child("metadata");
            errors.extend(object_meta::validate(
                &decoded,
                namespaced,
                names::name_is_path_segment,
                here,
            ));
        }
    }
}
