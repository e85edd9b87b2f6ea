//! `/openapi/v3`: an index of documents, each with a hash of its content in its URL, so that
//! clients need not read again what has not changed.
//!
//! Kept per cluster and fingerprint, built when first asked for.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use fp_base::{ClusterScope, Gv};
use fp_object::json;
use fp_object::status::Status;
use fp_schema::openapi;
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
    /// By path: `api/v1`, `apis/<group>/<version>`.
    documents: Vec<(String, Document)>,
}

#[derive(Clone)]
struct Document {
    body: Bytes,
    hash: Arc<str>,
}

#[derive(Default)]
pub struct Cache {
    sets: Mutex<HashMap<ClusterScope, Arc<Set>>>,
    /// One copy of each document, whichever clusters serve it.
    bodies: Mutex<HashMap<Arc<str>, Bytes>>,
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
    if let Some(set) = server.openapi.sets.lock().get(scope)
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
    let mut documents: Vec<(String, Document)> = gvs
        .iter()
        .map(|gv| {
            let document = openapi::document(gv, &infos, &|name| {
                fp_builtin::openapi::component(name).cloned()
            });
            (openapi::path_of(gv), server.openapi.share(json::to_vec(&document)))
        })
        .collect();
    documents.sort_by(|(a, _), (b, _)| a.cmp(b));
    let index = openapi::index(documents.iter().map(|(path, d)| (path.as_str(), &*d.hash)));
    let set = Arc::new(Set { fingerprint, index: json::to_vec(&index).into(), documents });
    server.openapi.keep(scope, set.clone());
    set
}

impl Cache {
    fn share(&self, body: Vec<u8>) -> Document {
        let hash: Arc<str> = openapi::hash(&body).into();
        let mut bodies = self.bodies.lock();
        let body = bodies.entry(hash.clone()).or_insert_with(|| body.into()).clone();
        Document { body, hash }
    }

    fn keep(&self, scope: &ClusterScope, set: Arc<Set>) {
        let mut sets = self.sets.lock();
        sets.insert(scope.clone(), set);
        let mut bodies = self.bodies.lock();
        let indexes: usize = sets.values().map(|s| s.index.len()).sum();
        let weight: usize = indexes + bodies.values().map(Bytes::len).sum::<usize>();
        if weight > KEPT_BYTES_MAX {
            sets.clear();
            bodies.clear();
        }
    }
}
