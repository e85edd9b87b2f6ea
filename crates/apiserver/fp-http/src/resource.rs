//! Resource requests: what HTTP says becomes a [`fp_verbs::Request`], what the verbs answer
//! becomes bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_auth::User;
use fp_base::ClusterScope;
use fp_base::url::{self, ResourcePath};
use fp_object::status::{About, Status};
use fp_verbs::Resolved;
use fp_verbs::authorize::{self, Verb};
use fp_verbs::request::{self as verbs, Media, Method, Query};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, Response};

use crate::body::{self, Body};
use crate::negotiate::{self, Accepted, Format, Offer, Shape};
use crate::server::{Server, finish, timed_out};
use crate::{answer, encode, metrics, table, watch};

/// kcp's header of a SubjectAccessReview that skips what only concerns its own cluster; honoured
/// for `system:masters`.
const DEEP_SAR: &str = "x-kcp-internal-deep-subjectaccessreview";

/// A resource request whose caller and cluster are known.
pub struct Call<'a> {
    pub server: &'a Arc<Server>,
    pub user: Arc<User>,
    pub scope: ClusterScope,
    pub path: ResourcePath,
    pub query: Query,
    /// The query as it was sent.
    pub raw_query: Option<&'a str>,
    pub method: Method,
    pub verb: Verb,
    pub headers: &'a HeaderMap,
    /// The cluster is marked inactive, and this path is not one of those still served.
    pub inactive: bool,
}

/// The method of a resource request; others are no verb of Kubernetes.
pub fn method(method: &http::Method) -> Option<Method> {
    Some(match *method {
        http::Method::GET | http::Method::HEAD => Method::Get,
        http::Method::POST => Method::Post,
        http::Method::PUT => Method::Put,
        http::Method::PATCH => Method::Patch,
        http::Method::DELETE => Method::Delete,
        _ => return None,
    })
}

pub fn metric(verb: Verb) -> metrics::Verb {
    match verb {
        Verb::Get => metrics::Verb::Get,
        Verb::List => metrics::Verb::List,
        Verb::Watch => metrics::Verb::Watch,
        Verb::Create => metrics::Verb::Post,
        Verb::Update => metrics::Verb::Put,
        Verb::Patch => metrics::Verb::Patch,
        Verb::Delete => metrics::Verb::Delete,
        Verb::DeleteCollection => metrics::Verb::DeleteCollection,
    }
}

impl Call<'_> {
    /// Whether the caller may do this here; the 403 says why not.
    pub async fn authorized(&self) -> Result<(), Status> {
        let authorizer = &*self.server.surface.authorizer;
        authorize::check(authorizer, &self.user, &self.scope, self.verb, &self.path, &self.query)
            .await
    }

    /// A refusal that HTTP alone finds, behind the one that authorization finds.
    async fn refused<T>(&self, status: Status) -> Result<T, Status> {
        self.authorized().await?;
        Err(status)
    }

    /// Answers the request. `body` is read only where the verb takes one.
    pub async fn answer<B>(self, body: B) -> Result<Response<Body>, Status>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        if self.inactive {
            let name = self.scope.one().map_or("", |c| c.as_str());
            let about = About { group: "core.kcp.io", resource: "logicalclusters", name };
            return self
                .refused(Status::forbidden(about, "logical cluster is marked inactive"))
                .await;
        }
        let accepted = match self.accepted() {
            Ok(accepted) => accepted,
            Err(status) => return self.refused(status).await,
        };
        let (body, media) = match self.body(body).await {
            Ok(read) => read,
            Err(status) => return self.refused(status).await,
        };
        let limit = match self.time_limit() {
            Ok(limit) => limit,
            Err(status) => return self.refused(status).await,
        };
        let Self { server, user, scope, path, query, raw_query, method, verb, headers, .. } = self;
        let include = table::include(&query);
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        let request = verbs::Request {
            deep_sar: user.is_master() && headers.get(DEEP_SAR).is_some_and(|v| v == "true"),
            user_agent: text(USER_AGENT).unwrap_or("").to_owned(),
            partial: accepted.shape == Shape::Partial,
            user,
            scope,
            method,
            path,
            query,
            body,
            media,
        };
        let work = fp_verbs::serve(&server.surface, request);
        let verbs::Answer { result, warnings } = match limit {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| timed_out())?,
        };
        let encoded = match result {
            Ok(response) => encode_response(server, response, accepted, include?),
            Err(status) => Err(status),
        };
        let mut response = encoded.unwrap_or_else(|status| {
            answer::refuse(&status, negotiate::refusal(headers.get(ACCEPT)))
        });
        answer::warn(response.headers_mut(), &warnings);
        if matches!(verb, Verb::Get | Verb::List) {
            return Ok(finish(response, headers, raw_query).await);
        }
        answer::prettify(&mut response, headers, raw_query);
        Ok(response)
    }

    /// The form of the answer. Whether the resource has a protobuf form is asked only when the
    /// client prefers it.
    fn accepted(&self) -> Result<Accepted, Status> {
        let offer = Offer { protobuf: true, transforms: true, watch: self.verb == Verb::Watch };
        let accepted = negotiate::accept(self.headers, offer)?;
        if accepted.format != Format::Protobuf || accepted.shape != Shape::Full {
            return Ok(accepted);
        }
        let path = &self.path;
        let resolver = &self.server.surface.resolver;
        let identity = path.identity.as_deref();
        match resolver.resolve(&self.scope, &path.group, &path.resource, identity, false) {
            Resolved::Found(info) if info.proto.is_none() => {
                negotiate::accept(self.headers, Offer { protobuf: false, ..offer })
            }
            Resolved::Found(_) => Ok(accepted),
            // The verbs will refuse it; in what form is told by the error's own negotiation.
            Resolved::Unknown | Resolved::Unavailable(_) => Ok(Accepted::JSON),
        }
    }

    async fn body<B>(&self, body: B) -> Result<(Bytes, Option<Media>), Status>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        if self.method == Method::Get {
            return Ok((Bytes::new(), None));
        }
        let media = match self.method {
            // The type of a delete's body matters only when there is one.
            Method::Delete if body.is_end_stream() => return Ok((Bytes::new(), None)),
            method => negotiate::content_type(self.headers, method)?,
        };
        match body::read(body).await {
            Ok(bytes) => Ok((bytes, media)),
            Err(body::ReadError::TooLarge) => Err(Status::too_large(format!(
                "Request entity too large: limit is {}",
                body::REQUEST_BYTES_MAX
            ))),
            Err(body::ReadError::Broken) => {
                Err(Status::bad_request("the request body ended early"))
            }
        }
    }

    /// `?timeout=`: shorter than the server's own deadline (which stands above this).
    fn time_limit(&self) -> Result<Option<Duration>, Status> {
        if self.verb == Verb::Watch {
            return Ok(None);
        }
        let Some((_, text)) = self.query.iter().find(|(k, _)| k == "timeout") else {
            return Ok(None);
        };
        match go_duration(text) {
            Some(Duration::ZERO) => Ok(None),
            Some(limit) => Ok(Some(limit)),
            None => Err(Status::bad_request("invalid timeout specified in the request URL")),
        }
    }
}

