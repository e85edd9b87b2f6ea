//! The few requests that the plugins make, and the server's answers as client-go words them.
//!
//! Invariant: an answer other than success becomes [`Error::Status`] with the server's own message, if it sent one.
//! Deliberately absent: retries, watches, any kind of object; callers say which fields they read.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use fp_base::ClusterPath;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::config::Config;
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

use crate::connect::{ClientPem, Connection, Trust};

/// No answer that the plugins read is near this; a list of workspaces is the largest.
const BODY_BYTES_MAX: u64 = 256 << 20;
/// Addresses to try of one host name.
const ADDRESSES_MAX: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Files in which Linux distributions keep the machine's certificate authorities, in Go's order (crypto/x509).
const SYSTEM_AUTHORITIES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    Status { code: StatusCode, reason: String, message: String },
    #[error("{verb} {url:?}: {reason}")]
    Transport { verb: &'static str, url: String, reason: String },
    #[error("{verb} {url:?}: unreadable answer: {source}")]
    Answer { verb: &'static str, url: String, source: serde_json::Error },
    #[error("server URL {0:?} is not valid")]
    Server(String),
    #[error("unable to load {what}: {reason}")]
    Credentials { what: &'static str, reason: String },
}

impl Error {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Status { code, .. } if *code == StatusCode::NOT_FOUND)
    }

    pub fn is_forbidden(&self) -> bool {
        matches!(self, Error::Status { code, .. } if *code == StatusCode::FORBIDDEN)
    }

    pub fn is_already_exists(&self) -> bool {
        matches!(self, Error::Status { reason, .. } if reason == "AlreadyExists")
    }
}

