//! A bound TCP port or Unix socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::{Error, limits};

/// How a port is bound. `SO_REUSEADDR` is always set: a restart need not wait for old sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct BindOptions {
    /// `SO_REUSEPORT`: another process may listen on the port too (`--permit-port-sharing`).
    pub share_port: bool,
}

/// A listening socket. Connections queue in the kernel from here on, before [`crate::serve`].
pub struct Listener {
    socket: Socket,
    addr: SocketAddr,
}

enum Socket {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf },
}

/// An accepted connection.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

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
        Ok(Self { socket: Socket::Tcp(tcp), addr })
    }

    /// Binds a Unix socket; a socket that an earlier process left at `path` is removed, another
    /// kind of file is not. Must be called within a tokio runtime.
    pub fn bind_unix(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::FileTypeExt;
        let failed = |source| Error::BindUnix { path: path.to_owned(), source };
        let left = std::fs::symlink_metadata(path);
        if left.is_ok_and(|left| left.file_type().is_socket()) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let addr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        Ok(Self { socket: Socket::Unix { listener, path: path.to_owned() }, addr })
    }

    /// The address that is bound, with its real port; of a Unix socket `0.0.0.0:0`.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) async fn accept(&self) -> io::Result<(Box<dyn Io>, SocketAddr)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small and complete: waiting for more to send costs a delayed ACK.
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), peer))
            }
            Socket::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), self.addr))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix { path, .. } = &self.socket {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}
