//! What `store` was asked for, checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use fp_store_sql::{Dsn, shown_dsn};

use super::flags::Given;
use crate::flags::Error;

/// kine's file when none is named.
const DEFAULT_FILE: &str = "./db/state.db";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Nothing is kept.
    Memory,
    Sqlite(PathBuf),
    Postgres(Box<Dsn>),
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory://"),
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(dsn) => dsn.fmt(f),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsListen {
    Off,
    /// `given`: somebody wants this very address.
    On {
        addr: SocketAddr,
        given: bool,
    },
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    pub trusted_ca: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: Listen,
    pub backend: Backend,
    pub tls: Option<TlsFiles>,
    pub metrics: MetricsListen,
    pub metrics_ignore_tls: bool,
    pub progress_interval: Duration,
    pub version: String,
    pub compact_interval: Option<Duration>,
    pub compact_min_retain: u32,
    pub json_logs: bool,
    pub debug: bool,
}

impl Options {
    /// The options, and warnings about flags that do nothing here.
    pub fn from_flags(given: &Given<'_>) -> Result<(Self, Vec<String>), Error> {
        let backend = backend(given, &given.text("endpoint"))?;
        let warnings = given.check_classes()?;
        let (listen, wants_tls) = listen(&given.text("listen-address"))?;
        let tls = tls(given)?;
        if wants_tls && tls.is_none() {
            let why = "needs --server-cert-file and --server-key-file";
            return Err(Error::value("listen-address", given.text("listen-address"), why));
        }
        let interval = given.duration("compact-interval")?;
        let progress_interval = given.duration("watch-progress-notify-interval")?;
        if progress_interval.is_zero() {
            let (flag, why) = ("watch-progress-notify-interval", "is not longer than nothing");
            return Err(Error::value(flag, given.text(flag), why));
        }
        let retain = given.text("compact-min-retain");
        let options = Self {
            listen,
            backend,
            tls,
            metrics: metrics(given)?,
            metrics_ignore_tls: given.bool("metrics-ignore-tls-config")?,
            progress_interval,
            version: version(given.text("emulated-etcd-version"))?,
            compact_interval: (!interval.is_zero()).then_some(interval),
            compact_min_retain: retain.parse().map_err(|_| {
                Error::value("compact-min-retain", retain, "is not a number in range")
            })?,
            json_logs: match given.text("log-format").as_str() {
                "plain" => false,
                "json" => true,
                other => return Err(Error::value("log-format", other, "is not plain or json")),
            },
            debug: given.bool("debug")?,
        };
        Ok((options, warnings))
    }
}

/// Where to listen, and whether the text says TLS.
fn listen(text: &str) -> Result<(Listen, bool), Error> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
    match scheme {
        "unix" if rest.is_empty() => {
            Err(Error::value("listen-address", text, "names no file; write unix://<path>"))
        }
        "unix" => Ok((Listen::Unix(rest.into()), false)),
        "tcp" | "http" | "https" => {
            let addr = address("listen-address", rest.trim_end_matches('/'))?;
            Ok((Listen::Tcp(addr), scheme == "https"))
        }
        _ => {
            Err(Error::value("listen-address", text, "is not host:port, http, https, tcp or unix"))
        }
    }
}

fn address(flag: &'static str, text: &str) -> Result<SocketAddr, Error> {
    if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| Error::value(flag, text, "is not an address of the form host:port"))
}

/// As kine uses them: TLS to the database.
const DATABASE_FLAGS: [&str; 3] = ["ca-file", "cert-file", "key-file"];

fn postgres(given: &Given<'_>, text: &str) -> Result<Backend, Error> {
    let [ca, certificate, key] = DATABASE_FLAGS.map(|flag| given.set(flag).map(PathBuf::from));
    let tls = fp_store_sql::TlsFiles { ca, certificate, key };
    let password = std::env::var("PGPASSWORD").ok();
    match Dsn::parse(text, tls, password.as_deref()) {
        Ok(dsn) => Ok(Backend::Postgres(dsn.into())),
        Err(e) => Err(Error::value("endpoint", shown_dsn(text), e.what())),
    }
}

pub fn backend(given: &Given<'_>, text: &str) -> Result<Backend, Error> {
    let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
    if matches!(scheme, "postgres" | "postgresql") {
        return postgres(given, text);
    }
    if let Some((flag, file)) = DATABASE_FLAGS.iter().find_map(|f| Some((*f, given.set(f)?))) {
        return Err(Error::value(flag, file, "is for a store at postgres://"));
    }
    let refused = |why: &str| Err(Error::value("endpoint", text, why));
    match scheme {
        "sqlite" => {
            let path = rest.split('?').next().unwrap_or_default();
            let path = if path.is_empty() { DEFAULT_FILE } else { path };
            if path == ":memory:" {
                return refused("write memory:// for a store that keeps nothing");
            }
            Ok(Backend::Sqlite(path.into()))
        }
        "memory" => Ok(Backend::Memory),
        "mysql" | "nats" | "jetstream" | "t4" => {
            refused("this kind of store is not supported; use sqlite://<file> or postgres://...")
        }
        "http" | "https" | "etcd3" => {
            refused("an etcd behind this endpoint is not built; clients can use that etcd itself")
        }
        _ => refused("is no store; use sqlite://<file>, postgres://... or memory://"),
    }
}

