//! JSON to the JSON that Go would print after decoding it into the type.

use super::scalar::{self, At, go_type};
use super::{DEPTH_MAX, Error, Field, Kind, Label, Message};
use crate::{Object, Value};

/// What a field holds while its message is put together.
pub enum Slot {
    Absent,
    Value {
        value: Value,
        zero: bool,
    },
    /// An embedded message, whose members are already in place.
    Inline {
        zero: bool,
    },
}

impl Slot {
    pub fn new(value: Value, zero: bool) -> Self {
        Self::Value { value, zero }
    }

    /// The zero value of a kind, as JSON prints it.
    pub fn zero(kind: Kind) -> Self {
        let value = match kind {
            Kind::Bool | Kind::SchemaOrBool(_) => false.into(),
            Kind::Int32 | Kind::Int64 | Kind::Double => 0.into(),
            Kind::String => "".into(),
            Kind::Quantity => "0".into(),
            Kind::Message(message) => {
                let mut object = Object::new();
                finish(message, Vec::new(), &mut object);
                object.into()
            }
            _ => Value::Null,
        };
        Self::Value { value, zero: true }
    }

    pub fn into_value(self) -> Value {
        if let Self::Value { value, .. } = self { value } else { Value::Null }
    }

    pub fn list_mut(&mut self) -> &mut Vec<Value> {
        if !matches!(self, Self::Value { value: Value::Array(_), .. }) {
            *self = Self::new(Value::Array(Vec::new()), false);
        }
        let Self::Value { value: Value::Array(list), .. } = self else {
            unreachable!("made a list just above")
        };
        list
    }

    pub fn map_mut(&mut self) -> &mut Object {
        if !matches!(self, Self::Value { value: Value::Object(_), .. }) {
            *self = Self::new(Value::Object(Object::new()), false);
        }
        let Self::Value { value: Value::Object(map), .. } = self else {
            unreachable!("made a map just above")
        };
        map
    }
}

/// Puts the slots of a message (none: all absent) into `out` as Go's JSON has them; true when every
/// field is zero.
pub fn finish(message: &'static Message, slots: Vec<Slot>, out: &mut Object) -> bool {
    let mut all_zero = true;
    let mut slots = slots.into_iter();
    for field in message.fields {
        let slot = match (slots.next().unwrap_or(Slot::Absent), field) {
            (Slot::Absent, Field { json: "", kind: Kind::Message(inline), .. }) => {
                finish(inline, Vec::new(), out);
                continue;
            }
            (Slot::Absent, Field { label: Label::Plain, .. }) => Slot::zero(field.kind),
            (Slot::Absent, _) => Slot::new(Value::Null, true),
            (slot, _) => slot,
        };
        let (value, zero) = match slot {
            Slot::Inline { zero } => {
                all_zero &= zero;
                continue;
            }
            // A pointer to a zero value is not a zero pointer.
            Slot::Value { value, .. } if field.label != Label::Plain => {
                let zero = value.is_null();
                (value, zero)
            }
            Slot::Value { value, zero } => (value, zero),
            Slot::Absent => unreachable!("filled just above"),
        };
        all_zero &= zero;
        if !(field.omit_empty && (zero || is_empty(field, &value))) {
            out.insert(field.json.into(), value);
        }
    }
    all_zero
}

