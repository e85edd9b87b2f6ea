//! JSON to the wire.

use super::scalar::{self, At, go_type};
use super::{DEPTH_MAX, Error, Field, Kind, Label, Message, wire};
use crate::{Object, Value};

/// The wire form of `object`, as gogo writes it: fields in tag order, a Go value even when it is
/// zero, maps in the order of their keys. Members that the message does not know are left out.
///
/// # Errors
/// A member of another type than the Go field has.
pub fn encode(message: &'static Message, object: &Object) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(512);
    Encoder { out: &mut out, depth: 0 }.message(message, Some(object), &At::Root)?;
    Ok(out)
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

impl Encoder<'_> {
    fn message(
        &mut self,
        message: &'static Message,
        object: Option<&Object>,
        at: &At<'_>,
    ) -> Result<(), Error> {
        if self.depth > DEPTH_MAX {
            return Err(Error::Depth);
        }
        for field in message.fields {
            let at = At::Field(at, message, field);
            if let (Kind::Message(inline), "") = (field.kind, field.json) {
                self.nested(field.tag, |inner| inner.message(inline, object, &at))?;
                continue;
            }
            let value = object.and_then(|o| o.get(field.json)).filter(|v| !v.is_null());
            self.field(field, value, &at)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        value: Option<&Value>,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let wrong = |value: &Value| at.type_error(value, go_type(field.kind, field.label));
        match (field.label, value) {
            // A Go slice that is nil is the one value that is left out.
            (Label::Plain, None) if matches!(field.kind, Kind::Bytes | Kind::Strings) => Ok(()),
            (Label::Plain, value) => self.value(field.tag, field.kind, value, at),
            (_, None) => Ok(()),
            (Label::Pointer, value) => self.value(field.tag, field.kind, value, at),
            (Label::Repeated, Some(value)) => {
                for (index, item) in
                    value.as_array().ok_or_else(|| wrong(value))?.iter().enumerate()
                {
                    let item = Some(item).filter(|item| !item.is_null());
                    self.value(field.tag, field.kind, item, &At::Index(at, index))?;
                }
                Ok(())
            }
            (Label::Map, Some(value)) => {
                for (key, item) in value.as_object().ok_or_else(|| wrong(value))? {
                    let item = Some(item).filter(|item| !item.is_null());
                    self.nested(field.tag, |entry| {
                        wire::put_bytes(entry.out, 1, key.as_bytes());
                        if item.is_none() && matches!(field.kind, Kind::Bytes | Kind::Strings) {
                            return Ok(());
                        }
                        entry.value(2, field.kind, item, &At::Key(at, key))
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Writes one value; `None` is the kind's zero value.
    fn value(
        &mut self,
        tag: u32,
        kind: Kind,
        value: Option<&Value>,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let wrong = |value: &Value| at.type_error(value, go_type(kind, Label::Plain));
        match kind {
            Kind::Bool => {
                let flag = value.map_or(Ok(false), |v| v.as_bool().ok_or_else(|| wrong(v)))?;
                wire::put_int(self.out, tag, i64::from(flag));
            }
            Kind::Int32 | Kind::Int64 => {
                let number = value.map_or(Ok(0), |v| scalar::integer(at, kind, v))?;
                wire::put_int(self.out, tag, number);
            }
            Kind::Double => {
                let number = value.map_or(Ok(0.0), |v| v.as_f64().ok_or_else(|| wrong(v)))?;
                wire::put_tag(self.out, tag, wire::FIXED64);
                self.out.extend_from_slice(&number.to_le_bytes());
            }
            Kind::String => {
                let text = value.map_or(Ok(""), |v| v.as_str().ok_or_else(|| wrong(v)))?;
                wire::put_bytes(self.out, tag, text.as_bytes());
            }
            Kind::Bytes => {
                let bytes = value.map_or(Ok(Vec::new()), |v| scalar::bytes(at, v))?;
                wire::put_bytes(self.out, tag, &bytes);
            }
            Kind::Message(message) => {
                let object = value.map(|v| v.as_object().ok_or_else(|| wrong(v))).transpose()?;
                self.nested(tag, |inner| inner.message(message, object, at))?;
            }
            _ => self.nested(tag, |inner| match value {
                Some(value) => inner.special(kind, value, at),
                None if kind == Kind::Quantity => inner.special(kind, &Value::Null, at),
                None if matches!(kind, Kind::SchemaOrBool(_)) => {
                    inner.special(kind, &false.into(), at)
                }
                None => Ok(()),
            })?,
        }
        Ok(())
    }

    /// The body of a message that JSON does not write as an object of its fields.
    fn special(&mut self, kind: Kind, value: &Value, at: &At<'_>) -> Result<(), Error> {
        let wrong = || at.type_error(value, go_type(kind, Label::Plain));
        match kind {
            Kind::Strings => {
                for item in value.as_array().ok_or_else(wrong)? {
                    self.value(1, Kind::String, Some(item), at)?;
                }
            }
            Kind::Time | Kind::MicroTime => {
                let Some(time) = scalar::instant(at, value)? else { return Ok(()) };
                let nanos = if kind == Kind::Time { 0 } else { time.microsecond() * 1000 };
                wire::put_int(self.out, 1, time.unix_timestamp());
                wire::put_int(self.out, 2, i64::from(nanos));
            }
            Kind::Quantity => wire::put_bytes(self.out, 1, scalar::quantity(at, value)?.as_bytes()),
            Kind::SchemaOrBool(schema) => {
                let allows = value.as_bool().unwrap_or(value.is_object());
                wire::put_int(self.out, 1, i64::from(allows));
                match value {
                    Value::Bool(_) => {}
                    _ => self.value(2, Kind::Message(schema), Some(value), at)?,
                }
            }
            Kind::SchemaOrList(schema) => match value {
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(2, Kind::Message(schema), Some(item), &At::Index(at, index))?;
                    }
                }
                _ => self.value(1, Kind::Message(schema), Some(value), at)?,
            },
            Kind::SchemaOrStrings(schema) => match value {
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(2, Kind::String, Some(item), &At::Index(at, index))?;
                    }
                }
                _ => self.value(1, Kind::Message(schema), Some(value), at)?,
            },
            // The remaining kinds hold any JSON as it is.
            _ => wire::put_bytes(self.out, 1, value.to_string().as_bytes()),
        }
        Ok(())
    }

    fn nested(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let depth = self.depth + 1;
        wire::put_nested(self.out, tag, |out| write(&mut Encoder { out, depth }))
    }
}
