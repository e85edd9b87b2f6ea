//! Reading a backup, and checking one to its end.

use std::io::{ErrorKind, Read};

use fp_store::{Key, Row, check_key};
use sha2::{Digest, Sha256};

use crate::format::{
    BLOCK_BYTES_MAX, DIGEST_BYTES, FIRST_LINE_MAX, FRAME_BYTES, HEADER, MAGIC, RECORDS, SUM_BYTES,
    TRAILER, sum, take_header, take_records,
};
use crate::{Error, Header, Place, VERSION};

/// Reads block by block; every block is checked before its rows are given.
pub struct Reader<R> {
    input: R,
    header: Header,
    state: State,
}

/// What has been read so far.
struct State {
    at: u64,
    n_blocks: u64,
    n_keys: u64,
    last: Option<Key>,
    hash: Sha256,
    ended: bool,
}

struct Block {
    place: Place,
    kind: u8,
    payload: Vec<u8>,
    sum_holds: bool,
    /// Of everything before the block.
    digest: [u8; DIGEST_BYTES],
}

impl Block {
    fn fault(&self, what: impl Into<String>) -> Error {
        Error::Damaged { place: self.place, what: what.into() }
    }

    fn check_sum(&self) -> Result<(), Error> {
        if self.sum_holds { Ok(()) } else { Err(self.fault("its checksum does not match")) }
    }
}

impl<R: Read> Reader<R> {
    /// Reads the first line and the header.
    pub fn open(mut input: R) -> Result<Self, Error> {
        let hash = Sha256::new();
        let mut state = State { at: 0, n_blocks: 0, n_keys: 0, last: None, hash, ended: false };
        state.first_line(&mut input)?;
        let block = state.block(&mut input)?;
        block.check_sum()?;
        if block.kind != HEADER {
            return Err(block.fault("it is not a header"));
        }
        let header = take_header(&block.payload);
        let header = header.ok_or_else(|| block.fault("it is not a header as we know it"))?;
        Ok(Self { input, header, state })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The rows of the next block; `None` after the trailer, when everything has been found right.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Row>>, Error> {
        if self.state.ended {
            return Ok(None);
        }
        let block = self.state.block(&mut self.input)?;
        block.check_sum()?;
        self.take(&block)
    }

    fn take(&mut self, block: &Block) -> Result<Option<Vec<Row>>, Error> {
        match block.kind {
            RECORDS => {
                let rows = take_records(&block.payload);
                let rows = rows.ok_or_else(|| block.fault("its records cannot be read"))?;
                self.state.n_keys += rows.len() as u64;
                self.check_rows(&rows).map_err(|what| block.fault(what))?;
                Ok(Some(rows))
            }
            TRAILER => {
                self.check_trailer(block)?;
                self.state.ended = true;
                Ok(None)
            }
            _ => Err(block.fault("it is of an unknown kind")),
        }
    }

    fn check_rows(&mut self, rows: &[Row]) -> Result<(), String> {
        for row in rows {
            check_key(&row.key).map_err(|_| format!("{:?} is not a key", row.key))?;
            if self.state.last.as_ref().is_some_and(|last| *last >= row.key) {
                return Err(format!("{} is out of order", row.key));
            }
            self.state.last = Some(row.key.clone());
            if !row.key.starts_with(&self.header.prefix) {
                return Err(format!("{} does not begin with the prefix", row.key));
            }
            let (created, revision) = (row.created.0, row.revision.0);
            if created < 1 || created > revision || revision > self.header.revision.0 {
                let upto = self.header.revision;
                let what = "has impossible revisions";
                return Err(format!("{} {what} {created}..{revision}, backup at {upto}", row.key));
            }
        }
        Ok(())
    }

    fn check_trailer(&mut self, block: &Block) -> Result<(), Error> {
        let number = |at: usize| {
            let bytes = block.payload.get(at..at + 8).and_then(|b| b.try_into().ok());
            bytes.map(u64::from_le_bytes)
        };
        let (Some(n_keys), Some(n_blocks), Some(digest)) =
            (number(0), number(8), block.payload.get(16..16 + DIGEST_BYTES))
        else {
            return Err(block.fault("it is not a trailer"));
        };
        if digest != block.digest || n_blocks != block.place.block {
            return Err(block.fault("the SHA-256 of the file does not match"));
        }
        let (read, announced) = (self.state.n_keys, self.header.n_keys);
        if n_keys != read || announced != read || block.payload.len() != 16 + DIGEST_BYTES {
            let what = format!("{read} keys, the header says {announced}, the trailer {n_keys}");
            return Err(block.fault(what));
        }
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(block.fault("bytes follow it")),
        }
    }
}

