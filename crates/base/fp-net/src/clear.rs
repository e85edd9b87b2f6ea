//! Connections without TLS: HTTP/1 or HTTP/2 is known by the first bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 with prior knowledge sends first (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream some of whose bytes have been read ahead.
pub(crate) struct Rewound<S> {
    inner: S,
    ahead: [u8; PREFACE.len()],
    n_ahead: usize,
    n_given: usize,
}

/// Reads until it is clear whether the peer speaks HTTP/2, and puts back what was read.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(mut inner: S) -> io::Result<(bool, Rewound<S>)> {
    let (mut ahead, mut n_ahead) = ([0; PREFACE.len()], 0);
    while n_ahead < PREFACE.len() && ahead[..n_ahead] == PREFACE[..n_ahead] {
        match inner.read(&mut ahead[n_ahead..]).await? {
            0 => break,
            n => n_ahead += n,
        }
    }
    Ok((ahead == *PREFACE, Rewound { inner, ahead, n_ahead, n_given: 0 }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.n_given == this.n_ahead {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        let n = buf.remaining().min(this.n_ahead - this.n_given);
        buf.put_slice(&this.ahead[this.n_given..this.n_given + n]);
        this.n_given += n;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(sent: &[u8], h2: bool) {
        // Byte by byte, as a slow peer sends.
        let (mut peer, ours) = tokio::io::duplex(1);
        let bytes = sent.to_vec();
        let sending = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut peer, &bytes).await.expect("send");
        });
        let (found, mut stream) = sniff(ours).await.expect("sniff");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.expect("read");
        sending.await.expect("sent");
        assert_eq!((found, &*all), (h2, sent));
    }

    #[tokio::test]
    async fn nothing_is_lost() {
        check(b"GET / HTTP/1.1\r\n\r\n", false).await;
        check(b"PRI", false).await;
        check(b"PRINT / HTTP/1.1\r\n\r\nand a long body that follows", false).await;
        check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nframes", true).await;
        check(b"", false).await;
    }
}
