//! The flags of `start`: kcp's names, each in one of three classes.
//!
//! Source of names and defaults: `kcp start options` (kcp's `pkg/server/options`).

use clap::{Arg, ArgAction, ArgMatches, Command};

/// What we do with a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It acts.
    Acts,
    /// It has no meaning here: accepted, with one warning line.
    NoMeaning,
    /// Its feature comes later: accepted, with one warning line that says so.
    Later,
    /// Its feature is not here yet: refused by name.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// Takes a value; the last one counts.
    Value,
    /// Takes comma-separated values and may be repeated.
    List,
}

pub struct Flag {
    pub name: &'static str,
    pub kind: Kind,
    pub class: Class,
    /// As `--help` shows it.
    pub default: &'static str,
    pub help: &'static str,
}

const fn acts(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, kind, class: Class::Acts, default, help }
}

const fn other(class: Class, name: &'static str, kind: Kind) -> Flag {
    Flag { name, kind, class, default: "", help: "" }
}

use Class::{Later, NoMeaning, Refused};
use Kind::{Bool, List, Value};

/// Flags that act.
const ACTING: &[Flag] = &[
    acts(
        "root-directory",
        Value,
        ".kcp",
        "Where files are kept. Empty: no files, and --etcd-servers must be given",
    ),
    acts("bind-address", Value, "0.0.0.0", "The address to serve on"),
    acts("secure-port", Value, "6443", "The port to serve on"),
    acts(
        "experimental-bind-free-port",
        Bool,
        "false",
        "Serve on a free port; needs --secure-port=0. It is printed and written to <root>/port",
    ),
    acts("external-hostname", Value, "", "The host name under which clients reach this server"),
    acts("shard-name", Value, "root", "The name of this shard; only 'root' is served yet"),
    acts("shard-base-url", Value, "", "The URL of this shard for other shards"),
    acts("shard-external-url", Value, "", "The URL that users see"),
    acts("shard-virtual-workspace-url", Value, "", "The base URL of virtual workspaces"),
    acts(
        "cert-dir",
        Value,
        "<root-directory>",
        "Where apiserver.crt and apiserver.key are, unless --tls-* are given",
    ),
    acts("tls-cert-file", Value, "", "The serving certificate, PEM"),
    acts("tls-private-key-file", Value, "", "The serving key, PEM"),
    acts("tls-sni-cert-key", List, "", "Further serving pairs, cert,key[:name,...]"),
    acts("tls-min-version", Value, "VersionTLS12", "VersionTLS12 or VersionTLS13"),
    acts("tls-cipher-suites", List, "", "TLS 1.2 cipher suites to offer, by Go's names"),
    acts(
        "service-account-key-file",
        List,
        "",
        "Keys that verify service account tokens; checked at start",
    ),
    acts(
        "service-account-private-key-file",
        Value,
        "",
        "The key that signs service account tokens; checked at start",
    ),
    acts("service-account-signing-key-file", Value, "", "As --service-account-private-key-file"),
    acts(
        "root-ca-file",
        Value,
        "",
        "The CA bundle published in every namespace; default: the serving CA",
    ),
    acts("token-auth-file", Value, "", "CSV of token,user,uid,groups"),
    acts("client-ca-file", Value, "", "CAs whose client certificates authenticate"),
    acts("anonymous-auth", Bool, "true", "Requests without credentials are system:anonymous"),
    acts(
        "authorization-always-allow-paths",
        List,
        "/healthz,/readyz,/livez",
        "Paths that need no authorization",
    ),
    acts(
        "kubeconfig-path",
        Value,
        "admin.kubeconfig",
        "Where the admin kubeconfig is written, relative to the root directory",
    ),
    acts(
        "authentication-admin-token-path",
        Value,
        ".admin-token-store",
        "Where the shard admin token's hash is kept",
    ),
    acts(
        "batteries-included",
        List,
        "admin,workspace-types",
        "Bootstrap content: admin, user, workspace-types, metrics-viewer; +x and -x change the default",
    ),
    acts(
        "feature-gates",
        List,
        "",
        "Name=true|false pairs; gates that are not built give one warning line",
    ),
    acts(
        "etcd-servers",
        List,
        "embedded",
        "The store: 'embedded' (SQLite under the root directory), sqlite://<file>, or postgres://user:password@host:port/database with libpq's sslmode, sslrootcert, sslcert, sslkey and options",
    ),
    acts("etcd-cafile", Value, "", "The authority of a PostgreSQL store's certificate"),
    acts("etcd-certfile", Value, "", "The client certificate for a PostgreSQL store"),
    acts("etcd-keyfile", Value, "", "The key of --etcd-certfile"),
    acts("etcd-compaction-interval", Value, "5m0s", "How often history is compacted; 0 is never"),
    acts("run-controllers", Bool, "true", "Run the controllers in this process"),
    acts(
        "enable-leader-election",
        Bool,
        "false",
        "Of the servers on one store with this flag, only the elected leader bootstraps and runs the controllers",
    ),
    acts(
        "leader-election-namespace",
        Value,
        "kube-system",
        "The namespace of the election's Lease, in system:admin",
    ),
    acts("leader-election-name", Value, "kcp-controllers", "The name of the election's Lease"),
    acts(
        "leader-election-lease-duration",
        Value,
        "8s",
        "How long the others wait for a leader that does not renew; whole seconds",
    ),
    acts(
        "leader-election-renew-deadline",
        Value,
        "5s",
        "A leader that has not renewed for this long steps down",
    ),
    acts(
        "leader-election-retry-period",
        Value,
        "2s",
        "How often a leader renews, and one that failed tries again",
    ),
    acts(
        "home-workspaces-home-creator-groups",
        List,
        "system:authenticated",
        "Groups that may create home workspaces",
    ),
    acts(
        "enable-home-workspaces",
        Bool,
        "true",
        "Accepted for its RBAC content; home workspaces themselves come later",
    ),
    acts(
        "http2-max-streams-per-connection",
        Value,
        "250",
        "Concurrent streams of an HTTP/2 connection",
    ),
    acts("disable-http2-serving", Bool, "false", "Serve HTTP/1.1 only"),
    acts("shutdown-delay-duration", Value, "0s", "How long to serve on after SIGTERM, not ready"),
    acts("logging-format", Value, "text", "text or json"),
    acts("v", Value, "2", "Log verbosity"),
];

