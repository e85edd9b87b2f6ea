//! The APIBindings that a workspace's types promise: made while it initializes, and kept up to
//! date for types whose lifecycle is `Maintain`.

use fp_base::ClusterName;
use fp_kcp::api::{ApiExportSpec, ExportRef, PermissionClaim};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition};
use fp_kcp::{api, hash};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use super::plan::{Snapshot, create};
use crate::action::{self, Action};
use crate::world::{cluster_scoped, gvr};

/// One export that a type of the closure binds by default. `export.path` is filled in.
pub struct Wanted {
    pub export: ExportRef,
    /// The APIExport, if it exists.
    pub object: Option<Object>,
    pub maintain: bool,
}

/// What the closure of the workspace's type promises.
pub struct Promised<'a> {
    /// Why the type cannot be resolved, else its default bindings.
    pub wanted: Result<Vec<Wanted>, String>,
    /// The APIBindings of the cluster.
    pub bindings: &'a [Object],
}

impl Promised<'_> {
    fn binding_of(&self, export: &ExportRef) -> Option<&Object> {
        self.bindings.iter().find(|b| {
            b.text(&["spec", "reference", "export", "path"]) == Some(&export.path)
                && b.text(&["spec", "reference", "export", "name"]) == Some(&export.export)
        })
    }
}

/// Adds the bindings that are due to `made`, and takes `system:apibindings` out of `left` when all
/// are bound.
pub(super) fn plan(
    s: &Snapshot<'_>,
    promised: &Promised<'_>,
    new: &mut Object,
    left: &mut Vec<String>,
    made: &mut Vec<Action>,
) {
    let initializing = left.iter().any(|i| i == names::API_BINDINGS_INITIALIZER);
    let wanted = match &promised.wanted {
        Ok(wanted) => wanted,
        Err(why) if initializing => {
            let why = format!("error resolving transitive set of workspace types: {why}");
            let bad = Condition::new_false(
                condition::API_BINDINGS_INITIALIZED,
                "WorkspaceTypesInvalid",
                "Error",
                why,
            );
            conditions::set(new, s.now, bad);
            return;
        }
        Err(_) => return,
    };
    let due = |w: &&Wanted| initializing || w.maintain;
    for want in wanted.iter().filter(due) {
        made.extend(ensure(&s.cluster, want, promised));
    }
    if initializing {
        initialize(s, wanted, promised, new, left);
    }
    let maintained: Vec<&Wanted> = wanted.iter().filter(|w| w.maintain).collect();
    let incomplete = incomplete(&maintained, promised);
    if incomplete.is_empty() {
        conditions::set(new, s.now, Condition::new_true(condition::API_BINDINGS_RECONCILED));
    } else if s.waited_long {
        let why = format!("APIBinding(s) not yet fully reconciled: {}", incomplete.join(", "));
        let waits = Condition::new_false(
            condition::API_BINDINGS_RECONCILED,
            "WaitingOnAPIBindings",
            "Info",
            why,
        );
        conditions::set(new, s.now, waits);
    }
}

fn initialize(
    s: &Snapshot<'_>,
    wanted: &[Wanted],
    promised: &Promised<'_>,
    new: &mut Object,
    left: &mut Vec<String>,
) {
    let set = |new: &mut Object, reason: &str, severity: &str, why: String| {
        let condition =
            Condition::new_false(condition::API_BINDINGS_INITIALIZED, reason, severity, why);
        conditions::set(new, s.now, condition);
    };
    if wanted.iter().any(|w| w.object.is_none()) {
        let why = "encountered errors: unable to complete initialization: unable to find at least 1 APIExport";
        set(new, "APIBindingErrors", "Error", why.into());
        return;
    }
    let incomplete = incomplete(&wanted.iter().collect::<Vec<_>>(), promised);
    if incomplete.is_empty() {
        left.retain(|i| i != names::API_BINDINGS_INITIALIZER);
        if conditions::get(new, condition::API_BINDINGS_INITIALIZED).is_some() {
            conditions::remove(new, condition::API_BINDINGS_INITIALIZED);
        }
    } else if s.waited_long {
        let why = format!("APIBinding(s) not yet fully bound: {}", incomplete.join(", "));
        set(new, "WaitingOnAPIBindings", "Info", why);
    }
}

/// What is not bound yet, as kcp lists it.
fn incomplete(wanted: &[&Wanted], promised: &Promised<'_>) -> Vec<String> {
    let mut out: Vec<String> = wanted
        .iter()
        .filter_map(|w| match promised.binding_of(&w.export) {
            None => Some(format!("for APIExport {}|{}", w.export.path, w.export.export)),
            Some(b) if !conditions::is_true(b, condition::INITIAL_BINDING_COMPLETED) => {
                Some(b.name().to_owned())
            }
            Some(b)
                if has_accepted_claims(b)
                    && !conditions::is_true(b, condition::PERMISSION_CLAIMS_APPLIED) =>
            {
                Some(format!("{} waiting for permission claims to be applied", b.name()))
            }
            Some(_) => None,
        })
        .collect();
    out.sort();
    out
}

fn has_accepted_claims(binding: &Object) -> bool {
    let spec: api::ApiBindingSpec = api::part(binding, "spec");
    spec.permission_claims.iter().any(|c| c.state == "Accepted")
}

/// The write that makes the binding what it must be.
fn ensure(cluster: &ClusterName, want: &Wanted, promised: &Promised<'_>) -> Option<Action> {
    let export = want.object.as_ref()?;
    let name = hash::default_binding_name(cluster, &want.export.path, &want.export.export);
    let mut spec =
        json!({"reference": {"export": {"path": want.export.path, "name": want.export.export}}});
    let claims: ApiExportSpec = api::part(export, "spec");
    if !claims.permission_claims.is_empty() {
        spec["permissionClaims"] = claims.permission_claims.iter().map(accepted).collect();
    }
    let at = cluster_scoped(cluster, gvr::api_bindings());
    match promised.bindings.iter().find(|b| b.name() == name) {
        None => {
            let object = json!({
                "apiVersion": "apis.kcp.io/v1alpha2",
                "kind": "APIBinding",
                "metadata": {"name": name},
                "spec": spec,
            });
            Some(create(at, object))
        }
        Some(old) if want.maintain => {
            let mut new = old.clone();
            new.insert("spec".into(), spec);
            action::update(at, old, new)
        }
        Some(_) => None,
    }
}

/// A claim as a default binding accepts it.
fn accepted(claim: &PermissionClaim) -> Value {
    json!({
        "group": claim.group,
        "resource": claim.resource,
        "identityHash": claim.identity_hash,
        "verbs": claim.verbs,
        "selector": claim.default_selector.clone().unwrap_or_else(|| json!({"matchAll": true})),
        "state": "Accepted",
    })
}