/// A resource as URLs name it: group, version, plural.
#[derive(Clone, Copy, Debug)]
pub struct Resource(pub &'static str, pub &'static str, pub &'static str);

/// A client of one server, for all its workspaces.
pub struct Client {
    agent: Agent,
    /// Scheme, host and port to put in URLs; with a TLS server name that name is the host.
    origin: String,
    host_header: Option<String>,
    /// Scheme, host and port of the kubeconfig, for error texts.
    shown_origin: String,
    headers: Vec<(String, String)>,
}

impl Client {
    pub fn new(connection: &Connection) -> Result<Self, Error> {
        let bad_server = || Error::Server(connection.server.clone());
        let uri: Uri = connection.server.parse().map_err(|_| bad_server())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(bad_server());
        };
        let port = authority.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .user_agent("kubectl-ws/ferroplane");
        if is_loopback(authority.host()) || connection.tls_server_name.is_some() {
            config = config.proxy(None);
        }
        if scheme == "https" {
            config = config.tls_config(tls(connection)?);
        }
        let (host, host_header) = match &connection.tls_server_name {
            Some(name) => (name.as_str(), Some(authority.as_str().to_owned())),
            None => (authority.host(), None),
        };
        let resolver =
            HostResolver { host: authority.host().trim_matches(['[', ']']).to_owned(), port };
        Ok(Self {
            agent: Agent::with_parts(config.build(), DefaultConnector::default(), resolver),
            origin: format!("{scheme}://{host}:{port}"),
            host_header,
            shown_origin: format!("{scheme}://{}:{port}", authority.host()),
            headers: connection.headers.clone(),
        })
    }

    /// Reads an object, or with an empty name the list.
    pub fn get<T: DeserializeOwned>(
        &self,
        cluster: &ClusterPath,
        resource: Resource,
        name: &str,
    ) -> Result<T, Error> {
        let path = cluster_path(cluster, &resource_path(resource, name));
        self.request("Get", &path, None, Some((resource, name)))
    }

    pub fn create<T: DeserializeOwned>(
        &self,
        cluster: &ClusterPath,
        resource: Resource,
        object: &serde_json::Value,
    ) -> Result<T, Error> {
        let path = cluster_path(cluster, &resource_path(resource, ""));
        self.request("Post", &path, Some(object.to_string()), Some((resource, "")))
    }

    /// How many API groups a workspace serves at `path`. Errors are worded by status code alone, as client-go's
    /// discovery does.
    pub fn discover(&self, cluster: &ClusterPath, path: &str) -> Result<usize, Error> {
        #[derive(Deserialize)]
        struct Groups {
            #[serde(default)]
            groups: Vec<serde::de::IgnoredAny>,
            #[serde(default)]
            versions: Vec<serde::de::IgnoredAny>,
        }
        let found: Groups = self.request("Get", &cluster_path(cluster, path), None, None)?;
        Ok(found.groups.len() + found.versions.len())
    }

    fn request<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        path: &str,
        body: Option<String>,
        asked: Option<(Resource, &str)>,
    ) -> Result<T, Error> {
        let shown_url = || format!("{}{path}", self.shown_origin);
        let transport = |error| Error::Transport {
            verb,
            url: shown_url(),
            reason: self.transport_reason(&error),
        };
        let mut response = self.send(&format!("{}{path}", self.origin), body).map_err(transport)?;
        let code = response.status();
        let body = response.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec();
        let body = body.map_err(transport)?;
        if code.is_success() {
            return serde_json::from_slice(&body).map_err(|source| Error::Answer {
                verb,
                url: shown_url(),
                source,
            });
        }
        Err(status_error(verb, code, &body, asked))
    }

    fn send(&self, url: &str, body: Option<String>) -> Result<Response<Body>, ureq::Error> {
        let host = self.host_header.iter().map(|host| ("Host".to_owned(), host.clone()));
        let headers = self.headers.iter().cloned().chain(host);
        match body {
            None => {
                let request = self.agent.get(url).header(header::ACCEPT, "application/json");
                headers.fold(request, |r, (k, v)| r.header(k, v)).call()
            }
            Some(body) => {
                let request = self.agent.post(url).header(header::ACCEPT, "application/json");
                let request = request.header(header::CONTENT_TYPE, "application/json");
                headers.fold(request, |r, (k, v)| r.header(k, v)).send(body)
            }
        }
    }

    fn transport_reason(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Io(io) if io.kind() == io::ErrorKind::ConnectionRefused => {
                let address = self.shown_origin.split_once("://").map_or("", |(_, rest)| rest);
                format!("dial tcp {address}: connect: connection refused")
            }
            ureq::Error::Io(io) => io.to_string(),
            other => other.to_string(),
        }
    }
}

fn cluster_path(cluster: &ClusterPath, path: &str) -> String {
    format!("/clusters/{cluster}{path}")
}

fn resource_path(Resource(group, version, plural): Resource, name: &str) -> String {
    let slash = if name.is_empty() { "" } else { "/" };
    format!("/apis/{group}/{version}/{plural}{slash}{name}")
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The error of an unsuccessful answer: the server's Status if it sent one and an object was asked for, else the
/// text that client-go has for the code (apimachinery `api/errors`, `NewGenericServerResponse`).
fn status_error(
    verb: &str,
    code: StatusCode,
    body: &[u8],
    asked: Option<(Resource, &str)>,
) -> Error {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        kind: String,
        message: String,
        reason: String,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    if asked.is_some() && status.kind == "Status" && !status.message.is_empty() {
        return Error::Status { code, reason: status.reason, message: status.message };
    }
    let said = String::from_utf8_lossy(body);
    let said = if said.trim().is_empty() { "unknown" } else { said.trim() };
    let mut message = match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => said.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        500.. => format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        other => format!("the server responded with the status code {other} but did not return more information"),
    };
    if let Some((Resource(group, _, plural), name)) = asked {
        let space = if name.is_empty() { "" } else { " " };
        message.push_str(&format!(" ({} {plural}.{group}{space}{name})", verb.to_lowercase()));
    }
    Error::Status { code, reason: status.reason, message }
}

/// Finds the server by the host of the kubeconfig, whichever name its certificate must bear.
#[derive(Debug)]
struct HostResolver {
    host: String,
    port: u16,
}

