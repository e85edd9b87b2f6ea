//! etcd v3's gRPC API over any store: what a client of etcd, kine or a Kubernetes API server asks.
//!
//! Invariants: an answer is etcd's or an error that says what is not served, never a success that
//! did not happen; every header has the revision the answer belongs to. What is served is the
//! table of `docs/guide/store.md`.
//! Deliberately absent: SQL, what a key means, sockets (the caller serves [`Endpoint::handle`]).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::Revision;
use fp_net::Peer;
use fp_store::{Store, VALUE_BYTES_MAX};
use http::{Method, Request, Response, StatusCode, header as http_header};
use hyper::body::Incoming;
use prost::Message;
use tokio::sync::watch as channel;

mod bounds;
mod compact_key;
mod grpc;
mod maintenance;
mod metrics;
mod proto;
mod range;
mod status;
mod txn;
mod view;
mod watch;

pub use grpc::Body;

use grpc::{Messages, frame};
use metrics::Metrics;
use proto::{
    Answer, CompactionRequest, DeleteRangeRequest, HashKvRequest, HealthCheckRequest,
    HealthCheckResponse, PutRequest, RangeRequest, Request as Op, RequestOp, ResponseHeader,
    TxnRequest, TxnResponse,
};
use status::{Code, Status};
use view::View;

/// There is one member and no election: ids and term never change.
const CLUSTER_ID: u64 = 0x6665_7272_6f70_6c61;
const MEMBER_ID: u64 = 0x6b69_6e65_2d61_6c74;
const RAFT_TERM: u64 = 1;
/// How long a method that is not served waits for what it is asked.
const FIRST_MESSAGE_PATIENCE: Duration = Duration::from_secs(1);
/// How often a read of the newest state that compaction overtakes starts over.
const READ_TRIES_MAX: usize = 3;

pub struct Config {
    pub store: Arc<dyn Store>,
    /// The version of etcd that `Status` reports.
    pub version: String,
    /// How often a quiet watch that asked for it hears of its progress.
    pub progress_interval: Duration,
    /// How clients reach the server: `http`, `https` or `unix`.
    pub scheme: &'static str,
    /// A client must show a certificate that the client CA vouches for.
    pub needs_client_cert: bool,
}

/// The server stops: streams end.
type Stopped = bool;

pub struct Endpoint {
    config: Config,
    metrics: Metrics,
    stop: channel::Sender<Stopped>,
}

/// The header of an answer at a revision.
fn header(revision: Revision) -> ResponseHeader {
    ResponseHeader {
        cluster_id: CLUSTER_ID,
        member_id: MEMBER_ID,
        revision: revision.0,
        raft_term: RAFT_TERM,
    }
}

