//! The protobuf wire: varints, tags and length-delimited values.

use super::Error;

pub const VARINT: u8 = 0;
pub const FIXED64: u8 = 1;
pub const BYTES: u8 = 2;
pub const FIXED32: u8 = 5;

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_tag(out: &mut Vec<u8>, tag: u32, wire_type: u8) {
    put_varint(out, u64::from(tag) << 3 | u64::from(wire_type));
}

pub fn put_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_tag(out, tag, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub fn put_int(out: &mut Vec<u8>, tag: u32, value: i64) {
    put_tag(out, tag, VARINT);
    put_varint(out, value as u64);
}

/// Writes a length-delimited field whose body `write` appends. The length goes in afterwards: most
/// bodies are short, so moving them by a byte or two costs less than measuring twice.
pub fn put_nested<E>(
    out: &mut Vec<u8>,
    tag: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(out, tag, BYTES);
    let start = out.len();
    out.push(0);
    write(out)?;
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        put_varint(&mut prefix, len as u64);
        out.splice(start..=start, prefix);
    }
    Ok(())
}

/// One field's value as it stands on the wire.
#[derive(Clone, Copy, Debug)]
pub enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl Raw<'_> {
    pub fn wire_type(&self) -> u8 {
        match self {
            Self::Varint(_) => VARINT,
            Self::Fixed64(_) => FIXED64,
            Self::Bytes(_) => BYTES,
            Self::Fixed32 => FIXED32,
        }
    }
}

/// Reads fields one after another.
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next field's tag and value; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, Error> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let head = self.varint()?;
        let tag = u32::try_from(head >> 3).map_err(|_| Error::Tag(head >> 3))?;
        if tag == 0 {
            return Err(Error::Tag(0));
        }
        let raw = match head as u8 & 7 {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => {
                let bytes = self.take(8)?.try_into().expect("eight bytes were taken");
                Raw::Fixed64(u64::from_le_bytes(bytes))
            }
            BYTES => {
                let len = usize::try_from(self.varint()?).map_err(|_| Error::Overflow)?;
                Raw::Bytes(self.take(len)?)
            }
            FIXED32 => self.take(4).map(|_| Raw::Fixed32)?,
            // Groups are not part of any Kubernetes message, not even of an unknown field.
            _ => return Err(Error::Tag(head)),
        };
        Ok(Some((tag, raw)))
    }

    pub fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for (at, &byte) in self.bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.bytes = &self.bytes[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.bytes.len() < 10 { Error::Truncated } else { Error::Overflow })
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }
}
