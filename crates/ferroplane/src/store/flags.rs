//! The flags of `store`: kine's names and variables (`pkg/app/app.go`), each with what we do with it.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::tools;
use crate::flags::{Error, parse_duration};

pub enum Class {
    /// It acts: default and help.
    Acts(&'static str, &'static str),
    /// It has no meaning here: accepted, with one warning line that says why.
    NoMeaning(&'static str),
    /// Refused, with the reason.
    Refused(&'static str),
}

pub struct Flag {
    pub name: &'static str,
    pub variable: &'static str,
    pub is_bool: bool,
    pub class: Class,
}

const fn value(name: &'static str, variable: &'static str, class: Class) -> Flag {
    Flag { name, variable, is_bool: false, class }
}

const fn switch(name: &'static str, variable: &'static str, class: Class) -> Flag {
    Flag { name, variable, is_bool: true, class }
}

use Class::{Acts, NoMeaning, Refused};

const POOL: &str = "connections to the database are few and stay open";
const SQL_LOG: &str = "slow statements are not logged";
const STEPS: &str = "compaction goes in small steps that need no setting";
const SKIP_VERIFY: &str =
    "write sslmode=require in --endpoint to encrypt without a check of who answers";
const T4: &str = "it belongs to kine's t4 driver, which is not supported";

pub const FLAGS: &[Flag] = &[
    value(
        "listen-address",
        "KINE_LISTEN_ADDRESS",
        Acts("0.0.0.0:2379", "Where clients of etcd connect: host:port, a URL, or unix://<path>"),
    ),
    value(
        "endpoint",
        "KINE_ENDPOINT",
        Acts(
            "sqlite://./db/state.db",
            "The store: sqlite://<file>, postgres://user:password@host:port/database, or memory:// to keep nothing",
        ),
    ),
    value("ca-file", "KINE_CA_FILE", Acts("", "CAs of the database's certificate (PostgreSQL)")),
    value("cert-file", "KINE_CERT_FILE", Acts("", "The client certificate for the database")),
    value("key-file", "KINE_KEY_FILE", Acts("", "Its key")),
    switch("skip-verify", "KINE_SKIP_VERIFY", Refused(SKIP_VERIFY)),
    value("log-format", "KINE_LOG_FORMAT", Acts("plain", "plain or json")),
    value(
        "metrics-bind-address",
        "KINE_METRICS_BIND_ADDRESS",
        Acts(":8080", "A port of its own for /metrics, which the main port has too; 0 is none"),
    ),
    value("server-cert-file", "KINE_SERVER_CERT_FILE", Acts("", "The serving certificate, PEM")),
    value("server-key-file", "KINE_SERVER_KEY_FILE", Acts("", "The serving key, PEM")),
    value(
        "trusted-ca-file",
        "KINE_TRUSTED_CA_FILE",
        Acts("", "CAs one of which must have signed a client's certificate"),
    ),
    value("datastore-max-idle-connections", "KINE_DATASTORE_MAX_IDLE_CONNECTIONS", NoMeaning(POOL)),
    value("datastore-max-open-connections", "KINE_DATASTORE_MAX_OPEN_CONNECTIONS", NoMeaning(POOL)),
    value(
        "datastore-connection-max-lifetime",
        "KINE_DATASTORE_CONNECTION_MAX_LIFETIME",
        NoMeaning(POOL),
    ),
    value(
        "datastore-connection-max-idle-time",
        "KINE_DATASTORE_CONNECTION_MAX_IDLE_TIME",
        NoMeaning(POOL),
    ),
    value("slow-sql-threshold", "KINE_SLOW_SQL_THRESHOLD", NoMeaning(SQL_LOG)),
    value("slow-sql-warning-threshold", "KINE_SLOW_SQL_WARNING_THRESHOLD", NoMeaning(SQL_LOG)),
    switch(
        "metrics-enable-profiling",
        "KINE_METRICS_ENABLE_PROFILING",
        Refused("there is no Go profiler in this program"),
    ),
    switch(
        "metrics-ignore-tls-config",
        "KINE_METRICS_IGNORE_TLS_CONFIG",
        Acts("false", "Serve --metrics-bind-address without TLS"),
    ),
    value(
        "watch-progress-notify-interval",
        "KINE_WATCH_PROGRESS_NOTIFY_INTERVAL",
        Acts("5s", "How often a quiet watch that asked for it hears of its progress"),
    ),
    value(
        "emulated-etcd-version",
        "KINE_EMULATED_ETCD_VERSION",
        Acts("3.6.11", "The version that Status reports"),
    ),
    value(
        "compact-interval",
        "KINE_COMPACT_INTERVAL",
        Acts("0", "How often history is compacted; 0 leaves it to clients"),
    ),
    value("compact-interval-jitter", "KINE_COMPACT_INTERVAL_JITTER", NoMeaning(STEPS)),
    value("compact-timeout", "KINE_COMPACT_TIMEOUT", NoMeaning(STEPS)),
    value(
        "compact-min-retain",
        "KINE_COMPACT_MIN_RETAIN",
        Acts("1000", "Revisions that --compact-interval always keeps"),
    ),
    value("compact-batch-size", "KINE_COMPACT_BATCH_SIZE", NoMeaning(STEPS)),
    value(
        "poll-batch-size",
        "KINE_POLL_BATCH_SIZE",
        NoMeaning("nothing is polled: commits are told to watchers"),
    ),
    value("peer-bind-address", "KINE_PEER_BIND_ADDRESS", Refused(T4)),
    value("peer-advertise-address", "KINE_PEER_ADVERTISE_ADDRESS", Refused(T4)),
    value("s3-bucket", "KINE_S3_BUCKET", Refused(T4)),
    value("s3-folder", "KINE_S3_FOLDER", Refused(T4)),
    value("s3-endpoint", "KINE_S3_ENDPOINT", Refused(T4)),
    // kine reads these from AWS' variables, which say nothing about us.
    value("s3-region", "", Refused(T4)),
    value("s3-access-key", "", Refused(T4)),
    value("s3-secret-key", "", Refused(T4)),
    value("s3-session-token", "", Refused(T4)),
    value("s3-profile", "", Refused(T4)),
    value("s3-ca-bundle", "", Refused(T4)),
    switch("debug", "KINE_DEBUG", Acts("false", "Log in detail")),
];

pub fn command() -> Command {
    let args = FLAGS.iter().map(|flag| {
        let arg = Arg::new(flag.name).long(flag.name).help(help(flag)).action(ArgAction::Append);
        match flag.is_bool {
            true => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_name("true|false"),
            false => arg.num_args(1).allow_hyphen_values(true).value_name("VALUE"),
        }
    });
    Command::new("store")
        .about("Serves a store to clients of etcd, in kine's place; or backs it up, checks it, moves it")
        .args(args)
        .subcommands(tools::commands())
        .args_conflicts_with_subcommands(true)
}

fn help(flag: &Flag) -> String {
    let text = match flag.class {
        Acts("", help) => help.to_owned(),
        Acts(default, help) => format!("{help} [default: {default}]"),
        NoMeaning(why) => format!("accepted for kine's sake, without effect: {why}"),
        Refused(why) => format!("refused: {why}"),
    };
    match flag.variable {
        "" => text,
        variable => format!("{text} [{variable}]"),
    }
}

/// The flags as given, by the command line first and then by the environment.
pub struct Given<'a> {
    pub matches: &'a ArgMatches,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Given<'_> {
    /// The value given; an empty one counts as none.
    pub fn set(&self, name: &'static str) -> Option<String> {
        let flag = FLAGS.iter().find(|flag| flag.name == name).expect("a flag of the table");
        let typed = self.matches.get_many::<String>(name).and_then(|mut all| all.next_back());
        let value = match typed {
            Some(typed) => Some(typed.clone()),
            None if flag.variable.is_empty() => None,
            None => (self.variable)(flag.variable),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The value given, or the default.
    pub fn text(&self, name: &'static str) -> String {
        self.set(name).unwrap_or_else(|| default(name).to_owned())
    }

    pub fn bool(&self, name: &'static str) -> Result<bool, Error> {
        match self.text(name).to_ascii_lowercase().as_str() {
            "true" | "t" | "1" => Ok(true),
            "false" | "f" | "0" | "" => Ok(false),
            other => Err(Error::value(name, other, "is not true or false")),
        }
    }

    pub fn duration(&self, name: &'static str) -> Result<std::time::Duration, Error> {
        let text = self.text(name);
        let parsed = parse_duration(&text);
        parsed.ok_or_else(|| {
            Error::value(name, text, "is not a duration such as 1h30m, 45s or 500ms")
        })
    }

    /// The warning lines of flags without effect, or the first refusal.
    pub fn check_classes(&self) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        for flag in FLAGS {
            let Some(value) = self.set(flag.name) else { continue };
            match flag.class {
                Acts(..) => {}
                NoMeaning(why) => {
                    warnings.push(format!("--{} has no effect here: {why}", flag.name));
                }
                Refused(_) if flag.is_bool && value == "false" => {}
                Refused(why) => return Err(Error::value(flag.name, value, why)),
            }
        }
        Ok(warnings)
    }
}

fn default(name: &str) -> &'static str {
    FLAGS.iter().find(|flag| flag.name == name).map_or("", |flag| match flag.class {
        Acts(default, _) => default,
        _ => "",
    })
}
