//! Validation errors that name a field, with Kubernetes' words
//! (`apimachinery/pkg/util/validation/field/errors.go`).

use crate::{Value, go, json};

/// What is wrong with a field. The order and the names are Kubernetes' `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TooFew,
    TooShort,
    Internal,
    TypeInvalid,
}

/// One error. `Display` is Kubernetes' `Error()`: `spec.x: Invalid value: 3: must be ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    pub kind: ErrorType,
    /// Dotted path: `spec.versions[0].schema`, `metadata.labels[a/b]`; may be empty.
    pub field: String,
    pub bad: Bad,
    pub detail: String,
}

/// The value that is wrong, as Go would print it.
#[derive(Clone, Debug, PartialEq)]
pub enum Bad {
    /// Leaves the value out of the message (Go's `OmitValueType`).
    Omit,
    /// Strings quoted, numbers and booleans bare, the rest as JSON.
    Value(Value),
    /// Printed as it stands, unquoted (Go's `fmt.Stringer`).
    Text(String),
}

/// A field path under construction: cheap to extend, printed only when there is an error.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    Root,
    Child(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path::Child(self, name)
    }

    pub fn index(&'a self, at: usize) -> Path<'a> {
        Path::Index(self, at)
    }

    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("<nil>"),
            Self::Child(Self::Root, name) => f.write_str(name),
            Self::Child(up, name) => write!(f, "{up}.{name}"),
            Self::Index(Self::Root, at) => write!(f, "[{at}]"),
            Self::Index(up, at) => write!(f, "{up}[{at}]"),
            Self::Key(Self::Root, key) => write!(f, "[{key}]"),
            Self::Key(up, key) => write!(f, "{up}[{key}]"),
        }
    }
}

