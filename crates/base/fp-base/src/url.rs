//! The one URL parser: a request target becomes a cluster and a route, or is refused.
//!
//! Routers and shards call the same two functions, so they cannot disagree about a target.
//! What is not canonical (an encoded slash, a dot segment, an empty segment, a backslash, NUL, a
//! second percent encoding) is refused, never redirected: `docs/guide` lists the forms.

use crate::cluster::ClusterPath;

/// The longest request target that is read, in bytes.
pub const TARGET_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the request target is not canonical: {0}")]
    NotCanonical(&'static str),
    #[error("{0:?} is not a cluster name or path")]
    Cluster(String),
}

/// The cluster part of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRef {
    /// No `/clusters/` prefix.
    None,
    /// `/clusters/*`.
    All,
    /// A name or a path; which of both, only a lookup tells when it has one segment.
    Path(ClusterPath),
}

/// A request target, taken apart and percent-decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub cluster: ClusterRef,
    /// The path below the cluster, decoded, beginning with `/`.
    pub path: String,
    /// The query as it was sent, still encoded.
    pub query: Option<String>,
}

/// What a path below a cluster names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/api` or `/apis`, `/apis/<group>`, `/api/v1`, `/apis/<group>/<version>`.
    Discovery(Discovery),
    Resource(ResourcePath),
    /// Everything else: `/healthz`, `/version`, `/openapi/v3`, ...
    NonResource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    CoreVersions,
    Groups,
    Group(String),
    Resources { group: String, version: String },
}

/// A resource URL. `name` and `subresource` are absent for a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    /// As in the URL: `widgets`, or `widgets:<identity>` (see [`ResourcePath::identity`]).
    pub resource: String,
    /// The export identity after a `:` in the resource segment.
    pub identity: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// `status`, `scale`, ...; further segments are joined with `/`.
    pub subresource: Option<String>,
}

/// Takes a request target (origin form) apart.
pub fn parse(target: &str) -> Result<Target, Error> {
    if target.len() > TARGET_BYTES_MAX {
        return Err(Error::NotCanonical("longer than 1 MiB"));
    }
    let (raw_path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (target, None),
    };
    let decoded = decode_path(raw_path)?;
    let (cluster, path) = split_cluster(&decoded)?;
    Ok(Target { cluster, path: path.to_owned(), query })
}

fn decode_path(raw: &str) -> Result<String, Error> {
    if !raw.starts_with('/') {
        return Err(Error::NotCanonical("it does not begin with a slash"));
    }
    let mut out = String::with_capacity(raw.len());
    let (last, segments) = {
        let mut all: Vec<&str> = raw[1..].split('/').collect();
        let last = all.pop().expect("split yields at least one piece");
        (last, all)
    };
    for segment in segments.iter().copied().chain([last]) {
        out.push('/');
        let text = decode_segment(segment)?;
        if text == "." || text == ".." {
            return Err(Error::NotCanonical("it has a dot segment"));
        }
        out.push_str(&text);
    }
    if segments.iter().any(|s| s.is_empty()) {
        return Err(Error::NotCanonical("it has an empty segment"));
    }
    Ok(out)
}

fn decode_segment(segment: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(b) = rest.next() {
        let byte = if b == b'%' {
            let hex = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
            match (hex(rest.next()), hex(rest.next())) {
                (Some(hi), Some(lo)) => (hi * 16 + lo) as u8,
                _ => return Err(Error::NotCanonical("it has a broken percent encoding")),
            }
        } else {
            b
        };
        match byte {
            b'/' | b'\\' => return Err(Error::NotCanonical("a segment holds a slash")),
            b'%' => return Err(Error::NotCanonical("it is encoded twice")),
            0..=0x1f | 0x7f => return Err(Error::NotCanonical("it has a control character")),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| Error::NotCanonical("it is not UTF-8"))
}

fn split_cluster(path: &str) -> Result<(ClusterRef, &str), Error> {
    let Some(rest) = path.strip_prefix("/clusters/") else {
        return Ok((ClusterRef::None, path));
    };
    let (cluster, below) = match rest.find('/') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, "/"),
    };
    if cluster == "*" {
        return Ok((ClusterRef::All, below));
    }
    let path = ClusterPath::parse(cluster).map_err(|_| Error::Cluster(cluster.to_owned()))?;
    Ok((ClusterRef::Path(path), below))
}

