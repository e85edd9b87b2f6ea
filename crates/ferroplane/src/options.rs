//! What `start` was asked for, checked: every later step reads this, never a flag.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fp_store_sql::{Dsn, TlsFiles, shown_dsn};

use crate::flags::{Error, Given};
use crate::gates;

const BATTERIES: &[&str] = &["admin", "metrics-viewer", "user", "workspace-types"];
const BATTERIES_DEFAULT: &[&str] = &["admin", "workspace-types"];

/// Where bytes live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// SQLite, the file in the root directory.
    Embedded,
    Sqlite(PathBuf),
    Postgres(Box<Dsn>),
}

#[derive(Clone, Debug)]
pub struct Tls {
    /// The pair given by flags; else the one in `cert_dir`.
    pub pair: Option<(PathBuf, PathBuf)>,
    pub cert_dir: Option<PathBuf>,
    /// Certificate, key, and the names it is for (empty: its own).
    pub sni: Vec<(PathBuf, PathBuf, Vec<String>)>,
    pub tls13_only: bool,
    /// Go's names; empty is the default set.
    pub cipher_suites: Vec<String>,
    pub client_ca: Option<PathBuf>,
    pub http2: bool,
    pub h2_streams_max: u32,
}

/// The election of the server whose controllers run.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    pub namespace: String,
    pub name: String,
    pub lease_duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// `None`: no files.
    pub root: Option<PathBuf>,
    pub bind: IpAddr,
    /// 0 only with `--experimental-bind-free-port`.
    pub port: u16,
    pub external_hostname: Option<String>,
    pub shard_base_url: Option<String>,
    pub shard_external_url: Option<String>,
    pub shard_virtual_workspace_url: Option<String>,
    pub tls: Tls,
    pub service_account_keys: Vec<PathBuf>,
    pub root_ca: Option<PathBuf>,
    pub token_file: Option<PathBuf>,
    pub anonymous: bool,
    pub allow_paths: Vec<String>,
    pub kubeconfig: Option<PathBuf>,
    pub admin_token_store: Option<PathBuf>,
    pub batteries: Vec<String>,
    pub home_creator_groups: Vec<String>,
    pub store: StoreChoice,
    pub compact_interval: Option<Duration>,
    pub run_controllers: bool,
    /// `None`: this server leads always.
    pub election: Option<ElectionOptions>,
    pub shutdown_delay: Duration,
    pub json_logs: bool,
    pub verbosity: u8,
    /// `-v` was given: logs go to the terminal too.
    pub verbose: bool,
}

impl Options {
    /// Checks the flags. The strings are warning lines.
    pub fn from_flags(given: &Given<'_>) -> Result<(Self, Vec<String>), Error> {
        let mut warnings = given.check_classes()?;
        warnings.extend(gates::check(&given.list("feature-gates").unwrap_or_default())?);
        let root = match given.text("root-directory") {
            Some("") => None,
            Some(dir) => Some(PathBuf::from(dir)),
            None => Some(PathBuf::from(".kcp")),
        };
        if let Some(name) = given.set("shard-name")
            && name != "root"
        {
            return Err(Error::value(
                "shard-name",
                name,
                "only the root shard is served by this version",
            ));
        }
        let store = store_choice(given, root.is_some())?;
        let in_root = |file: &str| root.as_ref().map(|r| r.join(file));
        let options = Self {
            bind: address(given)?,
            port: port(given)?,
            external_hostname: given.set("external-hostname").map(str::to_owned),
            shard_base_url: url(given, "shard-base-url")?,
            shard_external_url: url(given, "shard-external-url")?,
            shard_virtual_workspace_url: url(given, "shard-virtual-workspace-url")?,
            tls: tls(given, root.as_deref())?,
            service_account_keys: service_account_keys(given),
            root_ca: given.set("root-ca-file").map(PathBuf::from),
            token_file: given.set("token-auth-file").map(PathBuf::from),
            anonymous: given.bool("anonymous-auth", true)?,
            allow_paths: given
                .list("authorization-always-allow-paths")
                .unwrap_or_else(|| ["/healthz", "/readyz", "/livez"].map(str::to_owned).into()),
            kubeconfig: in_root(given.set("kubeconfig-path").unwrap_or("admin.kubeconfig")),
            admin_token_store: in_root(
                given.set("authentication-admin-token-path").unwrap_or(".admin-token-store"),
            ),
            batteries: batteries(given.list("batteries-included").as_deref())?,
            home_creator_groups: given
                .list("home-workspaces-home-creator-groups")
                .unwrap_or_else(|| vec!["system:authenticated".into()]),
            store,
            compact_interval: Some(
                given.duration("etcd-compaction-interval", Duration::from_secs(300))?,
            )
            .filter(|d| !d.is_zero()),
            run_controllers: given.bool("run-controllers", true)?,
            election: election(given)?,
            shutdown_delay: given.duration("shutdown-delay-duration", Duration::ZERO)?,
            json_logs: json_logs(given)?,
            verbosity: given.number("v", 2)?,
            verbose: given.text("v").is_some(),
            root,
        };
        given.bool("enable-home-workspaces", true)?;
        Ok((options, warnings))
    }

