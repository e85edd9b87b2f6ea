//! Objects and lists as bytes: JSON, YAML, protobuf; whole, as a Table, or metadata only.
//!
//! An entry's JSON is never parsed to be sent as JSON: lists join it, watches frame it, metadata
//! is cut out of it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use fp_builtin::tables::meta;
use fp_object::meta::Meta;
use fp_object::proto::{self, Message};
use fp_object::status::Status;
use fp_object::{Object, Value, json};
use fp_schema::ResourceInfo;
use fp_verbs::request::{Content, ListMeta, View};

use crate::negotiate::{Accepted, Format, Shape};

/// An encoded body in the format that was accepted.
pub struct Encoded {
    pub format: Format,
    pub bytes: Bytes,
}

/// An object's JSON, shared where the store's bytes serve as they are.
pub fn view_json(view: &View) -> Bytes {
    match &view.content {
        Content::Entry(entry) => entry.json.clone(),
        Content::Object(object) => json::to_vec(&**object).into(),
    }
}

/// An object parsed; cheap when it was made for this answer.
pub fn view_object(view: &View) -> Arc<Object> {
    match &view.content {
        Content::Entry(entry) => Arc::new(entry.object()),
        Content::Object(object) => object.clone(),
    }
}

/// One object.
pub fn object(view: &View, accepted: Accepted) -> Result<Bytes, Status> {
    match accepted.shape {
        Shape::Full => full(view, accepted.format),
        Shape::Partial => partial(view, accepted),
        Shape::Table => Err(Status::internal("a table is made of views")),
    }
}

fn full(view: &View, format: Format) -> Result<Bytes, Status> {
    match format {
        Format::Json => Ok(view_json(view)),
        Format::Yaml => Ok(yaml(&Value::Object((*view_object(view)).clone()))),
        Format::Protobuf => {
            let raw = raw_message(view)?;
            let api_version = view.info.api_version(&view.version);
            Ok(proto::wrap(&api_version, &view.info.kind, &raw).into())
        }
    }
}

/// The protobuf of a built-in, without its envelope.
fn raw_message(view: &View) -> Result<Vec<u8>, Status> {
    let message = view
        .info
        .proto
        .ok_or_else(|| Status::not_acceptable(format!("{} have no protobuf form", view.info.gr)))?;
    encode_message(message, &view_object(view))
}

fn encode_message(message: &'static Message, object: &Object) -> Result<Vec<u8>, Status> {
    proto::encode(message, object).map_err(Status::internal)
}

/// `PartialObjectMetadata` of an object.
fn partial(view: &View, accepted: Accepted) -> Result<Bytes, Status> {
    let version = accepted.meta_version();
    if accepted.format == Format::Json {
        return Ok(partial_json(view, version).freeze());
    }
    let mut out = Object::new();
    out.insert("kind".into(), "PartialObjectMetadata".into());
    out.insert("apiVersion".into(), version.into());
    out.insert("metadata".into(), metadata(view));
    if accepted.format == Format::Yaml {
        return Ok(yaml(&Value::Object(out)));
    }
    let raw = encode_message(&meta::PARTIAL_OBJECT_METADATA, &out)?;
    Ok(proto::wrap(version, "PartialObjectMetadata", &raw).into())
}

fn partial_json(view: &View, version: &str) -> BytesMut {
    let body = view_json(view);
    let metadata = json::metadata_slice(&body).unwrap_or(b"{}");
    let mut out = BytesMut::with_capacity(metadata.len() + 96);
    out.put_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.put_slice(version.as_bytes());
    out.put_slice(b"\",\"metadata\":");
    out.put_slice(metadata);
    out.put_u8(b'}');
    out
}

fn metadata(view: &View) -> Value {
    view_object(view).at(&["metadata"]).cloned().unwrap_or_else(|| Value::Object(Object::new()))
}

/// An object that is no resource's own: reviews, scales, Status.
pub fn plain(
    object: &Object,
    message: Option<&'static Message>,
    format: Format,
) -> Result<Encoded, Status> {
    let bytes = match (format, message) {
        (Format::Protobuf, Some(message)) => {
            let raw = encode_message(message, object)?;
            proto::wrap(object.api_version(), object.kind(), &raw).into()
        }
        (Format::Yaml, _) => yaml(&Value::Object(object.clone())),
        (Format::Json | Format::Protobuf, _) => {
            let bytes = json::to_vec(object).into();
            return Ok(Encoded { format: Format::Json, bytes });
        }
    };
    Ok(Encoded { format, bytes })
}

