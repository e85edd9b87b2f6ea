//! `ferroplane store`: an etcd v3 endpoint over a store, in kine's place.

mod flags;
mod options;
mod tools;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use fp_base::Revision;
use fp_etcd::Endpoint;
use fp_net::{BindOptions, Listener, PemPair, Serving, Tls, TlsOptions};
use fp_store::{MemoryStore, Store};
use fp_store_sql::{PostgresStore, SqliteStore, Tuning};
use tracing::{info, warn};

use crate::keys;
use crate::start::{DRAIN, stop_signals};

pub use flags::{Given, command};
pub use options::Options;
pub use tools::run as run_tool;

use options::{Backend, Listen, MetricsListen, TlsFiles};

/// Streams of one connection: a client of etcd opens one per watch and waits when it may not.
const STREAMS_MAX: u32 = 100_000;
/// Recent events that the store keeps in memory for watchers, in bytes.
const RING_BYTES: usize = 8 << 20;
const N_READERS: usize = 3;

/// Serves until it is told to stop.
pub fn run(options: &Options, warnings: &[String]) -> Result<()> {
    for warning in warnings {
        warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("start threads")?;
    let ended = runtime.block_on(serve(options));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}

async fn serve(options: &Options) -> Result<()> {
    let mut stop = stop_signals()?;
    let tls = options.tls.as_ref().map(tls).transpose()?.map(Arc::new);
    let listener = match &options.listen {
        Listen::Tcp(addr) => Listener::bind(*addr, BindOptions::default())?,
        Listen::Unix(path) => Listener::bind_unix(path)?,
    };
    let url = url(&options.listen, listener.addr(), tls.is_some());
    let store = open(options).await?;
    let endpoint = Endpoint::new(fp_etcd::Config {
        store: store.clone(),
        version: options.version.clone(),
        progress_interval: options.progress_interval,
        scheme: if tls.is_some() { "https" } else { "http" },
        needs_client_cert: options.tls.as_ref().is_some_and(|tls| tls.trusted_ca.is_some()),
    });
    let metrics = serve_metrics(options, &endpoint, tls.clone())?;
    let handler = endpoint.clone();
    let handler = move |request, peer| handler.clone().handle(request, peer);
    let serving = match tls {
        Some(tls) => fp_net::serve(listener, tls, STREAMS_MAX, handler),
        None => fp_net::serve_clear(listener, STREAMS_MAX, handler),
    };
    let line = format!("Ready at {url} on {}\n", options.backend);
    // Who started it may have closed the pipe, and wants it to serve all the same.
    let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), line.as_bytes());
    stop.recv().await;
    info!("stopping");
    endpoint.stop();
    let cut = serving.drain(DRAIN).await;
    if cut.n_cut > 0 {
        warn!(connections = cut.n_cut as u64, "cut what was still busy");
    }
    if let Some(metrics) = metrics {
        metrics.drain(DRAIN).await;
    }
    store.close().await;
    Ok(())
}

/// Where clients reach the server.
fn url(listen: &Listen, bound: SocketAddr, tls: bool) -> String {
    match listen {
        Listen::Unix(path) => format!("unix://{}", path.display()),
        Listen::Tcp(_) => format!("{}://{bound}", if tls { "https" } else { "http" }),
    }
}

async fn open(options: &Options) -> Result<Arc<dyn Store>> {
    let tuning = Tuning {
        n_readers: N_READERS,
        ring_bytes_max: RING_BYTES,
        compact_interval: options.compact_interval,
        // As kine: what was written since the last round is kept.
        compact_keep: options.compact_interval.unwrap_or_default(),
        compact_keep_revisions: options.compact_min_retain,
    };
    let path = match &options.backend {
        Backend::Memory => return Ok(MemoryStore::starting_at(Revision(1))),
        Backend::Postgres(dsn) => return Ok(PostgresStore::open((**dsn).clone(), tuning).await?),
        Backend::Sqlite(path) => path,
    };
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    Ok(SqliteStore::open(path, tuning)?)
}

fn tls(files: &TlsFiles) -> Result<Tls> {
    let pair = keys::read_pair(&files.cert, &files.key)?;
    let ca = files
        .trusted_ca
        .as_ref()
        .map(|path| std::fs::read(path).with_context(|| format!("read {}", path.display())));
    Ok(Tls::new(&TlsOptions {
        default: PemPair { chain: pair.certificate, key: pair.key },
        sni: Vec::new(),
        client_ca: ca.transpose()?,
        min_version: String::new(),
        cipher_suites: Vec::new(),
        curves: Vec::new(),
        http2: true,
    })?)
}

/// The port of its own for `/metrics`. kine serves on where its default is taken, and so do we.
fn serve_metrics(
    options: &Options,
    endpoint: &Arc<Endpoint>,
    tls: Option<Arc<Tls>>,
) -> Result<Option<Serving>> {
    let (addr, given) = match options.metrics {
        MetricsListen::Off => return Ok(None),
        MetricsListen::On { addr, given } => (addr, given),
    };
    let listener = match Listener::bind(addr, BindOptions::default()) {
        Ok(listener) => listener,
        Err(error) if given => return Err(error.into()),
        Err(error) => {
            warn!(%error, "no port of its own for metrics: --metrics-bind-address names another");
            return Ok(None);
        }
    };
    let endpoint = endpoint.clone();
    let handler = move |request: http::Request<_>, _| {
        let endpoint = endpoint.clone();
        async move {
            let _: &hyper::body::Incoming = request.body();
            let path = if request.uri().path() == "/metrics" { "/metrics" } else { "" };
            endpoint.page(path).await
        }
    };
    let tls = tls.filter(|_| !options.metrics_ignore_tls);
    Ok(Some(match tls {
        Some(tls) => fp_net::serve(listener, tls, 0, handler),
        None => fp_net::serve_clear(listener, 0, handler),
    }))
}
