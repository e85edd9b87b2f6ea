//! kcp's conditions: the list in an object's `status.conditions`.
//!
//! Rules: kcp `sdk/apis/third_party/conditions`: `Ready` comes first, the others by type; the
//! transition time changes only when anything else of the condition does.

use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde::{Deserialize, Serialize};

use crate::names::condition::READY;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// `Error`, `Warning`, `Info`; empty unless the status is `False`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub severity: String,
    /// RFC 3339, seconds.
    pub last_transition_time: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    pub fn new_true(kind: &str) -> Self {
        Self { kind: kind.into(), status: "True".into(), ..Self::default() }
    }

    /// `severity` is `Error`, `Warning` or `Info`.
    pub fn new_false(kind: &str, reason: &str, severity: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            status: "False".into(),
            severity: severity.into(),
            reason: reason.into(),
            message: message.into(),
            ..Self::default()
        }
    }

    pub fn new_unknown(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            status: "Unknown".into(),
            reason: reason.into(),
            message: message.into(),
            ..Self::default()
        }
    }

    fn same_state(&self, other: &Self) -> bool {
        (&self.status, &self.severity, &self.reason, &self.message)
            == (&other.status, &other.severity, &other.reason, &other.message)
    }

    /// Where it stands when conditions are merged: the worst first.
    fn priority(&self) -> u8 {
        match (self.status.as_str(), self.severity.as_str()) {
            ("False", "Error") => 0,
            ("False", "Warning") => 1,
            ("False", "Info") => 2,
            ("True", _) => 3,
            ("Unknown", _) => 4,
            _ => 99,
        }
    }
}

/// All conditions of an object, as stored.
pub fn list(object: &Object) -> Vec<Condition> {
    let stored = object.at(&["status", "conditions"]).and_then(Value::as_array);
    stored.into_iter().flatten().filter_map(|c| Condition::deserialize(c).ok()).collect()
}

pub fn get(object: &Object, kind: &str) -> Option<Condition> {
    list(object).into_iter().find(|c| c.kind == kind)
}

pub fn is_true(object: &Object, kind: &str) -> bool {
    get(object, kind).is_some_and(|c| c.status == "True")
}

/// Sets one condition; `now` (RFC 3339, seconds) becomes its transition time if it says anything new.
pub fn set(object: &mut Object, now: &str, mut condition: Condition) {
    let mut conditions = list(object);
    match conditions.iter_mut().find(|c| c.kind == condition.kind) {
        Some(old) if old.same_state(&condition) => {}
        Some(old) => {
            condition.last_transition_time = now.into();
            *old = condition;
        }
        None => {
            condition.last_transition_time = now.into();
            conditions.push(condition);
        }
    }
    store(object, conditions);
}

/// Removes one condition.
pub fn remove(object: &mut Object, kind: &str) {
    let mut conditions = list(object);
    conditions.retain(|c| c.kind != kind);
    store(object, conditions);
}

/// Sets `Ready` to the worst of the other conditions, or of those of `only`; without any, nothing.
pub fn set_summary(object: &mut Object, now: &str, only: Option<&[&str]>) {
    let mut scope = list(object);
    scope.retain(|c| c.kind != READY && only.is_none_or(|only| only.contains(&c.kind.as_str())));
    let rank = |c: &Condition| {
        only.and_then(|only| only.iter().position(|k| *k == c.kind)).unwrap_or(usize::MAX)
    };
    scope.sort_by(|a, b| (a.priority(), rank(a), &a.kind).cmp(&(b.priority(), rank(b), &b.kind)));
    let Some(worst) = scope.into_iter().next() else { return };
    let summary = if worst.status == "True" {
        Condition::new_true(READY)
    } else {
        Condition { kind: READY.into(), ..worst }
    };
    set(object, now, summary);
}

fn store(object: &mut Object, mut conditions: Vec<Condition>) {
    conditions.sort_by(|a, b| (a.kind != READY, &a.kind).cmp(&(b.kind != READY, &b.kind)));
    let list = serde_json::to_value(conditions).expect("conditions are plain data");
    object.map_mut(&["status"]).insert("conditions".into(), list);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(object: &Object) -> String {
        list(object)
            .iter()
            .map(|c| format!("{}={} {} {}\n", c.kind, c.status, c.last_transition_time, c.reason))
            .collect()
    }

    #[test]
    fn set_and_summary() {
        let mut object = Object::new();
        set(&mut object, "t1", Condition::new_true("Zeta"));
        set(&mut object, "t2", Condition::new_false("Alpha", "Broken", "Warning", "it is"));
        set(&mut object, "t3", Condition::new_true("Zeta"));
        set_summary(&mut object, "t4", None);
        expect_test::expect![[r#"
            Ready=False t4 Broken
            Alpha=False t2 Broken
            Zeta=True t1 
        "#]]
        .assert_eq(&text(&object));
        set(&mut object, "t5", Condition::new_false("Beta", "Worse", "Error", ""));
        set_summary(&mut object, "t6", None);
        set_summary(&mut object, "t7", None);
        expect_test::expect![[r#"
            Ready=False t6 Worse
            Alpha=False t2 Broken
            Beta=False t5 Worse
            Zeta=True t1 
        "#]]
        .assert_eq(&text(&object));
        set_summary(&mut object, "t8", Some(&["Zeta"]));
        assert!(is_true(&object, READY));
        remove(&mut object, "Beta");
        assert!(get(&object, "Beta").is_none());
    }
}