/// A list.
pub fn list(
    info: &ResourceInfo,
    version: &str,
    items: &[View],
    list_meta: &ListMeta,
    accepted: Accepted,
) -> Result<Bytes, Status> {
    let partial = accepted.shape == Shape::Partial;
    let (kind, api_version) = if partial {
        ("PartialObjectMetadataList", accepted.meta_version().to_owned())
    } else {
        (&*info.list_kind, info.api_version(version))
    };
    match accepted.format {
        Format::Json if partial => {
            let parts = items.iter().map(|v| partial_json(v, accepted.meta_version()).freeze());
            Ok(join(kind, &api_version, list_meta, &parts.collect::<Vec<_>>()))
        }
        Format::Json => {
            let parts: Vec<Bytes> = items.iter().map(view_json).collect();
            Ok(join(kind, &api_version, list_meta, &parts))
        }
        Format::Yaml => {
            let mut values = Vec::with_capacity(items.len());
            for view in items {
                values.push(if partial {
                    serde_json::json!({"kind": "PartialObjectMetadata",
                        "apiVersion": api_version, "metadata": metadata(view)})
                } else {
                    Value::Object((*view_object(view)).clone())
                });
            }
            Ok(yaml(&serde_json::json!({"kind": kind, "apiVersion": api_version,
                "metadata": meta_object(list_meta), "items": values})))
        }
        Format::Protobuf => {
            let raw: Result<Vec<_>, _> = items
                .iter()
                .map(|view| {
                    if !partial {
                        return raw_message(view);
                    }
                    let mut out = Object::new();
                    out.insert("metadata".into(), metadata(view));
                    encode_message(&meta::PARTIAL_OBJECT_METADATA, &out)
                })
                .collect();
            let raw = raw?;
            let metadata = meta_object(list_meta);
            let items = raw.iter().map(Vec::as_slice);
            let raw =
                proto::encode_list(&meta::LIST_META, &metadata, items).map_err(Status::internal)?;
            Ok(proto::wrap(&api_version, kind, &raw).into())
        }
    }
}

fn join(kind: &str, api_version: &str, list_meta: &ListMeta, parts: &[Bytes]) -> Bytes {
    let metadata = json::to_vec(&meta_object(list_meta));
    let len: usize = parts.iter().map(|p| p.len() + 1).sum();
    let mut out =
        BytesMut::with_capacity(len + metadata.len() + kind.len() + api_version.len() + 64);
    out.put_slice(b"{\"kind\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"apiVersion\":\"");
    out.put_slice(api_version.as_bytes());
    out.put_slice(b"\",\"metadata\":");
    out.put_slice(&metadata);
    out.put_slice(b",\"items\":[");
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        out.put_slice(part);
    }
    out.put_slice(b"]}\n");
    out.freeze()
}

/// `metav1.ListMeta` as JSON.
pub fn meta_object(list_meta: &ListMeta) -> Object {
    let mut out = Object::new();
    if !list_meta.resource_version.is_empty() {
        out.insert("resourceVersion".into(), list_meta.resource_version.as_str().into());
    }
    if let Some(token) = &list_meta.continue_token {
        out.insert("continue".into(), token.as_str().into());
    }
    if let Some(remaining) = list_meta.remaining {
        out.insert("remainingItemCount".into(), remaining.into());
    }
    out
}

/// A value as YAML.
pub fn yaml(value: &Value) -> Bytes {
    fp_object::yaml::to_string(value).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_reads_back() {
        let value = serde_json::json!({
            "a": ["yes", "1", "1e3", "~", "null", "", " x ", "- a", "a: b", "#c", "0x1", "2001-01-01"],
            "lines": "one\ntwo\n\n three\n", "tab": "a\tb", "quote": "it's \"so\"", "bell": "\u{7}",
            "n": [0, -1, 1.5, 1e21, true, false, null], "empty": {"list": [], "map": {}},
            "key: with colon": 1, "y": "n", "long": "word ".repeat(60), "unicode": "\u{1F600}\u{85}\u{2028}",
        });
        let text = yaml(&value);
        let (back, strict) = fp_object::yaml::decode_value(&text).unwrap();
        assert_eq!((back, strict), (value, vec![]), "{}", String::from_utf8_lossy(&text));
    }
}
