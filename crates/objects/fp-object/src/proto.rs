//! Kubernetes protobuf by descriptor: JSON to the wire form and back, with gogo's zero-value rules.

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Double,
    Float,
    String,
    Bytes,
    /// An enumeration-like Go string is `String`; a nested message is `Message`.
    Message(&'static Message),
    /// `metav1.Time`: RFC 3339 in JSON, `{seconds, nanos}` on the wire.
    Time,
    /// `metav1.MicroTime`.
    MicroTime,
    /// `metav1.Duration`.
    Duration,
    /// `resource.Quantity`: `{string}`.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `runtime.RawExtension`: `{raw}`, any JSON.
    RawExtension,
    /// `metav1.FieldsV1`: `{Raw}`, any JSON.
    FieldsV1,
    /// `apiextensions.JSON`: `{raw}`, any JSON.
    Json,
}

/// How often and where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A Go value: always written, even when zero, unless it is a nil slice or map.
    Plain,
    /// A Go pointer: written when present.
    Pointer,
    Repeated,
    /// `map<string, V>`.
    Map,
    /// A Go alias of a slice (`ExtraValue`): a message `{repeated items = 1}` that JSON writes as a list.
    ListAlias,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub tag: u32,
    /// The JSON name; empty for an embedded (inline) message.
    pub json: &'static str,
    pub kind: Kind,
    pub label: Label,
    /// JSON leaves the field out when it is empty.
    pub omit_empty: bool,
    /// Strategic merge patch: the merge key of a list, or empty.
    pub merge_key: &'static str,
    /// Strategic merge patch: `merge`, `replace`, `retainKeys`, or empty.
    pub patch_strategy: &'static str,
}

/// A message, its fields in tag order.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// The Go name with its package: `io.k8s.api.core.v1.ConfigMap`.
    pub name: &'static str,
    pub fields: &'static [Field],
}
