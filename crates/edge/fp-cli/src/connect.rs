//! From kubeconfig entries and flags to one connection: which server, trusted how, as whom.
//!
//! Invariant: what this version cannot do (exec and auth-provider plugins, proxies) is refused by name here, before
//! any request, never ignored. Source of the rules: client-go `tools/clientcmd` (`client_config.go`, `validation.go`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::flags::Flags;
use crate::kubeconfig::{Entry, Kubeconfig, Section};

/// Everything needed to talk to a server.
#[derive(Debug)]
pub struct Connection {
    /// The server URL of the kubeconfig, with its scheme.
    pub server: String,
    pub trust: Trust,
    /// Name in the server's certificate, if not the host of `server`.
    pub tls_server_name: Option<String>,
    pub client_certificate: Option<ClientPem>,
    /// Headers that say who asks: Authorization and Impersonate-*.
    pub headers: Vec<(String, String)>,
}

/// A client's certificate chain and its key, in PEM.
#[derive(Debug)]
pub struct ClientPem {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

/// How the server's certificate is checked.
#[derive(Debug, PartialEq, Eq)]
pub enum Trust {
    /// Against the authorities of the machine.
    System,
    /// Against these authorities (PEM).
    Authority(Vec<u8>),
    /// Not at all.
    Anything,
}

/// Why there is no connection to be had from the kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{kind} {name:?} does not exist")]
    NoEntry { kind: &'static str, name: String },
    #[error("invalid configuration: {}", one_or_list(.0))]
    Invalid(Vec<String>),
    #[error("{what} is not available in this version")]
    Unavailable { what: String },
    #[error("open {}: {}", .path.display(), reason(.source))]
    Open { path: PathBuf, source: io::Error },
    #[error("illegal base64 data in {field}")]
    Base64 { field: String },
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    InsecureWithAuthority,
}

fn one_or_list(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The usual reasons in the words of Go, which scripts know.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

const EMPTY: &str =
    "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// Resolves the connection of a call.
pub fn resolve(config: &Kubeconfig, flags: &Flags) -> Result<Connection, Error> {
    let context_name =
        flags.text("context").map_or_else(|| config.current_context(), str::to_owned);
    let context = config.entry(Section::Contexts, &context_name);
    if context.is_none() && flags.text("context").is_some() {
        return Err(Error::NoEntry { kind: "context", name: context_name });
    }
    let user_name = match flags.text("user") {
        Some(name) => name.to_owned(),
        None => context.as_ref().map(|c| c.text("user")).unwrap_or_default(),
    };
    let user = config.entry(Section::Users, &user_name);
    if user.is_none() && flags.text("user").is_some() {
        return Err(Error::NoEntry { kind: "auth info", name: user_name });
    }
    let cluster_name = context.as_ref().map(|c| c.text("cluster")).unwrap_or_default();
    let cluster = config.entry(Section::Clusters, &cluster_name);
    let user = user.unwrap_or_else(no_entry);
    let cluster = cluster.unwrap_or_else(no_entry);

    let server = flags.text("server").map_or_else(|| cluster.text("server"), str::to_owned);
    let mut problems = Vec::new();
    if !context_name.is_empty() && context.is_none() {
        problems.push(format!("context was not found for specified context: {context_name}"));
    }
    check_user(&user_name, &user, flags, &mut problems);
    if server.is_empty() {
        let alone = problems.is_empty();
        problems.push(match cluster.fields.is_empty() {
            true if alone => EMPTY.to_owned(),
            true => "cluster has no server defined".to_owned(),
            false => format!("no server found for cluster {cluster_name:?}"),
        });
    }
    if !problems.is_empty() {
        return Err(Error::Invalid(problems));
    }
    if let Some(url) =
        flags.text("proxy-url").map(str::to_owned).or_else(|| set_text(&cluster, "proxy-url"))
    {
        return Err(Error::Unavailable { what: format!("proxy-url ({url})") });
    }
    let trust = trust(&cluster_name, &cluster, flags)?;
    let tls_server_name = match (flags.text("tls-server-name"), flags.text("server")) {
        (Some(name), _) => Some(name.to_owned()),
        (None, Some(_)) => None,
        (None, None) => set_text(&cluster, "tls-server-name"),
    };
    let client_certificate = client_certificate(&user_name, &user)?;
    let server = with_scheme(&server, trust != Trust::System || client_certificate.is_some());
    // Credentials are for encrypted connections only, as in client-go.
    let headers = if server.starts_with("https://") {
        identity_headers(&user_name, &user, flags)?
    } else {
        vec![]
    };
    Ok(Connection { server, trust, tls_server_name, client_certificate, headers })
}

fn no_entry() -> Entry {
    Entry { fields: Map::new(), origin: PathBuf::new() }
}

fn set_text(entry: &Entry, field: &str) -> Option<String> {
    Some(entry.text(field)).filter(|t| !t.is_empty())
}

/// A server without a scheme is reached by https if anything about TLS is configured, else by http.
fn with_scheme(server: &str, tls: bool) -> String {
    match server.contains("://") {
        true => server.to_owned(),
        false if tls => format!("https://{server}"),
        false => format!("http://{server}"),
    }
}

fn check_user(name: &str, user: &Entry, flags: &Flags, problems: &mut Vec<String>) {
    let token = flags.text("token").is_some() || set_text(user, "token").is_some();
    let basic = ["username", "password"]
        .iter()
        .any(|f| flags.text(f).is_some() || set_text(user, f).is_some());
    if token && basic {
        problems.push(format!(
            "more than one authentication method found for {name}; found [token basicAuth], only one is allowed"
        ));
    }
    let has = |field: &str| set_text(user, field).is_some();
    let extra = ["as-groups", "as-user-extra"]
        .iter()
        .any(|f| user.fields.get(*f).is_some_and(|v| !v.is_null()));
    if !has("as") && (extra || has("as-uid") || flags.text("as-uid").is_some()) {
        problems.push(format!(
            "requesting uid, groups or user-extra for {name} without impersonating a user"
        ));
    }
    if (has("client-certificate") || has("client-certificate-data"))
        && !has("client-key")
        && !has("client-key-data")
    {
        problems.push(format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
        ));
    }
}

fn trust(cluster_name: &str, cluster: &Entry, flags: &Flags) -> Result<Trust, Error> {
    if flags.on("insecure-skip-tls-verify") || flags.text("certificate-authority").is_some() {
        return match (flags.on("insecure-skip-tls-verify"), flags.text("certificate-authority")) {
            (true, Some(_)) => Err(Error::InsecureWithAuthority),
            (false, Some(file)) => Ok(Trust::Authority(open_for(
                "certificate-authority",
                cluster_name,
                Path::new(file),
            )?)),
            (_, None) => Ok(Trust::Anything),
        };
    }
    let authority = data_or_file(cluster_name, cluster, "certificate-authority")?;
    match (cluster.on("insecure-skip-tls-verify"), authority) {
        (true, Some(_)) => Err(Error::InsecureWithAuthority),
        (true, None) => Ok(Trust::Anything),
        (false, Some(pem)) => Ok(Trust::Authority(pem)),
        (false, None) => Ok(Trust::System),
    }
}

fn client_certificate(user_name: &str, user: &Entry) -> Result<Option<ClientPem>, Error> {
    let chain = data_or_file(user_name, user, "client-certificate")?;
    let key = data_or_file(user_name, user, "client-key")?;
    Ok(chain.zip(key).map(|(chain, key)| ClientPem { chain, key }))
}

/// `<field>-data` in base64 wins over the file of `<field>`.
fn data_or_file(name: &str, entry: &Entry, field: &str) -> Result<Option<Vec<u8>>, Error> {
    let data_field = format!("{field}-data");
    if let Some(data) = set_text(entry, &data_field) {
        let packed: String = data.split_ascii_whitespace().collect();
        return STANDARD.decode(packed).map(Some).map_err(|_| Error::Base64 { field: data_field });
    }
    let what = if field == "client-certificate" { "client-cert" } else { field };
    entry.path(field).map(|path| open_for(what, name, &path)).transpose()
}

fn open_for(what: &str, name: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let invalid =
        |error| vec![format!("unable to read {what} {} for {name} due to {error}", path.display())];
    open(path).map_err(|error| Error::Invalid(invalid(error)))
}

fn open(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Open { path: path.to_owned(), source })
}

