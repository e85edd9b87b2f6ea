//! A bound TCP port.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{Error, limits};

/// How a port is bound. `SO_REUSEADDR` is always set: a restart need not wait for old sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct BindOptions {
    /// `SO_REUSEPORT`: another process may listen on the port too (`--permit-port-sharing`).
    pub share_port: bool,
}

/// A listening socket. Connections queue in the kernel from here on, before [`crate::serve`].
pub struct Listener {
    tcp: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Binds `addr`; port 0 takes a free one, which [`Listener::addr`] names.
    /// Must be called within a tokio runtime.
    pub fn bind(addr: SocketAddr, options: BindOptions) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse { addr },
            io::ErrorKind::AddrNotAvailable => Error::NoAddress { addr },
            io::ErrorKind::PermissionDenied => Error::Permission { addr },
            _ => Error::Bind { addr, source },
        };
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(failed)?;
        socket.set_reuseaddr(true).map_err(failed)?;
        if options.share_port {
            socket.set_reuseport(true).map_err(failed)?;
        }
        socket.bind(addr).map_err(failed)?;
        let tcp = socket.listen(limits::BACKLOG).map_err(failed)?;
        let addr = tcp.local_addr().map_err(failed)?;
        Ok(Self { tcp, addr })
    }

    /// The address that is bound, with its real port.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.tcp.accept().await?;
        // Answers are small and complete: waiting for more to send costs a delayed ACK.
        stream.set_nodelay(true)?;
        Ok((stream, peer))
    }
}
