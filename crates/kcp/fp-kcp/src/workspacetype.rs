//! What a WorkspaceType means: lookup upwards, the types it extends, who may stand above and below,
//! initializers, terminators and default bindings.
//!
//! Rules and messages: kcp `pkg/admission/workspacetypeexists` and
//! `pkg/reconciler/tenancy/{workspace,initialization}`. All of it is pure over a lookup.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::{ExportRef, TypeLimit, TypeRef, WorkspaceTypeSpec};
use crate::bypath::Named;
use crate::names;

pub type WorkspaceType = Named<WorkspaceTypeSpec>;

/// Finds a type by path (or cluster name) and name.
pub type Lookup<'a> = &'a (dyn Fn(&str, &str) -> Option<Arc<WorkspaceType>> + Send + Sync);

/// Why a type cannot be used; the text is what kcp answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("workspace type {0:?} cannot be resolved")]
    Unresolved(String),
    #[error("unable to find inherited workspace type {0}")]
    Inherited(String),
    #[error("circular dependency detected in workspace type {name}: {path}")]
    Circular { name: String, path: String },
    #[error("{0}")]
    Limit(String),
}

/// A reference as seen from the workspace at `path`: with a path, there and nowhere else; without
/// one, in `path`, then in each workspace above it, last in `root`.
pub fn resolve(
    path: &str,
    reference: &TypeRef,
    lookup: Lookup<'_>,
) -> Result<Arc<WorkspaceType>, Error> {
    let unresolved = || Error::Unresolved(reference.to_string());
    if !reference.path.is_empty() {
        return lookup(&reference.path, &reference.name).ok_or_else(unresolved);
    }
    let mut current = path;
    loop {
        if let Some(found) = lookup(current, &reference.name) {
            return Ok(found);
        }
        current = match current.rsplit_once(':') {
            Some((parent, _)) => parent,
            None if current != "root" => "root",
            None => return Err(unresolved()),
        };
    }
}

/// The types that `kind` extends, directly or not, and last itself.
pub fn aliases(
    kind: &Arc<WorkspaceType>,
    lookup: Lookup<'_>,
) -> Result<Vec<Arc<WorkspaceType>>, Error> {
    let mut walk = Walk { lookup, seen: BTreeSet::new(), path: Vec::new(), out: Vec::new() };
    walk.visit(kind)?;
    let mut out = walk.out;
    out.push(kind.clone());
    Ok(out)
}

struct Walk<'a> {
    lookup: Lookup<'a>,
    seen: BTreeSet<String>,
    /// From the type asked about to the current one.
    path: Vec<String>,
    out: Vec<Arc<WorkspaceType>>,
}

impl Walk<'_> {
    fn visit(&mut self, kind: &WorkspaceType) -> Result<(), Error> {
        self.seen.insert(kind.qualified());
        self.path.push(kind.qualified());
        for base in &kind.value.extend.with {
            let inherited = |_| Error::Inherited(base.name.clone());
            let base = resolve(&kind.path, base, self.lookup).map_err(inherited)?;
            let name = base.qualified();
            if let Some(start) = self.path.iter().position(|p| *p == name) {
                return Err(Error::Circular { name, path: self.path[start..].join(" -> ") });
            }
            if !self.seen.contains(&name) {
                self.out.push(base.clone());
                self.visit(&base)?;
            }
        }
        self.path.pop();
        Ok(())
    }
}

/// Whether a workspace of the type `child` may stand in one of type `parent` (`path:name` each).
pub fn check_limits(
    parent: &str,
    parent_aliases: &[Arc<WorkspaceType>],
    child: &str,
    child_aliases: &[Arc<WorkspaceType>],
) -> Result<(), Error> {
    let above = Side { role: "parent", kind: parent, aliases: parent_aliases };
    let below = Side { role: "child", kind: child, aliases: child_aliases };
    below.check(&above, |spec| spec.limit_allowed_parents.as_ref())?;
    above.check(&below, |spec| spec.limit_allowed_children.as_ref())
}

struct Side<'a> {
    role: &'static str,
    kind: &'a str,
    aliases: &'a [Arc<WorkspaceType>],
}

