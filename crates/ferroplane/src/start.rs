//! `ferroplane start`: from flags to a server that is ready, and to its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use fp_auth::Authenticator;
use fp_auth::authenticate::{Chain, ClientCert, TokenFile};
use fp_controllers::routes;
use fp_controllers::table::CONTROLLERS;
use fp_controllers::world::World;
use fp_http::Server;
use fp_http::health::{Health, Scope};
use fp_informer::Informer;
use fp_kcp::indexes::Indexes;
use fp_keyspace::Layout;
use fp_net::{BindOptions, Listener, PemPair, Serving, Tls, TlsOptions};
use fp_object::json::STACK_BYTES;
use fp_registry::store::StoreBackend;
use fp_store::Store;
use fp_store_sql::{PostgresStore, SqliteStore, Tuning};
use fp_verbs::Surface;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::address::{self, Urls};
use crate::admin::{self, Accounts};
use crate::content::Content;
use crate::leading::{Duties, Leading, StartControllers};
use crate::options::{Options, StoreChoice};
use crate::progress::Progress;
use crate::root_dir::{self, RootDir};
use crate::{bootstrap, issuer, keys, logging, surface, version};

/// How long requests in flight are waited for when the server ends.
pub const DRAIN: Duration = Duration::from_secs(10);
/// A start that takes longer than this no longer holds its log back.
const HOLD_MAX: Duration = Duration::from_secs(10);
const N_STEPS: usize = 6;
/// Recent events that the store keeps in memory for watchers, in bytes.
const STORE_RING_BYTES: usize = 16 << 20;
const N_READERS: usize = 3;
/// The history that background compaction keeps.
const COMPACT_KEEP: Duration = Duration::from_secs(600);
const COMPACT_KEEP_REVISIONS: u32 = 1000;

/// Runs the server until it is told to stop.
pub fn run(options: &Options, warnings: &[String]) -> Result<()> {
    let mut progress = Progress::new(N_STEPS);
    for warning in warnings {
        warn!("{warning}");
    }
    let root = match &options.root {
        Some(path) => Some(RootDir::open(path, options.store == StoreChoice::Embedded)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .context("start threads")?;
    // The main thread reads the store's objects, and its stack is whatever `ulimit -s` says.
    let main = || runtime.block_on(serve(options, root.as_ref(), &mut progress));
    let ended = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("main".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, main).context("start threads")?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// What runs, in the order in which it ends.
struct Running {
    serving: Serving,
    server: Arc<Server>,
    leading: Leading,
    pump: JoinHandle<()>,
    store: Arc<dyn Store>,
}

async fn serve(options: &Options, root: Option<&RootDir>, progress: &mut Progress) -> Result<()> {
    let host = address::external_host(options);
    let pair = serving_pair(options, &host)?;
    let account_keys =
        keys::service_account_keys(root.map(RootDir::path), &options.service_account_keys)?;
    let tls = tls_options(options, &pair)?;
    let tls = Arc::new(Tls::new(&tls).with_context(|| pair_files(options))?);
    let accounts = accounts(options, root)?;
    progress.step("Keys and certificates");

    let listener =
        Listener::bind(SocketAddr::new(options.bind, options.port), BindOptions::default())?;
    let bound = listener.addr();
    let urls = address::urls(options, &host, bound);
    if let Some(accounts) = &accounts {
        accounts.write(&urls.external, &pair.certificate)?;
    }
    progress.step(&format!("Listening on {bound}"));

    let store = open_store(options, root).await?;
    progress.step("Store opened");

    let informer = Arc::new(Informer::new());
    let indexes = Indexes::new(fp_kcp::crds::builtins());
    indexes.observe(&informer);
    let backend = Arc::new(StoreBackend::new(
        store.clone(),
        informer.clone(),
        Layout::new("/registry", fp_builtin::resources().iter().cloned()),
    ));
    let pump = backend.load().await.context("read the store")?;
    let pump = tokio::spawn(pump.run());
    progress.step(&format!("Store read at revision {}", informer.revision()));

    let surface = surface::wire(backend, informer.clone(), &indexes, options.allow_paths.clone());
    let ready = Arc::new(AtomicBool::new(false));
    let server = Server::new(fp_http::Config {
        surface: surface.clone(),
        authenticator: authenticator(options, accounts.as_ref())?,
        health: health(&informer, &ready),
        version: version::document(),
        openid: issuer::documents(&account_keys, &urls.external_address),
        started: fp_object::time::now(),
        external_address: urls.external_address.clone(),
    });
    let handler = server.clone();
    let serving = fp_net::serve(listener, tls, options.tls.h2_streams_max, move |request, peer| {
        handler.clone().handle(request, peer)
    });
    let duties = Arc::new(Duties {
        start_controllers: controllers(
            &surface,
            &informer,
            &indexes,
            &urls,
            root_ca(options, &pair)?,
        ),
        bootstrap: bootstrap_config(options, &urls),
        content: Content(informer.clone()),
        surface,
    });
    let leading = match &options.election {
        // As in kcp: a server without controllers has nothing to be elected for.
        _ if !options.run_controllers => Leading::Never,
        None => Leading::Always((duties.start_controllers)(duties.controllers_client())),
        Some(election) => Leading::stand(election, duties.clone(), informer.clone()),
    };
    progress.step(match &leading {
        Leading::Elected { .. } => "Serving; standing for leader",
        Leading::Always(_) | Leading::Never => "Serving; controllers started",
    });

    let elected = matches!(leading, Leading::Elected { .. });
    let running = Running { serving, server, leading, pump, store };
    let mut stop = stop_signals()?;
    let client = duties.server_client();
    let bootstrapping = pin!(async {
        if elected {
            bootstrap::completed(&duties.bootstrap, &duties.content).await;
            return Ok(());
        }
        bootstrap::run(&duties.bootstrap, &duties.content, &client).await
    });
    tokio::select! {
        outcome = told_when_slow(bootstrapping) => {
            if let Err(error) = outcome {
                running.end(Duration::ZERO).await;
                return Err(error.into());
            }
        }
        _ = stop.recv() => {
            logging::release();
            running.end(Duration::ZERO).await;
            return Ok(());
        }
    }
    ready.store(true, Ordering::Release);
    progress.step("Content of root and the system workspaces is there");
    // The last step that can be refused: until then the reason is all that is said.
    if let Err(error) = report_port(root, options, bound) {
        running.end(Duration::ZERO).await;
        return Err(error);
    }
    logging::release();
    progress.ready(&urls.external, options.kubeconfig.as_deref().filter(|_| accounts.is_some()));
    stop.recv().await;
    running.end(options.shutdown_delay).await;
    Ok(())
}

/// Waits for the bootstrap. When it takes long somebody wants to see what the log says.
async fn told_when_slow<F: Future>(bootstrapping: Pin<&mut F>) -> F::Output {
    let mut bootstrapping = bootstrapping;
    match tokio::time::timeout(HOLD_MAX, bootstrapping.as_mut()).await {
        Ok(outcome) => outcome,
        Err(_) => {
            logging::release();
            bootstrapping.await
        }
    }
}

impl Running {
    /// Ends in order: not ready, then no new requests, then what runs, last the store.
    async fn end(self, delay: Duration) {
        info!("shutting down");
        self.server.begin_drain();
        tokio::time::sleep(delay).await;
        self.leading.stop().await;
        self.server.end_watches();
        let cut = self.serving.drain(DRAIN).await;
        if cut.n_cut > 0 {
            warn!(connections = cut.n_cut as u64, "connections were cut");
        }
        self.pump.abort();
        self.store.close().await;
        info!("stopped");
    }
}

/// One message per SIGTERM or SIGINT; the second one ends the process at once.
pub fn stop_signals() -> Result<tokio::sync::mpsc::Receiver<()>> {
    let mut term = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let (send, receive) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            if send.try_send(()).is_err() {
                std::process::exit(1);
            }
        }
    });
    Ok(receive)
}

