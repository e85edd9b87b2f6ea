//! The handler of every request, and the order of its filters.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fp_auth::{ANONYMOUS, Attributes, Authenticator, User};
use fp_base::url::{self, Route};
use fp_base::{ClusterName, ClusterScope};
use fp_net::Peer;
use fp_object::status::{About, Status};
use fp_verbs::Surface;
use fp_verbs::authorize::{self, Verb};
use futures_util::FutureExt;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::sync::watch;

use crate::body::Body;
use crate::health::{Health, Scope};
use crate::metrics::{self, Metrics};
use crate::place::{self, Hidden, Place};
use crate::resource::{self, Call};
use crate::statusz::Statusz;
use crate::{answer, discovery, identity, negotiate, openapi, paths};

/// The longest a request other than a watch may take, its body included (apiserver's
/// `RequestTimeout`).
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What a [`Server`] is made of.
pub struct Config {
    pub surface: Surface,
    pub authenticator: Arc<dyn Authenticator>,
    pub health: Health,
    /// What `/version` answers.
    pub version: fp_object::Value,
    /// Service account issuer discovery; `None`: there is no key.
    pub openid: Option<OpenId>,
    /// When the process started, for `/statusz`.
    pub started: String,
    /// `host:port` that discovery names to clients.
    pub external_address: String,
}

/// The documents of service account issuer discovery.
pub struct OpenId {
    pub configuration: fp_object::Value,
    /// A JSON Web Key Set.
    pub keys: fp_object::Value,
}

/// The API server above the sockets: [`Server::handle`] answers one request.
pub struct Server {
    pub(crate) surface: Surface,
    authenticator: Arc<dyn Authenticator>,
    pub(crate) health: Health,
    pub(crate) version: Bytes,
    pub(crate) statusz: Statusz,
    pub(crate) openid: Option<OpenId>,
    pub(crate) external_address: String,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) discovery: discovery::Cache,
    pub(crate) openapi: openapi::Cache,
    ids: Ids,
    deadline: Duration,
    /// `/readyz` fails from now on.
    draining: watch::Sender<bool>,
    /// Every watch ends.
    leaving: watch::Sender<bool>,
}

impl Server {
    pub fn new(config: Config) -> Arc<Self> {
        let (draining, drains) = watch::channel(false);
        let shutdown = Arc::new(move || match *drains.borrow() {
            true => Err("the server is shutting down".to_owned()),
            false => Ok(()),
        });
        Arc::new(Self {
            surface: config.surface,
            authenticator: config.authenticator,
            health: config.health.with("shutdown", Scope::Ready, shutdown),
            version: fp_object::json::to_vec(&config.version).into(),
            statusz: Statusz::new(&config.version, config.started),
            openid: config.openid,
            external_address: config.external_address,
            metrics: Arc::default(),
            discovery: discovery::Cache::default(),
            openapi: openapi::Cache::default(),
            ids: Ids::new(),
            deadline: DEADLINE,
            draining,
            leaving: watch::channel(false).0,
        })
    }

    /// What `/metrics` prints; other parts add their own series.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// First step of a shutdown: `/readyz` fails, everything else is served as before.
    pub fn begin_drain(&self) {
        self.draining.send_replace(true);
    }

    /// Last step, together with [`fp_net::Serving::drain`]: watches end after a bookmark, and new
    /// ones end as soon as they begin.
    pub fn end_watches(&self) {
        self.draining.send_replace(true);
        self.leaving.send_replace(true);
    }

    pub(crate) fn leaving(&self) -> watch::Receiver<bool> {
        self.leaving.subscribe()
    }

