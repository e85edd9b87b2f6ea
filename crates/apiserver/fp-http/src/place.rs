//! Which cluster a request is for.
//!
//! Invariant: whoever may not know a workspace gets the same bytes whether it exists or not. A
//! target that leads nowhere is therefore a [`Hidden`] answer, given only to a caller who may see
//! the parent; everyone else is refused as in a cluster that they may not enter.

use fp_auth::{Attributes, Authorizer, User};
use fp_base::url::{self, ClusterRef};
use fp_base::{ClusterName, ClusterPath, ClusterScope};
use fp_object::status::{About, Status};
use fp_verbs::{Directory, Located};

/// A name that no cluster has: generated names are letters and digits only.
const NOWHERE: &str = "no-such-logical-cluster";

/// Where a request goes.
pub struct Place {
    /// `None`: the target has no `/clusters/` prefix. For a hidden place a cluster that does not
    /// exist, so that authorization decides as it would in one.
    pub scope: Option<ClusterScope>,
    /// The path below the cluster, decoded.
    pub path: String,
    /// The query, encoded.
    pub query: Option<String>,
    pub inactive: bool,
    pub hidden: Option<Hidden>,
}

/// The true answer for a target without a cluster behind it, and who may have it.
#[derive(Debug)]
pub struct Hidden {
    pub answer: Status,
    /// The nearest workspace above that exists.
    above: ClusterName,
    /// The segment below it.
    child: String,
}

/// Takes a request target apart and finds its cluster. `Err` is a target that is refused for
/// everyone.
pub fn find(directory: &dyn Directory, target: &str) -> Result<Place, Status> {
    let parsed = match url::parse(target) {
        Ok(parsed) => parsed,
        Err(url::Error::Cluster(text)) => return malformed(directory, target, &text),
        Err(error @ url::Error::NotCanonical(_)) => {
            return Err(Status::bad_request(error.to_string()));
        }
    };
    let mut place = Place {
        scope: None,
        path: parsed.path,
        query: parsed.query,
        inactive: false,
        hidden: None,
    };
    match parsed.cluster {
        ClusterRef::None => {}
        ClusterRef::All => place.scope = Some(ClusterScope::All),
        ClusterRef::Path(path) => match directory.locate(&path) {
            Located::Cluster { name, inactive } => {
                place.scope = Some(ClusterScope::One(name));
                place.inactive = inactive;
            }
            located => {
                place.scope = Some(nowhere());
                place.hidden =
                    Some(Hidden::below(directory, path.as_str(), answer(&path, located)));
            }
        },
    }
    Ok(place)
}

fn nowhere() -> ClusterScope {
    ClusterScope::One(ClusterName::parse(NOWHERE).expect("a constant that is a name"))
}

/// kcp's answer for a path that is no cluster here (`pkg/server/localproxy.go`).
fn answer(path: &ClusterPath, located: Located) -> Status {
    match located {
        Located::Mount(_) => Status::not_implemented("A mounted workspace"),
        Located::Unavailable => Status::unavailable("Not available."),
        Located::Unknown | Located::Cluster { .. } => Status::not_found(About {
            group: "tenancy.kcp.io",
            resource: "workspaces",
            name: path.as_str(),
        }),
    }
}

/// A cluster segment that is no name and no path: 400 for who may see the parent.
fn malformed(directory: &dyn Directory, target: &str, text: &str) -> Result<Place, Status> {
    // The parser has decoded the target once: behind the third slash is the path below.
    let below = target.splitn(4, '/').nth(3).map_or_else(|| "/".to_owned(), |p| format!("/{p}"));
    let below = match target.split_once('?') {
        Some((path, query)) if path.splitn(4, '/').nth(3).is_none() => format!("/?{query}"),
        _ => below,
    };
    let parsed = url::parse(&below).map_err(|e| Status::bad_request(e.to_string()))?;
    let answer = Status::bad_request(format!("invalid cluster: {text:?} does not match the regex"));
    Ok(Place {
        scope: Some(nowhere()),
        path: parsed.path,
        query: parsed.query,
        inactive: false,
        hidden: Some(Hidden::below(directory, text, answer)),
    })
}

impl Hidden {
    /// For a path (perhaps malformed): its nearest ancestor that exists, else root.
    fn below(directory: &dyn Directory, text: &str, answer: Status) -> Self {
        let mut rest = text;
        while let Some((up, child)) = rest.rsplit_once(':') {
            if let Ok(path) = ClusterPath::parse(up)
                && let Located::Cluster { name, .. } = directory.locate(&path)
            {
                return Self { answer, above: name, child: child.to_owned() };
            }
            rest = up;
        }
        Self { answer, above: ClusterName::root(), child: rest.to_owned() }
    }

    /// Whether `user` may have the true answer: who may get the workspace from its parent.
    pub async fn may_know(&self, authorizer: &dyn Authorizer, user: &User) -> bool {
        let scope = ClusterScope::One(self.above.clone());
        let attributes = Attributes {
            user,
            cluster: Some(&scope),
            verb: "get",
            group: "tenancy.kcp.io",
            version: "v1alpha1",
            resource: "workspaces",
            subresource: "",
            namespace: "",
            name: &self.child,
            path: None,
            deep: false,
        };
        authorizer.authorize(&attributes).await.allowed()
    }
}
