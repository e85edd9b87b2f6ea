//! The value validations of a schema, as kube-openapi's validator does them: the same errors in the
//! same words and order (`kube-openapi/pkg/validation/validate`), where Go walks a map in the order
//! of its keys.
//!
//! Under `anyOf` and `oneOf` the errors of the alternative that matched most checks are shown, so
//! checks are counted exactly as there.

mod number;

use std::borrow::Cow;

use fp_object::field::{Bad, ErrorType, FieldError, Path};
use fp_object::go::quote;
use fp_object::{Object, Value};

use number::{Number, is_json_integer, same};

use super::{Additional, Checks, Node, Types};

pub fn validate(object: &Object, root: &Node) -> Vec<FieldError> {
    let mut found = Found::default();
    found.object_value(ValueRef::Object(object), root, &Path::Root);
    found.errors.into_iter().map(|e| e.located(None)).collect()
}

/// Validates a part of an object; the errors are located below `prefix`.
pub fn validate_at(prefix: &str, value: &Value, node: &Node) -> Vec<FieldError> {
    let mut found = Found::default();
    found.value(value, node, &Path::Root);
    found.errors.into_iter().map(|e| e.located(Some(prefix))).collect()
}

/// An error before its path is settled. `name` is the validator's path; composite errors have none.
struct Raw {
    kind: ErrorType,
    name: Option<String>,
    bad: Bad,
    /// The field error's detail.
    detail: String,
    /// What makes two errors the same.
    message: String,
}

impl Raw {
    fn located(self, prefix: Option<&str>) -> FieldError {
        let field = match (prefix, self.name.filter(|n| !n.is_empty())) {
            (None, None) => "<nil>".to_owned(),
            (None, Some(name)) => name,
            (Some(prefix), None) => prefix.to_owned(),
            (Some(prefix), Some(name)) => format!("{prefix}.{name}"),
        };
        FieldError { kind: self.kind, field, bad: self.bad, detail: self.detail }
    }
}

/// Errors and the number of checks that were made.
#[derive(Default)]
struct Found {
    errors: Vec<Raw>,
    matches: u32,
}

/// A JSON value that may be a bare object.
#[derive(Clone, Copy)]
enum ValueRef<'a> {
    Value(&'a Value),
    Object(&'a Object),
}

impl<'a> ValueRef<'a> {
    fn object(self) -> Option<&'a Object> {
        match self {
            Self::Value(value) => value.as_object(),
            Self::Object(object) => Some(object),
        }
    }

    fn to_value(self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Object(object) => Value::Object(object.clone()),
        }
    }
}

impl Found {
    fn add(&mut self, raw: Raw) {
        if !self.errors.iter().any(|e| e.message == raw.message) {
            self.errors.push(raw);
        }
    }

    fn merge(&mut self, other: Found) {
        self.matches += other.matches;
        other.errors.into_iter().for_each(|e| self.add(e));
    }

    /// An error whose detail is its message: `spec.x in body should ...`.
    fn fail(&mut self, kind: ErrorType, path: &Path<'_>, bad: Bad, text: &str) {
        let name = shown(path);
        let message = format!("{name} in body {text}");
        self.add(Raw { kind, name: Some(name), bad, detail: message.clone(), message });
    }

    /// An error without a place of its own: the path is in its text.
    fn plain(&mut self, message: String) {
        let bad = Bad::Value("".into());
        self.add(Raw {
            kind: ErrorType::Invalid,
            name: None,
            bad,
            detail: message.clone(),
            message,
        });
    }

    fn value(&mut self, value: &Value, node: &Node, path: &Path<'_>) {
        if value.is_null() {
            if !node.types.is_empty() && !node.nullable {
                self.type_error(path, &node.types.names(), "null");
            } else {
                self.matches += 1;
            }
            if let Some(checks) = &node.checks {
                self.values(ValueRef::Value(value), &checks.values, path);
            }
            return;
        }
        self.object_value(ValueRef::Value(value), node, path);
    }

    fn object_value(&mut self, value: ValueRef<'_>, node: &Node, path: &Path<'_>) {
        if !node.types.is_empty() || node.format.is_some() {
            self.types(value, node, path);
            self.matches += 1;
        }
        let checks = node.checks.as_deref();
        if let Some(checks) = checks {
            self.junctors(value, checks, path);
        }
        // One for the junctors' own result, one for having run them.
        self.matches += 2;
        match value {
            ValueRef::Value(Value::String(text)) => {
                if let Some(checks) = checks {
                    self.string(text, checks, path);
                }
                self.matches += 1;
                if let Some(format) = &node.format {
                    if !format.holds(text) {
                        let why = format!("must be of type {}: {}", format.name, quote(text));
                        self.fail(
                            ErrorType::TypeInvalid,
                            path,
                            Bad::Value(text.as_str().into()),
                            &why,
                        );
                    }
                    self.matches += 1;
                }
            }
            ValueRef::Value(number @ Value::Number(_)) => {
                let number = Number::of(number).expect("a JSON number is an integer or a float");
                self.number(number, node, path);
                self.matches += 2;
            }
            ValueRef::Value(Value::Array(list)) => {
                self.array(list, node, path);
                self.matches += 2;
            }
            _ => {}
        }
        if let Some(checks) = checks {
            self.values(value, &checks.values, path);
        }
        self.matches += 1;
        if let Some(object) = value.object() {
            self.object(object, node, path);
            self.matches += 1;
        }
        self.matches += 1;
    }

