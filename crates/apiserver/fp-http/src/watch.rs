//! A watch as a stream of frames: JSON lines, or length-prefixed protobuf.
//!
//! One poll of the connection takes all events that are ready as one frame; nothing queues here.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use fp_builtin::tables::meta;
use fp_object::status::Status;
use fp_object::{Object, json, proto};
use fp_schema::ResourceInfo;
use fp_verbs::request::{View, WatchAnswer, WatchEvent, WatchEvents};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use tokio::sync::watch;

use crate::answer;
use crate::body::Body;
use crate::encode;
use crate::metrics::Guard;
use crate::negotiate::{Accepted, Format, JSON, Shape};
use crate::table;

/// What ends every watch when the server leaves.
pub type Leaving = watch::Receiver<bool>;

struct Watching {
    events: Box<dyn WatchEvents>,
    encoder: Encoder,
    leaving: Leaving,
    over: bool,
    _guard: Guard,
}

/// Answers with the stream of a watch.
pub fn stream(
    answer: WatchAnswer,
    accepted: Accepted,
    include: table::Include,
    leaving: Leaving,
    guard: Guard,
) -> Response<Body> {
    let encoder = Encoder {
        info: answer.info,
        version: answer.version,
        accepted,
        include,
        columns_sent: false,
    };
    let state = Watching { events: answer.events, encoder, leaving, over: false, _guard: guard };
    let frames = futures_util::stream::unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((frame, state))
    });
    let mut response = answer::head(200, JSON, Body::stream(frames));
    if accepted.format == Format::Protobuf {
        let value = HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let events = tokio::select! {
            biased;
            events = self.events.next() => events,
            _ = self.leaving.wait_for(|leaving| *leaving) => None,
        };
        let events = match events {
            Some(events) => events,
            None => {
                // The last thing a client learns is how far it has come.
                self.over = true;
                vec![self.events.bookmark()?]
            }
        };
        let mut out = BytesMut::new();
        for event in &events {
            match self.encoder.frame(event, &mut out) {
                Ok(()) => {}
                Err(status) => {
                    self.over = true;
                    let _ = self.encoder.frame(&WatchEvent::Error(status), &mut out);
                    break;
                }
            }
        }
        Some(out.freeze())
    }
}

struct Encoder {
    info: Arc<ResourceInfo>,
    version: Arc<str>,
    accepted: Accepted,
    include: table::Include,
    /// Only the first table of a watch names its columns.
    columns_sent: bool,
}

impl Encoder {
    fn frame(&mut self, event: &WatchEvent, out: &mut BytesMut) -> Result<(), Status> {
        let (kind, object) = match event {
            WatchEvent::Added(view) => ("ADDED", self.object(view)?),
            WatchEvent::Modified(view) => ("MODIFIED", self.object(view)?),
            WatchEvent::Deleted(view) => ("DELETED", self.object(view)?),
            WatchEvent::Bookmark { revision, initial_events_end } => {
                let object = self.bookmark(&revision.to_string(), *initial_events_end)?;
                ("BOOKMARK", object)
            }
            WatchEvent::Error(status) => ("ERROR", self.error(status)?),
        };
        if self.accepted.format == Format::Protobuf {
            out.put_slice(&proto::watch_event(kind, &object));
            return Ok(());
        }
        out.reserve(object.len() + 40);
        out.put_slice(b"{\"type\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"object\":");
        out.put_slice(&object);
        out.put_slice(b"}\n");
        Ok(())
    }

    fn object(&mut self, view: &View) -> Result<Bytes, Status> {
        if self.accepted.shape != Shape::Table {
            return encode::object(view, self.accepted);
        }
        let options = table::Options {
            include: self.include,
            columns: !self.columns_sent,
            api_version: self.accepted.meta_version(),
        };
        self.columns_sent = true;
        Ok(json::to_vec(&table::of_one(view, options)).into())
    }

    /// A bookmark is an object of the watched kind with nothing but a resourceVersion.
    fn bookmark(&mut self, revision: &str, initial_events_end: bool) -> Result<Bytes, Status> {
        let mut metadata = Object::new();
        metadata.insert("resourceVersion".into(), revision.into());
        if initial_events_end {
            let annotations = serde_json::json!({"k8s.io/initial-events-end": "true"});
            metadata.insert("annotations".into(), annotations);
        }
        let partial = self.accepted.shape == Shape::Partial;
        let (kind, api_version) = if partial {
            ("PartialObjectMetadata", self.accepted.meta_version().to_owned())
        } else {
            (&*self.info.kind, self.info.api_version(&self.version))
        };
        let mut object = Object::new();
        object.insert("kind".into(), kind.into());
        object.insert("apiVersion".into(), api_version.as_str().into());
        object.insert("metadata".into(), metadata.into());
        match (self.accepted.format, self.accepted.shape) {
            (Format::Protobuf, _) => {
                let message = if partial {
                    &meta::PARTIAL_OBJECT_METADATA
                } else {
                    self.info.proto.ok_or_else(|| Status::internal("no protobuf form"))?
                };
                let raw = proto::encode(message, &object).map_err(Status::internal)?;
                Ok(proto::wrap(&api_version, kind, &raw).into())
            }
            (_, Shape::Table) => {
                let view = View {
                    info: self.info.clone(),
                    version: self.version.clone(),
                    content: fp_verbs::request::Content::Object(Arc::new(object)),
                };
                self.object(&view)
            }
            _ => Ok(json::to_vec(&object).into()),
        }
    }

    fn error(&self, status: &Status) -> Result<Bytes, Status> {
        let value = status.to_json();
        if self.accepted.format == Format::Protobuf
            && let Some(object) = value.as_object()
        {
            let raw = proto::encode(&meta::STATUS, object).map_err(Status::internal)?;
            return Ok(proto::wrap("v1", "Status", &raw).into());
        }
        let mut json = answer::status_json(&value);
        // The frame ends the line.
        json.pop();
        Ok(json.into())
    }
}
