//! Paths that are no resource: health, version, metrics, the index, and what is not built yet.

use std::sync::Arc;

use fp_object::status::Status;
use fp_object::{Value, json};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Response};

use crate::body::Body;
use crate::health::Health;
use crate::negotiate::JSON;
use crate::place::Place;
use crate::server::{OpenId, Server};
use crate::{answer, discovery, negotiate, openapi};

const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");
const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";
const OPENID_KEYS: &str = "/openid/v1/jwks";

/// A GET of a path, allowed.
pub struct PathRequest<'a> {
    pub server: &'a Arc<Server>,
    pub headers: &'a HeaderMap,
    pub place: &'a Place,
}

/// Answers a path that is neither a resource nor discovery.
pub fn answer(request: &PathRequest<'_>) -> Result<Response<Body>, Status> {
    let PathRequest { server, place, .. } = request;
    let path = place.path.as_str();
    if Health::serves(path) {
        let report = server.health.report(path, place.query.as_deref());
        let report = report.ok_or_else(Status::no_such_resource)?;
        return Ok(answer::text(report.code, report.text));
    }
    match path.strip_suffix('/').filter(|p| !p.is_empty()).unwrap_or(path) {
        "/" => index(request),
        "/version" => Ok(answer::whole(200, JSON, server.version.clone())),
        "/metrics" => {
            let mut response = answer::text(200, server.metrics.render());
            response.headers_mut().insert(http::header::CONTENT_TYPE, EXPOSITION);
            Ok(response)
        }
        "/metrics/slis" => {
            let mut response = answer::text(200, server.health.metrics());
            response.headers_mut().insert(http::header::CONTENT_TYPE, EXPOSITION);
            Ok(response)
        }
        "/statusz" => {
            server.statusz.answer(negotiate::statusz(request.headers), &all_paths(request)?)
        }
        // kubectl asks for it when it has found no such kind in OpenAPI v3, so say that.
        "/openapi/v2" => {
            let mut status = Status::not_implemented("OpenAPI v2");
            status.message.push_str("; kubectl asks for it when the server has no such kind");
            Err(status)
        }
        openapi if openapi == "/openapi/v3" || openapi.starts_with("/openapi/v3/") => {
            openapi::answer(request, openapi)
        }
        OPENID_CONFIGURATION => openid(request, JSON, |documents| &documents.configuration),
        OPENID_KEYS => openid(request, "application/jwk-set+json", |documents| &documents.keys),
        _ => Err(Status::no_such_resource()),
    }
}

/// `/`: every path there is.
fn index(request: &PathRequest<'_>) -> Result<Response<Body>, Status> {
    Ok(answer::json(&serde_json::json!({ "paths": all_paths(request)? })))
}

fn all_paths(request: &PathRequest<'_>) -> Result<Vec<String>, Status> {
    let mut paths = discovery::paths(request)?;
    paths.extend(request.server.health.paths());
    let others =
        ["/metrics", "/metrics/slis", "/openapi/v3", "/openapi/v3/", "/statusz", "/version"];
    paths.extend(others.map(str::to_owned));
    if request.server.openid.is_some() {
        paths.extend([OPENID_CONFIGURATION, OPENID_KEYS].map(str::to_owned));
    }
    paths.sort_unstable();
    Ok(paths)
}

/// A document of service account issuer discovery, which relying parties may keep for an hour
/// (`kubernetes/pkg/routes/openidmetadata.go`).
fn openid(
    request: &PathRequest<'_>,
    media: &'static str,
    document: fn(&OpenId) -> &Value,
) -> Result<Response<Body>, Status> {
    let documents = request.server.openid.as_ref().ok_or_else(Status::no_such_resource)?;
    let mut response = answer::whole(200, media, json::to_vec(document(documents)));
    let kept = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, kept);
    Ok(response)
}
