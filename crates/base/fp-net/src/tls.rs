//! TLS configuration: certificates by server name, versions, suites, and client certificates.
//!
//! As in Go's API server a client certificate is asked for, never demanded, and the handshake
//! proves only that the peer holds its key. Whether the client CA signed it is checked afterwards:
//! a certificate of a stranger beside a good token does no harm.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::Error;

/// A certificate chain and its key, PEM.
#[derive(Clone)]
pub struct PemPair {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

/// What the `--tls-*` flags and `--client-ca-file` say.
#[derive(Clone)]
pub struct TlsOptions {
    /// Serves every name that no entry of `sni` matches.
    pub default: PemPair,
    /// `--tls-sni-cert-key`: names (or `*.` patterns) and their pair; without names, those of the
    /// certificate count.
    pub sni: Vec<(Vec<String>, PemPair)>,
    /// PEM bundle; `None`: client certificates are not asked for.
    pub client_ca: Option<Vec<u8>>,
    /// `VersionTLS12` (default when empty) or `VersionTLS13`.
    pub min_version: String,
    /// Go's names; empty: all. TLS 1.3 suites are always on, as in Go.
    pub cipher_suites: Vec<String>,
    /// IANA group numbers in order of preference; empty: the defaults, post-quantum first.
    pub curves: Vec<u16>,
    /// Offers HTTP/2 (`--disable-http2-serving` turns it off).
    pub http2: bool,
}

/// The current configuration; [`Tls::replace`] swaps it for connections to come.
pub struct Tls {
    current: ArcSwap<Config>,
}

/// One configuration.
pub(crate) struct Config {
    pub server: Arc<ServerConfig>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

/// The other side of a connection.
#[derive(Debug)]
pub struct Peer {
    pub addr: SocketAddr,
    pub cert: ClientCert,
    /// What the handler found out about `cert`, so that it need not find it out per request.
    pub memo: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Peer {
    pub fn new(addr: SocketAddr, cert: ClientCert) -> Self {
        Self { addr, cert, memo: OnceLock::new() }
    }
}

/// The client certificate of a connection, checked once.
#[derive(Debug)]
pub enum ClientCert {
    None,
    /// The client CA vouches for it. `not_after_secs` (Unix time) must be checked per request: a
    /// connection may outlive its certificate.
    Verified {
        der: CertificateDer<'static>,
        not_after_secs: i64,
    },
    /// Presented, and not of the client CA (or expired, or not for clients): why.
    Refused(String),
}

impl ClientCert {
    /// The certificate that may be trusted at this moment, or why there is none.
    pub fn trusted(&self) -> Result<Option<&[u8]>, &str> {
        match self {
            Self::None => Ok(None),
            Self::Refused(why) => Err(why),
            Self::Verified { der, not_after_secs } => {
                let now_secs = UnixTime::now().as_secs();
                let valid = u64::try_from(*not_after_secs).is_ok_and(|end| now_secs <= end);
                if valid { Ok(Some(der)) } else { Err("the certificate has expired") }
            }
        }
    }
}

impl Tls {
    pub fn new(options: &TlsOptions) -> Result<Self, Error> {
        Ok(Self { current: ArcSwap::from_pointee(Config::build(options)?) })
    }

