//! Where a typed workspace path leads, from where the kubeconfig points.
//!
//! Pure: no server, no files. The current workspace is read from the server URL, `<base>/clusters/<path>`.
//! Source of the rules: kcp `cli/pkg/workspace/plugin/use.go` and `cli/pkg/helpers`.

use std::fmt;

use fp_base::ClusterPath;

const CLUSTERS: &str = "/clusters/";

/// A server URL that points to a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceUrl {
    /// Everything before `/clusters/`, without a trailing slash.
    base: String,
    path: ClusterPath,
}

impl WorkspaceUrl {
    /// Reads a server URL; `None` if it does not point to a workspace.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url.split(['?', '#']).next().unwrap_or(url);
        let (base, after) = url.split_once(CLUSTERS)?;
        let path = ClusterPath::parse(after.split('/').next().unwrap_or(after)).ok()?;
        Some(Self { base: base.trim_end_matches('/').to_owned(), path })
    }

    pub fn path(&self) -> &ClusterPath {
        &self.path
    }

    /// The same server, at another workspace.
    pub fn at(&self, path: ClusterPath) -> Self {
        Self { base: self.base.clone(), path }
    }
}

impl fmt::Display for WorkspaceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{CLUSTERS}{}", self.base, self.path)
    }
}

/// Where the user wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// `-`
    Previous,
    /// `:`, the root of the current path.
    Root,
    /// `.`
    Current,
    /// `~` and `~:below`; holds what follows the tilde.
    Home(String),
    /// Anything else, with `:` as separator; a leading one makes it absolute.
    Path(String),
}

/// A typed path and the notes that its reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub destination: Destination,
    /// The path began with `root` without a colon, once the spelling of absolute paths.
    pub legacy_absolute: bool,
}

/// Reads what was typed. `home_dir` is the user's home directory: shells expand `~` to it.
pub fn interpret(typed: &str, home_dir: Option<&str>) -> Typed {
    let home_dir = home_dir.map(|h| h.trim_end_matches('/')).filter(|h| !h.is_empty());
    let below_home =
        home_dir.and_then(|h| typed.strip_prefix(h)).filter(|r| r.is_empty() || r.starts_with('/'));
    let mut name = match below_home {
        Some(rest) => format!("~{rest}"),
        None => typed.to_owned(),
    }
    .replace('/', ":");
    let legacy_absolute = name == "root" || name.starts_with("root:");
    if legacy_absolute {
        name.insert(0, ':');
    }
    let destination = match name.as_str() {
        "-" => Destination::Previous,
        ":" => Destination::Root,
        "." => Destination::Current,
        "" | "~" => Destination::Home(String::new()),
        _ => match name.strip_prefix('~') {
            Some(rest) if rest.starts_with(':') => Destination::Home(rest.to_owned()),
            _ => Destination::Path(name),
        },
    };
    Typed { destination, legacy_absolute }
}

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("cannot go up from root")]
    AboveRoot,
    #[error("invalid workspace path: {0}")]
    Invalid(String),
}

/// A path made absolute and free of dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub path: ClusterPath,
    /// The absolute path as typed, dots included: what error texts name.
    pub spelled: String,
    /// `.` or `..` took part.
    pub had_dots: bool,
}

/// Makes a path absolute and walks its dots.
pub fn resolve(name: &str, current: &ClusterPath) -> Result<Resolved, Error> {
    let spelled = match name.strip_prefix(':') {
        Some(absolute) => absolute.to_owned(),
        None => format!("{current}:{name}"),
    };
    let mut walked = String::new();
    let mut had_dots = false;
    for part in spelled.split(':') {
        match part {
            "." => had_dots = true,
            ".." if walked.is_empty() => return Err(Error::AboveRoot),
            ".." => {
                had_dots = true;
                let up = parent(&walked).len();
                walked.truncate(up);
            }
            _ if walked.is_empty() => walked.push_str(part),
            _ => {
                walked.push(':');
                walked.push_str(part);
            }
        }
    }
    let path = ClusterPath::parse(&walked).map_err(|_| Error::Invalid(name.to_owned()))?;
    Ok(Resolved { path, spelled, had_dots })
}

