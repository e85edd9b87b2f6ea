//! Group, version, resource and kind, in the combinations that Kubernetes names.

use std::fmt;
use std::sync::Arc;

/// Group and resource (plural). The core group is the empty string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gr {
    pub group: Arc<str>,
    pub resource: Arc<str>,
}

impl Gr {
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

/// `resource.group`, or the resource alone in the core group (Kubernetes' `GroupResource.String`).
impl fmt::Display for Gr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// Group, version and resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gvr {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub resource: Arc<str>,
}

impl Gvr {
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    pub fn gr(&self) -> Gr {
        Gr { group: self.group.clone(), resource: self.resource.clone() }
    }
}

/// Group and version: an object's `apiVersion`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gv {
    pub group: Arc<str>,
    pub version: Arc<str>,
}

impl Gv {
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Splits an `apiVersion`: `v1`, `apps/v1`. More than one `/` is no apiVersion.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None => Some(Self::new("", api_version)),
            Some((group, version)) if !version.contains('/') => Some(Self::new(group, version)),
            Some(_) => None,
        }
    }
}

/// `group/version`, or the version alone in the core group.
impl fmt::Display for Gv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// Group, version and kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gvk {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

impl Gvk {
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    pub fn gv(&self) -> Gv {
        Gv { group: self.group.clone(), version: self.version.clone() }
    }

    pub fn api_version(&self) -> String {
        self.gv().to_string()
    }
}
