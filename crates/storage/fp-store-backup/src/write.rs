//! Writing a backup, as it comes.

use std::io::Write;

use fp_store::{Key, Row};
use sha2::{Digest, Sha256};

use crate::format::{BLOCK_BYTES, HEADER, MAGIC, RECORDS, TRAILER, put_header, put_record, sum};
use crate::{Error, Header, VERSION};

/// Writes the header at once, records in blocks, and the trailer at the end.
pub struct Writer<W> {
    out: W,
    header: Header,
    block: Vec<u8>,
    n_blocks: u64,
    n_keys: u64,
    last: Option<Key>,
    hash: Sha256,
    n_bytes: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, header: Header) -> Result<Self, Error> {
        let payload = put_header(&header);
        let (block, hash) = (Vec::new(), Sha256::new());
        let mut writer =
            Self { out, header, block, n_blocks: 0, n_keys: 0, last: None, hash, n_bytes: 0 };
        writer.put(format!("{MAGIC}{VERSION}\n").as_bytes())?;
        writer.put_block(HEADER, &payload)?;
        Ok(writer)
    }

    /// Rows come in the order of their keys.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        if self.last.as_ref().is_some_and(|last| *last >= row.key) {
            return Err(Error::Given(format!("{} is out of order", row.key)));
        }
        if !row.key.starts_with(&self.header.prefix) || row.revision > self.header.revision {
            return Err(Error::Given(format!("{} was not selected", row.key)));
        }
        self.last = Some(row.key.clone());
        self.n_keys += 1;
        put_record(&mut self.block, row);
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the trailer. Returns what was written into, and how many bytes.
    pub fn finish(mut self) -> Result<(W, u64), Error> {
        self.flush()?;
        let (given, announced) = (self.n_keys, self.header.n_keys);
        if given != announced {
            return Err(Error::Given(format!("{given} keys instead of {announced}")));
        }
        let mut payload = Vec::new();
        payload.extend(self.n_keys.to_le_bytes());
        payload.extend(self.n_blocks.to_le_bytes());
        payload.extend(self.hash.clone().finalize());
        self.put_block(TRAILER, &payload)?;
        self.out.flush()?;
        Ok((self.out, self.n_bytes))
    }

    fn flush(&mut self) -> Result<(), Error> {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() { Ok(()) } else { self.put_block(RECORDS, &block) }
    }

    fn put_block(&mut self, kind: u8, payload: &[u8]) -> Result<(), Error> {
        self.put(&[kind])?;
        self.put(&(payload.len() as u32).to_le_bytes())?;
        self.put(payload)?;
        self.put(&sum(self.n_blocks, kind, payload))?;
        self.n_blocks += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hash.update(bytes);
        self.n_bytes += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}
