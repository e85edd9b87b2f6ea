//! A request as the verbs take it, and what they answer. HTTP builds the one and encodes the other.

use std::sync::Arc;

use bytes::Bytes;
use fp_auth::User;
use fp_base::ClusterScope;
use fp_base::url::ResourcePath;
use fp_informer::Entry;
use fp_object::Object;
use fp_object::status::Status;
use fp_registry::Watch;
use fp_schema::ResourceInfo;

/// The HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A body's media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    Yaml,
    Protobuf,
    JsonPatch,
    MergePatch,
    StrategicMergePatch,
    /// Server-side apply, YAML or JSON.
    ApplyPatch,
    /// Server-side apply, CBOR.
    ApplyPatchCbor,
}

/// Query parameters, decoded, in order; duplicates kept (the first one counts, as in Go).
pub type Query = Vec<(String, String)>;

/// A resource request.
pub struct Request {
    pub user: Arc<User>,
    pub scope: ClusterScope,
    pub method: Method,
    pub path: ResourcePath,
    pub query: Query,
    pub body: Bytes,
    pub media: Option<Media>,
    /// What the caller accepts is only metadata (`as=PartialObjectMetadata[List]`).
    pub partial: bool,
    pub user_agent: String,
    /// Header `X-Kcp-Internal-Deep-SubjectAccessReview: true` from a master.
    pub deep_sar: bool,
}

/// An object in the version that was asked for.
#[derive(Clone)]
pub struct View {
    pub info: Arc<ResourceInfo>,
    pub version: Arc<str>,
    pub content: Content,
}

#[derive(Clone)]
pub enum Content {
    /// An entry whose bytes are right as they are for this version.
    Entry(Arc<Entry>),
    /// A body made for this answer (converted, dry run, reviews, scale).
    Object(Arc<Object>),
}

/// `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub struct ListMeta {
    pub resource_version: String,
    pub continue_token: Option<String>,
    pub remaining: Option<u64>,
}

/// What a request came to. The warnings go with a refusal too.
pub struct Answer {
    pub result: Result<Response, Status>,
    pub warnings: Vec<String>,
}

pub enum Response {
    /// One object, with the code to answer (200, 201, 202).
    Object {
        code: u16,
        view: View,
    },
    /// An object of a kind that is no resource's own (Scale, a review): `gvk` is in its body.
    Plain {
        code: u16,
        object: Object,
        proto: Option<&'static fp_object::proto::Message>,
    },
    List {
        info: Arc<ResourceInfo>,
        version: Arc<str>,
        items: Vec<View>,
        meta: ListMeta,
    },
    Watch(WatchAnswer),
    /// A `Status` of success: what a delete answers.
    Success {
        code: u16,
        status: Object,
    },
}

/// A watch in progress: HTTP pulls events and encodes them.
pub struct WatchAnswer {
    pub info: Arc<ResourceInfo>,
    pub version: Arc<str>,
    pub events: Box<dyn WatchEvents>,
}

/// What goes down a watch.
#[derive(Clone)]
pub enum WatchEvent {
    Added(View),
    Modified(View),
    Deleted(View),
    /// `initial_events_end` carries Kubernetes' annotation.
    Bookmark {
        revision: fp_base::Revision,
        initial_events_end: bool,
    },
    /// The last one: a Status.
    Error(Status),
}

/// A watch after selectors and version: pulled by the HTTP layer until `None`.
#[async_trait::async_trait]
pub trait WatchEvents: Send {
    async fn next(&mut self) -> Option<Vec<WatchEvent>>;

    /// The bookmark that ends a watch early, when the server leaves: how far the caller has come.
    /// `None` when the watch wants none, or its initial objects are not complete.
    fn bookmark(&mut self) -> Option<WatchEvent>;
}

/// The raw watch beneath, for callers in the process.
pub type RawWatch = Box<dyn Watch>;
