//! The key `compact_rev_key`, which Kubernetes' API servers use and kine keeps for itself.
//!
//! As kine does (`pkg/server/compact.go`), theirs is stored as `compact_rev_key_apiserver`, with
//! its version before its value: they compare the version, and the tables count none.

use bytes::Bytes;
use fp_store::{Key, Row};

use crate::proto::KeyValue;

const SEEN: &str = "compact_rev_key";
const STORED: &str = "compact_rev_key_apiserver";

/// The key as it is stored.
pub fn stored(key: Key) -> Key {
    if &*key == SEEN { STORED.into() } else { key }
}

pub fn is_it(key: &str) -> bool {
    key == STORED
}

/// The value that is stored for the next version.
pub fn encode(previous: Option<&Row>, value: &[u8]) -> Bytes {
    let version = previous.map_or(0, |row| decode(&row.value).0);
    [format!("{}|", version + 1).as_bytes(), value].concat().into()
}

/// Version and value. Older versions of kine stored the version alone.
pub fn decode(stored: &Bytes) -> (i64, Bytes) {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
    match stored.iter().position(|b| *b == b'|') {
        Some(bar) => (number(&stored[..bar]).unwrap_or(0), stored.slice(bar + 1..)),
        None => (number(stored).unwrap_or(0), Bytes::from_static(b"0")),
    }
}

/// How many writes a key has had since it was created, as far as that is known: 1 is exact, 2
/// means two or more.
pub fn version(row: &Row) -> i64 {
    match is_it(&row.key) {
        true => decode(&row.value).0,
        false if row.revision == row.created => 1,
        false => 2,
    }
}

/// A row as clients see it.
pub fn key_value(row: Row) -> KeyValue {
    let version = version(&row);
    let (key, value) = match is_it(&row.key) {
        true => (Bytes::from_static(SEEN.as_bytes()), decode(&row.value).1),
        false => (Bytes::copy_from_slice(row.key.as_bytes()), row.value),
    };
    KeyValue {
        key,
        create_revision: row.created.0,
        mod_revision: row.revision.0,
        version,
        value,
        lease: row.lease_ttl_secs.into(),
    }
}