impl Resolver for HostResolver {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        let addresses =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(ureq::Error::Io)?;
        for address in addresses.take(ADDRESSES_MAX) {
            let address: SocketAddr = address;
            found.push(address);
        }
        if found.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(found) }
    }
}

fn tls(connection: &Connection) -> Result<TlsConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = TlsConfig::builder().unversioned_rustls_crypto_provider(provider.clone());
    let builder = match &connection.trust {
        Trust::Anything => builder.disable_verification(true),
        Trust::Authority(pem) => builder.root_certs(RootCerts::new_with_certs(&authorities(pem)?)),
        Trust::System => {
            let file = std::env::var("SSL_CERT_FILE").ok().filter(|f| !f.is_empty());
            let pem = file
                .as_deref()
                .into_iter()
                .chain(SYSTEM_AUTHORITIES)
                .find_map(|f| std::fs::read(f).ok());
            let found = pem.as_deref().map(authorities).transpose()?.unwrap_or_default();
            builder.root_certs(RootCerts::new_with_certs(&found))
        }
    };
    let client = connection.client_certificate.as_ref();
    Ok(builder.client_cert(client.map(|pem| client_cert(pem, &provider)).transpose()?).build())
}

fn authorities(pem: &[u8]) -> Result<Vec<Certificate<'static>>, Error> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let fail = |reason: String| Error::Credentials { what: "root certificates", reason };
    let certificates = certificates.map_err(|e| fail(e.to_string()))?;
    if certificates.is_empty() {
        return Err(fail("no certificate in the PEM data".to_owned()));
    }
    Ok(certificates.iter().map(|c| Certificate::from_der(c).to_owned()).collect())
}

fn client_cert(pem: &ClientPem, provider: &CryptoProvider) -> Result<ClientCert, Error> {
    let fail = |reason: String| Error::Credentials { what: "client certificate", reason };
    let certificates = CertificateDer::pem_slice_iter(&pem.chain).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|e| fail(e.to_string()))?;
    let key_der = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|e| fail(e.to_string()))?;
    // ureq takes the pair on trust and would panic on one that does not fit.
    CertifiedKey::from_der(certificates.clone(), key_der, provider)
        .map_err(|e| fail(e.to_string()))?;
    let key = PrivateKey::from_pem(&pem.key).map_err(|e| fail(e.to_string()))?;
    let chain: Vec<_> = certificates.iter().map(|c| Certificate::from_der(c).to_owned()).collect();
    if chain.is_empty() {
        return Err(fail("no certificate in the PEM data".to_owned()));
    }
    Ok(ClientCert::new_with_certs(&chain, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_worded_as_by_client_go() {
        let workspaces = Resource("tenancy.kcp.io", "v1alpha1", "workspaces");
        let status = r#"{"kind":"Status","status":"Failure","message":"workspaces.tenancy.kcp.io \"a\" already exists","reason":"AlreadyExists","code":409}"#;
        for (code, body, asked, expected) in [
            (409, status, Some((workspaces, "")), "workspaces.tenancy.kcp.io \"a\" already exists"),
            (404, "404 page not found", None, "the server could not find the requested resource"),
            (
                404,
                r#"{"kind":"Status","message":"other"}"#,
                None,
                "the server could not find the requested resource",
            ),
            (
                404,
                "404 page not found",
                Some((workspaces, "a")),
                "the server could not find the requested resource (get workspaces.tenancy.kcp.io a)",
            ),
            (401, "", None, "the server has asked for the client to provide credentials"),
            (403, "", None, "unknown"),
            (
                502,
                "bad",
                None,
                "an error on the server (\"bad\") has prevented the request from succeeding",
            ),
            (
                302,
                "",
                None,
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            let code = StatusCode::from_u16(code).expect("a status code");
            assert_eq!(status_error("Get", code, body.as_bytes(), asked).to_string(), expected);
        }
    }
}