fn tls(given: &Given<'_>) -> Result<Option<TlsFiles>, Error> {
    let path = |name| given.set(name).map(PathBuf::from);
    let trusted_ca = path("trusted-ca-file");
    match (path("server-cert-file"), path("server-key-file")) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key, trusted_ca })),
        (None, None) => match trusted_ca {
            None => Ok(None),
            Some(ca) => {
                let why = "needs --server-cert-file and --server-key-file";
                Err(Error::value("trusted-ca-file", ca.display().to_string(), why))
            }
        },
        (Some(cert), None) => {
            let cert = cert.display().to_string();
            Err(Error::value("server-cert-file", cert, "needs --server-key-file"))
        }
        (None, Some(key)) => {
            let key = key.display().to_string();
            Err(Error::value("server-key-file", key, "needs --server-cert-file"))
        }
    }
}

fn metrics(given: &Given<'_>) -> Result<MetricsListen, Error> {
    let flag = "metrics-bind-address";
    match given.text(flag).as_str() {
        "0" => Ok(MetricsListen::Off),
        text => {
            Ok(MetricsListen::On { addr: address(flag, text)?, given: given.set(flag).is_some() })
        }
    }
}

/// Kubernetes parses it, and asks for progress only where it is new enough.
fn version(text: String) -> Result<String, Error> {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    match text.split('.').collect::<Vec<_>>()[..] {
        [major, minor, patch] if [major, minor, patch].iter().all(|p| is_number(p)) => Ok(text),
        _ => Err(Error::value("emulated-etcd-version", text, "is not of the form 3.6.11")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::flags::{FLAGS, command};
    use super::*;

    fn check(args: &[&str], variables: &[(&str, &str)], want: Expect) {
        let args = std::iter::once(&"store").chain(args);
        let matches = command().try_get_matches_from(args).expect("flags of the table");
        let variable = |name: &str| {
            variables.iter().find(|(v, _)| *v == name).map(|(_, value)| (*value).to_owned())
        };
        let given = Given { matches: &matches, variable: &variable };
        let shown = match Options::from_flags(&given) {
            Err(error) => error.to_string(),
            Ok((o, warnings)) => {
                let tls = o.tls.map(|tls| tls.cert.display().to_string());
                let (listen, metrics) = (o.listen, o.metrics);
                let interval = o.compact_interval;
                format!("{listen:?} {} {tls:?} {metrics:?} {interval:?} {warnings:?}", o.backend)
            }
        };
        want.assert_eq(&shown);
    }

    #[test]
    fn forms() {
        check(
            &[],
            &[],
            expect![
                "Tcp(0.0.0.0:2379) sqlite://./db/state.db None On { addr: 0.0.0.0:8080, given: false } None []"
            ],
        );
        check(
            &["--listen-address=unix:///run/kine.sock", "--metrics-bind-address=0"],
            &[],
            expect![[r#"Unix("/run/kine.sock") sqlite://./db/state.db None Off None []"#]],
        );
        check(
            &["--listen-address", "http://127.0.0.1:1", "--endpoint=sqlite:///a/b.db?_journal=WAL"],
            &[("KINE_LISTEN_ADDRESS", "127.0.0.1:2"), ("KINE_METRICS_BIND_ADDRESS", "127.0.0.1:3")],
            expect![
                "Tcp(127.0.0.1:1) sqlite:///a/b.db None On { addr: 127.0.0.1:3, given: true } None []"
            ],
        );
        check(
            &["--server-cert-file=c", "--server-key-file=k", "--compact-interval=5m"],
            &[("KINE_ENDPOINT", "memory://"), ("KINE_POLL_BATCH_SIZE", "7")],
            expect![[
                r#"Tcp(0.0.0.0:2379) memory:// Some("c") On { addr: 0.0.0.0:8080, given: false } Some(300s) ["--poll-batch-size has no effect here: nothing is polled: commits are told to watchers"]"#
            ]],
        );
    }

    #[test]
    fn refusals() {
        let refused = |args: &[&str], want| check(args, &[], want);
        refused(
            &["--endpoint=postgres://u:secret@h/d?sslmode=what"],
            expect![
                "--endpoint=postgres://u@h/d?sslmode=what: sslmode=what is not disable, allow, prefer, require, verify-ca or verify-full"
            ],
        );
        refused(&["--ca-file=c"], expect!["--ca-file=c: is for a store at postgres://"]);
        refused(
            &["--endpoint=nats://h"],
            expect![
                "--endpoint=nats://h: this kind of store is not supported; use sqlite://<file> or postgres://..."
            ],
        );
        refused(
            &["--endpoint=what"],
            expect![
                "--endpoint=what: is no store; use sqlite://<file>, postgres://... or memory://"
            ],
        );
        refused(
            &["--s3-bucket=b"],
            expect!["--s3-bucket=b: it belongs to kine's t4 driver, which is not supported"],
        );
        refused(
            &["--listen-address=https://127.0.0.1:1"],
            expect![
                "--listen-address=https://127.0.0.1:1: needs --server-cert-file and --server-key-file"
            ],
        );
        refused(
            &["--listen-address=127.0.0.1"],
            expect!["--listen-address=127.0.0.1: is not an address of the form host:port"],
        );
        refused(
            &["--server-cert-file=c"],
            expect!["--server-cert-file=c: needs --server-key-file"],
        );
        refused(
            &["--trusted-ca-file=c"],
            expect!["--trusted-ca-file=c: needs --server-cert-file and --server-key-file"],
        );
        refused(
            &["--emulated-etcd-version=3.6"],
            expect!["--emulated-etcd-version=3.6: is not of the form 3.6.11"],
        );
        refused(&["--log-format=xml"], expect!["--log-format=xml: is not plain or json"]);
        refused(
            &["--watch-progress-notify-interval=0"],
            expect!["--watch-progress-notify-interval=0: is not longer than nothing"],
        );
        check(
            &[],
            &[("KINE_METRICS_ENABLE_PROFILING", "true")],
            expect!["--metrics-enable-profiling=true: there is no Go profiler in this program"],
        );
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = FLAGS.iter().map(|flag| flag.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FLAGS.len());
    }
}
