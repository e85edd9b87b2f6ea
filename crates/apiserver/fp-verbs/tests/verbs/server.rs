//! A server for tests: the real backend over the in-memory store, the real built-ins and one CRD.
//! A request is a line of text, an answer too.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fp_admission::{Attributes as Write, Chain, Operation, Plugin};
use fp_auth::{Attributes, Authorizer, PolicyRule, Rules, User, Verdict};
use fp_base::url::{self, ClusterRef, Route};
use fp_base::{ClusterName, ClusterPath, ClusterScope, Gr};
use fp_object::meta::Meta;
use fp_object::status::{About, Status};
use fp_object::{Object, Value};
use fp_registry::store::StoreBackend;
use fp_schema::{Origin, ResourceInfo, Segment, crd};
use fp_verbs::request::{
    Answer, Content, Media, Method, Request, Response, View, WatchAnswer, WatchEvent,
};
use fp_verbs::{Directory, LocalClient, Located, Resolved, Resolver, Surface, serve};

pub const LAMPS: &str = include_str!("lamps.json");

pub struct Server {
    pub surface: Surface,
    pub gone: tokio::sync::watch::Sender<bool>,
    pub store: Arc<dyn fp_store::Store>,
    pump: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

struct Here {
    gone: tokio::sync::watch::Receiver<bool>,
    lamps: Arc<ResourceInfo>,
}

impl Directory for Here {
    fn locate(&self, path: &ClusterPath) -> Located {
        match path.as_name() {
            Some(name) => Located::Cluster { name, inactive: false },
            None => Located::Unknown,
        }
    }

    fn ends(&self, _: &ClusterScope, _: &Gr) -> Option<tokio::sync::watch::Receiver<bool>> {
        Some(self.gone.clone())
    }
}

impl Resolver for Here {
    fn resolve(
        &self,
        _: &ClusterScope,
        group: &str,
        resource: &str,
        _: Option<&str>,
        _: bool,
    ) -> Resolved {
        match (group, resource) {
            ("example.com", "lamps") => Resolved::Found(self.lamps.clone()),
            ("example.com", "away") => {
                Resolved::Unavailable("away.example.com is currently unavailable".into())
            }
            _ => fp_builtin::resource(group, resource)
                .cloned()
                .map_or(Resolved::Unknown, Resolved::Found),
        }
    }

    fn list(&self, _: &ClusterScope) -> Vec<Arc<ResourceInfo>> {
        fp_builtin::resources().to_vec()
    }

    fn fingerprint(&self, _: &ClusterScope) -> u64 {
        0
    }
}

/// Masters may all; others may read.
struct Readers;

#[async_trait]
impl Authorizer for Readers {
    async fn authorize(&self, asked: &Attributes<'_>) -> Verdict {
        if asked.user.is_master() || matches!(asked.verb, "get" | "list" | "watch") {
            return Verdict::allow("access granted");
        }
        Verdict::no_opinion("access denied")
    }

    async fn rules(&self, _: &User, _: &ClusterScope, _: &str) -> Rules {
        let all = |items: &[&str]| items.iter().map(|i| (*i).to_owned()).collect();
        let verbs: Vec<String> = all(&["get", "list", "watch"]);
        let resources = PolicyRule {
            verbs: verbs.clone(),
            api_groups: all(&["*"]),
            resources: all(&["*"]),
            ..PolicyRule::default()
        };
        let paths = PolicyRule { verbs, non_resource_urls: all(&["*"]), ..PolicyRule::default() };
        Rules { rules: vec![resources, paths], incomplete: None }
    }
}

/// Refuses what is annotated so, and marks what it lets pass.
struct Gate;

#[async_trait]
impl Plugin for Gate {
    fn name(&self) -> &'static str {
        "Gate"
    }

    async fn mutate(&self, write: &Write<'_>, object: &mut Object) -> Result<(), Status> {
        if write.operation == Operation::Create && object.annotation("gate").is_some() {
            object.set_annotation("gate", "passed");
        }
        Ok(())
    }

