//! JSON as Go's `encoding/json` prints it: struct members in the order of the Go type, map members
//! sorted, `<`, `>` and `&` escaped. What Go stores as JSON is compared byte by byte.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::{Field, Kind, Message};
use crate::{Object, Value, go};

/// The object in the order of its Go type. It must stand as [`super::conform`] leaves it: members
/// that the message does not know are not printed.
pub fn to_json(message: &'static Message, object: &Object) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write_message(message, object, &mut out);
    out
}

/// Any JSON as Go prints a map.
pub fn value_to_json(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write_value(value, &mut out);
    out
}

fn write_message(message: &'static Message, object: &Object, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    if message.type_meta {
        for key in ["kind", "apiVersion"] {
            if let Some(value) = object.get(key) {
                write_key(key, &mut first, out);
                write_value(value, out);
            }
        }
    }
    write_fields(message, object, &mut first, out);
    out.push(b'}');
}

fn write_fields(message: &'static Message, object: &Object, first: &mut bool, out: &mut Vec<u8>) {
    let mut fields: Vec<&Field> = message.fields.iter().collect();
    fields.sort_by_key(|field| field.position);
    for field in fields {
        if let (Kind::Message(inline), "") = (field.kind, field.json) {
            write_fields(inline, object, first, out);
        } else if let Some(value) = object.get(field.json) {
            write_key(field.json, first, out);
            write_field(field, value, out);
        }
    }
}

/// A list or map of messages shows in its value: what a schema or message kind holds as an array is
/// its items, and a map's values are known by the field's label.
fn write_field(field: &Field, value: &Value, out: &mut Vec<u8>) {
    let (Kind::Message(message)
    | Kind::SchemaOrBool(message)
    | Kind::SchemaOrList(message)
    | Kind::SchemaOrStrings(message)) = field.kind
    else {
        return write_value(value, out);
    };
    match value {
        Value::Object(map) if field.label == super::Label::Map => {
            out.push(b'{');
            let mut first = true;
            for (key, item) in map {
                write_key(key, &mut first, out);
                write_item(message, item, out);
            }
            out.push(b'}');
        }
        _ => write_item(message, value, out),
    }
}

fn write_item(message: &'static Message, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => write_message(message, object, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_item(message, item, out);
            }
            out.push(b']');
        }
        _ => write_value(value, out),
    }
}

fn write_key(key: &str, first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
    write_text(key, out);
    out.push(b':');
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    text.serialize(&mut Serializer::with_formatter(out, GoFormatter))
        .expect("a string is always JSON");
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    value
        .serialize(&mut Serializer::with_formatter(out, GoFormatter))
        .expect("a value is always JSON");
}

/// Go's escapes and numbers (`encoding/json/encode.go`).
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let special = rest[at..].chars().next().expect("find gave the start of a character");
            write!(writer, "\\u{:04x}", u32::from(special))?;
            rest = &rest[at + special.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_f64<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        value: f64,
    ) -> std::io::Result<()> {
        writer.write_all(go::json_float(value).as_bytes())
    }
}