    /// The bad value of a type error is the type that was found.
    fn type_error(&mut self, path: &Path<'_>, wanted: &str, found: &str) {
        let text = format!("must be of type {wanted}: {}", quote(found));
        self.fail(ErrorType::TypeInvalid, path, Bad::Value(found.into()), &text);
    }

    fn types(&mut self, value: ValueRef<'_>, node: &Node, path: &Path<'_>) {
        let (found, found_format, is_text_or_list) = match value {
            ValueRef::Object(_) | ValueRef::Value(Value::Object(_)) => (Types::OBJECT, "", false),
            ValueRef::Value(Value::Array(_)) => (Types::ARRAY, "", true),
            ValueRef::Value(Value::String(_)) => (Types::STRING, "", true),
            ValueRef::Value(Value::Bool(_) | Value::Null) => (Types::BOOLEAN, "", false),
            ValueRef::Value(number @ Value::Number(_)) => match Number::of(number) {
                Some(Number::Int(_)) => (Types::INTEGER, "int64", false),
                _ => (Types::NUMBER, "float64", false),
            },
        };
        let float = match value {
            ValueRef::Value(v) if found == Types::NUMBER => v.as_f64(),
            _ => None,
        };
        let whole = node.types.has(Types::INTEGER) && float.is_some_and(is_json_integer);
        let int_for_float = found == Types::INTEGER && node.types.has(Types::NUMBER);
        let fits = node.types.has(found) || whole || int_for_float;
        if let Some(format) = &node.format {
            if !is_text_or_list && !fits && found_format != &*format.name {
                return self.type_error(path, &format.name, found_format);
            }
            // A list passes where a formatted string is asked for, as in Kubernetes.
            if is_text_or_list && !node.types.has(Types::NUMBER) && !node.types.has(Types::INTEGER)
            {
                self.matches += 1;
                return;
            }
        }
        if fits {
            self.matches += 1;
        } else {
            self.type_error(path, &node.types.names(), &found.names());
        }
    }

    fn junctors(&mut self, value: ValueRef<'_>, checks: &Checks, path: &Path<'_>) {
        let run = |node: &Node| {
            let mut found = Found::default();
            match value {
                ValueRef::Value(value) => found.value(value, node, path),
                object @ ValueRef::Object(_) => found.object_value(object, node, path),
            }
            found
        };
        let named = || quote(&shown(path));
        if !checks.any_of.is_empty() {
            let (good, best) = alternatives(&checks.any_of, &run, true);
            if good == 0 {
                self.plain(format!("{} must validate at least one schema (anyOf)", named()));
            }
            self.merge(best);
        }
        if !checks.one_of.is_empty() {
            let (good, best) = alternatives(&checks.one_of, &run, false);
            if good != 1 {
                let why = match good {
                    0 => Cow::Borrowed("Found none valid"),
                    n => format!("Found {n} valid alternatives").into(),
                };
                self.plain(format!(
                    "{} must validate one and only one schema (oneOf). {why}",
                    named()
                ));
            }
            if good < 2 {
                self.merge(best);
            }
        }
        if !checks.all_of.is_empty() {
            let mut good = 0;
            for node in &checks.all_of {
                let found = run(node);
                good += usize::from(found.errors.is_empty());
                self.merge(found);
            }
            if good != checks.all_of.len() {
                let why = if good == 0 { ". None validated" } else { "" };
                self.plain(format!("{} must validate all the schemas (allOf){why}", named()));
            }
        }
        if checks.not.as_deref().is_some_and(|node| run(node).errors.is_empty()) {
            self.plain(format!("{} must not validate the schema (not)", named()));
        }
    }

    /// The first failure ends it: length, then pattern.
    fn string(&mut self, text: &str, checks: &Checks, path: &Path<'_>) {
        let bad = || Bad::Value(text.into());
        let length = if checks.max_length.is_some() || checks.min_length.is_some() {
            text.chars().count() as i64
        } else {
            0
        };
        if let Some(max) = checks.max_length.filter(|max| length > *max) {
            let name = shown(path);
            let message = format!("{name} in body should be at most {max} chars long");
            let detail = FieldError::too_long("", usize::try_from(max).unwrap_or(0)).detail;
            self.add(Raw {
                kind: ErrorType::TooLong,
                name: Some(name),
                bad: Bad::Omit,
                detail,
                message,
            });
        } else if let Some(min) = checks.min_length.filter(|min| length < *min) {
            self.fail(
                ErrorType::Invalid,
                path,
                bad(),
                &format!("should be at least {min} chars long"),
            );
        } else if let Some(pattern) = checks.pattern.as_ref().filter(|p| !p.regex.is_match(text)) {
            self.fail(ErrorType::Invalid, path, bad(), &format!("should match '{}'", pattern.text));
        }
    }