impl Endpoint {
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { config, metrics: Metrics::default(), stop: channel::Sender::new(false) })
    }

    /// Ends every stream, so that connections can drain.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Answers a request: gRPC, or one of `/health`, `/version` and `/metrics`.
    pub async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Arc<Peer>,
    ) -> Response<Body> {
        let kind = request.headers().get(http_header::CONTENT_TYPE);
        let is_grpc = request.method() == Method::POST
            && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let trusted = !self.config.needs_client_cert || matches!(peer.cert.trusted(), Ok(Some(_)));
        match (is_grpc, trusted) {
            (true, true) => self.call(request).await,
            (true, false) => {
                let message = "a client certificate of the trusted CA is needed".into();
                grpc::answer(Err(Status { code: Code::Unauthenticated, message }))
            }
            (false, true) => self.page(request.uri().path()).await,
            (false, false) => grpc::plain(
                StatusCode::UNAUTHORIZED,
                "text/plain",
                "a client certificate of the trusted CA is needed\n",
            ),
        }
    }

    /// The pages beside gRPC.
    pub async fn page(&self, path: &str) -> Response<Body> {
        let store = &*self.config.store;
        match path {
            "/health" => match store.head().await {
                Ok(_) => {
                    let healthy = r#"{"health":"true","reason":""}"#;
                    grpc::plain(StatusCode::OK, "application/json", healthy)
                }
                Err(error) => {
                    tracing::warn!(%error, "health");
                    let ill = r#"{"health":"false","reason":"STORE"}"#;
                    grpc::plain(StatusCode::SERVICE_UNAVAILABLE, "application/json", ill)
                }
            },
            "/version" => {
                let version = &self.config.version;
                let cluster = version.rsplit_once('.').map_or(&**version, |(minor, _)| minor);
                let text = format!(r#"{{"etcdserver":"{version}","etcdcluster":"{cluster}.0"}}"#);
                grpc::plain(StatusCode::OK, "application/json", text)
            }
            "/metrics" => match self.metrics.render(store).await {
                Ok(text) => grpc::plain(StatusCode::OK, "text/plain; version=0.0.4", text),
                Err(error) => {
                    let text = format!("{error}\n");
                    grpc::plain(StatusCode::SERVICE_UNAVAILABLE, "text/plain", text)
                }
            },
            _ => grpc::plain(StatusCode::NOT_FOUND, "text/plain", "404 page not found\n"),
        }
    }

    async fn call(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let mut messages = Messages::new(body);
        let Some(method) = METHODS.iter().find(|method| **method == path) else {
            self.metrics.count("unknown", Code::Unimplemented as u16);
            let name = path.trim_start_matches('/').replace('/', ".");
            // A client that is still sending reads an end of the stream, not why it ended.
            let _ = tokio::time::timeout(FIRST_MESSAGE_PATIENCE, messages.next::<()>()).await;
            return grpc::answer(Err(Status::unimplemented(&name)));
        };
        if *method == "/etcdserverpb.Watch/Watch" {
            self.metrics.count(method, 0);
            return self.watch(messages);
        }
        let authority = parts.uri.authority().map(|authority| authority.as_str());
        let result = self.one(method, messages, authority).await;
        self.metrics.count(method, result.as_ref().err().map_or(0, |status| status.code as u16));
        grpc::answer(result)
    }

    fn watch(&self, messages: Messages) -> Response<Body> {
        let (sink, response) = grpc::stream();
        let stream = watch::Stream {
            store: self.config.store.clone(),
            messages,
            sink,
            stopped: self.stop.subscribe(),
            progress_interval: self.config.progress_interval,
        };
        // It ends with its client or with `stop`: the answer's body is its owner.
        tokio::spawn(stream.run());
        response
    }

    /// The calls with one answer.
    async fn one(
        &self,
        method: &str,
        messages: Messages,
        authority: Option<&str>,
    ) -> Result<Bytes, Status> {
        let store = &self.config.store;
        match method {
            "/etcdserverpb.KV/Range" => unary(messages, |q| self.range(q)).await,
            "/etcdserverpb.KV/Put" => unary(messages, |q| self.put(q)).await,
            "/etcdserverpb.KV/DeleteRange" => unary(messages, |q| self.delete(q)).await,
            "/etcdserverpb.KV/Txn" => unary(messages, |q| self.txn(q)).await,
            "/etcdserverpb.KV/Compact" => {
                let compact =
                    async |q: CompactionRequest| maintenance::compact(store, q.revision).await;
                unary(messages, compact).await
            }
            "/etcdserverpb.Lease/LeaseGrant" => {
                unary(messages, |q| maintenance::grant(&**store, q)).await
            }
            "/etcdserverpb.Maintenance/Status" => {
                let version = &self.config.version;
                unary(messages, |_: proto::Empty| maintenance::status(&**store, version)).await
            }
            "/etcdserverpb.Maintenance/Hash" => {
                let hash = async |_: proto::Empty| {
                    maintenance::hash_kv(&**store, &HashKvRequest::default()).await.map(
                        |mut hash| {
                            (hash.compact_revision, hash.hash_revision) = (0, 0);
                            hash
                        },
                    )
                };
                unary(messages, hash).await
            }
            "/etcdserverpb.Maintenance/HashKV" => {
                let hash = async |q: HashKvRequest| maintenance::hash_kv(&**store, &q).await;
                unary(messages, hash).await
            }
            "/etcdserverpb.Maintenance/Alarm" => {
                unary(messages, |q| maintenance::alarm(&**store, q)).await
            }
            "/etcdserverpb.Cluster/MemberList" => {
                let url =
                    format!("{}://{}", self.config.scheme, authority.unwrap_or("localhost:2379"));
                unary(messages, |_: proto::Empty| maintenance::members(&**store, url.clone())).await
            }
            "/grpc.health.v1.Health/Check" => unary(messages, |q| self.health(q)).await,
            other => Err(Status::unimplemented(other)),
        }
    }

    async fn range(&self, request: RangeRequest) -> Result<proto::RangeResponse, Status> {
        range::check(&request)?;
        let store = &*self.config.store;
        let mut n_tries = 0;
        loop {
            let at = store.head().await?;
            n_tries += 1;
            match range::range(&mut View::new(store, at), &request).await {
                Ok(mut answer) => {
                    answer.header = Some(header(at));
                    return Ok(answer);
                }
                Err(fp_store::Error::Compacted { asked, .. })
                    if asked == at && n_tries < READ_TRIES_MAX => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn put(&self, request: PutRequest) -> Result<proto::PutResponse, Status> {
        match self.single(Op::Put(request)).await? {
            (Answer::Put(answer), header) => Ok(proto::PutResponse { header, ..answer }),
            _ => unreachable!("a put is answered as a put"),
        }
    }

    async fn delete(
        &self,
        request: DeleteRangeRequest,
    ) -> Result<proto::DeleteRangeResponse, Status> {
        match self.single(Op::DeleteRange(request)).await? {
            (Answer::DeleteRange(answer), header) => {
                Ok(proto::DeleteRangeResponse { header, ..answer })
            }
            _ => unreachable!("a delete is answered as a delete"),
        }
    }

    /// A transaction of one operation.
    async fn single(&self, op: Op) -> Result<(Answer, Option<ResponseHeader>), Status> {
        let success = vec![RequestOp { request: Some(op) }];
        let request = TxnRequest { success, ..TxnRequest::default() };
        let mut done = self.write(&request).await?;
        let answer = done.answers.pop().expect("one operation has one answer");
        Ok((answer, Some(header(done.revision))))
    }

    async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        let mut done = self.write(&request).await?;
        let (at, succeeded) = (Some(header(done.revision)), done.succeeded);
        for answer in &mut done.answers {
            match answer {
                Answer::Range(range) => range.header = at,
                Answer::Put(put) => put.header = at,
                Answer::DeleteRange(delete) => delete.header = at,
            }
        }
        Ok(TxnResponse { header: at, succeeded, responses: done.responses() })
    }

    async fn write(&self, request: &TxnRequest) -> Result<txn::Done, Status> {
        // etcd's limit of a whole request, which is also that of one value.
        if request.encoded_len() > VALUE_BYTES_MAX {
            return Err(status::TOO_LARGE);
        }
        txn::run(&*self.config.store, request).await
    }

    async fn health(&self, _: HealthCheckRequest) -> Result<HealthCheckResponse, Status> {
        const SERVING: i32 = 1;
        const NOT_SERVING: i32 = 2;
        let status = self.config.store.head().await.map_or(NOT_SERVING, |_| SERVING);
        Ok(HealthCheckResponse { status })
    }
}

/// The methods that are served.
const METHODS: &[&str] = &[
    "/etcdserverpb.KV/Range",
    "/etcdserverpb.KV/Put",
    "/etcdserverpb.KV/DeleteRange",
    "/etcdserverpb.KV/Txn",
    "/etcdserverpb.KV/Compact",
    "/etcdserverpb.Watch/Watch",
    "/etcdserverpb.Lease/LeaseGrant",
    "/etcdserverpb.Cluster/MemberList",
    "/etcdserverpb.Maintenance/Status",
    "/etcdserverpb.Maintenance/Hash",
    "/etcdserverpb.Maintenance/HashKV",
    "/etcdserverpb.Maintenance/Alarm",
    "/grpc.health.v1.Health/Check",
];

async fn unary<Q, A, F>(messages: Messages, call: impl FnOnce(Q) -> F) -> Result<Bytes, Status>
where
    Q: Message + Default,
    A: Message,
    F: Future<Output = Result<A, Status>>,
{
    let request = messages.only().await?;
    call(request).await.map(|answer| frame(&answer))
}
