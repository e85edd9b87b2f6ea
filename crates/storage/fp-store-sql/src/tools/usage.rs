//! How much of a store is what.

use std::collections::BTreeMap;

/// Numbers about a store.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub n_rows: u64,
    pub n_keys: u64,
    /// Of live keys: names and values.
    pub live_bytes: u64,
    /// By the first segments of the keys, most bytes first.
    pub prefixes: Vec<PrefixUsage>,
    /// What the store takes on its disk, by part: name and bytes.
    pub parts: Vec<(&'static str, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixUsage {
    pub prefix: String,
    pub n_keys: u64,
    pub bytes: u64,
}

/// Live keys are added one by one.
pub(crate) struct Tally {
    n_segments: usize,
    by_prefix: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    pub(crate) fn new(n_segments: usize) -> Self {
        Self { n_segments, by_prefix: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, key: &str, value_bytes: u64) {
        let prefix = first_segments(key, self.n_segments);
        if !self.by_prefix.contains_key(prefix) {
            self.by_prefix.insert(prefix.to_owned(), (0, 0));
        }
        let (n_keys, bytes) = self.by_prefix.get_mut(prefix).expect("just put there");
        *n_keys += 1;
        *bytes += key.len() as u64 + value_bytes;
    }

    pub(crate) fn into_usage(self, n_rows: u64, parts: Vec<(&'static str, u64)>) -> Usage {
        let one = |(prefix, (n_keys, bytes))| PrefixUsage { prefix, n_keys, bytes };
        let mut prefixes: Vec<_> = self.by_prefix.into_iter().map(one).collect();
        prefixes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.prefix.cmp(&b.prefix)));
        let n_keys = prefixes.iter().map(|p| p.n_keys).sum();
        let live_bytes = prefixes.iter().map(|p| p.bytes).sum();
        Usage { n_rows, n_keys, live_bytes, prefixes, parts }
    }
}

/// `/a/b/c/d` by 2 is `/a/b`; what has no more is itself.
fn first_segments(key: &str, n: usize) -> &str {
    let from = usize::from(key.starts_with('/'));
    let ends = key.match_indices('/').map(|(at, _)| at).filter(|at| *at >= from);
    ends.into_iter().nth(n.saturating_sub(1)).map_or(key, |end| &key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        assert_eq!(first_segments("/a/b/c/d", 2), "/a/b");
        assert_eq!(first_segments("/a/b", 2), "/a/b");
        assert_eq!(first_segments("a/b/c", 1), "a");
        let mut tally = Tally::new(1);
        for key in ["/a/x", "/b/x", "/b/y"] {
            tally.add(key, 10);
        }
        let usage = tally.into_usage(9, Vec::new());
        assert_eq!((usage.n_keys, usage.live_bytes, usage.prefixes.len()), (3, 42, 2));
        assert_eq!(usage.prefixes[0].prefix, "/b");
    }
}