impl State {
    fn first_line(&mut self, input: &mut impl Read) -> Result<(), Error> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            if line.len() == FIRST_LINE_MAX || input.read(&mut byte)? == 0 {
                return Err(Error::Foreign);
            }
            line.push(byte[0]);
        }
        let version = std::str::from_utf8(&line).ok().and_then(|line| line.strip_prefix(MAGIC));
        let digits = version.and_then(|version| version.strip_suffix('\n'));
        let digits =
            digits.filter(|d| d.bytes().all(|b| b.is_ascii_digit()) && !d.starts_with('0'));
        match digits.and_then(|version| version.parse().ok()) {
            Some(VERSION) => {}
            Some(newer) => return Err(Error::Newer(newer)),
            None => return Err(Error::Foreign),
        }
        self.hash.update(&line);
        self.at = line.len() as u64;
        Ok(())
    }

    fn block(&mut self, input: &mut impl Read) -> Result<Block, Error> {
        let place = Place { block: self.n_blocks, at: self.at };
        let digest = self.hash.clone().finalize();
        let digest = std::array::from_fn(|i| digest[i]);
        let mut frame = [0; FRAME_BYTES];
        self.fill(input, &mut frame)?;
        let [kind, length @ ..] = frame;
        let length = u32::from_le_bytes(length) as usize;
        if !matches!(kind, HEADER | RECORDS | TRAILER) || length > BLOCK_BYTES_MAX {
            let what = "no block begins here: the file is damaged".into();
            return Err(Error::Damaged { place, what });
        }
        let mut payload = vec![0; length];
        self.fill(input, &mut payload)?;
        let mut found = [0; SUM_BYTES];
        self.fill(input, &mut found)?;
        let sum_holds = found == sum(place.block, kind, &payload);
        self.n_blocks += 1;
        Ok(Block { place, kind, payload, sum_holds, digest })
    }

    fn fill(&mut self, input: &mut impl Read, bytes: &mut [u8]) -> Result<(), Error> {
        input.read_exact(bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::Truncated { at: self.at },
            _ => Error::Io(e),
        })?;
        self.at += bytes.len() as u64;
        self.hash.update(bytes);
        Ok(())
    }
}

/// What a check found.
pub struct Found {
    pub header: Option<Header>,
    pub n_keys: u64,
    pub n_bytes: u64,
    pub faults: Vec<Error>,
}

/// The most faults that are listed; a file with more is no better known by them.
const FAULTS_MAX: usize = 1000;

/// Reads a backup to its end, goes on after a damaged block where that is possible, and names all
/// that is wrong. An error is that the file could not be read.
pub fn check(input: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Found, std::io::Error> {
    let mut found = Found { header: None, n_keys: 0, n_bytes: 0, faults: Vec::new() };
    let mut reader = match Reader::open(input) {
        Ok(reader) => reader,
        Err(Error::Io(e)) => return Err(e),
        Err(fault) => {
            found.faults.push(fault);
            return Ok(found);
        }
    };
    found.header = Some(reader.header.clone());
    while !reader.state.ended && found.faults.len() < FAULTS_MAX {
        let block = match reader.state.block(&mut reader.input) {
            Ok(block) => block,
            Err(Error::Io(e)) => return Err(e),
            Err(fault) => {
                found.faults.push(fault);
                break;
            }
        };
        match block.check_sum().and_then(|()| reader.take(&block)) {
            Ok(_) => {}
            Err(Error::Io(e)) => return Err(e),
            Err(fault) => {
                found.faults.push(fault);
                reader.state.ended = block.kind == TRAILER;
            }
        }
        progress(reader.state.n_keys);
    }
    found.n_keys = reader.state.n_keys;
    found.n_bytes = reader.state.at;
    Ok(found)
}