fn accounts(options: &Options, root: Option<&RootDir>) -> Result<Option<Accounts>> {
    let (Some(kubeconfig), Some(token_store)) = (&options.kubeconfig, &options.admin_token_store)
    else {
        return Ok(None);
    };
    if root.is_none() || !options.has_battery("admin") {
        return Ok(None);
    }
    let files = admin::Files { kubeconfig: kubeconfig.clone(), token_store: token_store.clone() };
    Ok(Some(Accounts::load(files, options.has_battery("user"))?))
}

fn authenticator(options: &Options, accounts: Option<&Accounts>) -> Result<Arc<dyn Authenticator>> {
    let mut authenticators: Vec<Arc<dyn Authenticator>> = vec![Arc::new(ClientCert)];
    if let Some(accounts) = accounts {
        authenticators.push(Arc::new(accounts.authenticator()));
    }
    if let Some(path) = &options.token_file {
        authenticators.push(Arc::new(TokenFile::load(path)?));
    }
    Ok(Arc::new(Chain { authenticators, anonymous: options.anonymous }))
}

fn serving_pair(options: &Options, host: &str) -> Result<keys::Pair> {
    Ok(match &options.tls.pair {
        Some((certificate, key)) => keys::read_pair(certificate, key)?,
        None => {
            keys::serving_pair(options.tls.cert_dir.as_deref(), &address::certificate_names(host))?
        }
    })
}

/// Where the serving pair is, for a refusal.
fn pair_files(options: &Options) -> String {
    match (&options.tls.pair, &options.tls.cert_dir) {
        (Some((certificate, key)), _) => {
            format!("serve with {} and {}", certificate.display(), key.display())
        }
        (None, Some(dir)) => format!(
            "serve with apiserver.crt and apiserver.key of {} (remove both, and new ones are made)",
            dir.display()
        ),
        (None, None) => "serve with a new certificate".to_owned(),
    }
}

