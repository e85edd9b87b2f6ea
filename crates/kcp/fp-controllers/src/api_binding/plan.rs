//! What an APIBinding needs next: its resources locked, their bound CRDs made, its status told.
//!
//! Rules: kcp `pkg/reconciler/apis/apibinding` (surface 9.1). Where kcp goes through several
//! passes, a pass here goes as far as what it sees allows: a binding whose CRDs are established
//! is bound at once.

use std::collections::BTreeMap;

use fp_base::ClusterName;
use fp_kcp::api::{self, ApiExportSpec, ResourceLock};
use fp_kcp::conditions::{self, Condition};
use fp_kcp::names::{self, condition, system};
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use super::conflict;
use crate::action::{self, Action, Plan};
use crate::world::{cluster_scoped, gvr};

/// One exported resource as it is found.
pub struct Exported {
    /// The schema's name, as the export gives it.
    pub schema_name: String,
    pub is_crd: bool,
    /// The APIResourceSchema, if it exists.
    pub schema: Option<Object>,
    /// The bound CRD of that schema, if it exists.
    pub crd: Option<Object>,
}

/// Everything a pass looks at.
pub struct Snapshot<'a> {
    pub binding: &'a Object,
    pub cluster: ClusterName,
    /// The export and its cluster.
    pub export: Option<(&'a ClusterName, &'a Object)>,
    pub exported: &'a [Exported],
    pub logical_cluster: Option<&'a Object>,
    /// The other definitions of the cluster: its CRDs, and bound CRDs with their bindings.
    pub others: &'a [conflict::Other],
    pub now: &'a str,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    if s.binding.is_deleting() {
        return Plan::none();
    }
    let mut pass = Pass { s, new: s.binding.clone(), first: Vec::new() };
    if s.binding.text(&["status", "phase"]).unwrap_or("").is_empty() {
        pass.new.map_mut(&["status"]).insert("phase".into(), "Binding".into());
        pass.initial(
            "WaitingForEstablished",
            "Info",
            "Waiting for API(s) to be established".into(),
        );
    }
    pass.claims();
    pass.bind();
    conditions::set_summary(&mut pass.new, s.now, Some(&[condition::INITIAL_BINDING_COMPLETED]));
    let at = cluster_scoped(&s.cluster, gvr::api_bindings());
    let update = action::update(at, s.binding, pass.new);
    Plan::none().then(pass.first).then(update.into_iter().collect())
}

struct Pass<'a, 'b> {
    s: &'a Snapshot<'b>,
    new: Object,
    first: Vec<Action>,
}

impl Pass<'_, '_> {
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
        let spec: api::ApiBindingSpec = api::part(self.s.binding, "spec");
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
        let spec: api::ApiBindingSpec = api::part(self.s.binding, "spec");
        let Some(reference) = spec.reference.export else {
            return self.export_invalid(
                "APIExportInvalidReference",
                "Error",
                "Missing APIExport reference".into(),
            );
        };
        let path =
            if reference.path.is_empty() { self.s.cluster.as_str() } else { &reference.path };
        let Some((export_cluster, export)) = self.s.export else {
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
        if let Some(missing) = self.s.exported.iter().find(|e| e.schema.is_none()) {
            let why = format!(
                "Invalid APIExport. Please contact the APIExport owner to resolve: APIResourceSchema {:?} not found",
                missing.schema_name
            );
            return self.export_invalid("InternalError", "Error", why);
        }
        let Some(skipped) = self.lock() else { return };
        self.resources(export_cluster, identity, &skipped);
    }