    fn array(&mut self, list: &[Value], node: &Node, path: &Path<'_>) {
        if let Some(items) = &node.items {
            for (i, item) in list.iter().enumerate() {
                self.value(item, items, &path.index(i));
            }
        }
        let Some(checks) = &node.checks else { return };
        let size = list.len() as i64;
        if let Some(min) = checks.min_items.filter(|min| size < *min) {
            self.fail(
                ErrorType::Invalid,
                path,
                Bad::Value(size.into()),
                &format!("should have at least {min} items"),
            );
        }
        if let Some(max) = checks.max_items.filter(|max| size > *max) {
            self.too_many(path, list.len(), max, "items");
        }
        let repeated = checks.unique_items && (1..list.len()).any(|i| list[..i].contains(&list[i]));
        if repeated {
            self.fail(
                ErrorType::Invalid,
                path,
                Bad::Value("".into()),
                "shouldn't contain duplicates",
            );
        }
    }

    fn too_many(&mut self, path: &Path<'_>, actual: usize, max: i64, what: &str) {
        let name = shown(path);
        let message = format!("{name} in body should have at most {max} {what}");
        let FieldError { kind, bad, detail, .. } =
            FieldError::too_many("", actual, usize::try_from(max).unwrap_or(0));
        self.add(Raw { kind, name: Some(name), bad, detail, message });
    }

    fn object(&mut self, object: &Object, node: &Node, path: &Path<'_>) {
        let checks = node.checks.as_deref();
        let size = object.len() as i64;
        if let Some(min) = checks.and_then(|c| c.min_properties).filter(|min| size < *min) {
            let text = format!("should have at least {min} properties");
            self.fail(ErrorType::Invalid, path, Bad::Value(size.into()), &text);
        }
        if let Some(max) = checks.and_then(|c| c.max_properties).filter(|max| size > *max) {
            self.too_many(path, object.len(), max, "properties");
        }
        match &node.additional {
            Additional::Forbidden => {
                for key in object.keys().filter(|k| node.property(k).is_none()) {
                    let name = shown(path);
                    let message = format!("{name}.{key} in body is a forbidden property");
                    let bad = Bad::Value(key.as_str().into());
                    self.add(Raw {
                        kind: ErrorType::Invalid,
                        name: Some(name),
                        bad,
                        detail: message.clone(),
                        message,
                    });
                }
            }
            Additional::Schema(child) => {
                for (key, value) in object {
                    if node.property(key).is_none() {
                        self.value(value, child, &path.child(key));
                    }
                }
            }
            Additional::None | Additional::Any => {}
        }
        // Walk the shorter side: objects are usually smaller than their schemas.
        for (key, value) in object {
            if let Some(child) = node.property(key) {
                self.value(value, child, &path.child(key));
            }
        }
        let Some(checks) = checks else { return };
        for key in checks.required.iter().filter(|k| !object.contains_key(&***k)) {
            let name = shown(&path.child(key));
            let message = format!("{name} in body is required");
            let detail = String::new();
            self.add(Raw {
                kind: ErrorType::Required,
                name: Some(name),
                bad: Bad::Omit,
                detail,
                message,
            });
        }
    }

    /// `enum`. Null is in no enum, not even in one that lists it.
    fn values(&mut self, value: ValueRef<'_>, allowed: &[Value], path: &Path<'_>) {
        let is = |one: &Value| match value {
            ValueRef::Value(value) => !one.is_null() && same(value, one),
            ValueRef::Object(object) => one.as_object() == Some(object),
        };
        if allowed.is_empty() || allowed.iter().any(is) {
            return;
        }
        let texts: Vec<String> = allowed
            .iter()
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
            .collect();
        let list: Vec<String> = texts.iter().map(|t| quote(t)).collect();
        let name = shown(path);
        let message = format!("{name} in body should be one of [{}]", texts.join(" "));
        let detail = format!("supported values: {}", list.join(", "));
        let bad = Bad::Value(value.to_value());
        self.add(Raw { kind: ErrorType::NotSupported, name: Some(name), bad, detail, message });
    }
}

/// How many alternatives hold, and what is to be shown: the first that holds, or else the one with
/// the most checks. `any` stops at the first that holds.
fn alternatives(nodes: &[Node], run: &dyn Fn(&Node) -> Found, any: bool) -> (usize, Found) {
    let mut good = 0;
    let mut shown: Option<Found> = None;
    for node in nodes {
        let found = run(node);
        if found.errors.is_empty() {
            good += 1;
            if good == 1 {
                shown = Some(found);
            }
            if any {
                break;
            }
        } else if good == 0 && shown.as_ref().is_none_or(|s| found.matches > s.matches) {
            shown = Some(found);
        }
    }
    (good, shown.unwrap_or_default())
}

/// The validator's path: empty at the root.
fn shown(path: &Path<'_>) -> String {
    if matches!(path, Path::Root) { String::new() } else { path.to_string() }
}
