//! What an APIBinding needs next: its resources locked, their bound CRDs made, its status told.
//!
//! Rules: kcp `pkg/reconciler/apis/apibinding` (surface 9.1). Where kcp goes through several
//! passes, a pass here goes as far as what it sees allows: a binding whose CRDs are established
//! is bound at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use fp_base::ClusterName;
use fp_kcp::api::{self, ApiExportSpec, ResourceLock};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition, system};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use super::{conflict, locks};
use crate::action::{self, Action, Plan};
use crate::world::{cluster_scoped, gvr};

/// One exported resource as it is found.
pub struct Exported {
    /// The schema's name, as the export gives it.
    pub schema_name: String,
    pub is_crd: bool,
    /// The APIResourceSchema, if it exists; its versions carry their schemas while there is no CRD.
    pub schema: Option<Arc<Object>>,
    /// The bound CRD of that schema, if it exists, without the schemas of its versions.
    pub crd: Option<Arc<Object>>,
}

/// One binding and what it refers to.
pub struct Binding<'a> {
    pub object: &'a Object,
    /// The export and its cluster.
    pub export: Option<(&'a ClusterName, &'a Object)>,
    pub exported: &'a [Exported],
    /// The other definitions of the cluster: its CRDs, and bound CRDs with their bindings.
    pub others: &'a [conflict::Other],
}

/// Everything a pass looks at: the bindings of one cluster, which share its LogicalCluster.
pub struct Snapshot<'a> {
    pub cluster: &'a ClusterName,
    pub logical_cluster: Option<&'a Object>,
    pub bindings: &'a [Binding<'a>],
    /// The names of the cluster's own CRDs.
    pub crds: &'a [&'a str],
    pub now: &'a str,
}

/// One write of the LogicalCluster for all bindings, then one of each binding that changes.
pub fn plan(s: &Snapshot<'_>) -> Plan {
    let names: Vec<&str> = s.bindings.iter().map(|b| b.object.name()).collect();
    let released =
        |lc: &Object| locks::released(lc, &names, s.crds, s.now).unwrap_or_else(|| lc.clone());
    let mut shared = Shared { locked: s.logical_cluster.map(released), first: Vec::new() };
    let mut updates = Vec::new();
    for binding in s.bindings.iter().filter(|b| !b.object.is_deleting()) {
        let new = Pass { s, b: binding, new: binding.object.clone(), shared: &mut shared }.run();
        updates.extend(action::update(
            cluster_scoped(s.cluster, gvr::api_bindings()),
            binding.object,
            new,
        ));
    }
    if let (Some(old), Some(new)) = (s.logical_cluster, shared.locked) {
        shared.first.extend(action::update(
            cluster_scoped(s.cluster, gvr::logical_clusters()),
            old,
            new,
        ));
    }
    Plan::none().then(shared.first).then(updates)
}

/// What the bindings of a cluster make together.
struct Shared {
    /// The LogicalCluster with the locks taken so far.
    locked: Option<Object>,
    first: Vec<Action>,
}

struct Pass<'a, 'b> {
    s: &'a Snapshot<'b>,
    b: &'a Binding<'b>,
    new: Object,
    shared: &'a mut Shared,
}

impl Pass<'_, '_> {
    fn run(mut self) -> Object {
        if self.b.object.text(&["status", "phase"]).unwrap_or("").is_empty() {
            self.new.map_mut(&["status"]).insert("phase".into(), "Binding".into());
            self.initial(
                "WaitingForEstablished",
                "Info",
                "Waiting for API(s) to be established".into(),
            );
        }
        self.claims();
        self.bind();
        conditions::set_summary(
            &mut self.new,
            self.s.now,
            Some(&[condition::INITIAL_BINDING_COMPLETED]),
        );
        self.new
    }

    fn set(&mut self, condition: Condition) {
        conditions::set(&mut self.new, self.s.now, condition);
    }

    fn export_invalid(&mut self, reason: &str, severity: &str, why: String) {
        self.set(Condition::new_false(condition::API_EXPORT_VALID, reason, severity, why));
    }

    /// InitialBindingCompleted is never taken back.
    fn initial(&mut self, reason: &str, severity: &str, why: String) {
        if !conditions::is_true(&self.new, condition::INITIAL_BINDING_COMPLETED) {
            self.set(Condition::new_false(
                condition::INITIAL_BINDING_COMPLETED,
                reason,
                severity,
                why,
            ));
        }
    }