impl Side<'_> {
    /// Checks what this side's types say about the other side.
    fn check(
        &self,
        other: &Side<'_>,
        limit: fn(&WorkspaceTypeSpec) -> Option<&TypeLimit>,
    ) -> Result<(), Error> {
        let mut errors = Vec::new();
        for alias in self.aliases {
            let Some(limit) = limit(&alias.value) else { continue };
            if limit.none {
                errors.push(format!("workspace type {} cannot have any {}", self.kind, other.role));
                continue;
            }
            let allowed: BTreeSet<String> = limit.types.iter().map(TypeRef::to_string).collect();
            let implemented: BTreeSet<String> =
                other.aliases.iter().map(|a| a.qualified()).collect();
            if allowed.is_empty() || !allowed.is_disjoint(&implemented) {
                continue;
            }
            let name = alias.qualified();
            let extends =
                if name == self.kind { String::new() } else { format!(" extends {name}, which") };
            errors.push(format!(
                "workspace type {}{extends} only allows {} {} workspaces, but {} type {} only implements {}",
                self.kind,
                go_list(&allowed),
                other.role,
                other.role,
                other.kind,
                go_list(&implemented),
            ));
        }
        match errors.len() {
            0 => Ok(()),
            1 => Err(Error::Limit(errors.remove(0))),
            _ => Err(Error::Limit(format!("[{}]", errors.join(", ")))),
        }
    }
}