    pub fn has_battery(&self, name: &str) -> bool {
        self.batteries.iter().any(|b| b == name)
    }
}

fn address(given: &Given<'_>) -> Result<IpAddr, Error> {
    let text = given.set("bind-address").unwrap_or("0.0.0.0");
    text.parse().map_err(|_| Error::value("bind-address", text, "is not an IP address"))
}

fn port(given: &Given<'_>) -> Result<u16, Error> {
    let port = given.number("secure-port", 6443)?;
    match (port, given.bool("experimental-bind-free-port", false)?) {
        (0, false) => Err(Error::value("secure-port", "0", "needs --experimental-bind-free-port")),
        (1.., true) => {
            Err(Error::value("experimental-bind-free-port", "true", "needs --secure-port=0"))
        }
        _ => Ok(port),
    }
}

fn url(given: &Given<'_>, flag: &'static str) -> Result<Option<String>, Error> {
    match given.set(flag) {
        None => Ok(None),
        Some(text) if text.starts_with("https://") && text.len() > "https://".len() => {
            Ok(Some(text.trim_end_matches('/').to_owned()))
        }
        Some(text) => Err(Error::value(flag, text, "is not an https:// URL")),
    }
}

fn tls(given: &Given<'_>, root: Option<&Path>) -> Result<Tls, Error> {
    let pair = match (given.set("tls-cert-file"), given.set("tls-private-key-file")) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (None, None) => None,
        (Some(cert), None) => {
            return Err(Error::value("tls-cert-file", cert, "needs --tls-private-key-file too"));
        }
        (None, Some(key)) => {
            return Err(Error::value("tls-private-key-file", key, "needs --tls-cert-file too"));
        }
    };
    let tls13_only = match given.set("tls-min-version") {
        None | Some("VersionTLS12") => false,
        Some("VersionTLS13") => true,
        Some(other) => {
            return Err(Error::value(
                "tls-min-version",
                other,
                "is not VersionTLS12 or VersionTLS13",
            ));
        }
    };
    Ok(Tls {
        pair,
        cert_dir: given.set("cert-dir").map(PathBuf::from).or_else(|| root.map(Path::to_owned)),
        sni: sni_pairs(given)?,
        tls13_only,
        cipher_suites: given.list("tls-cipher-suites").unwrap_or_default(),
        client_ca: given.set("client-ca-file").map(PathBuf::from),
        http2: !given.bool("disable-http2-serving", false)?,
        h2_streams_max: given.number("http2-max-streams-per-connection", 250)?,
    })
}

/// `cert,key` or `cert,key:name,name`, the flag repeated per pair (`NamedCertKey` of apiserver).
fn sni_pairs(given: &Given<'_>) -> Result<Vec<(PathBuf, PathBuf, Vec<String>)>, Error> {
    let values = given.0.get_many::<String>("tls-sni-cert-key");
    values
        .into_iter()
        .flatten()
        .map(|text| {
            let (pair, names) = text.split_once(':').unwrap_or((text, ""));
            let (cert, key) = pair.split_once(',').ok_or_else(|| {
                Error::value("tls-sni-cert-key", text, "is not cert,key or cert,key:names")
            })?;
            let names = names.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect();
            Ok((cert.into(), key.into(), names))
        })
        .collect()
}

fn service_account_keys(given: &Given<'_>) -> Vec<PathBuf> {
    let mut keys: Vec<PathBuf> = given
        .list("service-account-key-file")
        .unwrap_or_default()
        .iter()
        .map(PathBuf::from)
        .collect();
    for flag in ["service-account-private-key-file", "service-account-signing-key-file"] {
        keys.extend(given.set(flag).map(PathBuf::from));
    }
    keys
}