    async fn validate(&self, write: &Write<'_>, object: Option<&Object>) -> Result<(), Status> {
        let held = object.or(write.old).and_then(|o| o.annotation("held"));
        match held {
            Some(_) => {
                let gr = &write.info.gr;
                let about = About { group: &gr.group, resource: &gr.resource, name: write.name };
                Err(Status::forbidden(about, "it is held"))
            }
            None => Ok(()),
        }
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::start_on(fp_store::memory::MemoryStore::new()).await
    }

    /// A server that has read what the store holds, as after a restart.
    pub async fn start_on(store: Arc<dyn fp_store::Store>) -> Self {
        let crd = fp_object::json::decode(LAMPS.as_bytes()).expect("the CRD is JSON").object;
        let origin = Origin::Crd { name: "lamps.example.com".into(), uid: "u".into() };
        let lamps = crd::from_crd(&crd, Segment::CustomResources, origin, &|_| None)
            .expect("the CRD is right");
        let layout =
            fp_keyspace::Layout::new(fp_keyspace::PREFIX, fp_builtin::resources().iter().cloned());
        let informer = Arc::new(fp_informer::Informer::new());
        let backend = StoreBackend::new(store.clone(), informer, layout);
        let pump = backend.load().await.expect("an empty store loads");
        let (gone, receiver) = tokio::sync::watch::channel(false);
        let here = Arc::new(Here { gone: receiver, lamps: Arc::new(lamps) });
        let surface = Surface {
            directory: here.clone(),
            resolver: here,
            authorizer: Arc::new(Readers),
            admission: Chain(vec![Arc::new(Gate)]),
            backend: Arc::new(backend),
        };
        Self { surface, gone, store, pump: tokio::spawn(pump.run()) }
    }

    pub fn client(&self) -> LocalClient {
        LocalClient::new(
            self.surface.clone(),
            Arc::new(User::new("system:test", &["system:masters"])),
        )
    }

    /// `POST /clusters/root/api/v1/... type` with a body; the type is `yaml`, `json-patch`, ...
    pub async fn send(&self, line: &str, body: impl Into<Bytes>) -> Answer {
        self.send_as("system:masters", line, body).await
    }

    pub async fn send_as(&self, group: &str, line: &str, body: impl Into<Bytes>) -> Answer {
        let mut words = line.split_whitespace();
        let method = match words.next() {
            Some("GET") => Method::Get,
            Some("POST") => Method::Post,
            Some("PUT") => Method::Put,
            Some("PATCH") => Method::Patch,
            Some("DELETE") => Method::Delete,
            other => panic!("{other:?} is no method"),
        };
        let target = url::parse(words.next().expect("a target")).expect("a canonical target");
        let media = words.next().map(|m| match m {
            "yaml" => Media::Yaml,
            "proto" => Media::Protobuf,
            "json-patch" => Media::JsonPatch,
            "merge" => Media::MergePatch,
            "strategic" => Media::StrategicMergePatch,
            "apply" => Media::ApplyPatch,
            other => panic!("{other} is no media type of these tests"),
        });
        let scope = match &target.cluster {
            ClusterRef::None => ClusterScope::One(ClusterName::root()),
            ClusterRef::All => ClusterScope::All,
            ClusterRef::Path(path) => ClusterScope::One(path.as_name().expect("a cluster's name")),
        };
        let Route::Resource(path) = url::route(&target.path) else {
            panic!("{line} is no resource")
        };
        let request = Request {
            user: Arc::new(User::new("alice", &[group])),
            scope,
            method,
            path,
            query: url::query_pairs(target.query.as_deref().unwrap_or("")),
            body: body.into(),
            media,
            partial: false,
            user_agent: "test".into(),
            deep_sar: false,
        };
        serve(&self.surface, request).await
    }

