//! The data source name: a `postgres://` URL as libpq and kine read it.
//!
//! Invariant: the password is shown nowhere.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::postgres::tls::{Check, Connector, Identity};

/// The database when the URL names none, as in kine.
const DATABASE: &str = "kubernetes";
/// A peer that does not answer for so long is gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// PEM files for TLS when the URL names none: kine's flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub ca: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// Where the database is, and how to get in.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    pub(crate) config: tokio_postgres::Config,
    check: Check,
    files: TlsFiles,
    shown: String,
}

#[derive(Debug, thiserror::Error)]
#[error("{shown}: {what}")]
pub struct DsnError {
    shown: String,
    what: String,
}

impl DsnError {
    /// What is wrong, without the URL.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}

impl Dsn {
    /// Reads a URL. `password` is used when the URL has none (libpq: `PGPASSWORD`).
    pub fn parse(text: &str, tls: TlsFiles, password: Option<&str>) -> Result<Self, DsnError> {
        let shown = shown_dsn(text);
        Self::read(text, tls, password, &shown).map_err(|what| DsnError { shown, what })
    }

    fn read(
        text: &str,
        flags: TlsFiles,
        password: Option<&str>,
        shown: &str,
    ) -> Result<Self, String> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let mut files = TlsFiles::default();
        let (mut mode, mut rest) = (None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || percent_decoded(value);
            match name {
                "sslmode" => mode = Some(value()?),
                "sslrootcert" => files.ca = Some(value()?.into()),
                "sslcert" => files.certificate = Some(value()?.into()),
                "sslkey" => files.key = Some(value()?.into()),
                _ => rest.push(pair),
            }
        }
        // A flag counts where the URL says nothing, and then everything is checked: kine's rule.
        let from_flags = (files.ca.is_none() && flags.ca.is_some())
            || (files.certificate.is_none() && flags.certificate.is_some())
            || (files.key.is_none() && flags.key.is_some());
        if mode.is_none() && from_flags {
            mode = Some("verify-full".into());
        }
        files.ca = files.ca.or(flags.ca);
        files.certificate = files.certificate.or(flags.certificate);
        files.key = files.key.or(flags.key);

        let url = if rest.is_empty() { base.into() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: tokio_postgres::Config = url.parse().map_err(|e| chain(&e))?;
        let (ssl, check) = ssl_mode(mode.as_deref(), files.ca.is_some())?;
        config.ssl_mode(ssl);
        if check != Check::Nothing && files.ca.is_none() {
            let mode = mode.unwrap_or_default();
            return Err(format!("sslmode={mode} needs sslrootcert=<file> or --etcd-cafile"));
        }
        if files.certificate.is_some() != files.key.is_some() {
            return Err("a client certificate needs both sslcert and sslkey".into());
        }
        complete(&mut config, password);
        Ok(Self { config, check, files, shown: shown.to_owned() })
    }

    pub(crate) fn connector(&self) -> Result<Connector, DsnError> {
        self.try_connector().map_err(|what| DsnError { shown: self.shown.clone(), what })
    }

    fn try_connector(&self) -> Result<Connector, String> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = self.files.ca.as_ref().filter(|_| self.check != Check::Nothing) {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
        let identity = match (&self.files.certificate, &self.files.key) {
            (Some(certificate), Some(path)) => {
                let key = PrivateKeyDer::from_pem_file(path);
                let key = key.map_err(|e| format!("{}: {e}", path.display()))?;
                Some(Identity { chain: certificates(certificate)?, key })
            }
            _ => None,
        };
        Connector::new(self.check, roots, identity).map_err(|e| e.to_string())
    }
}

/// The URL without its password.
pub fn shown_dsn(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return "the data source name".into() };
    let (main, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold any character; the host has no `@`.
    let main = match main.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => main.to_owned(),
    };
    let query: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("password="))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{main}{mark}{}", query.join("&"))
}

