//! Who asks, and whether they may: authenticators, RBAC and its index, the authorizer chain.
//!
//! Deliberately absent: HTTP types, what a workspace is.

pub mod authenticate;
pub mod effective;
pub mod rbac;
pub mod rules;
pub mod union;

use std::collections::BTreeMap;

use async_trait::async_trait;
use fp_base::ClusterScope;

/// A caller (`authentication/user.Info`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group every authenticated caller is in.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group every caller without credentials is in.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of a caller without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

impl User {
    /// A caller without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        Self { name: name.into(), groups, ..Self::default() }
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// `system:masters`: may do everything.
    pub fn is_master(&self) -> bool {
        self.in_group("system:masters")
    }
}

/// What is asked (`authorizer.Attributes`). Either `path` is set (non-resource) or `resource` is.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    /// `None`: the request named no cluster.
    pub cluster: Option<&'a ClusterScope>,
    pub verb: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: Option<&'a str>,
    /// A SubjectAccessReview that skips what only concerns the request's own cluster (kcp's deep SAR).
    pub deep: bool,
}

impl<'a> Attributes<'a> {
    /// About a path that is no resource's.
    pub fn of_path(
        user: &'a User,
        cluster: Option<&'a ClusterScope>,
        verb: &'a str,
        path: &'a str,
    ) -> Self {
        Self {
            user,
            cluster,
            verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: Some(path),
            deep: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
    NoOpinion,
}

/// A decision and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// For audit, access reviews and the caller's own error text.
    pub reason: String,
    /// What else may be told to the refused caller; clients that parse the reason never see it.
    pub hint: &'static str,
}

impl Verdict {
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Allow, reason: reason.into(), hint: "" }
    }

    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Deny, reason: reason.into(), hint: "" }
    }

    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self { decision: Decision::NoOpinion, reason: reason.into(), hint: "" }
    }

    pub fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub fn allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

#[async_trait]
pub trait Authorizer: Send + Sync + 'static {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Verdict;
    /// The rules that hold for `user` in `cluster` and `namespace` (SelfSubjectRulesReview).
    async fn rules(&self, user: &User, cluster: &ClusterScope, namespace: &str) -> Rules;
}

/// Answer of [`Authorizer::rules`].
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub rules: Vec<PolicyRule>,
    /// Why the list may be incomplete.
    pub incomplete: Option<String>,
}

/// `rbac/v1.PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}

/// What an authenticator sees of a request.
#[derive(Clone, Debug, Default)]
pub struct Credentials<'a> {
    /// The bearer token, without its prefix.
    pub token: Option<&'a str>,
    /// The client certificate that TLS has verified against the client CA, DER.
    pub client_cert: Option<&'a [u8]>,
}

/// `Ok(None)`: nothing this authenticator knows; `Err`: presented and wrong.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, Invalid>;
}

/// Credentials that were presented and are wrong: 401.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("credentials are not valid: {0}")]
pub struct Invalid(pub String);
