//! Validation errors that name a field, with Kubernetes' words
//! (`apimachinery/pkg/util/validation/field/errors.go`).

use crate::Value;

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
            Self::Root => Ok(()),
            Self::Child(Self::Root, name) => f.write_str(name),
            Self::Child(up, name) => write!(f, "{up}.{name}"),
            Self::Index(up, at) => write!(f, "{up}[{at}]"),
            Self::Key(up, key) => write!(f, "{up}[{key}]"),
        }
    }
}

impl FieldError {
    fn new(kind: ErrorType, path: impl std::fmt::Display, bad: Bad, detail: impl Into<String>) -> Self {
        Self { kind, field: path.to_string(), bad, detail: detail.into() }
    }

    pub fn required(path: impl std::fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, Bad::Omit, detail)
    }

    pub fn invalid(path: impl std::fmt::Display, bad: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Bad::Value(bad.into()), detail)
    }

    pub fn type_invalid(path: impl std::fmt::Display, bad: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, Bad::Value(bad.into()), detail)
    }

    /// `supported` is printed quoted and in the order given.
    pub fn not_supported(path: impl std::fmt::Display, bad: impl Into<Value>, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
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
        Self::new(ErrorType::TooLong, path, Bad::Omit, format!("may not be more than {max_bytes} bytes"))
    }

    pub fn too_many(path: impl std::fmt::Display, actual: usize, max: usize) -> Self {
        Self::new(ErrorType::TooMany, path, Bad::Value(actual.into()), format!("must have at most {max} items"))
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
            ErrorType::Internal => "Internal error",
        };
        let mut out = label.to_owned();
        match &self.bad {
            Bad::Omit => {}
            Bad::Text(text) => out.push_str(&format!(": {text}")),
            Bad::Value(value) => out.push_str(&format!(": {value}")),
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() { f.write_str(&self.body()) } else { write!(f, "{}: {}", self.field, self.body()) }
    }
}
