//! What an APIExport needs next.
//!
//! Rules: kcp `pkg/reconciler/apis/apiexport` (surface 9.1 and 9.4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fp_base::ClusterName;
use fp_kcp::conditions::{self, Condition};
use fp_kcp::hash;
use fp_kcp::names::{self, condition};
use fp_object::Object;
use fp_object::meta::Meta;
use serde_json::{Value, json};

use crate::action::{self, Action, Plan, Target};
use crate::world::{cluster_scoped, gvr};

/// Where identities are kept unless the export says otherwise.
pub const SECRET_NAMESPACE: &str = "kcp-system";

pub struct Snapshot<'a> {
    pub cluster: &'a ClusterName,
    pub export: &'a Object,
    pub has_secret_ref: bool,
    /// The secret that the export names, or would be given.
    pub secret: Option<&'a Object>,
    pub has_namespace: bool,
    pub has_slice: bool,
    /// A new identity key: used when one is due.
    pub fresh_key: String,
    pub now: &'a str,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    if s.export.is_deleting() {
        return Plan::none();
    }
    let mut new = s.export.clone();
    let mut plan = Plan::none();
    let mut key = s.secret.and_then(secret_key);
    if !s.has_secret_ref {
        if s.secret.is_none() {
            plan = make_identity(s, plan);
            key = Some(s.fresh_key.clone().into_bytes());
        }
        let secret_ref = json!({"namespace": SECRET_NAMESPACE, "name": s.export.name()});
        new.map_mut(&["spec", "identity"]).insert("secretRef".into(), secret_ref);
    }
    identity(s, key.as_deref(), &mut new);
    let mut writes: Vec<Action> = slice(s).into_iter().collect();
    writes.extend(action::update(cluster_scoped(s.cluster, gvr::api_exports()), s.export, new));
    plan.then(writes)
}

fn make_identity(s: &Snapshot<'_>, plan: Plan) -> Plan {
    let create = |at: Target, object: Value| {
        let Value::Object(object) = object else { unreachable!("an object literal") };
        Action::Create { at, object }
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECRET_NAMESPACE}});
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": s.export.name(), "namespace": SECRET_NAMESPACE},
        "type": "Opaque",
        "data": {"key": STANDARD.encode(&s.fresh_key)},
    });
    let mut first = Vec::new();
    if !s.has_namespace {
        first.push(create(cluster_scoped(s.cluster, gvr::namespaces()), namespace));
    }
    let at = Target {
        cluster: s.cluster.clone(),
        gvr: gvr::core("secrets"),
        namespace: SECRET_NAMESPACE.into(),
    };
    plan.then(first).then(vec![create(at, secret)])
}

fn secret_key(secret: &Object) -> Option<Vec<u8>> {
    STANDARD.decode(secret.text(&["data", "key"])?).ok()
}

/// Stores the hash of the key once; from then on it must stay the same.
fn identity(s: &Snapshot<'_>, key: Option<&[u8]>, new: &mut Object) {
    let known = new.text(&["status", "identityHash"]).unwrap_or("").to_owned();
    let invalid = |why: String| {
        Condition::new_false(condition::IDENTITY_VALID, "IdentityVerificationFailed", "Error", why)
    };
    let outcome = match key.map(hash::identity_hash) {
        None => invalid("identity secret is missing or has no data key".into()),
        Some(hash) if known.is_empty() || known == hash => {
            new.map_mut(&["status"]).insert("identityHash".into(), hash.into());
            Condition::new_true(condition::IDENTITY_VALID)
        }
        Some(hash) => invalid(format!(
            "hash mismatch: identity secret hash {hash:?} must match status.identityHash {known:?}"
        )),
    };
    conditions::set(new, s.now, outcome);
}

fn slice(s: &Snapshot<'_>) -> Option<Action> {
    if s.has_slice || s.export.annotation(names::SKIP_ENDPOINT_SLICE).is_some() {
        return None;
    }
    let path = s.export.annotation(names::PATH).unwrap_or(s.cluster.as_str());
    let object = json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExportEndpointSlice",
        "metadata": {
            "name": s.export.name(),
            "ownerReferences": [{
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIExport",
                "name": s.export.name(),
                "uid": s.export.uid(),
            }],
        },
        "spec": {"export": {"name": s.export.name(), "path": path}},
    });
    let Value::Object(object) = object else { return None };
    Some(Action::Create { at: cluster_scoped(s.cluster, gvr::endpoint_slices()), object })
}
