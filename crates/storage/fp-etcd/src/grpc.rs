//! gRPC over HTTP: messages in frames, the status in trailers.
//!
//! Invariants: a request message has at most [`MESSAGE_BYTES_MAX`] bytes; a stream's answers wait
//! in a queue of [`QUEUE_MESSAGES`], and who fills it waits.
//! Deliberately absent: compression (a compressed message is refused, as the protocol says).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use tokio::sync::mpsc;

use crate::status::{Code, Status};

/// As etcd: a request of 1.5 MiB and half a MiB of overhead.
pub const MESSAGE_BYTES_MAX: usize = (1_572_864) + (512 << 10);
/// Answers of a stream that wait for the client.
pub const QUEUE_MESSAGES: usize = 16;
const FRAME_HEADER_BYTES: usize = 5;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// The body of an answer.
pub enum Body {
    /// Without trailers: plain HTTP, or a status in the headers.
    Plain(Option<Bytes>),
    /// One message, then the status.
    One(Option<Bytes>, Option<HeaderMap>),
    /// Messages until the sender is gone or sends a status.
    Many(mpsc::Receiver<Result<Bytes, Status>>, Option<()>),
}

/// Puts messages into an answer that goes on.
pub type Sink = mpsc::Sender<Result<Bytes, Status>>;

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Plain(bytes) => Poll::Ready(bytes.take().map(|data| Ok(Frame::data(data)))),
            Self::One(bytes, trailers) => {
                let data = bytes.take().map(Frame::data);
                Poll::Ready(data.or_else(|| trailers.take().map(Frame::trailers)).map(Ok))
            }
            Self::Many(_, None) => Poll::Ready(None),
            Self::Many(receiver, open) => receiver.poll_recv(cx).map(|next| {
                let status = match next {
                    Some(Ok(data)) => return Some(Ok(Frame::data(data))),
                    Some(Err(status)) => Some(status),
                    None => None,
                };
                *open = None;
                Some(Ok(Frame::trailers(status_headers(status.as_ref()))))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Plain(None) | Self::One(None, None) | Self::Many(_, None))
    }
}

/// One message as it is framed.
pub fn frame(message: &impl Message) -> Bytes {
    let n = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(FRAME_HEADER_BYTES + n);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(n).expect("answers are far below 4 GiB"));
    message.encode(&mut bytes).expect("the buffer grows");
    bytes.freeze()
}

/// The answer of a call with one answer.
pub fn answer(result: Result<Bytes, Status>) -> Response<Body> {
    match result {
        Ok(bytes) => {
            let mut response = Response::new(Body::One(Some(bytes), Some(status_headers(None))));
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            response
        }
        Err(status) => {
            let mut response = Response::new(Body::Plain(None));
            *response.headers_mut() = status_headers(Some(&status));
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            response
        }
    }
}

/// The answer of a call whose answers come over time.
pub fn stream() -> (Sink, Response<Body>) {
    let (sink, receiver) = mpsc::channel(QUEUE_MESSAGES);
    let mut response = Response::new(Body::Many(receiver, Some(())));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    (sink, response)
}

/// An answer of plain HTTP.
pub fn plain(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Plain(Some(text.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn status_headers(status: Option<&Status>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    let code = status.map_or(0, |status| status.code as u16);
    headers.insert(GRPC_STATUS, HeaderValue::from(code));
    if let Some(status) = status {
        let text = percent_encoded(&status.message);
        headers.insert(GRPC_MESSAGE, HeaderValue::from_str(&text).expect("only ASCII is left"));
    }
    headers
}

/// As gRPC wants a message: what is not printable ASCII, and `%`, as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => out.push_str(&format!("%{byte:02X}")),
            _ => out.push(byte.into()),
        }
    }
    out
}

/// The messages of a request, one after the other.
pub struct Messages {
    body: Incoming,
    buffer: BytesMut,
}

impl Messages {
    pub fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// The next message; `None` when the client has sent its last. Dropping the future between
    /// two polls loses nothing.
    pub async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = take_message(&mut self.buffer)? {
                let decoded = M::decode(message);
                return decoded.map(Some).map_err(|e| Status::invalid(format!("message: {e}")));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                // A stream that was reset: nobody hears the answer.
                Some(Err(_)) => return Ok(None),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Status::invalid("the request ends within a message")),
            }
        }
    }

    /// The message of a call that has one.
    pub async fn only<M: Message + Default>(mut self) -> Result<M, Status> {
        self.next().await?.ok_or_else(|| Status::invalid("the request holds no message"))
    }
}

fn take_message(buffer: &mut BytesMut) -> Result<Option<Bytes>, Status> {
    let Some((header, rest)) = buffer.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return Ok(None);
    };
    let [compressed, a, b, c, d] = *header;
    let n = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 {
        return Err(Status::unimplemented("a compressed message"));
    }
    if n > MESSAGE_BYTES_MAX {
        let message =
            format!("grpc: received message larger than max ({n} vs. {MESSAGE_BYTES_MAX})");
        return Err(Status { code: Code::ResourceExhausted, message: message.into() });
    }
    if rest.len() < n {
        return Ok(None);
    }
    buffer.advance(FRAME_HEADER_BYTES);
    Ok(Some(buffer.split_to(n).freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::HashKvRequest;

    #[test]
    fn messages_are_cut_out() {
        let mut buffer = BytesMut::new();
        for revision in [1, 300] {
            buffer.extend_from_slice(&frame(&HashKvRequest { revision }));
        }
        let whole = buffer.clone();
        let mut found = Vec::new();
        while let Some(bytes) = take_message(&mut buffer).expect("good frames") {
            found.push(HashKvRequest::decode(bytes).expect("a message").revision);
        }
        assert_eq!(found, [1, 300]);
        assert_eq!(take_message(&mut BytesMut::from(&whole[..6])), Ok(None));
        let refused = take_message(&mut BytesMut::from(&[0, 0xff, 0, 0, 0][..])).unwrap_err();
        assert_eq!(refused.code, Code::ResourceExhausted);
        let refused = take_message(&mut BytesMut::from(&[1, 0, 0, 0, 0][..])).unwrap_err();
        assert_eq!(refused.code, Code::Unimplemented);
    }

    #[test]
    fn texts_are_ascii() {
        assert_eq!(percent_encoded("50% \u{e9}\n~"), "50%25 %C3%A9%0A~");
    }
}
