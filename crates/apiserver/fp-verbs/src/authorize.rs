//! The first step of every request: which verb it is, and whether the caller may.
//!
//! Sources: apiserver's `endpoints/request/requestinfo.go`, `endpoints/filters/authorization.go`,
//! `endpoints/handlers/responsewriters/errors.go`.

use fp_auth::{Attributes, Authorizer, User, Verdict};
use fp_base::ClusterScope;
use fp_base::url::ResourcePath;
use fp_object::status::{About, Status};

use crate::options::{first, flag};
use crate::request::{Method, Query};

/// Kubernetes' request verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The verb of a resource request: a method, whether the URL names an object, and `watch=`.
    pub fn of(method: Method, path: &ResourcePath, query: &Query) -> Self {
        let named = path.name.is_some();
        match method {
            Method::Get if named => Self::Get,
            Method::Get if flag(query, "watch") == Some(true) => Self::Watch,
            Method::Get => Self::List,
            Method::Post => Self::Create,
            Method::Put => Self::Update,
            Method::Patch => Self::Patch,
            Method::Delete if named => Self::Delete,
            Method::Delete => Self::DeleteCollection,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// May span all clusters.
    pub fn is_collection_read(self) -> bool {
        matches!(self, Self::List | Self::Watch)
    }
}

/// Asks the authorizer about a resource request; a refusal is Kubernetes' 403.
pub async fn check(
    authorizer: &dyn Authorizer,
    user: &User,
    scope: &ClusterScope,
    verb: Verb,
    path: &ResourcePath,
    query: &Query,
) -> Result<(), Status> {
    // A collection request that selects one name is a request for that name (requestinfo.go).
    let selected = match verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            first(query, "fieldSelector").and_then(selected_name)
        }
        _ => None,
    };
    let attributes = Attributes {
        user,
        cluster: Some(scope),
        verb: verb.as_str(),
        group: &path.group,
        version: &path.version,
        resource: &path.resource,
        subresource: path.subresource.as_deref().unwrap_or(""),
        namespace: path.namespace.as_deref().unwrap_or(""),
        name: path.name.as_deref().or(selected).unwrap_or(""),
        path: None,
        deep: false,
    };
    let verdict = authorizer.authorize(&attributes).await;
    if verdict.allowed() { Ok(()) } else { Err(forbidden(&attributes, &verdict)) }
}

/// The name in `metadata.name=x`, if the selector has that term and the name is one.
fn selected_name(selector: &str) -> Option<&str> {
    selector.split(',').find_map(|term| {
        let value = term.strip_prefix("metadata.name=")?;
        let value = value.strip_prefix('=').unwrap_or(value);
        (!value.is_empty() && !value.contains(['/', '%', '\\'])).then_some(value)
    })
}

/// Kubernetes' 403. The user-given parts are escaped so that they cannot pass for HTML.
pub fn forbidden(asked: &Attributes<'_>, verdict: &Verdict) -> Status {
    let user = &asked.user.name;
    let what = match asked.path {
        Some(path) => format!("User {user:?} cannot {} path {path:?}", asked.verb),
        None => {
            let resource = match asked.subresource {
                "" => asked.resource.to_owned(),
                sub => format!("{}/{sub}", asked.resource),
            };
            let place = match asked.namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            let (verb, group) = (asked.verb, asked.group);
            format!(
                "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}"
            )
        }
    };
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let about = About { group: asked.group, resource: asked.resource, name: asked.name };
    let told = [what.as_str(), &verdict.reason, verdict.hint];
    let told: Vec<&str> = told.into_iter().filter(|part| !part.is_empty()).collect();
    Status::forbidden(about, told.join(": "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(path: ResourcePath, query: &str, method: Method, want: Expect) {
        let query = fp_base::url::query_pairs(query);
        let verb = Verb::of(method, &path, &query);
        let user = User { name: "al<i>ce".into(), ..User::default() };
        let selected = first(&query, "fieldSelector").and_then(selected_name);
        let asked = Attributes {
            user: &user,
            cluster: None,
            verb: verb.as_str(),
            group: &path.group,
            version: &path.version,
            resource: &path.resource,
            subresource: path.subresource.as_deref().unwrap_or(""),
            namespace: path.namespace.as_deref().unwrap_or(""),
            name: path.name.as_deref().or(selected).unwrap_or(""),
            path: None,
            deep: false,
        };
        want.assert_eq(&forbidden(&asked, &Verdict::no_opinion("access denied")).message);
    }

    #[test]
    fn refusals_are_kubernetes_words() {
        let configmaps = || ResourcePath {
            version: "v1".into(),
            resource: "configmaps".into(),
            namespace: Some("default".into()),
            ..ResourcePath::default()
        };
        check(
            configmaps(),
            "",
            Method::Get,
            expect![[
                r#"configmaps is forbidden: User "al&lt;i&gt;ce" cannot list resource "configmaps" in API group "" in the namespace "default": access denied"#
            ]],
        );
        check(
            configmaps(),
            "watch=1&fieldSelector=metadata.name%3Da",
            Method::Get,
            expect![[
                r#"configmaps "a" is forbidden: User "al&lt;i&gt;ce" cannot watch resource "configmaps" in API group "" in the namespace "default": access denied"#
            ]],
        );
        let lamp = ResourcePath {
            group: "example.com".into(),
            version: "v1".into(),
            resource: "lamps".into(),
            name: Some("a".into()),
            subresource: Some("status".into()),
            ..ResourcePath::default()
        };
        check(
            lamp,
            "",
            Method::Patch,
            expect![[
                r#"lamps.example.com "a" is forbidden: User "al&lt;i&gt;ce" cannot patch resource "lamps/status" in API group "example.com" at the cluster scope: access denied"#
            ]],
        );
    }
}
