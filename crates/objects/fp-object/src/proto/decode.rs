//! The wire to JSON.

use super::conform::{Slot, finish};
use super::scalar;
use super::wire::{Raw, Reader};
use super::{DEPTH_MAX, Error, Field, Kind, Label, Message};
use crate::{Object, Value};

/// The JSON object of a wire message, as Go prints the type: zero values are left out or printed
/// as its tags say. Unknown fields are skipped. `kind` and `apiVersion` are the caller's to add.
///
/// # Errors
/// Bytes that are no message of that type.
pub fn decode(message: &'static Message, bytes: &[u8]) -> Result<Object, Error> {
    let mut out = Object::new();
    read_message(message, bytes, At { depth: 0, strict: false }, &mut out)?;
    Ok(out)
}

/// The same of a request's body: text that is not UTF-8 is an error, as in JSON. What is stored
/// already keeps Go's reading.
///
/// # Errors
/// Bytes that are no message of that type, and invalid UTF-8.
pub fn decode_body(message: &'static Message, bytes: &[u8]) -> Result<Object, Error> {
    let mut out = Object::new();
    read_message(message, bytes, At { depth: 0, strict: true }, &mut out)?;
    Ok(out)
}

/// Where the reader is, and how it reads.
#[derive(Clone, Copy)]
struct At {
    depth: usize,
    /// Refuses text that is not UTF-8.
    strict: bool,
}

impl At {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// Reads the fields into `out`; true when all of them are zero.
fn read_message(
    message: &'static Message,
    bytes: &[u8],
    at: At,
    out: &mut Object,
) -> Result<bool, Error> {
    if at.depth > DEPTH_MAX {
        return Err(Error::Depth);
    }
    let mut slots: Vec<Slot> = Vec::with_capacity(message.fields.len());
    slots.resize_with(message.fields.len(), || Slot::Absent);
    let mut reader = Reader::new(bytes);
    while let Some((tag, raw)) = reader.next()? {
        let Ok(index) = message.fields.binary_search_by_key(&tag, |f| f.tag) else { continue };
        let field = &message.fields[index];
        let scope = Scope { message, field, at };
        match field.label {
            Label::Plain | Label::Pointer if field.json.is_empty() => {
                let Kind::Message(inline) = field.kind else { return Err(scope.wrong(raw)) };
                let zero = read_message(inline, scope.bytes(raw)?, at.deeper(), out)?;
                slots[index] = Slot::Inline { zero };
            }
            Label::Plain | Label::Pointer => slots[index] = scope.value(field.kind, raw)?,
            Label::Repeated => scope.append(&mut slots[index], raw)?,
            Label::Map => {
                let (key, value) = scope.entry(scope.bytes(raw)?)?;
                slots[index].map_mut().insert(key, value);
            }
        }
    }
    Ok(finish(message, slots, out))
}

/// The field that is being read.
struct Scope {
    message: &'static Message,
    field: &'static Field,
    at: At,
}

impl Scope {
    fn wrong(&self, raw: Raw<'_>) -> Error {
        let (message, field) = (self.message.name, self.field.json);
        Error::WireType { message, field, wire_type: raw.wire_type() }
    }