/// A list as Go's `%v` prints it.
fn go_list(set: &BTreeSet<String>) -> String {
    format!("[{}]", set.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
}

/// The initializers of a new workspace, in order.
pub fn initializers(aliases: &[Arc<WorkspaceType>]) -> Vec<String> {
    let own = aliases.iter().filter(|a| a.value.initializer);
    let mut out: Vec<String> = own.map(|a| lifecycle_name(a)).collect();
    if aliases.iter().any(|a| !a.value.default_api_bindings.is_empty()) {
        out.push(names::API_BINDINGS_INITIALIZER.into());
    }
    out
}

/// The terminators of a new workspace, in order.
pub fn terminators(aliases: &[Arc<WorkspaceType>]) -> Vec<String> {
    aliases.iter().filter(|a| a.value.terminator).map(|a| lifecycle_name(a)).collect()
}

/// `<cluster>:<name>` of a type: the name of its initializer and terminator.
pub fn lifecycle_name(kind: &WorkspaceType) -> String {
    format!("{}:{}", kind.cluster, kind.name)
}

/// The exports that a workspace binds by default, each once, with the path filled in.
pub fn default_bindings(aliases: &[Arc<WorkspaceType>]) -> Vec<ExportRef> {
    let mut out: Vec<ExportRef> = Vec::new();
    for alias in aliases {
        for reference in &alias.value.default_api_bindings {
            let mut reference = reference.clone();
            if reference.path.is_empty() {
                reference.path = alias.cluster.to_string();
            }
            if !out.contains(&reference) {
                out.push(reference);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cluster, object};
    use serde_json::json;

    /// `path:name` and spec; the cluster is the path with dashes.
    fn types(list: &[(&str, serde_json::Value)]) -> Vec<Arc<WorkspaceType>> {
        let one = |(qualified, spec): &(&str, serde_json::Value)| {
            let reference = TypeRef::parse(qualified).unwrap();
            Arc::new(Named {
                cluster: cluster(&reference.path.replace(':', "-")),
                path: reference.path,
                name: reference.name.into(),
                value: crate::api::part(&object(json!({"spec": spec})), "spec"),
            })
        };
        list.iter().map(one).collect()
    }

    fn root_types() -> Vec<Arc<WorkspaceType>> {
        let universal = json!({"with": [{"name": "universal", "path": "root"}]});
        types(&[
            (
                "root:universal",
                json!({"initializer": true, "defaultAPIBindings": [{"path": "root", "export": "tenancy.kcp.io"}]}),
            ),
            ("root:root", json!({"extend": universal, "limitAllowedParents": {"none": true}})),
            (
                "root:organization",
                json!({
                    "extend": universal, "terminator": true,
                    "limitAllowedChildren": {"types": [{"name": "universal", "path": "root"}]},
                    "limitAllowedParents": {"types": [{"name": "root", "path": "root"}]},
                }),
            ),
            (
                "root:team",
                json!({
                    "extend": universal,
                    "limitAllowedParents": {"types": [{"name": "organization", "path": "root"}, {"name": "team", "path": "root"}]},
                }),
            ),
            (
                "root:acme:special",
                json!({"extend": {"with": [{"name": "team"}]}, "initializer": true, "defaultAPIBindings": [{"export": "own"}]}),
            ),
            ("root:acme:lonely", json!({"limitAllowedChildren": {"none": true}})),
            ("root:acme:a", json!({"extend": {"with": [{"name": "b"}]}})),
            ("root:acme:b", json!({"extend": {"with": [{"name": "a"}]}})),
            ("root:acme:orphan", json!({"extend": {"with": [{"name": "nothing"}]}})),
        ])
    }

    fn with_lookup<T>(test: impl FnOnce(Lookup<'_>) -> T) -> T {
        let all = root_types();
        test(&move |path: &str, name: &str| {
            all.iter().find(|t| t.path == path && &*t.name == name).cloned()
        })
    }

    fn reference(text: &str) -> TypeRef {
        TypeRef::parse(text).unwrap_or(TypeRef { name: text.into(), path: String::new() })
    }

    fn alias_names(of: &str) -> String {
        with_lookup(|lookup| {
            let kind = resolve("root:acme:deep", &reference(of), lookup)?;
            Ok::<_, Error>(
                aliases(&kind, lookup)?.iter().map(|a| a.qualified()).collect::<Vec<_>>().join(" "),
            )
        })
        .unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn closures() {
        assert_eq!(alias_names("root:team"), "root:universal root:team");
        assert_eq!(alias_names("team"), "root:universal root:team");
        assert_eq!(alias_names("special"), "root:team root:universal root:acme:special");
        assert_eq!(
            alias_names("root:special"),
            "workspace type \"root:special\" cannot be resolved"
        );
        assert_eq!(alias_names("nothing"), "workspace type \"nothing\" cannot be resolved");
        assert_eq!(alias_names("orphan"), "unable to find inherited workspace type nothing");
        assert_eq!(
            alias_names("a"),
            "circular dependency detected in workspace type root:acme:a: root:acme:a -> root:acme:b"
        );
    }

    fn limits(parent: &str, child: &str) -> String {
        with_lookup(|lookup| {
            let closure =
                |name| aliases(&resolve("", &reference(name), lookup).unwrap(), lookup).unwrap();
            check_limits(parent, &closure(parent), child, &closure(child))
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        })
    }

    #[test]
    fn allowed() {
        assert_eq!(limits("root:root", "root:organization"), "");
        assert_eq!(limits("root:organization", "root:team"), "");
        assert_eq!(limits("root:acme:special", "root:team"), "");
        assert_eq!(
            limits("root:root", "root:root"),
            "workspace type root:root cannot have any parent"
        );
        assert_eq!(
            limits("root:acme:lonely", "root:universal"),
            "workspace type root:acme:lonely cannot have any child"
        );
        assert_eq!(
            limits("root:universal", "root:team"),
            "workspace type root:team only allows [root:organization root:team] parent workspaces, \
             but parent type root:universal only implements [root:universal]"
        );
        assert_eq!(
            limits("root:universal", "root:acme:special"),
            "workspace type root:acme:special extends root:team, which only allows [root:organization root:team] parent \
             workspaces, but parent type root:universal only implements [root:universal]"
        );
        assert_eq!(
            limits("root:organization", "root:acme:lonely"),
            "workspace type root:organization only allows [root:universal] child workspaces, \
             but child type root:acme:lonely only implements [root:acme:lonely]"
        );
    }

    #[test]
    fn what_a_workspace_gets() {
        with_lookup(|lookup| {
            let closure = |name| {
                aliases(&resolve("root:acme", &reference(name), lookup).unwrap(), lookup).unwrap()
            };
            assert_eq!(
                initializers(&closure("special")),
                ["root:universal", "root-acme:special", "system:apibindings"]
            );
            assert_eq!(initializers(&closure("lonely")), [""; 0]);
            assert_eq!(terminators(&closure("organization")), ["root:organization"]);
            let bindings = default_bindings(&closure("special"));
            let text: Vec<String> =
                bindings.iter().map(|b| format!("{} {}", b.path, b.export)).collect();
            assert_eq!(text, ["root tenancy.kcp.io", "root-acme own"]);
        });
    }
}