/// What `path` (below the cluster, from [`parse`]) names. Rules: apiserver's
/// `endpoints/request/requestinfo.go`.
pub fn route(path: &str) -> Route {
    let trimmed = path.trim_end_matches('/');
    let mut parts = trimmed.split('/').skip(1);
    let (group, version) = match parts.next() {
        Some("api") => match parts.next() {
            None => return Route::Discovery(Discovery::CoreVersions),
            Some(version) => ("", version),
        },
        Some("apis") => match (parts.next(), parts.next()) {
            (None, _) => return Route::Discovery(Discovery::Groups),
            (Some(group), None) => return Route::Discovery(Discovery::Group(group.to_owned())),
            (Some(group), Some(version)) => (group, version),
        },
        _ => return Route::NonResource,
    };
    let rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        let (group, version) = (group.to_owned(), version.to_owned());
        return Route::Discovery(Discovery::Resources { group, version });
    }
    let mut found =
        ResourcePath { group: group.into(), version: version.into(), ..Default::default() };
    let own = ["status", "finalize"];
    let rest = match rest.as_slice() {
        // `namespaces/<ns>` and its subresources are requests for the namespace itself.
        ["namespaces", _] => &rest[..],
        ["namespaces", ns, sub] if own.contains(sub) => {
            found.namespace = Some((*ns).to_owned());
            &rest[..]
        }
        ["namespaces", ns, below @ ..] => {
            found.namespace = Some((*ns).to_owned());
            below
        }
        _ => &rest[..],
    };
    if rest.len() == 2 && rest[0] == "namespaces" {
        found.namespace = Some(rest[1].to_owned());
    }
    match rest.first().unwrap_or(&"").split_once(':') {
        Some((resource, identity)) => {
            found.resource = resource.to_owned();
            found.identity = Some(identity.to_owned());
        }
        None => found.resource = (*rest.first().unwrap_or(&"")).to_owned(),
    }
    found.name = rest.get(1).map(|s| (*s).to_owned());
    if rest.len() > 2 {
        found.subresource = Some(rest[2..].join("/"));
    }
    Route::Resource(found)
}

/// The pairs of a query string, decoded (`+` is a space), in order. Go's `url.ParseQuery` skips
/// pairs that do not decode; so do we.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes();
        while let Some(b) = rest.next() {
            match b {
                b'+' => bytes.push(b' '),
                b'%' => {
                    let hi = (rest.next()? as char).to_digit(16)?;
                    let lo = (rest.next()? as char).to_digit(16)?;
                    bytes.push((hi * 16 + lo) as u8);
                }
                b => bytes.push(b),
            }
        }
        String::from_utf8(bytes).ok()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        .filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, want: &str) {
        let got = match parse(target) {
            Err(error) => format!("error: {error}"),
            Ok(t) => {
                let cluster = match t.cluster {
                    ClusterRef::None => "-".to_owned(),
                    ClusterRef::All => "*".to_owned(),
                    ClusterRef::Path(p) => p.to_string(),
                };
                let route = match route(&t.path) {
                    Route::NonResource => format!("path {}", t.path),
                    Route::Discovery(d) => format!("{d:?}"),
                    Route::Resource(r) => format!(
                        "{}/{} {}{} ns={} name={} sub={}",
                        r.group,
                        r.version,
                        r.resource,
                        r.identity.map(|i| format!(":{i}")).unwrap_or_default(),
                        r.namespace.unwrap_or_default(),
                        r.name.unwrap_or_default(),
                        r.subresource.unwrap_or_default()
                    ),
                };
                format!("{cluster} {route}")
            }
        };
        assert_eq!(got, want, "{target}");
    }

    #[test]
    fn targets() {
        check(
            "/clusters/root:acme/api/v1/namespaces/default/configmaps/a",
            "root:acme /v1 configmaps ns=default name=a sub=",
        );
        check(
            "/clusters/root%3Aacme/api/v1/configmaps?limit=1",
            "root:acme /v1 configmaps ns= name= sub=",
        );
        check("/clusters/*/apis/a.b/v1/widgets:abc", "* a.b/v1 widgets:abc ns= name= sub=");
        check("/clusters/root", "root path /");
        check("/clusters/root/", "root path /");
        check("/api/v1/namespaces/x/status", "- /v1 namespaces ns=x name=x sub=status");
        check("/api/v1/namespaces/x", "- /v1 namespaces ns=x name=x sub=");
        check("/apis/a/v1/things/n/scale", "- a/v1 things ns= name=n sub=scale");
        check("/apis", "- Groups");
        check("/apis/", "- Groups");
        check("/api", "- CoreVersions");
        check("/apis/a", "- Group(\"a\")");
        check(
            "/clusters/system:admin/apis/a/v1",
            "system:admin Resources { group: \"a\", version: \"v1\" }",
        );
        check("/readyz", "- path /readyz");
    }

    #[test]
    fn refused() {
        for (target, why) in [
            ("/clusters/root%2Fapi/v1", "a segment holds a slash"),
            ("/clusters/%2e%2e/api", "it has a dot segment"),
            ("/clusters/root/../api", "it has a dot segment"),
            ("/clusters//api", "it has an empty segment"),
            ("//api", "it has an empty segment"),
            ("/./api", "it has a dot segment"),
            ("/a\\b", "a segment holds a slash"),
            ("/a%00", "it has a control character"),
            ("/a%252f", "it is encoded twice"),
            ("/a%zz", "it has a broken percent encoding"),
        ] {
            check(target, &format!("error: the request target is not canonical: {why}"));
        }
        for bad in ["ROOT", "root:", ":x", "a..b"] {
            check(
                &format!("/clusters/{bad}/api"),
                &format!("error: {bad:?} is not a cluster name or path"),
            );
        }
    }
}

#[cfg(test)]
mod properties;