const PLAIN: &[(Class, Kind, &[&str])] = &[
    (
        NoMeaning,
        Value,
        &[
            "embedded-etcd-directory",
            "embedded-etcd-peer-port",
            "embedded-etcd-client-port",
            "embedded-etcd-wal-size-bytes",
            "embedded-etcd-quota-backend-bytes",
            "event-ttl",
            "storage-backend",
            "storage-media-type",
            "storage-initialization-timeout",
            "lease-reuse-duration-seconds",
            "etcd-count-metric-poll-period",
            "etcd-db-metric-poll-interval",
            "etcd-healthcheck-timeout",
            "etcd-readycheck-timeout",
            "concurrent-serviceaccount-token-syncs",
            "coordinated-leadership-lease-duration",
            "coordinated-leadership-renew-deadline",
            "coordinated-leadership-retry-period",
            "livez-grace-period",
            "log-flush-frequency",
            "vmodule",
            "show-hidden-metrics-for-version",
            "allow-metric-labels-manifest",
            "conversion-cel-transformation-timeout",
            "logical-cluster-object-count-scan-interval",
            "max-connection-bytes-per-sec",
            "unsupported-run-individual-controllers",
        ],
    ),
    (
        NoMeaning,
        List,
        &[
            "embedded-etcd-listen-metrics-urls",
            "watch-cache-sizes",
            "allow-metric-labels",
            "disabled-metrics",
            "tls-curve-preferences",
            "emulated-version",
        ],
    ),
    (
        NoMeaning,
        Bool,
        &[
            "embedded-etcd-force-new-cluster",
            "watch-cache",
            "contention-profiling",
            "enable-logs-handler",
            "permit-address-sharing",
            "permit-port-sharing",
            "service-account-extend-token-expiration",
            "service-account-lookup",
        ],
    ),
    (
        Later,
        Value,
        &[
            "audit-log-batch-buffer-size",
            "audit-log-batch-max-size",
            "audit-log-batch-max-wait",
            "audit-log-batch-throttle-burst",
            "audit-log-batch-throttle-qps",
            "audit-log-format",
            "audit-log-maxage",
            "audit-log-maxbackup",
            "audit-log-maxsize",
            "audit-log-mode",
            "audit-log-path",
            "audit-log-truncate-max-batch-size",
            "audit-log-truncate-max-event-size",
            "audit-log-version",
            "audit-policy-file",
            "audit-webhook-batch-buffer-size",
            "audit-webhook-batch-initial-backoff",
            "audit-webhook-batch-max-size",
            "audit-webhook-batch-max-wait",
            "audit-webhook-batch-throttle-burst",
            "audit-webhook-batch-throttle-qps",
            "audit-webhook-config-file",
            "audit-webhook-initial-backoff",
            "audit-webhook-mode",
            "audit-webhook-truncate-max-batch-size",
            "audit-webhook-truncate-max-event-size",
            "audit-webhook-version",
        ],
    ),
    (
        Later,
        Bool,
        &[
            "audit-log-batch-throttle-enable",
            "audit-log-compress",
            "audit-log-truncate-enabled",
            "audit-webhook-batch-throttle-enable",
            "audit-webhook-truncate-enabled",
            "run-virtual-workspaces",
            "profiling",
        ],
    ),
    (
        Refused,
        Value,
        &[
            "miniproxy-mapping-file",
            "profiler-address",
            "shard-kubeconfig-file",
            "root-shard-kubeconfig-file",
            "shard-virtual-workspace-ca-file",
            "shard-client-cert-file",
            "shard-client-key-file",
            "mount-proxy-client-cert-file",
            "mount-proxy-client-key-file",
            "logical-cluster-admin-kubeconfig",
            "external-logical-cluster-admin-kubeconfig",
            "root-identities-file",
            "logical-cluster-total-object-limit",
            "authorization-webhook-config-file",
            "authorization-webhook-version",
            "authorization-webhook-cache-authorized-ttl",
            "authorization-webhook-cache-unauthorized-ttl",
            "cache-kubeconfig",
            "cache-server-kubeconfig-file",
            "authentication-config",
            "authentication-token-webhook-cache-ttl",
            "authentication-token-webhook-config-file",
            "authentication-token-webhook-version",
            "oidc-ca-file",
            "oidc-client-id",
            "oidc-groups-claim",
            "oidc-groups-prefix",
            "oidc-issuer-url",
            "oidc-required-claim",
            "oidc-username-claim",
            "oidc-username-prefix",
            "requestheader-client-ca-file",
            "service-account-issuer",
            "service-account-jwks-uri",
            "service-account-max-token-expiration",
            "service-account-signing-endpoint",
            "tracing-config-file",
            "goaway-chance",
            "shutdown-watch-termination-grace-period",
            "encryption-provider-config",
            "etcd-prefix",
            "debug-socket-path",
            "proxy-client-cert-file",
            "proxy-client-key-file",
        ],
    ),
    (
        Refused,
        List,
        &[
            "authorization-order",
            "api-audiences",
            "oidc-signing-algs",
            "requestheader-allowed-names",
            "requestheader-extra-headers-prefix",
            "requestheader-group-headers",
            "requestheader-username-headers",
            "requestheader-uid-headers",
            "cors-allowed-origins",
            "strict-transport-security-directives",
            "etcd-servers-overrides",
        ],
    ),
    (
        Refused,
        Bool,
        &[
            "enable-bootstrap-token-auth",
            "shutdown-send-retry-after",
            "encryption-provider-config-automatic-reload",
        ],
    ),
];