    /// Uses `options` for new connections; on an error the old ones stay.
    pub fn replace(&self, options: &TlsOptions) -> Result<(), Error> {
        self.current.store(Arc::new(Config::build(options)?));
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<Config> {
        self.current.load_full()
    }
}

impl Config {
    fn build(options: &TlsOptions) -> Result<Self, Error> {
        let provider = Arc::new(provider(options)?);
        let versions: &[&rustls::SupportedProtocolVersion] = match options.min_version.as_str() {
            "" | "VersionTLS12" => &[&rustls::version::TLS13, &rustls::version::TLS12],
            "VersionTLS13" => &[&rustls::version::TLS13],
            other => return Err(Error::Version(other.to_owned())),
        };
        let resolver = Resolver::build(options, &provider)?;
        let (asks, clients) = match &options.client_ca {
            None => (None, None),
            Some(bundle) => {
                let chain = client_verifier(bundle, &provider)?;
                let hints = chain.root_hint_subjects().to_vec();
                let algorithms = provider.signature_verification_algorithms;
                let asks = Arc::new(ProvesKey { hints, algorithms });
                (Some(asks as Arc<dyn ClientCertVerifier>), Some(chain))
            }
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|e| Error::Certificate(e.to_string()))?;
        let builder = match asks {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut server = builder.with_cert_resolver(Arc::new(resolver));
        if options.http2 {
            server.alpn_protocols.push(b"h2".to_vec());
        }
        server.alpn_protocols.push(b"http/1.1".to_vec());
        Ok(Self { server: Arc::new(server), clients })
    }

    /// Checks the chain that a peer presented.
    pub fn check(&self, presented: Option<&[CertificateDer<'static>]>) -> ClientCert {
        let (Some(verifier), Some([leaf, above @ ..])) = (&self.clients, presented) else {
            return ClientCert::None;
        };
        if let Err(why) = verifier.verify_client_cert(leaf, above, UnixTime::now()) {
            return ClientCert::Refused(why.to_string());
        }
        match X509Certificate::from_der(leaf) {
            Err(why) => ClientCert::Refused(why.to_string()),
            Ok((_, parsed)) => ClientCert::Verified {
                der: leaf.clone(),
                not_after_secs: parsed.validity().not_after.timestamp(),
            },
        }
    }
}

fn provider(options: &TlsOptions) -> Result<CryptoProvider, Error> {
    let mut provider = aws_lc_rs::default_provider();
    if !options.cipher_suites.is_empty() {
        let known = provider.cipher_suites.clone();
        let name_of = |s: &rustls::SupportedCipherSuite| match s.suite().as_str() {
            Some(name) => name.replacen("TLS13_", "TLS_", 1),
            None => String::new(),
        };
        for name in &options.cipher_suites {
            // Go appends `_SHA256` to the ChaCha20 names, or not: both are accepted.
            if !known.iter().any(|s| same_suite(&name_of(s), name)) {
                return Err(Error::CipherSuite(name.clone()));
            }
        }
        provider.cipher_suites.retain(|s| {
            s.tls13().is_some() || options.cipher_suites.iter().any(|n| same_suite(&name_of(s), n))
        });
    }
    if !options.curves.is_empty() {
        let mut chosen = Vec::new();
        for id in &options.curves {
            let known = aws_lc_rs::ALL_KX_GROUPS.iter().find(|g| u16::from(g.name()) == *id);
            chosen.push(*known.ok_or(Error::Curve(*id))?);
        }
        provider.kx_groups = chosen;
    }
    Ok(provider)
}

fn same_suite(ours: &str, asked: &str) -> bool {
    ours == asked
        || (asked.ends_with("CHACHA20_POLY1305") && ours.strip_suffix("_SHA256") == Some(asked))
}

fn client_verifier(
    bundle: &[u8],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for cert in certificates("client CA bundle", bundle)? {
        roots.add(cert).map_err(|e| Error::Certificate(format!("client CA: {e}")))?;
    }
    WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        .build()
        .map_err(|e| Error::Certificate(format!("client CA: {e}")))
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(list) if list.is_empty() => Err(Error::Pem { what, why: "no certificate in it".into() }),
        Ok(list) => Ok(list),
        Err(why) => Err(Error::Pem { what, why: why.to_string() }),
    }
}

/// Accepts every certificate whose key the peer holds; [`Config::check`] does the rest.
#[derive(Debug)]
struct ProvesKey {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ProvesKey {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _above: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Chooses the certificate by the name that the client asks for.
#[derive(Debug)]
struct Resolver {
    default: Arc<CertifiedKey>,
    /// Lower-case names; `*.x` matches one more label. In the order given: the first match counts.
    named: Vec<(String, Arc<CertifiedKey>)>,
}

impl Resolver {
    fn build(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Self, Error> {
        let mut named = Vec::new();
        for (names, pair) in &options.sni {
            let key = Arc::new(certified(pair, provider)?);
            let names = if names.is_empty() { certificate_names(&key) } else { names.clone() };
            named.extend(names.iter().map(|n| (n.to_ascii_lowercase(), key.clone())));
        }
        Ok(Self { default: Arc::new(certified(&options.default, provider)?), named })
    }

    fn find(&self, name: Option<&str>) -> &Arc<CertifiedKey> {
        let Some(name) = name else { return &self.default };
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.named
            .iter()
            .find(|(pattern, _)| match pattern.strip_prefix("*.") {
                Some(rest) => parent == Some(rest),
                None => pattern == name,
            })
            .map_or(&self.default, |(_, key)| key)
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.find(hello.server_name()).clone())
    }
}

fn certified(pair: &PemPair, provider: &Arc<CryptoProvider>) -> Result<CertifiedKey, Error> {
    let chain = certificates("TLS certificate", &pair.chain)?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key)
        .map_err(|e| Error::Pem { what: "TLS private key", why: e.to_string() })?;
    CertifiedKey::from_der(chain, key, provider).map_err(|e| Error::Certificate(e.to_string()))
}

/// The DNS names of a certificate, or its common name when it has none (as kube-apiserver does
/// for `--tls-sni-cert-key` without patterns).
fn certificate_names(key: &CertifiedKey) -> Vec<String> {
    use x509_parser::extensions::GeneralName;
    let Some(leaf) = key.cert.first() else { return Vec::new() };
    let Ok((_, parsed)) = X509Certificate::from_der(leaf) else { return Vec::new() };
    let mut names = Vec::new();
    if let Ok(Some(alternative)) = parsed.subject_alternative_name() {
        for name in &alternative.value.general_names {
            if let GeneralName::DNSName(dns) = name {
                names.push((*dns).to_owned());
            }
        }
    }
    if names.is_empty() {
        let common = parsed.subject().iter_common_name().filter_map(|n| n.as_str().ok());
        names.extend(common.map(str::to_owned));
    }
    names
}