    /// Answers one request: the same for a connection and for a test without sockets.
    pub async fn handle<B>(self: Arc<Self>, request: Request<B>, peer: Arc<Peer>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let started = Instant::now();
        let _inflight = self.metrics.enter();
        let accept = request.headers().get(ACCEPT).cloned();
        let audit_id = request.headers().get(answer::AUDIT_ID).cloned();
        let mut verb = metrics::Verb::Other;
        let work = AssertUnwindSafe(self.respond(request, &peer, &mut verb)).catch_unwind();
        let outcome = match tokio::time::timeout(self.deadline, work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_panic)) => {
                // The panic hook has printed where; the process goes on.
                tracing::error!("a request's handler panicked");
                self.metrics.panicked();
                Err(Status::internal("the request's handler failed"))
            }
            Err(_) => Err(timed_out()),
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(status) => answer::refuse(&status, negotiate::refusal(accept.as_ref())),
        };
        let audit_id = audit_id.unwrap_or_else(|| self.ids.next());
        response.headers_mut().insert(answer::AUDIT_ID, audit_id);
        self.metrics.count(verb, response.status().as_u16(), started.elapsed());
        response
    }

    async fn respond<B>(
        self: &Arc<Self>,
        request: Request<B>,
        peer: &Peer,
        verb: &mut metrics::Verb,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", |t| t.as_str());
        // Found before authentication, which may differ by workspace; told only after it.
        let place = place::find(&*self.surface.directory, target)?;
        let headers = &head.headers;
        let caller = identity::authenticate(&*self.authenticator, headers, peer).await?;
        let authorizer = &*self.surface.authorizer;
        let scope = place.scope.as_ref();
        let user = identity::impersonate(authorizer, headers, caller, scope).await?;
        let route = url::route(&place.path);
        let (Route::Resource(path), Some(_)) = (&route, &place.scope) else {
            *verb = metrics::Verb::Path;
            return self.other(&head.method, headers, place, route, &user).await;
        };
        let (path, hidden) = (path.clone(), place.hidden);
        let Some(method) = resource::method(&head.method) else {
            return Err(method_not_allowed());
        };
        let query = resource::query(place.query.as_deref());
        let call_verb = Verb::of(method, &path, &query);
        *verb = resource::metric(call_verb);
        let call = Call {
            server: self,
            user,
            scope: place.scope.expect("matched above"),
            path,
            query,
            raw_query: place.query.as_deref(),
            method,
            verb: call_verb,
            headers,
            inactive: place.inactive && !served_inactive(&place.path),
        };
        match hidden {
            None => call.answer(body).await,
            Some(hidden) => Err(self.reveal(hidden, call.authorized().await, &call.user).await),
        }
    }

    /// The answer for a cluster that is not there: the truth for who may know it, else the
    /// refusal of a cluster that the caller may not enter.
    async fn reveal(&self, hidden: Hidden, asked: Result<(), Status>, user: &User) -> Status {
        match asked {
            Ok(()) => hidden.answer,
            Err(_) if hidden.may_know(&*self.surface.authorizer, user).await => hidden.answer,
            Err(refusal) => refusal,
        }
    }

    /// Everything that is no resource of a cluster.
    async fn other(
        self: &Arc<Self>,
        method: &http::Method,
        headers: &HeaderMap,
        mut place: Place,
        route: Route,
        user: &Arc<User>,
    ) -> Result<Response<Body>, Status> {
        if place.path == "/metrics" {
            // The shard's own figures: no workspace has any.
            if place.scope.is_some() {
                let message = "shard-level endpoint not available at workspace scope";
                let reason = fp_object::status::Reason::NotImplemented;
                return Err(Status::new(501, reason, message));
            }
            place.scope = Some(ClusterScope::One(ClusterName::root()));
        }
        let virtual_workspace = place.path.starts_with("/services/");
        if virtual_workspace && user.name != ANONYMOUS {
            return Err(Status::not_implemented("The virtual workspace API under /services/"));
        }
        let asked = self.authorize_path(method, &place, user).await;
        if let Some(hidden) = place.hidden.take() {
            // Health is open to everyone everywhere, so it says nothing about a cluster.
            if asked.is_err() || !Health::serves(&place.path) {
                return Err(self.reveal(hidden, asked, user).await);
            }
        }
        asked?;
        if place.inactive && !served_inactive(&place.path) {
            let name = place.scope.as_ref().and_then(|s| s.one()).map_or("", |c| c.as_str());
            let about = About { group: "core.kcp.io", resource: "logicalclusters", name };
            return Err(Status::forbidden(about, "logical cluster is marked inactive"));
        }
        if !matches!(*method, http::Method::GET | http::Method::HEAD) {
            return Err(method_not_allowed());
        }
        let request = paths::PathRequest { server: self, headers, place: &place };
        let response = match route {
            Route::Discovery(found) => discovery::answer(&request, found),
            // A resource outside of every cluster: only masters come here.
            Route::Resource(_) => Err(Status::no_such_resource()),
            Route::NonResource => paths::answer(&request),
        }?;
        Ok(finish(response, headers, place.query.as_deref()).await)
    }

    async fn authorize_path(
        &self,
        method: &http::Method,
        place: &Place,
        user: &User,
    ) -> Result<(), Status> {
        let verb = match *method {
            http::Method::GET => "get",
            http::Method::HEAD => "head",
            http::Method::POST => "post",
            http::Method::PUT => "put",
            http::Method::PATCH => "patch",
            http::Method::DELETE => "delete",
            http::Method::OPTIONS => "options",
            _ => return Err(method_not_allowed()),
        };
        let attributes = Attributes::of_path(user, place.scope.as_ref(), verb, &place.path);
        let verdict = self.surface.authorizer.authorize(&attributes).await;
        if verdict.allowed() { Ok(()) } else { Err(authorize::forbidden(&attributes, &verdict)) }
    }
}