/// Every flag.
pub fn all() -> impl Iterator<Item = Flag> {
    let acting = ACTING.iter().map(|f| acts(f.name, f.kind, f.default, f.help));
    let plain =
        PLAIN.iter().flat_map(|(class, kind, names)| names.iter().map(|n| other(*class, n, *kind)));
    acting.chain(plain)
}

/// The command line of `start`.
pub fn command() -> Command {
    let args = all().map(|flag| {
        let mut arg =
            Arg::new(flag.name).long(flag.name).help(help(&flag)).action(ArgAction::Append);
        arg = match flag.kind {
            Bool => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_name("true|false"),
            Value | List => {
                arg.num_args(1).allow_hyphen_values(true).value_name(flag.kind.value_name())
            }
        };
        if flag.name == "v" { arg.short('v') } else { arg }
    });
    Command::new("start")
        .about("Starts the control plane")
        .args(args)
        .subcommand(Command::new("options").about("Prints every flag"))
}

impl Kind {
    fn value_name(self) -> &'static str {
        match self {
            Bool => "true|false",
            Value => "VALUE",
            List => "A,B,...",
        }
    }
}

fn help(flag: &Flag) -> String {
    match flag.class {
        Class::Acts if flag.default.is_empty() => flag.help.to_owned(),
        Class::Acts => format!("{} [default: {}]", flag.help, flag.default),
        Class::NoMeaning => "accepted for kcp's sake, without effect".into(),
        Class::Later => "accepted, without effect until its part is built".into(),
        Class::Refused => "not available in this version".into(),
    }
}

/// The flags as given, read by name.
pub struct Given<'a>(pub &'a ArgMatches);