/// `omitempty` leaves an empty list or map out, though it is not nil.
fn is_empty(field: &Field, value: &Value) -> bool {
    match (field.label, value) {
        (Label::Pointer, _) => false,
        (Label::Plain, Value::Array(list)) => field.kind == Kind::Strings && list.is_empty(),
        (_, Value::Array(list)) => list.is_empty(),
        (Label::Map, Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// What decoding `object` into the Go type of `message` and printing it gives: values in their
/// printed form, zero values left out or printed as the type's tags say, unknown members dropped
/// and their paths added to `unknown` (`spec.a[0].b`, as the strict decoder names them).
///
/// # Errors
/// A member of another type than the Go field has, in the words of `encoding/json`.
pub fn conform(
    message: &'static Message,
    object: &Object,
    unknown: &mut Vec<String>,
) -> Result<Object, Error> {
    let mut out = Object::new();
    let mut pass = Pass { unknown, depth: 0 };
    pass.message(message, object, &At::Root, &mut out)?;
    pass.note_unknown(message, object, &At::Root);
    Ok(out)
}

struct Pass<'a> {
    unknown: &'a mut Vec<String>,
    depth: usize,
}

impl Pass<'_> {
    fn message(
        &mut self,
        message: &'static Message,
        object: &Object,
        at: &At<'_>,
        out: &mut Object,
    ) -> Result<bool, Error> {
        if self.depth > DEPTH_MAX {
            return Err(Error::Depth);
        }
        self.depth += 1;
        if message.type_meta {
            for key in ["kind", "apiVersion"] {
                match object.get(key) {
                    None | Some(Value::Null) => {}
                    Some(Value::String(text)) if text.is_empty() => {}
                    Some(text @ Value::String(_)) => drop(out.insert(key.into(), text.clone())),
                    Some(other) => return Err(at.type_error(other, "string")),
                }
            }
        }
        let mut slots = Vec::with_capacity(message.fields.len());
        for field in message.fields {
            let at = At::Field(at, message, field);
            if let (Kind::Message(inline), "") = (field.kind, field.json) {
                let zero = self.message(inline, object, &at, out)?;
                slots.push(Slot::Inline { zero });
                continue;
            }
            slots.push(match object.get(field.json) {
                None | Some(Value::Null) => Slot::Absent,
                Some(value) => self.field(field, value, &at)?,
            });
        }
        self.depth -= 1;
        Ok(finish(message, slots, out))
    }

    fn note_unknown(&mut self, message: &'static Message, object: &Object, at: &At<'_>) {
        for key in object.keys() {
            let is_type = message.type_meta && (key == "kind" || key == "apiVersion");
            if !is_type && message.field(key).is_none() {
                self.unknown.push(At::Key(at, key).path());
            }
        }
    }

    fn field(&mut self, field: &'static Field, value: &Value, at: &At<'_>) -> Result<Slot, Error> {
        let wrong = || at.type_error(value, go_type(field.kind, field.label));
        match field.label {
            Label::Plain | Label::Pointer => self.value(field.kind, value, at),
            Label::Repeated => {
                let mut list = Vec::new();
                for (index, item) in value.as_array().ok_or_else(wrong)?.iter().enumerate() {
                    list.push(self.item(field.kind, item, &At::Index(at, index))?);
                }
                Ok(Slot::new(list.into(), false))
            }
            Label::Map => {
                let mut map = Object::new();
                for (key, item) in value.as_object().ok_or_else(wrong)? {
                    map.insert(key.clone(), self.item(field.kind, item, &At::Key(at, key))?);
                }
                Ok(Slot::new(map.into(), false))
            }
        }
    }

    fn item(&mut self, kind: Kind, value: &Value, at: &At<'_>) -> Result<Value, Error> {
        if value.is_null() {
            return Ok(Slot::zero(kind).into_value());
        }
        Ok(self.value(kind, value, at)?.into_value())
    }

    fn value(&mut self, kind: Kind, value: &Value, at: &At<'_>) -> Result<Slot, Error> {
        let wrong = || at.type_error(value, go_type(kind, Label::Plain));
        Ok(match kind {
            Kind::Bool => {
                let flag = value.as_bool().ok_or_else(wrong)?;
                Slot::new(flag.into(), !flag)
            }
            Kind::Int32 | Kind::Int64 => {
                let number = scalar::integer(at, kind, value)?;
                Slot::new(number.into(), number == 0)
            }
            Kind::Double => {
                let number = value.as_f64().ok_or_else(wrong)?;
                Slot::new(scalar::float_value(number), number == 0.0)
            }
            Kind::String => {
                let text = value.as_str().ok_or_else(wrong)?;
                Slot::new(text.into(), text.is_empty())
            }
            Kind::Bytes => {
                let bytes = scalar::bytes(at, value)?;
                Slot::new(scalar::bytes_value(&bytes), bytes.is_empty())
            }
            Kind::Strings => {
                let list = value.as_array().ok_or_else(wrong)?;
                if let Some(other) = list.iter().find(|item| !item.is_string()) {
                    return Err(at.type_error(other, "string"));
                }
                Slot::new(value.clone(), false)
            }
            Kind::Message(message) => {
                let object = value.as_object().ok_or_else(wrong)?;
                let mut out = Object::new();
                let zero = self.message(message, object, at, &mut out)?;
                self.note_unknown(message, object, at);
                Slot::new(out.into(), zero)
            }
            Kind::Time | Kind::MicroTime => match scalar::instant(at, value)? {
                Some(time) => {
                    let nanos = time.nanosecond() as i32;
                    Slot::new(scalar::time_value(kind, time.unix_timestamp(), nanos), false)
                }
                None => Slot::zero(kind),
            },
            Kind::Quantity => {
                let text = scalar::quantity(at, value)?;
                let zero = text == "0";
                Slot::new(text.into(), zero)
            }
            Kind::RawExtension | Kind::FieldsV1 | Kind::Json => Slot::new(value.clone(), false),
            Kind::SchemaOrBool(schema)
            | Kind::SchemaOrList(schema)
            | Kind::SchemaOrStrings(schema) => self.union(kind, schema, value, at)?,
        })
    }

    /// The JSON schema types that hold one of two forms; what is neither reads as empty, except
    /// where Go refuses it.
    fn union(
        &mut self,
        kind: Kind,
        schema: &'static Message,
        value: &Value,
        at: &At<'_>,
    ) -> Result<Slot, Error> {
        match (kind, value) {
            (_, Value::Object(_)) => self.value(Kind::Message(schema), value, at),
            (Kind::SchemaOrBool(_), Value::Bool(_)) => Ok(Slot::new(value.clone(), false)),
            (Kind::SchemaOrBool(_), _) => Err(Error::Text {
                at: at.path(),
                message: "boolean or JSON schema expected".into(),
            }),
            (Kind::SchemaOrList(_), Value::Array(items)) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    list.push(self.item(Kind::Message(schema), item, &At::Index(at, index))?);
                }
                Ok(Slot::new(list.into(), false))
            }
            (Kind::SchemaOrStrings(_), Value::Array(_)) => self.value(Kind::Strings, value, at),
            _ => Ok(Slot::zero(Kind::Json)),
        }
    }
}