/// A duration as Go's `time.ParseDuration` reads it, as far as a positive one goes: `30s`, `1m30s`,
/// `1.5h`, `0`. Shorter than a millisecond is none.
fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] =
        [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    /// Beyond the deadline that the server has of its own.
    const SECS_MAX: f64 = 1e6;
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut secs) = (text.strip_prefix('+').unwrap_or(text), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        secs += number * factor;
    }
    Some(Duration::from_secs_f64(secs.min(SECS_MAX)))
}

fn encode_response(
    server: &Arc<Server>,
    response: verbs::Response,
    accepted: Accepted,
    include: table::Include,
) -> Result<Response<Body>, Status> {
    let content_type = accepted.format.content_type();
    Ok(match response {
        verbs::Response::Watch(watch) => {
            let guard = server.metrics.enter_watch();
            watch::stream(watch, accepted, include, server.leaving(), guard)
        }
        verbs::Response::Object { code, view } => {
            let body = match accepted.shape {
                Shape::Table => one_row(&view, accepted, include),
                _ => encode::object(&view, accepted)?,
            };
            answer::whole(code, content_type, body)
        }
        verbs::Response::List { info, version, items, meta } => {
            let body = match accepted.shape {
                Shape::Table => {
                    let options = table::Options {
                        include,
                        columns: true,
                        api_version: accepted.meta_version(),
                    };
                    write(&table::of_list(&info, &version, &items, &meta, options), accepted)
                }
                _ => encode::list(&info, &version, &items, &meta, accepted)?,
            };
            answer::whole(200, content_type, body)
        }
        verbs::Response::Plain { code, object, proto } => {
            let encoded = encode::plain(&object, proto, accepted.format)?;
            answer::whole(code, encoded.format.content_type(), encoded.bytes)
        }
        verbs::Response::Success { code, status } => {
            let proto = Some(&fp_builtin::tables::meta::STATUS);
            let encoded = encode::plain(&status, proto, accepted.format)?;
            answer::whole(code, encoded.format.content_type(), encoded.bytes)
        }
    })
}

fn one_row(view: &verbs::View, accepted: Accepted, include: table::Include) -> Bytes {
    let options = table::Options { include, columns: true, api_version: accepted.meta_version() };
    write(&table::of_one(view, options), accepted)
}

fn write(table: &fp_object::Value, accepted: Accepted) -> Bytes {
    match accepted.format {
        Format::Yaml => encode::yaml(table),
        Format::Json | Format::Protobuf => fp_object::json::to_vec(table).into(),
    }
}

/// The query of a request, decoded.
pub fn query(encoded: Option<&str>) -> Query {
    match encoded {
        None | Some("") => Query::new(),
        Some(text) => url::query_pairs(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, want: Option<u64>| {
            let got = go_duration(text).map(|d| d.as_millis() as u64);
            assert_eq!(got, want, "{text}");
        };
        check("30s", Some(30_000));
        check("1m30s", Some(90_000));
        check("1.5h", Some(5_400_000));
        check("250ms", Some(250));
        check("0", Some(0));
        check("0s", Some(0));
        check("9999999999999h", Some(1_000_000_000));
        for bad in ["", "30", "s", "1x", "-5s", "1s1", "1..2s"] {
            check(bad, None);
        }
    }
}