    /// The answer as text: code, warnings, body without what is random.
    pub async fn ask(&self, line: &str, body: &str) -> String {
        show(self.send(line, body.to_owned()).await)
    }

    pub async fn watch(&self, line: &str) -> WatchAnswer {
        match self.send(line, "").await {
            Answer { result: Ok(Response::Watch(watch)), .. } => watch,
            other => panic!("no watch: {}", show(other)),
        }
    }
}

/// Pulls until `n` events have come.
pub async fn pull(watch: &mut WatchAnswer, n: usize) -> String {
    let mut lines = Vec::new();
    while lines.len() < n {
        match watch.events.next().await {
            Some(events) => lines.extend(events.into_iter().map(show_event)),
            None => {
                lines.push("end".into());
                break;
            }
        }
    }
    lines.join("\n")
}

fn show_event(event: WatchEvent) -> String {
    match event {
        WatchEvent::Added(view) => format!("ADDED {}", brief(&view)),
        WatchEvent::Modified(view) => format!("MODIFIED {}", brief(&view)),
        WatchEvent::Deleted(view) => format!("DELETED {}", brief(&view)),
        WatchEvent::Bookmark { revision, initial_events_end } => {
            format!(
                "BOOKMARK {revision}{}",
                if initial_events_end { " initial-events-end" } else { "" }
            )
        }
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.message),
    }
}

fn object(view: &View) -> Object {
    match &view.content {
        Content::Entry(entry) => entry.object(),
        Content::Object(object) => (**object).clone(),
    }
}

fn brief(view: &View) -> String {
    let object = object(view);
    format!("{}/{}@{}", object.namespace(), object.name(), object.resource_version())
}

pub fn show(answer: Answer) -> String {
    let warnings = answer.warnings;
    let response = match answer.result {
        Ok(response) => response,
        Err(status) => {
            // What a refused patch made of the object holds its uid and time: cut there.
            let message = status.message.split("\\\"creationTimestamp").next().unwrap_or("");
            return text(status.code, &warnings, &format!("{} {message}", status.reason.as_str()));
        }
    };
    match response {
        Response::Object { code, view } => text(code, &warnings, &stable(object(&view))),
        Response::Plain { code, object, .. } => text(code, &warnings, &stable(object)),
        Response::Success { code, status } => text(code, &warnings, &stable(status)),
        Response::List { items, meta, .. } => {
            let names: Vec<String> = items.iter().map(brief).collect();
            let more = if meta.continue_token.is_some() { " more" } else { "" };
            let remaining = meta.remaining.map(|n| format!(" remaining={n}")).unwrap_or_default();
            text(
                200,
                &warnings,
                &format!("[{}] rv={}{more}{remaining}", names.join(" "), meta.resource_version),
            )
        }
        Response::Watch(_) => "watch".into(),
    }
}

fn text(code: u16, warnings: &[String], body: &str) -> String {
    let mut out = code.to_string();
    for warning in warnings {
        out.push_str(&format!(" (warning: {warning})"));
    }
    format!("{out} {body}")
}

/// JSON without what differs from run to run.
fn stable(mut object: Object) -> String {
    for path in [&["metadata", "uid"][..], &["details", "uid"]] {
        if object.at(path).is_some() {
            let (last, up) = path.split_last().expect("a path");
            object.map_mut(up).insert((*last).into(), "U".into());
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if object.at(&["metadata", field]).is_some() {
            object.set_meta(field, "T");
        }
    }
    let conditions = object.get_mut("status").and_then(|s| s.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        condition["lastTransitionTime"] = "T".into();
    }
    let base = object.text(&["metadata", "generateName"]).map(str::to_owned);
    if let Some(base) = base.filter(|b| object.name().starts_with(b.as_str())) {
        let random = object.name().len() - base.len();
        object.set_meta("name", format!("{base}<{random}>"));
    }
    Value::Object(object).to_string()
}