/// client-go's checks of the durations, and that the Lease can hold them. kcp fixes them at 60 s,
/// 5 s and 2 s; a lease of 8 s lets another server act within ten seconds of a crash.
fn election(given: &Given<'_>) -> Result<Option<ElectionOptions>, Error> {
    const LEASE: &str = "leader-election-lease-duration";
    const DEADLINE: &str = "leader-election-renew-deadline";
    const RETRY: &str = "leader-election-retry-period";
    let enabled = given.bool("enable-leader-election", false)?;
    let lease_duration = given.duration(LEASE, Duration::from_secs(8))?;
    let renew_deadline = given.duration(DEADLINE, Duration::from_secs(5))?;
    let retry_period = given.duration(RETRY, Duration::from_secs(2))?;
    let refused = |flag, value: Duration, why: &str| Error::value(flag, format!("{value:?}"), why);
    if lease_duration.subsec_nanos() != 0 || lease_duration.is_zero() {
        return Err(refused(LEASE, lease_duration, "is not whole seconds, at least one"));
    }
    if renew_deadline >= lease_duration {
        let why = "must be shorter than --leader-election-lease-duration";
        return Err(refused(DEADLINE, renew_deadline, why));
    }
    // client-go's JitterFactor.
    if retry_period.is_zero() || retry_period.mul_f64(1.2) >= renew_deadline {
        let why =
            "must be above zero, and 1.2 times it shorter than --leader-election-renew-deadline";
        return Err(refused(RETRY, retry_period, why));
    }
    let text = |flag: &'static str, default: &str| given.set(flag).unwrap_or(default).to_owned();
    Ok(enabled.then(|| ElectionOptions {
        namespace: text("leader-election-namespace", "kube-system"),
        name: text("leader-election-name", "kcp-controllers"),
        lease_duration,
        renew_deadline,
        retry_period,
    }))
}

fn json_logs(given: &Given<'_>) -> Result<bool, Error> {
    match given.set("logging-format") {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(Error::value("logging-format", other, "is not text or json")),
    }
}

fn store_choice(given: &Given<'_>, has_root: bool) -> Result<StoreChoice, Error> {
    let flag = "etcd-servers";
    let servers = given.list(flag);
    let text = match servers.as_deref() {
        None | Some([]) => "embedded",
        Some([one]) => one.as_str(),
        // A list of hosts in one URL was taken apart at its commas.
        Some([first, ..]) if is_postgres(first) => {
            &servers.as_deref().unwrap_or_default().join(",")
        }
        Some(more) => {
            return Err(Error::value(
                flag,
                more.join(","),
                "etcd is not built yet; give one store",
            ));
        }
    };
    if is_postgres(text) {
        return postgres(given, text);
    }
    for flag in TLS_FLAGS {
        if let Some(file) = given.set(flag) {
            return Err(Error::value(flag, file, "is for a store at postgres://"));
        }
    }
    let scheme = text.split_once("://").map(|(s, _)| s);
    match (text, scheme) {
        ("embedded", _) if has_root => Ok(StoreChoice::Embedded),
        ("embedded", _) => Err(Error::value(
            flag,
            text,
            "with an empty --root-directory there is no place for it; give sqlite://<file> or postgres://...",
        )),
        (_, Some("sqlite")) => {
            let path = text["sqlite://".len()..].split('?').next().unwrap_or_default();
            if path.is_empty() {
                return Err(Error::value(flag, text, "names no file; write sqlite://<file>"));
            }
            Ok(StoreChoice::Sqlite(path.into()))
        }
        (_, Some(s @ ("mysql" | "nats" | "t4"))) => Err(Error::value(
            flag,
            shown_dsn(text),
            format!("{s} is not supported; use embedded, sqlite://<file> or postgres://..."),
        )),
        _ => Err(Error::value(
            flag,
            text,
            "etcd is not built yet; use embedded, sqlite://<file> or postgres://...",
        )),
    }
}

/// As kine uses them: TLS to the database.
const TLS_FLAGS: [&str; 3] = ["etcd-cafile", "etcd-certfile", "etcd-keyfile"];

fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

fn postgres(given: &Given<'_>, text: &str) -> Result<StoreChoice, Error> {
    let [ca, certificate, key] = TLS_FLAGS.map(|flag| given.set(flag).map(PathBuf::from));
    let tls = TlsFiles { ca, certificate, key };
    let password = std::env::var("PGPASSWORD").ok();
    match Dsn::parse(text, tls, password.as_deref()) {
        Ok(dsn) => Ok(StoreChoice::Postgres(dsn.into())),
        Err(e) => Err(Error::value("etcd-servers", shown_dsn(text), e.what())),
    }
}

