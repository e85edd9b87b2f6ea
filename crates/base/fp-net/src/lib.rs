//! Sockets: a listener, with TLS or without, that speaks HTTP/1.1 and HTTP/2, swaps its certificates while it runs,
//! and drains without breaking a request.
//!
//! Invariants: every connection, handshake and header has a limit named in [`limits`]; a client
//! certificate that does not verify is reported to the handler, it does not end the connection.
//! Deliberately absent: Kubernetes, who a certificate stands for.

mod clear;
mod framing;
pub mod limits;
pub mod listener;
pub mod serve;
mod stream;
pub mod tls;

pub use listener::{BindOptions, Listener};
pub use serve::{Drained, Serving, serve, serve_clear};
pub use tls::{ClientCert, Peer, PemPair, Tls, TlsOptions};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("listen on {addr}: the port is in use by another process; choose another or stop it")]
    InUse { addr: std::net::SocketAddr },
    #[error("listen on {addr}: this machine has no such address; choose another")]
    NoAddress { addr: std::net::SocketAddr },
    #[error("listen on {addr}: no permission for this port; choose one above 1023")]
    Permission { addr: std::net::SocketAddr },
    #[error("listen on {addr}")]
    Bind {
        addr: std::net::SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("listen on the Unix socket {path}")]
    BindUnix {
        path: std::path::PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("read {what} as PEM: {why}")]
    Pem { what: &'static str, why: String },
    #[error("use the certificate and key: {0}")]
    Certificate(String),
    #[error("{0:?} is not a TLS cipher suite of this server")]
    CipherSuite(String),
    #[error("{0:?} is not a TLS version of this server: VersionTLS12 or VersionTLS13")]
    Version(String),
    #[error("TLS group {0} is not offered by this server")]
    Curve(u16),
}
