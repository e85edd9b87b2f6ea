//! What a key, a prefix and a transaction may be: the checks every backend makes first.

use fp_base::Revision;

use crate::{
    Compare, Error, KEY_BYTES_MAX, Key, ListQuery, Op, Store, TXN_BYTES_MAX, TXN_OPS_MAX, Txn,
    VALUE_BYTES_MAX,
};

/// A key is not empty, holds no NUL and has at most [`KEY_BYTES_MAX`] bytes.
pub fn check_key(key: &str) -> Result<(), Error> {
    let good = !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.as_bytes().contains(&0);
    if good { Ok(()) } else { Err(Error::Key(shortened(key))) }
}

/// A prefix is a key or empty.
pub fn check_prefix(prefix: &str) -> Result<(), Error> {
    if prefix.is_empty() { Ok(()) } else { check_key(prefix) }
}

/// The first string after all that begin with `prefix`, in byte order; `None` when there is none.
pub fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // Surrogates are not characters, and UTF-8 sorts as its code points do.
        let next = if last == '\u{d7ff}' { 0xe000 } else { u32::from(last) + 1 };
        if let Some(next) = char::from_u32(next) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

impl Op {
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    /// Bytes of key and value.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

impl Compare {
    /// The one key that is compared; `None` for a range.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Absent(key) | Self::At(key, _) => Some(key),
            Self::Unchanged { .. } => None,
        }
    }
}

impl Txn {
    /// Every key and value is within its limits, and so is the whole.
    pub fn check(&self) -> Result<(), Error> {
        for key in self.compares.iter().filter_map(Compare::key).chain(self.ops.iter().map(Op::key))
        {
            check_key(key)?;
        }
        for op in &self.ops {
            if let Op::Put { key, value, .. } = op
                && value.len() > VALUE_BYTES_MAX
            {
                let key = key.clone();
                return Err(Error::TooLarge { key, bytes: value.len(), max: VALUE_BYTES_MAX });
            }
        }
        let n_parts = self.compares.len() + self.ops.len();
        if n_parts > TXN_OPS_MAX || self.size_bytes() > TXN_BYTES_MAX {
            let what = format!(
                "a transaction has at most {TXN_OPS_MAX} compares and writes and {TXN_BYTES_MAX} bytes"
            );
            return Err(Error::Unavailable { what, source: None });
        }
        Ok(())
    }

    /// Bytes of all keys and values that are written.
    pub fn size_bytes(&self) -> usize {
        self.ops.iter().map(Op::size_bytes).sum()
    }
}

/// [`Store::count_range`] by reading pages.
pub(crate) async fn count_by_list<S: Store + ?Sized>(
    store: &S,
    from: &str,
    end: Option<&str>,
    mut at: Revision,
) -> Result<u64, Error> {
    const PAGE_ROWS: usize = 1_000;
    // The last key below `from` that a page may start after is not known: `from` is looked at alone.
    let mut n = 0;
    let mut after = from.strip_suffix('\0').unwrap_or(from).to_owned();
    if at == Revision::ZERO {
        at = store.head().await?;
    }
    if after == from && check_key(from).is_ok() && end.is_none_or(|end| from < end) {
        n += u64::from(store.get(from, at).await?.is_some());
    }
    loop {
        let start_after = (!after.is_empty()).then_some(&*after);
        let query = ListQuery { prefix: "", start_after, limit: PAGE_ROWS, at };
        let page = store.list(query).await?;
        let within = page.rows.iter().take_while(|row| end.is_none_or(|end| &*row.key < end));
        let n_within = within.count();
        n += n_within as u64;
        match page.rows.last() {
            Some(last) if page.more && n_within == page.rows.len() => after = last.key.to_string(),
            _ => return Ok(n),
        }
    }
}

/// A refused key as an error may show it.
fn shortened(key: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    key.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_where_the_next_begins() {
        let cases = [
            ("/a/", Some("/a0")),
            ("/a", Some("/b")),
            ("", None),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
            ("\u{d7ff}", Some("\u{e000}")),
            ("\u{7f}", Some("\u{80}")),
        ];
        for (prefix, end) in cases {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }

    #[test]
    fn keys_have_limits() {
        for good in ["/", "a", "/registry/\u{e9}"] {
            check_key(good).expect(good);
        }
        for bad in ["", "a\0b", &"k".repeat(KEY_BYTES_MAX + 1)] {
            assert!(matches!(check_key(bad), Err(Error::Key(_))), "{bad:?}");
        }
    }
}
