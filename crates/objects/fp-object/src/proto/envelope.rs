//! The `k8s\0` envelope (`runtime.Unknown`), lists of encoded items, and watch frames.

use super::wire::{self, Raw, Reader};
use super::{Error, Message, encode};
use crate::Object;

/// What every Kubernetes protobuf body and stored value begins with.
pub const PREFIX: &[u8; 4] = b"k8s\0";

/// The largest watch frame that [`unframe`] reads.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// An envelope's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    /// The message itself.
    pub raw: &'a [u8],
    /// Empty, or `application/json` where a custom resource travels in the envelope.
    pub content_type: &'a str,
}

/// Puts a message into the envelope.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len() + api_version.len() + kind.len() + 24);
    out.extend_from_slice(PREFIX);
    let done: Result<(), std::convert::Infallible> = wire::put_nested(&mut out, 1, |out| {
        wire::put_bytes(out, 1, api_version.as_bytes());
        wire::put_bytes(out, 2, kind.as_bytes());
        Ok(())
    });
    match done {
        Ok(()) => {}
    }
    wire::put_bytes(&mut out, 2, raw);
    wire::put_bytes(&mut out, 3, b"");
    wire::put_bytes(&mut out, 4, b"");
    out
}

/// Opens the envelope.
///
/// # Errors
/// No envelope, or one that is compressed.
pub fn unwrap(bytes: &[u8]) -> Result<Unknown<'_>, Error> {
    let body = bytes.strip_prefix(PREFIX.as_slice()).ok_or(Error::Prefix)?;
    let mut out = Unknown { api_version: "", kind: "", raw: b"", content_type: "" };
    let mut reader = Reader::new(body);
    while let Some((tag, raw)) = reader.next()? {
        match (tag, raw) {
            (1, Raw::Bytes(type_meta)) => {
                let mut reader = Reader::new(type_meta);
                while let Some((tag, raw)) = reader.next()? {
                    match (tag, raw) {
                        (1, Raw::Bytes(text)) => out.api_version = utf8(text)?,
                        (2, Raw::Bytes(text)) => out.kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Raw::Bytes(raw)) => out.raw = raw,
            (3, Raw::Bytes([])) => {}
            (3, Raw::Bytes(text)) => return Err(Error::Encoding(utf8(text)?.to_owned())),
            (4, Raw::Bytes(text)) => out.content_type = utf8(text)?,
            (1..=4, raw) => {
                let (message, field) = ("k8s.io.apimachinery.pkg.runtime.Unknown", "");
                return Err(Error::WireType { message, field, wire_type: raw.wire_type() });
            }
            _ => {}
        }
    }
    Ok(out)
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::Prefix)
}

/// The wire form of a list whose items are encoded already: every Kubernetes list has its
/// `ListMeta` as field 1 and its items as field 2.
///
/// # Errors
/// A member of `metadata` of another type than `ListMeta` has.
pub fn encode_list<'a>(
    list_meta: &'static Message,
    metadata: &Object,
    items: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(1024);
    wire::put_bytes(&mut out, 1, &encode(list_meta, metadata)?);
    for item in items {
        wire::put_bytes(&mut out, 2, item);
    }
    Ok(out)
}

/// A `metav1.WatchEvent` in its frame. `object` is a whole body, envelope included.
pub fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(kind.len() + object.len() + 24);
    wire::put_bytes(&mut event, 1, kind.as_bytes());
    let mut raw = Vec::with_capacity(object.len() + 8);
    wire::put_bytes(&mut raw, 1, object);
    wire::put_bytes(&mut event, 2, &raw);
    frame(&event)
}

/// The type and the object of a frame's content.
///
/// # Errors
/// Bytes that are no `WatchEvent`.
pub fn unwrap_watch_event(event: &[u8]) -> Result<(&str, &[u8]), Error> {
    let (mut kind, mut object): (&str, &[u8]) = ("", b"");
    let mut reader = Reader::new(event);
    while let Some((tag, raw)) = reader.next()? {
        match (tag, raw) {
            (1, Raw::Bytes(text)) => kind = utf8(text)?,
            (2, Raw::Bytes(extension)) => {
                let mut reader = Reader::new(extension);
                while let Some((tag, raw)) = reader.next()? {
                    if let (1, Raw::Bytes(bytes)) = (tag, raw) {
                        object = bytes;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((kind, object))
}

/// Puts four bytes of length, big endian, before the content.
pub fn frame(content: &[u8]) -> Vec<u8> {
    let len =
        u32::try_from(content.len()).expect("an event is smaller than the store's value limit");
    [&len.to_be_bytes(), content].concat()
}

/// A frame's content and the bytes behind it.
pub type Halves<'a> = (&'a [u8], &'a [u8]);

/// The first frame's content and what follows it; `None` while the frame is incomplete.
///
/// # Errors
/// A length over [`FRAME_BYTES_MAX`].
pub fn unframe(bytes: &[u8]) -> Result<Option<Halves<'_>>, Error> {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_be_bytes(*head) as usize;
    if len > FRAME_BYTES_MAX {
        return Err(Error::Frame(len));
    }
    Ok(rest.split_at_checked(len))
}
