//! Kubernetes protobuf by descriptor: JSON to the wire form and back, with gogo's zero-value rules.
//!
//! A [`Message`] says how one Go type stands on the wire and in JSON. Four functions read it:
//! [`encode`] and [`decode`] cross between JSON and the wire, [`conform`] does to a JSON object what
//! decoding into the Go type and printing it again would do, and [`to_json`] prints in Go's order.
//!
//! Invariants: fields stand in tag order, which is the order on the wire; input from the network
//! ends in an [`Error`], never in a panic; recursion stops at [`DEPTH_MAX`].

mod conform;
mod decode;
mod encode;
mod envelope;
mod gojson;
mod scalar;
#[cfg(test)]
mod tests;
mod wire;

pub use conform::conform;
pub use decode::{decode, decode_body};
pub use encode::encode;
pub use envelope::{
    FRAME_BYTES_MAX, Halves, PREFIX, Unknown, encode_list, frame, unframe, unwrap,
    unwrap_watch_event, watch_event, wrap,
};
pub use gojson::{to_json, value_to_json};

/// Messages nested deeper than this are refused: Kubernetes' own types stay under 20, but a JSON
/// schema may refer to itself.
pub const DEPTH_MAX: usize = 200;

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int32,
    Int64,
    Double,
    /// A Go string, or a type whose base is one.
    String,
    /// Base64 in JSON.
    Bytes,
    Message(&'static Message),
    /// A Go alias of a slice of strings (`ExtraValue`, `Verbs`): a message `{repeated string = 1}`
    /// that JSON writes as a list.
    Strings,
    /// `metav1.Time`: RFC 3339 in JSON, `{seconds, nanos}` on the wire, nanoseconds always zero.
    Time,
    /// `metav1.MicroTime`: the same with microseconds.
    MicroTime,
    /// `resource.Quantity`: `{string}`.
    Quantity,
    /// `runtime.RawExtension`: `{raw}`, any JSON.
    RawExtension,
    /// `metav1.FieldsV1`: `{Raw}`, any JSON.
    FieldsV1,
    /// `apiextensions.JSON`: `{raw}`, any JSON.
    Json,
    /// `JSONSchemaPropsOrBool`: `{allows = 1, schema = 2}`.
    SchemaOrBool(&'static Message),
    /// `JSONSchemaPropsOrArray`: `{schema = 1, repeated schema = 2}`.
    SchemaOrList(&'static Message),
    /// `JSONSchemaPropsOrStringArray`: `{schema = 1, repeated string = 2}`.
    SchemaOrStrings(&'static Message),
}

/// How often a field stands, and when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A Go value: always written, even when zero, unless it is a nil slice.
    Plain,
    /// A Go pointer: written when present.
    Pointer,
    Repeated,
    /// `map<string, V>`, written in the order of its keys.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub tag: u32,
    /// The place in the Go struct, which is the order of Go's JSON.
    pub position: u16,
    /// The JSON name; empty for an embedded (inline) message.
    pub json: &'static str,
    pub kind: Kind,
    pub label: Label,
    /// JSON leaves the field out when it is zero.
    pub omit_empty: bool,
    /// Strategic merge patch: the merge key of a list, or empty.
    pub merge_key: &'static str,
    /// Strategic merge patch: `merge`, `replace`, `retainKeys`, or empty.
    pub patch_strategy: &'static str,
}

impl Field {
    const fn new(tag: u32, position: u16, json: &'static str, kind: Kind, label: Label) -> Self {
        Self {
            tag,
            position,
            json,
            kind,
            label,
            omit_empty: false,
            merge_key: "",
            patch_strategy: "",
        }
    }

    pub const fn plain(tag: u32, position: u16, json: &'static str, kind: Kind) -> Self {
        Self::new(tag, position, json, kind, Label::Plain)
    }

    pub const fn pointer(tag: u32, position: u16, json: &'static str, kind: Kind) -> Self {
        Self::new(tag, position, json, kind, Label::Pointer)
    }

    pub const fn list(tag: u32, position: u16, json: &'static str, kind: Kind) -> Self {
        Self::new(tag, position, json, kind, Label::Repeated)
    }

    pub const fn map(tag: u32, position: u16, json: &'static str, kind: Kind) -> Self {
        Self::new(tag, position, json, kind, Label::Map)
    }

    pub const fn omit(mut self) -> Self {
        self.omit_empty = true;
        self
    }

    pub const fn patch(mut self, strategy: &'static str, merge_key: &'static str) -> Self {
        self.patch_strategy = strategy;
        self.merge_key = merge_key;
        self
    }
}

/// A message, its fields in tag order. Messages are compared by name: they may refer to themselves.
pub struct Message {
    /// The OpenAPI name of the Go type: `io.k8s.api.core.v1.ConfigMap`.
    pub name: &'static str,
    /// JSON has `kind` and `apiVersion`, which the wire form leaves to the envelope.
    pub type_meta: bool,
    pub fields: &'static [Field],
}

impl Message {
    /// The Go type's name without its package: `ConfigMap`.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The field of that JSON name, embedded messages included.
    pub fn field(&self, json: &str) -> Option<&'static Field> {
        self.fields.iter().find_map(|field| match field {
            Field { json: "", kind: Kind::Message(inline), .. } => inline.field(json),
            _ => (field.json == json).then_some(field),
        })
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Message({})", self.name)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Message {}

/// Why bytes or JSON are not the message that they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: wrong wireType = {wire_type} for field {field} of {message}")]
    WireType { message: &'static str, field: &'static str, wire_type: u8 },
    #[error("proto: field {field} of {message} contains invalid UTF-8")]
    Utf8 { message: &'static str, field: &'static str },
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    #[error("exceeded the nesting limit of {DEPTH_MAX} messages")]
    Depth,
    /// The words are Go's (`runtime/serializer/protobuf`).
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("content encoding {0:?} is not supported in a protobuf envelope")]
    Encoding(String),
    #[error("frame of {0} bytes is over the limit of {FRAME_BYTES_MAX}")]
    Frame(usize),
    /// The words are those of `encoding/json`: clients print them.
    #[error("json: cannot unmarshal {got} into Go struct field {at} of type {want}")]
    Type { got: String, at: String, want: String },
    /// A text that its type does not allow: a time, base64, a number out of range.
    #[error("{at}: {message}")]
    Text { at: String, message: String },
}
