//! What etcd's `key` and `range_end` mean, as bounds of the keys that a store can hold.
//!
//! etcd's keys are any bytes, a store's are UTF-8 without NUL. A bound that is no such string is
//! moved to the next one: between the two no key can lie.

use bytes::Bytes;
use fp_store::{Key, check_key, prefix_end};

use crate::compact_key;
use crate::status::{EMPTY_KEY, Status};

/// The keys that a request means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// One key; `None` when no store could hold it.
    Key(Option<Key>),
    /// From the first on and before the second (`None`: to the last).
    Range(String, Option<String>),
}

impl Bounds {
    pub fn new(key: &Bytes, range_end: &Bytes) -> Result<Self, Status> {
        if key.is_empty() {
            return Err(EMPTY_KEY);
        }
        if range_end.is_empty() {
            let text = std::str::from_utf8(key).ok().filter(|text| check_key(text).is_ok());
            return Ok(Self::Key(text.map(|text| compact_key::stored(text.into()))));
        }
        // Clients write "every key" as the range from NUL on.
        let from = if **key == [0] { String::new() } else { at_or_after(key).unwrap_or_default() };
        let nothing = at_or_after(key).is_none();
        let end = match &**range_end {
            _ if nothing => Some(String::new()),
            [0] => None,
            end => at_or_after(end),
        };
        Ok(Self::Range(from, end))
    }

    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::Key(one) => one.as_deref() == Some(key),
            Self::Range(from, end) => {
                key >= from.as_str() && end.as_deref().is_none_or(|end| key < end)
            }
        }
    }

    /// A prefix that all these keys have.
    pub fn prefix(&self) -> &str {
        match self {
            Self::Key(key) => key.as_deref().unwrap_or_default(),
            Self::Range(from, end) => common_prefix(from, end.as_deref()),
        }
    }

    /// No key can be meant.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Key(key) => key.is_none(),
            Self::Range(from, end) => end.as_ref().is_some_and(|end| end <= from),
        }
    }
}

/// The longest beginning of `from` that every string from `from` on and before `end` has, if it
/// can be a store's prefix.
fn common_prefix<'a>(from: &'a str, end: Option<&str>) -> &'a str {
    let Some(end) = end else { return "" };
    let usable = from.find('\0').unwrap_or(from.len());
    let mut cuts = from[..usable].char_indices().map(|(i, c)| i + c.len_utf8()).rev();
    let all = |n: &usize| prefix_end(&from[..*n]).is_some_and(|after| end <= after.as_str());
    cuts.find(all).map_or("", |n| &from[..n])
}

/// The first string that is not below `bytes`; `None` when there is none.
fn at_or_after(bytes: &[u8]) -> Option<String> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Some(text.to_owned()),
        Err(error) => error,
    };
    let (good, rest) = bytes.split_at(error.valid_up_to());
    let mut text = String::from_utf8(good.to_vec()).expect("valid up to there");
    // Characters sort as their encodings do, so the first that is not below `rest` is searched.
    let (mut low, mut high) = (0, u32::from(char::MAX) + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        // Surrogates stand for the character after them.
        let c = char::from_u32(middle).unwrap_or('\u{e000}');
        if c.encode_utf8(&mut [0; 4]).as_bytes() < rest {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low > u32::from(char::MAX) {
        return prefix_end(&text);
    }
    text.push(char::from_u32(low).unwrap_or('\u{e000}'));
    Some(text)
}

/// A key that may be written.
pub fn writable(key: &Bytes) -> Result<Key, Status> {
    if key.is_empty() {
        return Err(EMPTY_KEY);
    }
    let text = std::str::from_utf8(key).ok().filter(|text| check_key(text).is_ok());
    let begins_well = |text: &&str| text.starts_with(|c: char| c == '/' || c.is_alphabetic());
    match text.filter(begins_well) {
        Some(text) => Ok(compact_key::stored(text.into())),
        None => Err(Status::invalid(
            "etcdserver: a key is UTF-8 without NUL, begins with / or a letter, and has at most 2048 bytes",
        )),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn meanings() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"/a", b""),
            (b"\xff", b""),
            (b"/a/", b"/a0"),
            (b"/a/b\0", b"/a0"),
            (b"/a/b", b"/a/d"),
            (b"/a", b"\0"),
            (b"\0", b"\0"),
            (b"\xc3\xa9", b"\xc3\xaa"),
            (b"/a\xff", b"/b"),
            (b"/a\xc3", b"/a\xc4"),
            (b"/b", b"/a"),
            (b"\xff", b"\0"),
        ];
        let mut out = String::new();
        for (key, end) in cases {
            let bounds = Bounds::new(&Bytes::from_static(key), &Bytes::from_static(end));
            let bounds = bounds.expect("a key is given");
            let empty = if bounds.is_empty() { " empty" } else { "" };
            out.push_str(&format!("{bounds:?} {:?}{empty}\n", bounds.prefix()));
        }
        expect![[r#"
            Key(Some("/a")) "/a"
            Key(None) "" empty
            Range("/a/", Some("/a0")) "/a/"
            Range("/a/b\0", Some("/a0")) "/a/"
            Range("/a/b", Some("/a/d")) "/a/"
            Range("/a", None) ""
            Range("", None) ""
            Range("é", Some("ê")) "é"
            Range("/b", Some("/b")) "/b" empty
            Range("/aÀ", Some("/aĀ")) "/a"
            Range("/b", Some("/a")) "/b" empty
            Range("", Some("")) "" empty
        "#]]
        .assert_eq(&out);
    }

    #[test]
    fn keys() {
        for good in ["/a", "a", "\u{e9}t\u{e9}"] {
            assert_eq!(writable(&Bytes::from(good)).as_deref(), Ok(good));
        }
        for bad in [&b"1"[..], b"-a", b"/a\0", b"/\xff", b" "] {
            writable(&Bytes::from_static(bad)).expect_err("it is no key");
        }
        assert_eq!(writable(&Bytes::new()), Err(EMPTY_KEY));
    }
}
