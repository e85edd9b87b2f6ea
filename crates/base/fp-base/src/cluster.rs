//! Logical cluster names and workspace paths.
//!
//! Rules: kcp's `core/v3/logicalcluster` (a name is `system:` and anything, or a DNS label of at
//! least two characters; a path is labels joined by `:`).

use std::fmt;
use std::sync::Arc;

/// The longest path that is accepted, in bytes: longer than any that fits in kcp's own index.
pub const PATH_BYTES_MAX: usize = 4096;

/// Why a string is no cluster name or path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0:?} is not a logical cluster name")]
    Name(String),
    #[error("{0:?} is not a workspace path")]
    Path(String),
}

/// A logical cluster's name: what stands in a storage key. Never a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// Parses a name; a path of several segments is refused.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if is_name(text) { Ok(Self(text.into())) } else { Err(Error::Name(text.to_owned())) }
    }

    /// The cluster of the root workspace.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// A system cluster, `system:<what>`.
    pub fn system(what: &str) -> Self {
        Self(format!("system:{what}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// System clusters hold what a shard needs for itself; only `system:masters` reach them.
    pub fn is_system(&self) -> bool {
        self.0.starts_with("system:")
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterName({})", self.0)
    }
}

/// A workspace path as users write it: `root:acme:team-a`. One segment may also be a cluster name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterPath(Arc<str>);

impl ClusterPath {
    /// Parses a path of one or more segments.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let ok = text.len() <= PATH_BYTES_MAX
            && (is_system(text) || (!text.is_empty() && text.split(':').all(is_segment)));
        if ok { Ok(Self(text.into())) } else { Err(Error::Path(text.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, when the path has one segment that is a valid one.
    pub fn as_name(&self) -> Option<ClusterName> {
        is_name(&self.0).then(|| ClusterName(self.0.clone()))
    }

    /// The path above, and the last segment. `None` for a path of one segment.
    pub fn split_last(&self) -> Option<(ClusterPath, &str)> {
        if is_system(&self.0) {
            return None;
        }
        self.0.rsplit_once(':').map(|(up, last)| (Self(up.into()), last))
    }

    /// The path one below.
    pub fn join(&self, segment: &str) -> Result<Self, Error> {
        Self::parse(&format!("{}:{segment}", self.0))
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        let whole = is_system(&self.0);
        self.0.split(move |c| c == ':' && !whole)
    }
}

impl From<&ClusterName> for ClusterPath {
    fn from(name: &ClusterName) -> Self {
        Self(name.0.clone())
    }
}

impl fmt::Display for ClusterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterPath({})", self.0)
    }
}

/// What one request may touch: one cluster, or (list and watch only) all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClusterScope {
    One(ClusterName),
    All,
}

impl ClusterScope {
    /// The one cluster, if it is one.
    pub fn one(&self) -> Option<&ClusterName> {
        match self {
            Self::One(name) => Some(name),
            Self::All => None,
        }
    }

    pub fn contains(&self, cluster: &str) -> bool {
        match self {
            Self::One(name) => name.as_str() == cluster,
            Self::All => true,
        }
    }
}

/// The longest cluster name, in bytes. kcp's labels stop at 63; system names are as long as a name.
const NAME_BYTES_MAX: usize = 253;

fn is_system(text: &str) -> bool {
    text.strip_prefix("system:").is_some_and(|rest| {
        !rest.is_empty()
            && text.len() <= NAME_BYTES_MAX
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'.'))
            && !rest.split([':', '.']).any(str::is_empty)
    })
}

fn is_name(text: &str) -> bool {
    is_system(text) || (text.len() >= 2 && is_segment(text))
}

fn is_segment(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
        && inner(bytes[0])
        && inner(bytes[bytes.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["root", "2uqs24hp209i7ju0", "system:admin", "system:cache:server", "a1"] {
            assert_eq!(ClusterName::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "a",
            "root:acme",
            "ROOT",
            "-a",
            "a-",
            "a/b",
            "..",
            "*",
            "system:",
            "system:a/b",
            "system:..",
            "system:a::b",
        ] {
            assert!(ClusterName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths() {
        let path = ClusterPath::parse("root:acme:team-a").unwrap();
        assert!(path.as_name().is_none());
        let (up, last) = path.split_last().unwrap();
        assert_eq!((up.as_str(), last), ("root:acme", "team-a"));
        assert_eq!(path.segments().count(), 3);
        assert_eq!(ClusterPath::parse("system:cache:server").unwrap().segments().count(), 1);
        for bad in ["", ":", "root:", ":root", "root::a", "Root", "root:.."] {
            assert!(ClusterPath::parse(bad).is_err(), "{bad}");
        }
    }
}
