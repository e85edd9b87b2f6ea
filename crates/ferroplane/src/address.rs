//! The addresses of this server: what it binds, and what clients are told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use crate::options::Options;

/// The URLs of this shard, without a trailing slash.
#[derive(Clone, Debug)]
pub struct Urls {
    /// `host:port` for clients.
    pub external_address: String,
    pub base: String,
    pub external: String,
    pub virtual_workspace: String,
}

/// The host that clients use: the one given, the address bound, or this machine's own.
pub fn external_host(options: &Options) -> String {
    match &options.external_hostname {
        Some(name) => name.clone(),
        None if options.bind.is_unspecified() => own_address().to_string(),
        None => options.bind.to_string(),
    }
}

/// The address of the interface with the default route. Connecting a datagram socket chooses it
/// and sends nothing; without a route it is the loopback.
fn own_address() -> IpAddr {
    let chosen = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        // TEST-NET-1: an address that is never anybody's.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    chosen().filter(|a| !a.is_unspecified()).unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// What the self-made certificate is valid for.
pub fn certificate_names(host: &str) -> Vec<String> {
    let mut names = vec![host.to_owned()];
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ] {
        if name != host {
            names.push(name.to_owned());
        }
    }
    names
}

/// The URLs once the port is known.
pub fn urls(options: &Options, host: &str, bound: SocketAddr) -> Urls {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let external_address = format!("{host}:{}", bound.port());
    let base =
        options.shard_base_url.clone().unwrap_or_else(|| format!("https://{external_address}"));
    let or_base = |url: &Option<String>| url.clone().unwrap_or_else(|| base.clone());
    Urls {
        external: or_base(&options.shard_external_url),
        virtual_workspace: or_base(&options.shard_virtual_workspace_url),
        external_address,
        base,
    }
}