fn identity_headers(
    name: &str,
    user: &Entry,
    flags: &Flags,
) -> Result<Vec<(String, String)>, Error> {
    if let Some(exec) = user.fields.get("exec").filter(|e| !e.is_null()) {
        let command = exec.get("command").and_then(Value::as_str).unwrap_or_default();
        return Err(Error::Unavailable {
            what: format!("exec credential plugin {command:?} of user {name:?}"),
        });
    }
    if let Some(provider) = user.fields.get("auth-provider").filter(|p| !p.is_null()) {
        let provider = provider.get("name").and_then(Value::as_str).unwrap_or_default();
        return Err(Error::Unavailable {
            what: format!("auth provider {provider:?} of user {name:?}"),
        });
    }
    let mut headers = Vec::new();
    let choice =
        |field: &str| flags.text(field).map(str::to_owned).or_else(|| set_text(user, field));
    let token = match (choice("token"), user.path("tokenFile")) {
        (Some(token), None) => Some(token),
        // A file may be renewed, so it outweighs a token in the entry, but not one on the command line.
        (Some(token), Some(_)) if flags.text("token").is_some() => Some(token),
        (_, Some(file)) => Some(String::from_utf8_lossy(&open(&file)?).trim().to_owned()),
        (None, None) => None,
    };
    if let Some(token) = token {
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    } else if choice("username").is_some() || choice("password").is_some() {
        let pair = format!(
            "{}:{}",
            choice("username").unwrap_or_default(),
            choice("password").unwrap_or_default()
        );
        headers.push(("Authorization".to_owned(), format!("Basic {}", STANDARD.encode(pair))));
    }
    if let Some(who) = set_text(user, "as") {
        headers.push(("Impersonate-User".to_owned(), who));
        let uid = choice("as-uid").into_iter().map(|uid| ("Impersonate-Uid".to_owned(), uid));
        let groups =
            list(user.fields.get("as-groups")).map(|g| ("Impersonate-Group".to_owned(), g));
        headers.extend(uid.chain(groups));
        for (key, values) in
            user.fields.get("as-user-extra").and_then(Value::as_object).into_iter().flatten()
        {
            headers.extend(list(Some(values)).map(|v| (format!("Impersonate-Extra-{key}"), v)));
        }
    }
    Ok(headers)
}

fn list(value: Option<&Value>) -> impl Iterator<Item = String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(str::to_owned))
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
