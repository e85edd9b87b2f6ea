//! Bodies: a request's, read whole under a limit; a response's, whole or streamed.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

/// The largest request body, in bytes (apiserver's `MaxRequestBodyBytes`).
pub const REQUEST_BYTES_MAX: usize = 3 << 20;

/// How much of a body that is too large is thrown away before the refusal. A client that writes
/// all before it reads would otherwise find the connection gone, and never see the answer.
const DISCARDED_BYTES_MAX: usize = REQUEST_BYTES_MAX + (256 << 10);

/// How long it is waited for what is thrown away.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// A response body.
pub enum Body {
    /// All of it; `None` once it has been handed out.
    Whole(Option<Bytes>),
    /// A watch.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    pub fn stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::Stream(Box::pin(frames))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Self::Stream(frames) => {
                frames.as_mut().poll_next(cx).map(|next| next.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Why a request body could not be read.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadError {
    TooLarge,
    /// The client went away, or broke the framing.
    Broken,
}

/// Reads a whole body of at most [`REQUEST_BYTES_MAX`]. One frame, the usual case, is not copied.
pub async fn read<B>(mut body: B) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    // A declared length needs no memory to be refused.
    let declared = body.size_hint().lower();
    if declared > REQUEST_BYTES_MAX as u64 {
        // More than would be thrown away cannot be waited for at all.
        if declared <= DISCARDED_BYTES_MAX as u64 {
            discard(body).await;
        }
        return Err(ReadError::TooLarge);
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ReadError::Broken)?.into_data() else { continue };
        if first.len() + all.len() + data.len() > REQUEST_BYTES_MAX {
            drop((first, all));
            discard(body).await;
            return Err(ReadError::TooLarge);
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Ends when the client stops sending, too.
async fn discard<B>(mut body: B)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let _ = tokio::time::timeout(DISCARD_TIME, discard_all(&mut body)).await;
}

async fn discard_all<B>(body: &mut B)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut left = DISCARDED_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