/// The path one level up, empty above the first. A `system:` cluster is its own parent: it has no other.
fn parent(path: &str) -> &str {
    if path.starts_with("system:") { path } else { path.rsplit_once(':').map_or("", |(up, _)| up) }
}

/// The root of a path: its first segment, or the whole of a `system:` cluster.
pub fn root_of(path: &ClusterPath) -> ClusterPath {
    let text = path.as_str();
    if text.starts_with("system:") {
        return path.clone();
    }
    let first = text.split(':').next().unwrap_or(text);
    ClusterPath::parse(first).expect("the first segment of a valid path is valid")
}

/// The workspace's name and its parent, `None` for one without a parent.
pub fn split(path: &ClusterPath) -> Option<(ClusterPath, &str)> {
    if path.as_str().starts_with("system:") { None } else { path.split_last() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_paths_lead() {
        for (current, typed, expected) in [
            ("root", "acme", "root:acme"),
            ("root", "acme/team", "root:acme:team"),
            ("root:acme", "..", "root dots"),
            ("root:acme:team", "..:..", "root dots"),
            ("root:acme", "../beta", "root:beta dots"),
            ("root:acme", ":root:x", "root:x"),
            ("root:acme", "/root/x", "root:x"),
            ("root:acme", "root", "root legacy"),
            ("root:acme", "root:x", "root:x legacy"),
            ("root:acme", "rooted", "root:acme:rooted"),
            ("root:acme", "./x", "root:acme:x dots"),
            ("root", ":root:.:a", "root:a dots"),
            ("root", "..", "invalid workspace path: .."),
            ("root", "..:..", "cannot go up from root"),
            ("root", "a::b", "invalid workspace path: a::b"),
            ("root", "a/", "invalid workspace path: a:"),
            ("root", "UPPER", "invalid workspace path: UPPER"),
            ("system:admin", "..", "system:admin dots"),
            ("2hx0kq8p1", "x", "2hx0kq8p1:x"),
            ("root", "-", "previous"),
            ("root", ":", "root of the current"),
            ("root", "/", "root of the current"),
            ("root", ".", "current"),
            ("root", "", "home "),
            ("root", "~", "home "),
            ("root", "~/a", "home :a"),
            ("root", "/home/me", "home "),
            ("root", "/home/me/a/b", "home :a:b"),
            ("root", "/home/mean", "home:mean"),
        ] {
            let current = ClusterPath::parse(current).expect("a valid path");
            let typed_path = interpret(typed, Some("/home/me"));
            let mut shown = match &typed_path.destination {
                Destination::Previous => "previous".to_owned(),
                Destination::Root => "root of the current".to_owned(),
                Destination::Current => "current".to_owned(),
                Destination::Home(rest) => format!("home {rest}"),
                Destination::Path(name) => match resolve(name, &current) {
                    Ok(r) if r.had_dots => format!("{} dots", r.path),
                    Ok(r) => r.path.to_string(),
                    Err(error) => error.to_string(),
                },
            };
            if typed_path.legacy_absolute {
                shown.push_str(" legacy");
            }
            assert_eq!(shown, expected, "{typed:?} from {current}");
        }
    }

    #[test]
    fn urls_of_workspaces() {
        for (url, expected) in [
            ("https://h:1/clusters/root", Some("https://h:1 root")),
            ("https://h/clusters/root:a/", Some("https://h root:a")),
            ("https://h/clusters/root:a/apis?x=1", Some("https://h root:a")),
            ("https://h/p//clusters/root", Some("https://h/p root")),
            ("https://h/clusters/", None),
            ("https://h/clusters/ROOT", None),
            ("https://h/foo", None),
            ("", None),
        ] {
            let parsed = WorkspaceUrl::parse(url).map(|u| format!("{} {}", u.base, u.path));
            assert_eq!(parsed.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn roots_and_parents() {
        for (path, root, split_into) in [
            ("root", "root", None),
            ("root:a:b", "root", Some(("root:a", "b"))),
            ("2hx0:a", "2hx0", Some(("2hx0", "a"))),
            ("system:admin", "system:admin", None),
        ] {
            let path = ClusterPath::parse(path).expect("a valid path");
            assert_eq!(root_of(&path).as_str(), root);
            let parts = split(&path);
            assert_eq!(parts.as_ref().map(|(p, n)| (p.as_str(), *n)), split_into);
        }
    }
}