    fn bytes<'a>(&self, raw: Raw<'a>) -> Result<&'a [u8], Error> {
        if let Raw::Bytes(bytes) = raw { Ok(bytes) } else { Err(self.wrong(raw)) }
    }

    /// Go keeps invalid UTF-8 in a string and prints it as U+FFFD.
    fn text(&self, bytes: &[u8]) -> Result<String, Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) if self.at.strict => {
                Err(Error::Utf8 { message: self.message.name, field: self.field.json })
            }
            Err(_) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    fn varint(&self, raw: Raw<'_>) -> Result<u64, Error> {
        if let Raw::Varint(value) = raw { Ok(value) } else { Err(self.wrong(raw)) }
    }

    fn append(&self, slot: &mut Slot, raw: Raw<'_>) -> Result<(), Error> {
        let list = slot.list_mut();
        match (self.field.kind, raw) {
            // A packed list of numbers, which any protobuf writer may choose.
            (kind @ (Kind::Bool | Kind::Int32 | Kind::Int64), Raw::Bytes(packed)) => {
                let mut reader = Reader::new(packed);
                while !reader.is_empty() {
                    let raw = Raw::Varint(reader.varint()?);
                    list.push(self.value(kind, raw)?.into_value());
                }
            }
            (kind, raw) => list.push(self.value(kind, raw)?.into_value()),
        }
        Ok(())
    }

    fn entry(&self, bytes: &[u8]) -> Result<(String, Value), Error> {
        let mut key = String::new();
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some((tag, raw)) = reader.next()? {
            match tag {
                1 => key = self.text(self.bytes(raw)?)?,
                2 => value = Some(self.value(self.field.kind, raw)?.into_value()),
                _ => {}
            }
        }
        // Go makes an empty slice of a missing value.
        let missing = || match self.field.kind {
            Kind::Bytes => "".into(),
            kind => Slot::zero(kind).into_value(),
        };
        Ok((key, value.unwrap_or_else(missing)))
    }

    fn value(&self, kind: Kind, raw: Raw<'_>) -> Result<Slot, Error> {
        Ok(match kind {
            Kind::Bool => {
                let flag = self.varint(raw)? != 0;
                Slot::new(flag.into(), !flag)
            }
            Kind::Int32 => {
                let number = self.varint(raw)? as i32;
                Slot::new(number.into(), number == 0)
            }
            Kind::Int64 => {
                let number = self.varint(raw)? as i64;
                Slot::new(number.into(), number == 0)
            }
            Kind::Double => {
                let Raw::Fixed64(bits) = raw else { return Err(self.wrong(raw)) };
                let number = f64::from_bits(bits);
                Slot::new(scalar::float_value(number), number == 0.0)
            }
            Kind::String => {
                let text = self.text(self.bytes(raw)?)?;
                let zero = text.is_empty();
                Slot::new(text.into(), zero)
            }
            Kind::Bytes => {
                let bytes = self.bytes(raw)?;
                Slot::new(scalar::bytes_value(bytes), bytes.is_empty())
            }
            Kind::Message(message) => {
                let mut object = Object::new();
                let zero = read_message(message, self.bytes(raw)?, self.at.deeper(), &mut object)?;
                Slot::new(object.into(), zero)
            }
            _ => self.special(kind, self.bytes(raw)?)?,
        })
    }

    /// A message that JSON does not write as an object of its fields.
    fn special(&self, kind: Kind, bytes: &[u8]) -> Result<Slot, Error> {
        match kind {
            Kind::Time | Kind::MicroTime => self.time(kind, bytes),
            Kind::Quantity => {
                let text = match self.first_bytes(bytes)? {
                    Some(bytes) => self.text(bytes)?,
                    None => "0".to_owned(),
                };
                let zero = text == "0";
                Ok(Slot::new(text.into(), zero))
            }
            Kind::Strings => {
                let mut list = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((tag, raw)) = reader.next()? {
                    if tag == 1 {
                        list.push(Value::from(self.text(self.bytes(raw)?)?));
                    }
                }
                Ok(Slot::new(list.into(), false))
            }
            Kind::SchemaOrBool(schema) => self.schema_or_bool(schema, bytes),
            Kind::SchemaOrList(schema) => self.schema_or_list(schema, bytes, Kind::Message(schema)),
            Kind::SchemaOrStrings(schema) => self.schema_or_list(schema, bytes, Kind::String),
            _ => {
                let Some(raw) = self.first_bytes(bytes)? else { return Ok(Slot::zero(kind)) };
                // A RawExtension may hold another encoding: it is passed on as base64.
                let value =
                    serde_json::from_slice(raw).unwrap_or_else(|_| scalar::bytes_value(raw));
                Ok(Slot::new(value, false))
            }
        }
    }

    fn time(&self, kind: Kind, bytes: &[u8]) -> Result<Slot, Error> {
        let (mut seconds, mut nanos) = (0i64, 0i32);
        let mut reader = Reader::new(bytes);
        while let Some((tag, raw)) = reader.next()? {
            match tag {
                1 => seconds = self.varint(raw)? as i64,
                2 => nanos = self.varint(raw)? as i32,
                _ => {}
            }
        }
        // An empty message is Go's zero time; {0, 0} is 1970.
        if bytes.is_empty() {
            return Ok(Slot::zero(kind));
        }
        Ok(Slot::new(scalar::time_value(kind, seconds, nanos), false))
    }

    fn schema_or_bool(&self, schema: &'static Message, bytes: &[u8]) -> Result<Slot, Error> {
        let (mut allows, mut value) = (false, None);
        let mut reader = Reader::new(bytes);
        while let Some((tag, raw)) = reader.next()? {
            match tag {
                1 => allows = self.varint(raw)? != 0,
                2 => value = Some(self.deeper().value(Kind::Message(schema), raw)?.into_value()),
                _ => {}
            }
        }
        Ok(Slot::new(value.unwrap_or(allows.into()), false))
    }

    fn schema_or_list(
        &self,
        schema: &'static Message,
        bytes: &[u8],
        item: Kind,
    ) -> Result<Slot, Error> {
        let (mut list, mut value) = (Vec::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((tag, raw)) = reader.next()? {
            match tag {
                1 => value = Some(self.deeper().value(Kind::Message(schema), raw)?.into_value()),
                2 => list.push(self.deeper().value(item, raw)?.into_value()),
                _ => {}
            }
        }
        if !list.is_empty() {
            return Ok(Slot::new(list.into(), false));
        }
        Ok(Slot::new(value.unwrap_or(Value::Null), false))
    }

    fn deeper(&self) -> Scope {
        Scope { message: self.message, field: self.field, at: self.at.deeper() }
    }

    fn first_bytes<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Error> {
        let mut found = None;
        let mut reader = Reader::new(bytes);
        while let Some((tag, raw)) = reader.next()? {
            if tag == 1 {
                found = Some(self.bytes(raw)?);
            }
        }
        Ok(found)
    }
}
