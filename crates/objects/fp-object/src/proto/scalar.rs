//! Single values in their JSON form: checked as `encoding/json` checks them when it fills a Go
//! struct, and printed as it prints them.

use ::time::OffsetDateTime;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Error, Field, Kind, Label, Message};
use crate::{Value, go, json, time};

/// Where a value stands: the struct that holds it and the path from the object's root.
#[derive(Clone, Copy)]
pub enum At<'a> {
    Root,
    Field(&'a At<'a>, &'static Message, &'static Field),
    Index(&'a At<'a>, usize),
    Key(&'a At<'a>, &'a str),
}

impl At<'_> {
    /// `ObjectMeta.metadata.name`: the innermost struct and the names that led to the value.
    fn go_name(&self) -> String {
        let mut at = self;
        let mut owner = "";
        let mut names = Vec::new();
        loop {
            at = match at {
                At::Root => break,
                At::Index(up, _) | At::Key(up, _) => up,
                At::Field(up, message, field) => {
                    if owner.is_empty() {
                        owner = message.short_name();
                    }
                    if !field.json.is_empty() {
                        names.push(field.json);
                    }
                    up
                }
            };
        }
        names.push(owner);
        names.reverse();
        names.join(".")
    }

    /// `spec.versions[0].name`, as sigs.k8s.io/json names a field in its strict errors.
    pub fn path(&self) -> String {
        match self {
            At::Root => String::new(),
            At::Index(up, index) => format!("{}[{index}]", up.path()),
            At::Field(up, _, Field { json: "", .. }) => up.path(),
            At::Field(up, _, Field { json: name, .. }) | At::Key(up, name) => {
                let up = up.path();
                if up.is_empty() { (*name).to_owned() } else { format!("{up}.{name}") }
            }
        }
    }

    pub fn type_error(&self, got: &Value, want: impl Into<String>) -> Error {
        Error::Type { got: json::type_name(got).into(), at: self.go_name(), want: want.into() }
    }

    fn text_error(&self, message: impl Into<String>) -> Error {
        Error::Text { at: self.path(), message: message.into() }
    }
}

/// The Go type as an error names it: `string`, `[]v1.Subject`, `map[string]string`.
pub fn go_type(kind: Kind, label: Label) -> String {
    let base = match kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Int32 => "int32".to_owned(),
        Kind::Int64 => "int64".to_owned(),
        Kind::Double => "float64".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::Bytes => "[]uint8".to_owned(),
        Kind::Strings => "[]string".to_owned(),
        Kind::Time => "v1.Time".to_owned(),
        Kind::MicroTime => "v1.MicroTime".to_owned(),
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::RawExtension => "runtime.RawExtension".to_owned(),
        Kind::FieldsV1 => "v1.FieldsV1".to_owned(),
        Kind::Json => "v1.JSON".to_owned(),
        Kind::Message(m)
        | Kind::SchemaOrBool(m)
        | Kind::SchemaOrList(m)
        | Kind::SchemaOrStrings(m) => {
            let mut parts = m.name.rsplit('.');
            let name = parts.next().unwrap_or_default();
            format!("{}.{name}", parts.next().unwrap_or_default())
        }
    };
    match label {
        Label::Plain | Label::Pointer => base,
        Label::Repeated => format!("[]{base}"),
        Label::Map => format!("map[string]{base}"),
    }
}

pub fn integer(at: &At<'_>, kind: Kind, value: &Value) -> Result<i64, Error> {
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| integral(number.as_f64()?)),
        _ => None,
    };
    let fits = |n: &i64| kind != Kind::Int32 || i32::try_from(*n).is_ok();
    number.filter(fits).ok_or_else(|| {
        let mut error = at.type_error(value, go_type(kind, Label::Plain));
        if let (Error::Type { got, .. }, Value::Number(number)) = (&mut error, value) {
            got.push_str(&format!(" {number}"));
        }
        error
    })
}

/// The integer that a float stands for, when it does.
pub fn integral(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// The JSON of a Go float64: without a fraction when there is none.
pub fn float_value(number: f64) -> Value {
    match integral(number) {
        Some(integer) => integer.into(),
        None => number.into(),
    }
}

pub fn bytes(at: &At<'_>, value: &Value) -> Result<Vec<u8>, Error> {
    let text = value.as_str().ok_or_else(|| at.type_error(value, "[]uint8"))?;
    // encoding/json ignores line breaks in base64.
    let clean = if text.contains(['\n', '\r']) { &text.replace(['\n', '\r'], "") } else { text };
    BASE64.decode(clean).map_err(|_| {
        let is_known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let offset = clean.bytes().position(|b| !is_known(b)).unwrap_or(clean.len());
        at.text_error(format!("illegal base64 data at input byte {offset}"))
    })
}

pub fn bytes_value(bytes: &[u8]) -> Value {
    BASE64.encode(bytes).into()
}

/// The instant of a `Time` or `MicroTime`, `None` for JSON `null`.
pub fn instant(at: &At<'_>, value: &Value) -> Result<Option<OffsetDateTime>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    let text = value.as_str().ok_or_else(|| at.type_error(value, "string"))?;
    let time = time::parse(text).ok_or_else(|| {
        let quoted = go::quote(text);
        at.text_error(format!(
            "parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\""
        ))
    })?;
    Ok(Some(time))
}

/// The JSON of an instant in seconds and nanoseconds since 1970: `null` when the calendar ends
/// before it.
pub fn time_value(kind: Kind, seconds: i64, nanos: i32) -> Value {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(seconds) else { return Value::Null };
    if kind == Kind::Time {
        return time::format(at).into();
    }
    let nanos = u32::try_from(nanos).unwrap_or(0).min(999_999_999);
    time::format_micro(at.replace_nanosecond(nanos).unwrap_or(at)).into()
}

/// The text of a quantity, which JSON may give as a number.
pub fn quantity(at: &At<'_>, value: &Value) -> Result<String, Error> {
    match value {
        Value::String(text) => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Ok("0".to_owned()),
        _ => Err(at.text_error(
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )),
    }
}