    /// Takes the resources in the LogicalCluster; answers who holds those that others have.
    fn lock(&mut self) -> Option<BTreeMap<String, ResourceLock>> {
        let Some(logical_cluster) = self.s.logical_cluster else {
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
            ResourceLock { binding: self.s.binding.name().to_owned(), ..ResourceLock::default() };
        let crds: Vec<&str> = self.s.others.iter().filter_map(conflict::Other::own_crd).collect();
        let mut skipped = BTreeMap::new();
        for gr in self.s.exported.iter().filter_map(group_resource) {
            match locks.get(&gr) {
                Some(lock) if *lock != own && !expired(lock, &gr, &crds, self.s.now) => {
                    skipped.insert(gr, lock.clone());
                }
                _ => drop(locks.insert(gr, own.clone())),
            }
        }
        let text = serde_json::to_string(&locks).expect("locks are plain data");
        if logical_cluster.annotation(names::RESOURCE_BINDINGS) != Some(&text) {
            let mut new = logical_cluster.clone();
            new.set_annotation(names::RESOURCE_BINDINGS, &text);
            let at = cluster_scoped(&self.s.cluster, gvr::logical_clusters());
            self.first.extend(action::update(at, logical_cluster, new));
        }
        Some(skipped)
    }

    fn resources(
        &mut self,
        export_cluster: &ClusterName,
        identity: &str,
        skipped: &BTreeMap<String, ResourceLock>,
    ) {
        let mut waiting = Vec::new();
        for exported in self.s.exported {
            let (Some(schema), Some(gr)) = (&exported.schema, group_resource(exported)) else {
                continue;
            };
            if skipped.contains_key(&gr) {
                continue;
            }
            if let Some(why) = conflict::check(self.s.binding.name(), schema, self.s.others) {
                self.not_up_to_date(
                    "NamingConflicts",
                    "Error",
                    format!("Unable to bind APIs: {why}"),
                );
                return;
            }
            match &exported.crd {
                None => {
                    let Some(crd) = bound_crd(schema, export_cluster) else {
                        let why =
                            "Invalid APIExport. Please contact the APIExport owner to resolve";
                        return self.export_invalid("InternalError", "Error", why.into());
                    };
                    let at = cluster_scoped(&ClusterName::system(system::BOUND_CRDS), gvr::crds());
                    self.first.push(Action::Create { at, object: crd });
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

/// A provisional lock of a CRD that never came. RFC 3339 in UTC sorts as time does.
fn expired(lock: &ResourceLock, gr: &str, crds: &[&str], now: &str) -> bool {
    lock.crd && !crds.contains(&gr) && lock.expiry.as_deref().is_some_and(|e| e < now)
}

fn is_established(crd: &Object) -> bool {
    let list = crd.at(&["status", "conditions"]).and_then(Value::as_array);
    let is =
        |kind: &str| list.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True");
    is("Established") && !is("Terminating")
}

/// The CRD of `system:bound-crds` for a schema. `None` for several versions without a conversion.
pub fn bound_crd(schema: &Object, schema_cluster: &ClusterName) -> Option<Object> {
    let spec = schema.get("spec")?.as_object()?;
    let versions = spec.get("versions")?.as_array()?;
    let version = |v: &Value| {
        let mut out = v.as_object()?.clone();
        let schema = out.remove("schema")?;
        out.insert("schema".into(), json!({"openAPIV3Schema": schema}));
        Some(Value::Object(out))
    };
    let mut new = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": schema.uid()},
        "spec": {
            "group": spec.get("group").cloned().unwrap_or_else(|| "".into()),
            "names": spec.get("names")?,
            "scope": spec.get("scope")?,
            "versions": versions.iter().map(version).collect::<Option<Vec<_>>>()?,
        },
    });
    if versions.len() > 1 {
        new["spec"]["conversion"] = conversion(spec.get("conversion")?);
    }
    let mut new = new.as_object().cloned()?;
    new.set_annotation(names::BOUND_CRD, "");
    new.set_annotation(names::SCHEMA_CLUSTER, schema_cluster.as_str());
    new.set_annotation(names::SCHEMA_NAME, schema.name());
    if let Some(approved) = schema.annotation(names::API_APPROVED) {
        new.set_annotation(names::API_APPROVED, approved);
    }
    if spec.get("nameValidation").and_then(Value::as_str) == Some("PathSegmentName") {
        new.set_annotation(names::VALIDATE_NAME, "path-segment");
    }
    Some(new)
}

fn conversion(given: &Value) -> Value {
    match given["strategy"].as_str() {
        Some("Webhook") => {
            let webhook = &given["webhook"];
            json!({"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": webhook["conversionReviewVersions"],
                "clientConfig": webhook["clientConfig"],
            }})
        }
        strategy => json!({"strategy": strategy}),
    }
}