/// What a whole answer gets on its way out: indentation for people, compression when it is large.
pub async fn finish(
    mut response: Response<Body>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Response<Body> {
    answer::prettify(&mut response, headers, query);
    answer::compress(response, headers).await
}

/// What an inactive cluster still serves (`pkg/server/filters/inactivelogicalcluster.go`).
fn served_inactive(path: &str) -> bool {
    path.starts_with("/openapi") || path.starts_with("/apis/core.kcp.io/v1alpha1/logicalclusters")
}

fn method_not_allowed() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(405, fp_object::status::Reason::MethodNotAllowed, message)
}

/// The answer of a request that took too long.
pub fn timed_out() -> Status {
    Status::timeout("Timeout: request did not complete within the allotted timeout", 0)
}

/// Request ids: unique in this process, and in practice everywhere, without asking for
/// randomness each time.
struct Ids {
    seed: u64,
    next: AtomicU64,
}

impl Ids {
    fn new() -> Self {
        use std::hash::{BuildHasher, Hasher};
        let seed = std::hash::RandomState::new().build_hasher().finish();
        Self { seed, next: AtomicU64::new(0) }
    }

    /// In the form of a UUID.
    fn next(&self) -> HeaderValue {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        // An odd multiplier makes the counter's bits look unlike each other; it stays one to one.
        let n = self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (u128::from(self.seed) << 64) | u128::from(n);
        let mut text = [b'-'; 36];
        let mut at = 0;
        for nibble in 0..32 {
            if matches!(nibble, 8 | 12 | 16 | 20) {
                at += 1;
            }
            let value = (bits >> (124 - 4 * nibble)) as usize & 15;
            text[at] = match nibble {
                12 => b'4',
                16 => HEX[value & 3 | 8],
                _ => HEX[value],
            };
            at += 1;
        }
        HeaderValue::from_bytes(&text).expect("hex digits and dashes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        let ids = Ids::new();
        let all: std::collections::HashSet<String> =
            (0..1000).map(|_| ids.next().to_str().unwrap().to_owned()).collect();
        assert_eq!(all.len(), 1000);
        let one = all.iter().next().unwrap();
        let dashes: Vec<usize> = one.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((one.len(), dashes), (36, vec![8, 13, 18, 23]), "{one}");
        assert_eq!(&one[14..15], "4");
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod server_tests;