/// What libpq's `sslmode` means; `require` with an authority at hand checks it.
fn ssl_mode(mode: Option<&str>, has_ca: bool) -> Result<(SslMode, Check), String> {
    Ok(match mode {
        Some("disable") => (SslMode::Disable, Check::Nothing),
        None | Some("prefer" | "allow") => (SslMode::Prefer, Check::Nothing),
        Some("require") if has_ca => (SslMode::Require, Check::Authority),
        Some("require") => (SslMode::Require, Check::Nothing),
        Some("verify-ca") => (SslMode::Require, Check::Authority),
        Some("verify-full") => (SslMode::Require, Check::Host),
        Some(other) => {
            return Err(format!(
                "sslmode={other} is not disable, allow, prefer, require, verify-ca or verify-full"
            ));
        }
    })
}

fn complete(config: &mut tokio_postgres::Config, password: Option<&str>) {
    // kine folds the name as an unquoted identifier would be.
    let database = config.get_dbname().unwrap_or(DATABASE).to_lowercase();
    config.dbname(database);
    let has_host = config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => !name.is_empty(),
        Host::Unix(_) => true,
    });
    if !has_host && config.get_hostaddrs().is_empty() {
        config.host("localhost");
    }
    if config.get_password().is_none()
        && let Some(password) = password
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("ferroplane");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config.keepalives_idle(PEER_TIMEOUT).tcp_user_timeout(PEER_TIMEOUT);
    // Of several hosts the one that takes writes.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(chain) if chain.is_empty() => Err(format!("{} holds no certificate", path.display())),
        Ok(chain) => Ok(chain),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'%', None) => return Err(format!("{text} has a broken % escape")),
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{text} is not UTF-8"))
}

/// An error and what caused it, in one line.
pub(crate) fn chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(e) = source {
        text = format!("{text}: {e}");
        source = e.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, flags: &TlsFiles, expected: &str) {
        let got = match Dsn::parse(text, flags.clone(), Some("from-env")) {
            Ok(dsn) => {
                let c = &dsn.config;
                let password = c.get_password().map(String::from_utf8_lossy);
                let (database, check) = (c.get_dbname().unwrap_or_default(), dsn.check);
                let ports = c.get_ports();
                format!(
                    "{dsn} | {password:?} {database} {ports:?} {:?} {check:?}",
                    c.get_ssl_mode()
                )
            }
            Err(e) => e.to_string(),
        };
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn urls() {
        let none = TlsFiles::default();
        check(
            "postgres://kine:s%40cr:et@db:5433/Kine?sslmode=disable",
            &none,
            "postgres://kine@db:5433/Kine?sslmode=disable | Some(\"s@cr:et\") kine [5433] Disable Nothing",
        );
        check(
            "postgresql://u@/",
            &none,
            "postgresql://u@/ | Some(\"from-env\") kubernetes [] Prefer Nothing",
        );
        check(
            "postgres://u:p@db/x?sslmode=require&sslrootcert=/ca%2Bb.pem",
            &none,
            "postgres://u@db/x?sslmode=require&sslrootcert=/ca%2Bb.pem | Some(\"p\") x [5432] Require Authority",
        );
        let flags = TlsFiles { ca: Some("/ca".into()), ..TlsFiles::default() };
        check(
            "postgres://u:p@db/x",
            &flags,
            "postgres://u@db/x | Some(\"p\") x [5432] Require Host",
        );
        check(
            "postgres://u:p@db/x?sslmode=verify-full",
            &none,
            "postgres://u@db/x?sslmode=verify-full: sslmode=verify-full needs sslrootcert=<file> or --etcd-cafile",
        );
        check(
            "postgres://u:secret@db/x?sslcert=/c",
            &none,
            "postgres://u@db/x?sslcert=/c: a client certificate needs both sslcert and sslkey",
        );
        check(
            "postgres://u:secret@db:port/x",
            &none,
            "postgres://u@db:port/x: invalid connection string: invalid value for option `port`",
        );
        check(
            "postgres://u@db/x?password=secret&colour=blue",
            &none,
            "postgres://u@db/x?colour=blue: invalid connection string: unknown option `colour`",
        );
        check(
            "postgres://u:p@db/x?sslmode=maybe",
            &none,
            "postgres://u@db/x?sslmode=maybe: sslmode=maybe is not disable, allow, prefer, require, verify-ca or verify-full",
        );
    }
}