/// A flag that cannot be used as it is given.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("--{0} is not available in this version of Ferroplane")]
    NotBuilt(&'static str),
    #[error("--{flag}={value}: {why}")]
    Value { flag: &'static str, value: String, why: String },
}

impl Error {
    pub fn value(flag: &'static str, value: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Value { flag, value: value.into(), why: why.into() }
    }
}

impl Given<'_> {
    /// The last value given.
    pub fn text(&self, flag: &'static str) -> Option<&str> {
        self.0.get_many::<String>(flag)?.next_back().map(String::as_str)
    }

    /// Like [`Given::text`]; an empty value counts as none.
    pub fn set(&self, flag: &'static str) -> Option<&str> {
        self.text(flag).filter(|t| !t.is_empty())
    }

    pub fn list(&self, flag: &'static str) -> Option<Vec<String>> {
        let values = self.0.get_many::<String>(flag)?;
        let items = values.flat_map(|v| v.split(',')).map(|s| s.trim().to_owned());
        Some(items.filter(|s| !s.is_empty()).collect())
    }

    pub fn bool(&self, flag: &'static str, default: bool) -> Result<bool, Error> {
        match self.text(flag) {
            None => Ok(default),
            Some("true" | "t" | "T" | "TRUE" | "True" | "1") => Ok(true),
            Some("false" | "f" | "F" | "FALSE" | "False" | "0") => Ok(false),
            Some(other) => Err(Error::value(flag, other, "is not true or false")),
        }
    }

    pub fn number<T: std::str::FromStr>(&self, flag: &'static str, default: T) -> Result<T, Error> {
        match self.set(flag) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| Error::value(flag, text, "is not a number in range"))
            }
        }
    }

    pub fn duration(
        &self,
        flag: &'static str,
        default: std::time::Duration,
    ) -> Result<std::time::Duration, Error> {
        match self.set(flag) {
            None => Ok(default),
            Some(text) => parse_duration(text).ok_or_else(|| {
                Error::value(flag, text, "is not a duration such as 1h30m, 45s or 500ms")
            }),
        }
    }

    /// The warning lines of accepted flags, or the first refusal.
    pub fn check_classes(&self) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        let mut later = Vec::new();
        for flag in all() {
            let Some(value) = self.text(flag.name) else { continue };
            match flag.class {
                Class::Acts => {}
                Class::NoMeaning => warnings.push(format!("--{} has no effect here", flag.name)),
                Class::Later => later.push(format!("--{}", flag.name)),
                // kcp's own defaults may be spelled out.
                Class::Refused if value.is_empty() || (flag.kind == Bool && value == "false") => {}
                Class::Refused => return Err(Error::NotBuilt(flag.name)),
            }
        }
        if !later.is_empty() {
            warnings.push(format!(
                "{}: accepted, without effect until that part is built",
                later.join(", ")
            ));
        }
        Ok(warnings)
    }
}

/// A Go duration: `1h0m0s`, `1.5s`, `250ms`.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    if text == "0" {
        return Some(std::time::Duration::ZERO);
    }
    let mut rest = text;
    let mut secs = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end =
            rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |i| digits + i);
        secs += number
            * match &rest[digits..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then(|| std::time::Duration::try_from_secs_f64(secs).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn parse(args: &[&str]) -> ArgMatches {
        command().try_get_matches_from(std::iter::once(&"start").chain(args)).unwrap()
    }

    #[test]
    fn forms() {
        let m = parse(&[
            "--root-directory=/x",
            "--secure-port",
            "0",
            "-v=4",
            "--run-controllers=false",
            "--feature-gates=A=true,B=false",
            "--feature-gates",
            "C=true",
        ]);
        let given = Given(&m);
        assert_eq!(given.text("root-directory"), Some("/x"));
        assert_eq!(given.number("secure-port", 6443u16), Ok(0));
        assert_eq!(given.text("v"), Some("4"));
        assert_eq!(given.bool("run-controllers", true), Ok(false));
        assert_eq!(given.bool("anonymous-auth", true), Ok(true));
        assert_eq!(given.list("feature-gates").unwrap(), ["A=true", "B=false", "C=true"]);
        let m = parse(&["--experimental-bind-free-port", "-v", "3"]);
        assert_eq!(Given(&m).bool("experimental-bind-free-port", false), Ok(true));
    }

    #[test]
    fn classes() {
        let m = parse(&[
            "--embedded-etcd-client-port=1",
            "--audit-log-path=x",
            "--audit-policy-file=y",
        ]);
        assert_eq!(
            Given(&m).check_classes().unwrap(),
            [
                "--embedded-etcd-client-port has no effect here",
                "--audit-log-path, --audit-policy-file: accepted, without effect until that part is built"
            ]
        );
        let m = parse(&["--oidc-issuer-url=https://x"]);
        let refused = Given(&m).check_classes().unwrap_err().to_string();
        assert_eq!(refused, "--oidc-issuer-url is not available in this version of Ferroplane");
        let m = parse(&["--enable-bootstrap-token-auth=false"]);
        assert_eq!(Given(&m).check_classes(), Ok(vec![]));
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().map(|f| f.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn durations() {
        let check = |text: &str, want: Option<u64>| {
            assert_eq!(parse_duration(text), want.map(Duration::from_millis), "{text}");
        };
        check("1h0m0s", Some(3_600_000));
        check("1.5s", Some(1500));
        check("250ms", Some(250));
        check("0", Some(0));
        check("0s", Some(0));
        check("5", None);
        check("", None);
        check("1x", None);
    }
}
