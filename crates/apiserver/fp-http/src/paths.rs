//! Paths that are no resource: health, version, metrics, the index, and what is not built yet.

use std::sync::Arc;

use fp_object::status::Status;
use http::{HeaderMap, Response};

use crate::body::Body;
use crate::health::Health;
use crate::negotiate::JSON;
use crate::place::Place;
use crate::server::Server;
use crate::{answer, discovery, openapi};

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
            let exposition = http::HeaderValue::from_static("text/plain; version=0.0.4");
            response.headers_mut().insert(http::header::CONTENT_TYPE, exposition);
            Ok(response)
        }
        "/openapi/v2" => Err(Status::not_implemented("OpenAPI v2")),
        openapi if openapi == "/openapi/v3" || openapi.starts_with("/openapi/v3/") => {
            openapi::answer(request, openapi)
        }
        "/.well-known/openid-configuration" | "/openid/v1/jwks" => {
            Err(Status::not_implemented("Service account issuer discovery"))
        }
        _ => Err(Status::no_such_resource()),
    }
}

/// `/`: every path there is.
fn index(request: &PathRequest<'_>) -> Result<Response<Body>, Status> {
    let mut paths = discovery::paths(request)?;
    paths.extend(request.server.health.paths());
    paths.extend(["/metrics", "/openapi/v3", "/openapi/v3/", "/version"].map(str::to_owned));
    paths.sort_unstable();
    Ok(answer::json(&serde_json::json!({ "paths": paths })))
}