impl FieldError {
    fn new(
        kind: ErrorType,
        path: impl std::fmt::Display,
        bad: Bad,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: path.to_string(), bad, detail: detail.into() }
    }

    pub fn required(path: impl std::fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, Bad::Omit, detail)
    }

    pub fn invalid(
        path: impl std::fmt::Display,
        bad: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(ErrorType::Invalid, path, Bad::Value(bad.into()), detail)
    }

    pub fn type_invalid(
        path: impl std::fmt::Display,
        bad: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(ErrorType::TypeInvalid, path, Bad::Value(bad.into()), detail)
    }

    /// `supported` is printed quoted and in the order given.
    pub fn not_supported(
        path: impl std::fmt::Display,
        bad: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let list: Vec<String> = supported.iter().map(|s| go::quote(s)).collect();
        let detail = if list.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", list.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, Bad::Value(bad.into()), detail)
    }

    pub fn duplicate(path: impl std::fmt::Display, bad: impl Into<Value>) -> Self {
        Self::new(ErrorType::Duplicate, path, Bad::Value(bad.into()), "")
    }

    pub fn forbidden(path: impl std::fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, Bad::Omit, detail)
    }

    pub fn not_found(path: impl std::fmt::Display, bad: impl Into<Value>) -> Self {
        Self::new(ErrorType::NotFound, path, Bad::Value(bad.into()), "")
    }

    pub fn too_long(path: impl std::fmt::Display, max_bytes: usize) -> Self {
        Self::new(
            ErrorType::TooLong,
            path,
            Bad::Omit,
            format!("may not be more than {max_bytes} {}", plural(max_bytes, "byte")),
        )
    }

    pub fn too_long_characters(path: impl std::fmt::Display, max_chars: usize) -> Self {
        let detail = format!("may not be more than {max_chars} {}", plural(max_chars, "character"));
        Self::new(ErrorType::TooLong, path, Bad::Omit, detail)
    }

    pub fn too_short(path: impl std::fmt::Display, min_chars: usize) -> Self {
        let detail = format!("must be at least {min_chars} {}", plural(min_chars, "character"));
        Self::new(ErrorType::TooShort, path, Bad::Omit, detail)
    }

    pub fn too_few(path: impl std::fmt::Display, actual: usize, min: usize) -> Self {
        let detail = format!("must have at least {min} {}", plural(min, "item"));
        Self::new(ErrorType::TooFew, path, Bad::Value(actual.into()), detail)
    }

    pub fn too_many(path: impl std::fmt::Display, actual: usize, max: usize) -> Self {
        Self::new(
            ErrorType::TooMany,
            path,
            Bad::Value(actual.into()),
            format!("must have at most {max} {}", plural(max, "item")),
        )
    }

    pub fn internal(path: impl std::fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, Bad::Omit, detail)
    }

    /// The reason of the `Status` cause: `FieldValueInvalid`, ...
    pub fn cause_reason(&self) -> &'static str {
        match self.kind {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::TooFew => "FieldValueTooFew",
            ErrorType::TooShort => "FieldValueTooShort",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// Kubernetes' `ErrorBody`: the message without the field.
    pub fn body(&self) -> String {
        let label = match self.kind {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooMany => "Too many",
            ErrorType::TooFew => "Too few",
            ErrorType::TooShort => "Too short",
            ErrorType::Internal => "Internal error",
        };
        let mut out = label.to_owned();
        match &self.bad {
            _ if !self.shows_value() => {}
            Bad::Omit => {}
            Bad::Text(text) => out.push_str(&format!(": {text}")),
            Bad::Value(Value::String(text)) => out.push_str(&format!(": {}", go::quote(text))),
            Bad::Value(Value::Number(number)) => {
                out.push_str(&format!(": {}", display_number(number)))
            }
            Bad::Value(value) => out.push_str(&format!(": {}", json::to_go_string(value))),
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }

    /// Some kinds never print the value, whatever they hold.
    fn shows_value(&self) -> bool {
        use ErrorType::*;
        !matches!(self.kind, Required | Forbidden | TooLong | TooShort | Internal)
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Several errors in one message, as Go's aggregate prints them: one alone, more in brackets,
/// equal ones once. None is empty.
pub fn aggregate(errors: &[FieldError]) -> String {
    join(errors.iter().map(ToString::to_string))
}

/// [`aggregate`] of messages.
pub fn join(messages: impl IntoIterator<Item = String>) -> String {
    let mut seen = std::collections::HashSet::new();
    let list: Vec<String> = messages.into_iter().filter(|m| seen.insert(m.clone())).collect();
    if list.len() == 1 {
        list.into_iter().next().expect("one message")
    } else if list.is_empty() {
        String::new()
    } else {
        format!("[{}]", list.join(", "))
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

fn display_number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => go::display_float(float),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_kubernetes() {
        let spec = Path::Root.child("spec");
        for (error, want) in [
            (FieldError::required(spec, ""), "spec: Required value"),
            (FieldError::required(spec.key("a/b"), "say so"), "spec[a/b]: Required value: say so"),
            (
                FieldError::invalid(spec.child("x").index(1), "a\"\n", "no"),
                r#"spec.x[1]: Invalid value: "a\"\n": no"#,
            ),
            (FieldError::invalid(spec, 3, "no"), "spec: Invalid value: 3: no"),
            (FieldError::invalid(spec, 1.0, "no"), "spec: Invalid value: 1: no"),
            (FieldError::invalid(spec, true, ""), "spec: Invalid value: true"),
            (FieldError::invalid(spec, Value::Null, "no"), "spec: Invalid value: null: no"),
            (
                FieldError::invalid(spec, json!({"b": "<", "a": [1.5]}), "no"),
                r#"spec: Invalid value: {"a":[1.5],"b":"\u003c"}: no"#,
            ),
            (FieldError::type_invalid(Path::Root, "x", "no"), r#"<nil>: Invalid value: "x": no"#),
            (
                FieldError::not_supported(spec, "c", &["a", "b"]),
                r#"spec: Unsupported value: "c": supported values: "a", "b""#,
            ),
            (FieldError::not_supported(spec, "c", &[]), r#"spec: Unsupported value: "c""#),
            (FieldError::duplicate(spec, "c"), r#"spec: Duplicate value: "c""#),
            (FieldError::not_found(spec, "c"), r#"spec: Not found: "c""#),
            (FieldError::forbidden(spec, "c"), "spec: Forbidden: c"),
            (FieldError::too_long(spec, 1), "spec: Too long: may not be more than 1 byte"),
            (FieldError::too_long(spec, 253), "spec: Too long: may not be more than 253 bytes"),
            (FieldError::too_many(spec, 5, 4), "spec: Too many: 5: must have at most 4 items"),
            (FieldError::internal(spec, "c"), "spec: Internal error: c"),
        ] {
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn aggregate_drops_equal_messages() {
        let a = FieldError::forbidden("a", "x");
        let b = FieldError::forbidden("b", "x");
        assert_eq!(aggregate(&[]), "");
        assert_eq!(aggregate(&[a.clone(), a.clone()]), "a: Forbidden: x");
        assert_eq!(aggregate(&[a.clone(), b, a]), "[a: Forbidden: x, b: Forbidden: x]");
    }
}