/// Entries are all plain names, or all `+name`/`-name` that change the default.
fn batteries(given: Option<&[String]>) -> Result<Vec<String>, Error> {
    let flag = "batteries-included";
    let default = || BATTERIES_DEFAULT.iter().map(|b| (*b).to_owned());
    let Some(given) = given else { return Ok(default().collect()) };
    let signed = given.iter().filter(|b| b.starts_with(['+', '-'])).count();
    if signed != 0 && signed != given.len() {
        return Err(Error::value(
            flag,
            given.join(","),
            "either all entries begin with + or -, or none does",
        ));
    }
    let mut set: Vec<String> = if signed > 0 { default().collect() } else { Vec::new() };
    for entry in given {
        let name = entry.trim_start_matches(['+', '-']);
        if !BATTERIES.contains(&name) {
            let why = format!("unknown battery {name}; known are {}", BATTERIES.join(", "));
            return Err(Error::value(flag, entry.clone(), why));
        }
        set.retain(|b| b != name);
        if !entry.starts_with('-') {
            set.push(name.to_owned());
        }
    }
    if set.iter().any(|b| b == "user") && !set.iter().any(|b| b == "admin") {
        return Err(Error::value(flag, given.join(","), "battery user needs battery admin"));
    }
    set.sort();
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], want: &str) {
        let m = crate::flags::command()
            .try_get_matches_from(std::iter::once(&"start").chain(args))
            .unwrap();
        let got = match Options::from_flags(&Given(&m)) {
            Ok((o, w)) => format!("{:?} {} {:?} {}", o.store, o.port, o.batteries, w.join("; ")),
            Err(error) => error.to_string(),
        };
        assert_eq!(got.trim(), want, "{args:?}");
    }

    #[test]
    fn options() {
        check(&[], r#"Embedded 6443 ["admin", "workspace-types"]"#);
        check(
            &["--etcd-servers=sqlite:///a/b.db?_journal=WAL", "--root-directory="],
            r#"Sqlite("/a/b.db") 6443 ["admin", "workspace-types"]"#,
        );
        check(
            &["--root-directory="],
            "--etcd-servers=embedded: with an empty --root-directory there is no place for it; give sqlite://<file> or postgres://...",
        );
        check(
            &["--etcd-servers=mysql://x"],
            "--etcd-servers=mysql://x: mysql is not supported; use embedded, sqlite://<file> or postgres://...",
        );
        check(
            &["--etcd-servers=https://127.0.0.1:2379"],
            "--etcd-servers=https://127.0.0.1:2379: etcd is not built yet; use embedded, sqlite://<file> or postgres://...",
        );
        check(
            &["--etcd-servers=postgres://u:secret@a,b/kine?sslmode=disable", "--root-directory="],
            r#"Postgres("postgres://u@a,b/kine?sslmode=disable") 6443 ["admin", "workspace-types"]"#,
        );
        check(
            &["--etcd-servers=postgresql://u:secret@a/kine?sslmode=verify-full"],
            "--etcd-servers=postgresql://u@a/kine?sslmode=verify-full: sslmode=verify-full needs sslrootcert=<file> or --etcd-cafile",
        );
        check(
            &["--etcd-servers=postgres://u:secret@a/kine", "--etcd-certfile=/c"],
            "--etcd-servers=postgres://u@a/kine: sslmode=verify-full needs sslrootcert=<file> or --etcd-cafile",
        );
        check(&["--etcd-cafile=/c"], "--etcd-cafile=/c: is for a store at postgres://");
        check(
            &["--leader-election-lease-duration=1500ms"],
            "--leader-election-lease-duration=1.5s: is not whole seconds, at least one",
        );
        check(
            &["--leader-election-lease-duration=4s"],
            "--leader-election-renew-deadline=5s: must be shorter than --leader-election-lease-duration",
        );
        check(
            &["--leader-election-renew-deadline=2s"],
            "--leader-election-retry-period=2s: must be above zero, and 1.2 times it shorter than --leader-election-renew-deadline",
        );
        check(&["--secure-port=0"], "--secure-port=0: needs --experimental-bind-free-port");
        check(
            &["--batteries-included=+user,-workspace-types"],
            r#"Embedded 6443 ["admin", "user"]"#,
        );
        check(
            &["--batteries-included=user"],
            "--batteries-included=user: battery user needs battery admin",
        );
        check(
            &["--batteries-included=+user,admin"],
            "--batteries-included=+user,admin: either all entries begin with + or -, or none does",
        );
        check(
            &[
                "--feature-gates=CacheAPIs=true,WatchList=true",
                "--feature-gates=WorkspaceMounts=false",
            ],
            r#"Embedded 6443 ["admin", "workspace-types"] feature gate CacheAPIs is not built yet and stays off"#,
        );
        check(
            &["--feature-gates=Nope=true"],
            "--feature-gates=Nope=true: unrecognized feature gate: Nope",
        );
        check(
            &["--shard-name=other"],
            "--shard-name=other: only the root shard is served by this version",
        );
        check(&["--tls-cert-file=x"], "--tls-cert-file=x: needs --tls-private-key-file too");
    }
}
