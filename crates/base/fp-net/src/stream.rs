//! A connection's bytes: those read ahead come first, and a gate may look at all of them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::framing::Gate;

pub(crate) struct Stream<S> {
    inner: S,
    ahead: Vec<u8>,
    n_given: usize,
    gate: Option<Gate>,
}

impl<S> Stream<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self::after(Vec::new(), inner)
    }

    /// A stream some of whose bytes have been read.
    pub(crate) fn after(ahead: Vec<u8>, inner: S) -> Self {
        Self { inner, ahead, n_given: 0, gate: None }
    }

    /// The same, of HTTP/1: what is read goes through a gate.
    pub(crate) fn gated(self) -> Self {
        Self { gate: Some(Gate::new()), ..self }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let ahead = &this.ahead[this.n_given..];
        if ahead.is_empty() {
            ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        } else {
            let n = buf.remaining().min(ahead.len());
            buf.put_slice(&ahead[..n]);
            this.n_given += n;
        }
        if let Some(gate) = &mut this.gate {
            gate.pass(&mut buf.filled_mut()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