    fn not_up_to_date(&mut self, reason: &str, severity: &str, why: String) {
        self.set(Condition::new_false(
            condition::BINDING_UP_TO_DATE,
            reason,
            severity,
            why.clone(),
        ));
        self.initial(reason, severity, why);
    }

    /// Claims are recorded; labelling what they select comes with the exports issue, so a binding
    /// that has accepted one says that it is not applied.
    fn claims(&mut self) {
        let spec: api::ApiBindingSpec = api::part(self.b.object, "spec");
        self.set(Condition::new_true(condition::PERMISSION_CLAIMS_VALID));
        if spec.permission_claims.iter().any(|c| c.state == "Accepted") {
            let why = "permission claims are not served by this version of Ferroplane";
            self.set(Condition::new_false(
                condition::PERMISSION_CLAIMS_APPLIED,
                "InternalError",
                "Warning",
                why,
            ));
        } else {
            self.set(Condition::new_true(condition::PERMISSION_CLAIMS_APPLIED));
        }
    }

    fn bind(&mut self) {
        let spec: api::ApiBindingSpec = api::part(self.b.object, "spec");
        let Some(reference) = spec.reference.export else {
            return self.export_invalid(
                "APIExportInvalidReference",
                "Error",
                "Missing APIExport reference".into(),
            );
        };
        let path =
            if reference.path.is_empty() { self.s.cluster.as_str() } else { &reference.path };
        let Some((export_cluster, export)) = self.b.export else {
            let why = format!("APIExport {path}|{} not found", reference.name);
            return self.export_invalid("APIExportNotFound", "Error", why);
        };
        let export_spec: ApiExportSpec = api::part(export, "spec");
        let claims = export.at(&["spec", "permissionClaims"]).cloned();
        match claims.filter(|_| !export_spec.permission_claims.is_empty()) {
            Some(claims) => {
                drop(self.new.map_mut(&["status"]).insert("exportPermissionClaims".into(), claims))
            }
            None => drop(self.new.remove_at(&["status", "exportPermissionClaims"])),
        }
        let identity = export.text(&["status", "identityHash"]).unwrap_or("");
        if identity.is_empty() {
            let why = format!("APIExport {path}|{} is missing status.identityHash", reference.name);
            return self.export_invalid("MissingIdentityHash", "Warning", why);
        }
        let status = self.new.map_mut(&["status"]);
        status.insert("apiExportClusterName".into(), export_cluster.as_str().into());
        if let Some(missing) = self.b.exported.iter().find(|e| e.schema.is_none()) {
            let why = format!(
                "Invalid APIExport. Please contact the APIExport owner to resolve: APIResourceSchema {:?} not found",
                missing.schema_name
            );
            return self.export_invalid("InternalError", "Error", why);
        }
        let Some(skipped) = self.lock() else { return };
        self.resources(identity, &skipped);
    }

    /// Takes the resources in the LogicalCluster; answers who holds those that others have.
    fn lock(&mut self) -> Option<BTreeMap<String, ResourceLock>> {
        let Some(logical_cluster) = &self.shared.locked else {
            let why = "Unable to bind APIs: logicalclusters.core.kcp.io \"cluster\" not found";
            self.not_up_to_date("LogicalClusterNotFound", "Error", why.into());
            return None;
        };
        let mut locks = match api::resource_locks(logical_cluster) {
            Ok(locks) => locks,
            Err(error) => {
                let why = format!(
                    "Unable to bind APIs: failed to unmarshal ResourceBindings annotation: {error}"
                );
                self.not_up_to_date("NamingConflicts", "Error", why);
                return None;
            }
        };
        let own =
            ResourceLock { binding: self.b.object.name().to_owned(), ..ResourceLock::default() };
        let mut skipped = BTreeMap::new();
        for gr in self.b.exported.iter().filter_map(group_resource) {
            match locks.get(&gr) {
                Some(lock) if *lock != own => {
                    skipped.insert(gr, lock.clone());
                }
                _ => drop(locks.insert(gr, own.clone())),
            }
        }
        let text = serde_json::to_string(&locks).expect("locks are plain data");
        if let Some(logical_cluster) = &mut self.shared.locked {
            logical_cluster.set_annotation(names::RESOURCE_BINDINGS, &text);
        }
        Some(skipped)
    }

