//! Accepts connections, serves HTTP/1.1 or HTTP/2 on each, and drains.
//!
//! One task owns the listener and joins every connection's task.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::clear;
use crate::limits;
use crate::listener::{Io, Listener};
use crate::stream::Stream;
use crate::tls::{ClientCert, Peer, Tls};

/// A server that runs. Dropping it ends every connection at once; [`Serving::drain`] is gentle.
pub struct Serving {
    stop: watch::Sender<bool>,
    task: JoinHandle<JoinSet<()>>,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy at the deadline and were cut.
    pub n_cut: usize,
}

/// Serves `handler` on every connection of `listener` from now on. `streams_max` limits the
/// HTTP/2 streams of one connection; 0 takes [`limits::STREAMS_MAX`].
pub fn serve<H, F, B>(listener: Listener, tls: Arc<Tls>, streams_max: u32, handler: H) -> Serving
where
    H: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    start(listener, Some(tls), streams_max, handler)
}

/// The same without TLS; HTTP/2 is known by its preface.
pub fn serve_clear<H, F, B>(listener: Listener, streams_max: u32, handler: H) -> Serving
where
    H: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    start(listener, None, streams_max, handler)
}

fn start<H, F, B>(
    listener: Listener,
    tls: Option<Arc<Tls>>,
    streams_max: u32,
    handler: H,
) -> Serving
where
    H: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (stop, stopped) = watch::channel(false);
    let streams_max = if streams_max == 0 { limits::STREAMS_MAX } else { streams_max };
    let task = tokio::spawn(accept_loop(listener, tls, streams_max, handler, stopped));
    Serving { stop, task }
}

impl Serving {
    /// Stops accepting, tells every peer to go (GOAWAY, `Connection: close`), and waits until
    /// what is in flight has been answered, `deadline` at most. Long answers (watches) must be
    /// ended by the handler.
    pub async fn drain(self, deadline: Duration) -> Drained {
        let _ = self.stop.send(true);
        let Ok(mut connections) = self.task.await else { return Drained { n_cut: 0 } };
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(deadline, all).await;
        let n_cut = connections.len();
        connections.shutdown().await;
        Drained { n_cut }
    }
}

async fn accept_loop<H, F, B>(
    listener: Listener,
    tls: Option<Arc<Tls>>,
    streams_max: u32,
    handler: H,
    mut stopped: watch::Receiver<bool>,
) -> JoinSet<()>
where
    H: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut connections = JoinSet::new();
    loop {
        let full = connections.len() >= limits::CONNECTIONS_MAX;
        tokio::select! {
            biased;
            // The sender is gone or said stop: either way the server ends.
            _ = stopped.changed() => return connections,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if !full => match accepted {
                Ok((stream, addr)) => {
                    let (tls, handler, stopped) = (tls.clone(), handler.clone(), stopped.clone());
                    connections.spawn(async move {
                        match tls {
                            Some(tls) => {
                                let Some((stream, peer)) = handshake(stream, addr, &tls).await
                                else {
                                    return;
                                };
                                let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                                let stream = Stream::new(stream);
                                connection(stream, h2, peer, streams_max, handler, stopped).await;
                            }
                            None => {
                                let Some((h2, stream)) = sniffed(stream, addr).await else { return };
                                let peer = Arc::new(Peer::new(addr, ClientCert::None));
                                connection(stream, h2, peer, streams_max, handler, stopped).await;
                            }
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept a connection");
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// What takes the place of the handshake without TLS.
async fn sniffed(
    stream: Box<dyn Io>,
    addr: std::net::SocketAddr,
) -> Option<(bool, Stream<Box<dyn Io>>)> {
    match tokio::time::timeout(limits::HEADER_TIMEOUT, clear::sniff(stream)).await {
        Ok(Ok(sniffed)) => Some(sniffed),
        Ok(Err(error)) => {
            tracing::debug!(%addr, %error, "first bytes");
            None
        }
        Err(_) => None,
    }
}

async fn handshake(
    stream: Box<dyn Io>,
    addr: std::net::SocketAddr,
    tls: &Tls,
) -> Option<(TlsStream<Box<dyn Io>>, Arc<Peer>)> {
    let config = tls.current();
    let accept = TlsAcceptor::from(config.server.clone()).accept(stream);
    match tokio::time::timeout(limits::HANDSHAKE_TIMEOUT, accept).await {
        Ok(Ok(stream)) => {
            let cert = config.check(stream.get_ref().1.peer_certificates());
            Some((stream, Arc::new(Peer::new(addr, cert))))
        }
        Ok(Err(error)) => {
            tracing::debug!(%addr, %error, "TLS handshake");
            None
        }
        Err(_) => {
            tracing::debug!(%addr, "TLS handshake took too long");
            None
        }
    }
}

async fn connection<S, H, F, B>(
    stream: Stream<S>,
    h2: bool,
    peer: Arc<Peer>,
    streams_max: u32,
    handler: H,
    mut stopped: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, Arc<Peer>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let addr = peer.addr;
    let service = service_fn(move |request| {
        let answer = handler(request, peer.clone());
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let stopped = async move { drop(stopped.wait_for(|stop| *stop).await) };
    // The two connection types share no trait: the same few lines stand twice.
    let ended = if h2 {
        let mut serving =
            pin!(http2_builder(streams_max).serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = serving.as_mut() => ended,
            () = stopped => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        }
    } else {
        let io = TokioIo::new(stream.gated());
        let mut serving = pin!(http1_builder().serve_connection(io, service));
        tokio::select! {
            ended = serving.as_mut() => ended,
            () = stopped => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%addr, %error, "connection ended");
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEADER_TIMEOUT)
        .max_header_size(limits::HEADER_BYTES_MAX)
        .max_buf_size(limits::HEADER_BYTES_MAX + (64 << 10));
    builder
}

fn http2_builder(streams_max: u32) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams_max)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(limits::SEND_BUFFER_BYTES)
        .max_header_list_size(limits::HEADER_BYTES_MAX as u32)
        .max_pending_accept_reset_streams(limits::PENDING_RESETS_MAX)
        .max_local_error_reset_streams(limits::ERROR_RESETS_MAX)
        .keep_alive_interval(limits::PING_INTERVAL)
        .keep_alive_timeout(limits::PING_TIMEOUT);
    builder
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
