//! Whether a CRD's names are free in its group, and the conditions that say so
//! (`apiextensions-apiserver/pkg/controller/status/naming_controller.go`, `establish`).

use std::collections::BTreeSet;

use fp_object::meta::Meta;
use fp_object::{Object, Value, field, go};
use serde_json::json;

/// The names that others have taken in a group of one cluster.
#[derive(Debug, Default)]
pub struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// The accepted names of the cluster's CRDs of that group. The CRD itself may be among them: its
    /// own names are no conflict.
    pub fn of<'a>(group: &str, crds: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut taken = Self::default();
        for crd in crds.into_iter().filter(|c| c.text(&["spec", "group"]).unwrap_or("") == group) {
            let Some(names) = crd.at(&["status", "acceptedNames"]).and_then(Value::as_object)
            else {
                continue;
            };
            let text = |key: &str| names.text(&[key]).unwrap_or("").to_owned();
            taken.resources.extend([text("plural"), text("singular")]);
            taken.resources.extend(texts(names, "shortNames").into_iter().map(str::to_owned));
            taken.kinds.extend([text("kind"), text("listKind")]);
        }
        taken
    }
}

/// What the controllers write to a CRD's status.
#[derive(Clone, Debug, PartialEq)]
pub struct Names {
    pub accepted: Object,
    pub names_accepted: Condition,
    pub established: Condition,
}

/// `status`, `reason` and `message` of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub status: bool,
    pub reason: String,
    pub message: String,
}

impl Condition {
    fn new(status: bool, reason: &str, message: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), message: message.into() }
    }
}

/// Decides which of the asked names are accepted. A name that conflicts keeps its accepted value.
/// Names once accepted establish the CRD for good; Kubernetes needs a second step for it so that
/// its handlers can follow, ours need not.
pub fn decide(crd: &Object, taken: &Taken) -> Names {
    let none = Taken::default();
    // Bound CRDs of different exports may share names; the workspaces that bind them may not.
    let bound = crd.annotation(super::BOUND_CRD).is_some();
    let taken = if bound { &none } else { taken };
    let empty = Object::new();
    let asked = crd.at(&["spec", "names"]).and_then(Value::as_object).unwrap_or(&empty);
    let current = crd.at(&["status", "acceptedNames"]).and_then(Value::as_object).unwrap_or(&empty);
    let mut accepted = current.clone();
    let mut conflict = None;
    let mut one = |key: &str, used: &BTreeSet<String>, reason: &str| {
        let (want, have) = (asked.text(&[key]).unwrap_or(""), current.text(&[key]).unwrap_or(""));
        if want != have && used.contains(want) {
            conflict = Some(Condition::new(false, reason, in_use(want)));
        } else if !want.is_empty() {
            accepted.insert(key.into(), want.into());
        }
    };
    one("plural", &taken.resources, "PluralConflict");
    one("singular", &taken.resources, "SingularConflict");
    one("kind", &taken.kinds, "KindConflict");
    one("listKind", &taken.kinds, "ListKindConflict");
    // Of several conflicts the last is told: plural, singular, short names, kind, list kind.
    let short = short_names(asked, current, &taken.resources);
    match short {
        Err(condition) => {
            let later = conflict.as_ref().is_some_and(|c| c.reason.contains("Kind"));
            if !later {
                conflict = Some(condition);
            }
        }
        Ok(names) => keep(&mut accepted, "shortNames", names),
    }
    keep(&mut accepted, "categories", asked.get("categories").cloned());
    let names_accepted =
        conflict.unwrap_or_else(|| Condition::new(true, "NoConflicts", "no conflicts found"));
    let established = if is_true(crd, "Established") || names_accepted.status {
        Condition::new(true, "InitialNamesAccepted", "the initial names have been accepted")
    } else {
        Condition::new(false, "NotAccepted", "not all names are accepted")
    };
    Names { accepted, names_accepted, established }
}

/// Why the CRD's names are not free, or `None`.
pub fn names_conflict(crd: &Object, taken: &Taken) -> Option<String> {
    let decided = decide(crd, taken).names_accepted;
    (!decided.status).then_some(decided.message)
}

/// Writes the decision to the CRD's status; `now` is an RFC 3339 time. Returns whether it changed.
pub fn apply(crd: &mut Object, names: &Names, now: &str) -> bool {
    let before = crd.get("status").cloned();
    crd.map_mut(&["status"]).insert("acceptedNames".into(), Value::Object(names.accepted.clone()));
    set_condition(crd, "NamesAccepted", &names.names_accepted, now);
    set_condition(crd, "Established", &names.established, now);
    crd.get("status") != before.as_ref()
}

/// Sets a condition; its time changes only with its status.
pub fn set_condition(crd: &mut Object, kind: &str, condition: &Condition, now: &str) {
    let status = if condition.status { "True" } else { "False" };
    let mut new = json!({
        "type": kind, "status": status, "reason": condition.reason, "message": condition.message,
        "lastTransitionTime": now,
    });
    let list = crd.map_mut(&["status"]).entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("made a list just above");
    match list.iter_mut().find(|c| c["type"] == kind) {
        None => list.push(new),
        Some(old) => {
            if old["status"] == status && old["lastTransitionTime"].is_string() {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            if let Some(generation) = old.get("observedGeneration") {
                new["observedGeneration"] = generation.clone();
            }
            *old = new;
        }
    }
}

pub fn is_true(crd: &Object, kind: &str) -> bool {
    let list = crd.at(&["status", "conditions"]).and_then(Value::as_array);
    list.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True")
}

fn short_names(
    asked: &Object,
    current: &Object,
    used: &BTreeSet<String>,
) -> Result<Option<Value>, Condition> {
    let own = texts(current, "shortNames");
    let conflicts: Vec<String> = texts(asked, "shortNames")
        .into_iter()
        .filter(|name| !own.contains(name) && used.contains(*name))
        .map(in_use)
        .collect();
    if conflicts.is_empty() {
        return Ok(asked.get("shortNames").cloned());
    }
    Err(Condition::new(false, "ShortNamesConflict", field::join(conflicts)))
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go::quote(name))
}

fn keep(names: &mut Object, key: &str, value: Option<Value>) {
    match value.filter(|v| !v.is_null()) {
        Some(value) => names.insert(key.into(), value),
        None => names.remove(key),
    };
}

fn texts<'a>(names: &'a Object, key: &str) -> Vec<&'a str> {
    names
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