fn tls_options(options: &Options, pair: &keys::Pair) -> Result<TlsOptions> {
    let pem =
        |pair: &keys::Pair| PemPair { chain: pair.certificate.clone(), key: pair.key.clone() };
    let read =
        |path: &PathBuf| std::fs::read(path).with_context(|| format!("read {}", path.display()));
    let sni = options.tls.sni.iter().map(|(certificate, key, names)| {
        Ok((names.clone(), pem(&keys::read_pair(certificate, key)?)))
    });
    Ok(TlsOptions {
        default: pem(pair),
        sni: sni.collect::<Result<_>>()?,
        client_ca: options.tls.client_ca.as_ref().map(read).transpose()?,
        min_version: if options.tls.tls13_only { "VersionTLS13".into() } else { String::new() },
        cipher_suites: options.tls.cipher_suites.clone(),
        curves: Vec::new(),
        http2: options.tls.http2,
    })
}

/// The CA bundle that is published in namespaces: the one given, else what clients verify us by.
fn root_ca(options: &Options, pair: &keys::Pair) -> Result<String> {
    let pem = match &options.root_ca {
        Some(path) => std::fs::read(path).with_context(|| format!("read {}", path.display()))?,
        None => pair.certificate.clone(),
    };
    String::from_utf8(pem).context("the root CA bundle is not text")
}

async fn open_store(options: &Options, root: Option<&RootDir>) -> Result<Arc<dyn Store>> {
    let tuning = Tuning {
        n_readers: N_READERS,
        ring_bytes_max: STORE_RING_BYTES,
        compact_interval: options.compact_interval,
        compact_keep: COMPACT_KEEP,
        compact_keep_revisions: COMPACT_KEEP_REVISIONS,
    };
    Ok(match (&options.store, root) {
        (StoreChoice::Postgres(dsn), _) => PostgresStore::open((**dsn).clone(), tuning).await?,
        (StoreChoice::Sqlite(path), _) => SqliteStore::open(path, tuning)?,
        (StoreChoice::Embedded, Some(root)) => SqliteStore::open(&root.store_file(), tuning)?,
        (StoreChoice::Embedded, None) => {
            unreachable!("options refuse embedded without a root directory")
        }
    })
}

fn health(informer: &Arc<Informer>, ready: &Arc<AtomicBool>) -> Health {
    let ready = ready.clone();
    let synced = informer.clone();
    let bootstrapped = Arc::new(move || match ready.load(Ordering::Acquire) {
        true => Ok(()),
        false => Err("not finished".to_owned()),
    });
    let informed = Arc::new(move || match synced.revision().0 {
        0 => Err("the store is not read yet".to_owned()),
        _ => Ok(()),
    });
    Health::new().with("informer-sync", Scope::Ready, informed).with(
        "poststarthook/kcp-bootstrap-policy",
        Scope::Ready,
        bootstrapped,
    )
}

/// What starts the controllers, as often as this server comes to lead.
fn controllers(
    surface: &Surface,
    informer: &Arc<Informer>,
    indexes: &Indexes,
    urls: &Urls,
    root_ca_pem: String,
) -> StartControllers {
    let (surface, informer, types) = (surface.clone(), informer.clone(), indexes.types.clone());
    let config = fp_controllers::world::Config {
        shard_name: SHARD.into(),
        base_url: urls.base.clone(),
        external_url: urls.external.clone(),
        virtual_workspace_url: urls.virtual_workspace.clone(),
        root_ca_pem,
    };
    Box::new(move |client| {
        let world = Arc::new(World {
            informer: informer.clone(),
            directory: surface.directory.clone(),
            resolver: surface.resolver.clone(),
            client,
            types: types.clone(),
            outlines: Default::default(),
            config: config.clone(),
        });
        routes::start(CONTROLLERS, &world, &informer)
    })
}

/// The one shard that is served.
const SHARD: &str = "root";

fn bootstrap_config(options: &Options, urls: &Urls) -> fp_kcp::bootstrap::Config {
    fp_kcp::bootstrap::Config {
        shard_name: SHARD.into(),
        base_url: urls.base.clone(),
        external_url: urls.external.clone(),
        virtual_workspace_url: urls.virtual_workspace.clone(),
        batteries: options.batteries.iter().cloned().collect(),
        home_creator_groups: options.home_creator_groups.clone(),
        now: fp_object::time::now(),
    }
}

/// With `--experimental-bind-free-port`: one line on stdout, and the file `port` in the root.
fn report_port(root: Option<&RootDir>, options: &Options, bound: SocketAddr) -> Result<()> {
    if options.port != 0 {
        return Ok(());
    }
    if let Some(root) = root {
        root_dir::write_atomically(
            &root.path().join("port"),
            format!("{}\n", bound.port()).as_bytes(),
            0o644,
        )?;
    }
    println!("{}", bound.port());
    Ok(())
}
