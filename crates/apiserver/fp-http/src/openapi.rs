//! `/openapi/v3`: an index of documents, each with a hash of its content in its URL, so that
//! clients need not read again what has not changed.
//!
//! A document is kept by what it is made of, so that all clusters that serve the same resources
//! share it; an index is kept per cluster and fingerprint. Both are built when first asked for.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use fp_base::{ClusterScope, Gv};
use fp_object::json;
use fp_object::status::Status;
use fp_schema::ResourceInfo;
use fp_schema::openapi::{self, Listing};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Response, StatusCode};
use parking_lot::Mutex;

use crate::answer;
use crate::body::Body;
use crate::negotiate::JSON;
use crate::paths::PathRequest;

/// What all kept documents may weigh; beyond it all are dropped and built again when asked for.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// A document whose URL carries its hash never changes (`private`: it may tell of a workspace).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, immutable, max-age=31536000");

/// The documents of one cluster at one fingerprint.
struct Set {
    fingerprint: u64,
    index: Bytes,
    /// By path: `api/v1`, `apis/<group>/<version>`, `apis`.
    documents: Vec<(String, Document)>,
}

#[derive(Clone)]
struct Document {
    body: Bytes,
    hash: Arc<str>,
}

/// What a document is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A group-version and the content of its resources.
    Resources(Gv, Box<[u64]>),
    Listing(Listing),
}

#[derive(Default)]
pub struct Cache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sets: HashMap<ClusterScope, Arc<Set>>,
    documents: HashMap<Key, Document>,
    n_bytes: usize,
}

/// Answers `/openapi/v3` (the index) or a document below it.
pub fn answer(request: &PathRequest<'_>, path: &str) -> Result<Response<Body>, Status> {
    let Some(scope) = request.place.scope.as_ref() else { return Err(Status::no_such_resource()) };
    let set = set(request, scope);
    let below = path.strip_prefix("/openapi/v3").unwrap_or("").trim_matches('/');
    if below.is_empty() {
        return Ok(answer::whole(200, JSON, set.index.clone()));
    }
    let found = set.documents.iter().find(|(at, _)| at == below);
    let (_, document) = found.ok_or_else(Status::no_such_resource)?;
    let etag = format!("\"{}\"", document.hash);
    let matches =
        request.headers.get(IF_NONE_MATCH).is_some_and(|v| v.as_bytes() == etag.as_bytes());
    let mut response = answer::whole(200, JSON, document.body.clone());
    if matches {
        *response.body_mut() = Body::empty();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let query = request.place.query.as_deref().unwrap_or("");
    let headers = response.headers_mut();
    if query.strip_prefix("hash=") == Some(&*document.hash) {
        headers.insert(CACHE_CONTROL, IMMUTABLE);
    }
    headers.insert(ETAG, HeaderValue::try_from(etag).expect("hex digits in quotes"));
    Ok(response)
}

fn set(request: &PathRequest<'_>, scope: &ClusterScope) -> Arc<Set> {
    let server = request.server;
    let fingerprint = server.surface.resolver.fingerprint(scope);
    if let Some(set) = server.openapi.kept.lock().sets.get(scope)
        && set.fingerprint == fingerprint
    {
        return set.clone();
    }
    let infos = server.surface.resolver.list(scope);
    let infos: Vec<_> = infos.iter().map(|i| &**i).collect();
    let mut gvs: Vec<Gv> = Vec::new();
    for info in &infos {
        for version in info.versions.iter().filter(|v| v.served) {
            let gv = Gv::new(&info.gr.group, &version.name);
            if !gvs.contains(&gv) {
                gvs.push(gv);
            }
        }
    }
    let listings = listings(&gvs, &infos).into_iter().map(|listing| {
        let path = listing.path();
        (path, server.openapi.document(Key::Listing(listing), &infos))
    });
    let mut documents: Vec<(String, Document)> = listings.collect();
    documents.extend(gvs.into_iter().map(|gv| {
        let path = openapi::path_of(&gv);
        (path, server.openapi.document(Key::of(gv, &infos), &infos))
    }));
    documents.sort_by(|(a, _), (b, _)| a.cmp(b));
    let index = openapi::index(documents.iter().map(|(path, d)| (path.as_str(), &*d.hash)));
    let set = Arc::new(Set { fingerprint, index: json::to_vec(&index).into(), documents });
    server.openapi.kept.lock().keep(scope, set.clone());
    set
}

/// Discovery is documented where its groups are compiled in.
fn listings(gvs: &[Gv], infos: &[&ResourceInfo]) -> Vec<Listing> {
    let builtin = |gv: &&Gv| infos.iter().any(|i| i.is_builtin() && i.gr.group == gv.group);
    let groups = gvs.iter().filter(builtin).filter(|gv| !gv.group.is_empty());
    let mut out: Vec<Listing> = groups.map(|gv| Listing::Group(gv.group.to_string())).collect();
    out.dedup();
    out.extend([Listing::CoreVersions, Listing::Groups, Listing::Version]);
    out
}

impl Key {
    fn of(gv: Gv, infos: &[&ResourceInfo]) -> Self {
        let of_gv = |i: &&&ResourceInfo| i.gr.group == gv.group && i.version(&gv.version).is_some();
        let content = infos.iter().filter(of_gv).map(|i| i.content_hash).collect();
        Self::Resources(gv, content)
    }
}

impl Cache {
    fn document(&self, key: Key, infos: &[&ResourceInfo]) -> Document {
        if let Some(document) = self.kept.lock().documents.get(&key) {
            return document.clone();
        }
        let component = |name: &str| fp_builtin::openapi::component(name).cloned();
        let value = match &key {
            Key::Listing(listing) => listing.document(&component),
            Key::Resources(gv, _) => openapi::document(gv, infos, &component),
        };
        let body = json::to_vec(&value);
        let hash = openapi::hash(&body).into();
        let document = Document { body: body.into(), hash };
        let mut kept = self.kept.lock();
        kept.n_bytes += document.body.len();
        kept.documents.insert(key, document.clone());
        document
    }
}

impl Kept {
    fn keep(&mut self, scope: &ClusterScope, set: Arc<Set>) {
        self.n_bytes += set.index.len();
        if let Some(before) = self.sets.insert(scope.clone(), set) {
            self.n_bytes -= before.index.len();
        }
        if self.n_bytes > KEPT_BYTES_MAX {
            *self = Self::default();
        }
    }
}
