//! Connections without TLS: HTTP/1 or HTTP/2 is known by the first bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::stream::Stream;

/// What a client of HTTP/2 with prior knowledge sends first (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is clear whether the peer speaks HTTP/2, and puts back what was read.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(mut inner: S) -> io::Result<(bool, Stream<S>)> {
    let (mut ahead, mut n_ahead) = ([0; PREFACE.len()], 0);
    while n_ahead < PREFACE.len() && ahead[..n_ahead] == PREFACE[..n_ahead] {
        match inner.read(&mut ahead[n_ahead..]).await? {
            0 => break,
            n => n_ahead += n,
        }
    }
    Ok((ahead == *PREFACE, Stream::after(ahead[..n_ahead].to_vec(), inner)))
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