    fn resources(&mut self, identity: &str, skipped: &BTreeMap<String, ResourceLock>) {
        let mut waiting = Vec::new();
        for exported in self.b.exported {
            let (Some(schema), Some(gr)) = (&exported.schema, group_resource(exported)) else {
                continue;
            };
            if skipped.contains_key(&gr) {
                continue;
            }
            if let Some(why) = conflict::check(self.b.object.name(), schema, self.b.others) {
                self.not_up_to_date(
                    "NamingConflicts",
                    "Error",
                    format!("Unable to bind APIs: {why}"),
                );
                return;
            }
            match &exported.crd {
                None => {
                    let Ok(crd) = fp_kcp::bound::crd(schema) else {
                        let why =
                            "Invalid APIExport. Please contact the APIExport owner to resolve";
                        return self.export_invalid("InternalError", "Error", why.into());
                    };
                    let at = cluster_scoped(&ClusterName::system(system::BOUND_CRDS), gvr::crds());
                    self.shared.first.push(Action::Create { at, object: crd });
                    waiting.push(exported.schema_name.clone());
                }
                Some(crd) if !is_established(crd) => waiting.push(exported.schema_name.clone()),
                Some(crd) => self.bound(exported, schema, crd, identity),
            }
        }
        self.set(Condition::new_true(condition::API_EXPORT_VALID));
        self.conclude(waiting, skipped);
    }

    fn conclude(&mut self, mut waiting: Vec<String>, skipped: &BTreeMap<String, ResourceLock>) {
        if !waiting.is_empty() {
            waiting.sort();
            let why = format!("Waiting for API(s) to be established: {}", waiting.join(", "));
            self.not_up_to_date("WaitingForEstablished", "Info", why);
        } else if !skipped.is_empty() {
            let held = |(gr, lock): (&String, &ResourceLock)| {
                format!("{gr}:{{{} {}}}", lock.binding, lock.crd)
            };
            let why = format!(
                "Unable to bind APIs because they are bound by other APIBindings or CRDs: map[{}]",
                skipped.iter().map(held).collect::<Vec<_>>().join(" ")
            );
            self.not_up_to_date("NamingConflicts", "Error", why);
        } else {
            self.set(Condition::new_true(condition::INITIAL_BINDING_COMPLETED));
            self.set(Condition::new_true(condition::BINDING_UP_TO_DATE));
            self.new.map_mut(&["status"]).insert("phase".into(), "Bound".into());
        }
    }

    /// Records one bound resource; storage versions are never forgotten.
    fn bound(&mut self, exported: &Exported, schema: &Object, crd: &Object, identity: &str) {
        let (group, plural) = group_plural(schema);
        let status = self.new.map_mut(&["status"]);
        let list = status.entry("boundResources").or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { return };
        let at = list.iter().position(|b| b["group"] == group && b["resource"] == plural);
        let mut versions = Vec::new();
        if exported.is_crd {
            versions.extend(texts(crd.at(&["status", "storedVersions"])));
            versions.extend(at.map(|i| texts(list[i].get("storageVersions"))).unwrap_or_default());
            versions.sort();
            versions.dedup();
        }
        let mut entry = json!({
            "group": group,
            "resource": plural,
            "schema": {"name": schema.name(), "UID": schema.uid(), "identityHash": identity},
        });
        if !versions.is_empty() {
            entry["storageVersions"] = versions.into();
        }
        match at {
            Some(i) => list[i] = entry,
            None => list.push(entry),
        }
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn group_plural(schema: &Object) -> (&str, &str) {
    let text = |path: &[&str]| schema.text(path).unwrap_or("");
    (text(&["spec", "group"]), text(&["spec", "names", "plural"]))
}

/// `<resource>.<group>`, as the locks are keyed.
fn group_resource(exported: &Exported) -> Option<String> {
    let (group, plural) = group_plural(exported.schema.as_ref()?);
    Some(if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") })
}

fn is_established(crd: &Object) -> bool {
    let list = crd.at(&["status", "conditions"]).and_then(Value::as_array);
    let is =
        |kind: &str| list.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True");
    is("Established") && !is("Terminating")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
