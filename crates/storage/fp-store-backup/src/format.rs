//! The bytes: blocks, records, header and trailer, each both ways. All numbers are little-endian.

use std::sync::Arc;

use bytes::Bytes;
use fp_base::Revision;
use fp_store::{KEY_BYTES_MAX, Row, VALUE_BYTES_MAX};
use sha2::{Digest, Sha256};

use crate::Header;

/// The first line, up to the version.
pub(crate) const MAGIC: &str = "ferroplane-backup ";
/// The longest first line.
pub(crate) const FIRST_LINE_MAX: usize = MAGIC.len() + 11;
/// A block is written when its records have so many bytes.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// No block has more: one record of the longest key and value beyond the above.
pub(crate) const BLOCK_BYTES_MAX: usize =
    BLOCK_BYTES + RECORD_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX;
/// A record without its key and value.
const RECORD_BYTES: usize = 4 + 4 + 8 + 8 + 4;
/// Kind and length before a block, checksum after it.
pub(crate) const FRAME_BYTES: usize = 1 + 4;
pub(crate) const SUM_BYTES: usize = 8;
pub(crate) const DIGEST_BYTES: usize = 32;

pub(crate) const HEADER: u8 = b'H';
pub(crate) const RECORDS: u8 = b'R';
pub(crate) const TRAILER: u8 = b'T';

/// The checksum after a block: the first bytes of the SHA-256 of its number, kind and payload.
pub(crate) fn sum(block: u64, kind: u8, payload: &[u8]) -> [u8; SUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update(block.to_le_bytes());
    hash.update([kind]);
    hash.update((payload.len() as u32).to_le_bytes());
    hash.update(payload);
    let digest = hash.finalize();
    std::array::from_fn(|i| digest[i])
}

pub(crate) fn put_header(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(header.revision.0.to_le_bytes());
    out.extend(header.n_keys.to_le_bytes());
    out.extend(header.taken_secs.to_le_bytes());
    put_bytes(&mut out, header.source.as_bytes());
    put_bytes(&mut out, header.prefix.as_bytes());
    out
}

pub(crate) fn take_header(payload: &[u8]) -> Option<Header> {
    let mut input = Input(payload);
    let header = Header {
        revision: Revision(input.i64()?),
        n_keys: input.i64()?.cast_unsigned(),
        taken_secs: input.i64()?.cast_unsigned(),
        source: input.text(KEY_BYTES_MAX)?.to_owned(),
        prefix: input.text(KEY_BYTES_MAX)?.to_owned(),
    };
    input.0.is_empty().then_some(header)
}

pub(crate) fn put_record(out: &mut Vec<u8>, row: &Row) {
    put_bytes(out, row.key.as_bytes());
    put_bytes(out, &row.value);
    out.extend(row.created.0.to_le_bytes());
    out.extend(row.revision.0.to_le_bytes());
    out.extend(row.lease_ttl_secs.to_le_bytes());
}

pub(crate) fn take_records(payload: &[u8]) -> Option<Vec<Row>> {
    let mut input = Input(payload);
    let mut rows = Vec::new();
    while !input.0.is_empty() {
        let key = Arc::from(input.text(KEY_BYTES_MAX)?);
        let value = Bytes::copy_from_slice(input.bytes(VALUE_BYTES_MAX)?);
        let (created, revision) = (Revision(input.i64()?), Revision(input.i64()?));
        rows.push(Row { key, value, revision, created, lease_ttl_secs: input.u32()? });
    }
    Some(rows)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    fn bytes(&mut self, max: usize) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(n).filter(|_| n <= max)?;
        self.0 = rest;
        Some(head)
    }

    fn text(&mut self, max: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(max)?).ok()
    }
}
