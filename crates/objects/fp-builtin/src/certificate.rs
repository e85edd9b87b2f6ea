//! CertificateSigningRequest (`pkg/registry/certificates`). No signer is built yet, so creation is
//! refused; stored requests may be read, approved and deleted.

use fp_object::meta::Meta;
use fp_object::{Object, Value, time};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

pub const STRATEGY: Strategy = Strategy {
    prepare_create: |object| drop(object.remove("status")),
    prepare_update,
    validate: |object| rules::meta(object, false, |_, _| Vec::new()),
    validate_update: rules::meta_update_only,
    field_labels: &["spec.signerName"],
    field_value: |object, _| rules::text(object, &["spec", "signerName"]).to_owned(),
    subresources: &["approval"],
    create_not_built: Some("Certificate signing"),
    ..PLAIN
};

/// A request does not change but through its subresources: `approval` sets the conditions,
/// `status` the certificate and the conditions other than approval.
fn prepare_update(object: &mut Object, old: &Object, sub: Sub) {
    rules::keep(object, old, "spec");
    match sub {
        Sub::Status => {
            stamp_conditions(object, old);
            keep_decision(object, old);
        }
        Sub::Other("approval") => {
            stamp_conditions(object, old);
            let conditions = object.remove_at(&["status", "conditions"]);
            rules::keep(object, old, "status");
            if let Some(conditions) = conditions {
                object.map_mut(&["status"]).insert("conditions".into(), conditions);
            }
        }
        _ => rules::keep(object, old, "status"),
    }
}

fn is_decision(condition: &Value) -> bool {
    matches!(condition.get("type").and_then(Value::as_str), Some("Approved" | "Denied"))
}

fn keep_decision(object: &mut Object, old: &Object) {
    let mut decided = rules::list(old, &["status", "conditions"]).iter().filter(|c| is_decision(c));
    let Some(Value::Array(list)) = object.map_mut(&["status"]).get_mut("conditions") else {
        return;
    };
    for condition in list.iter_mut().filter(|c| is_decision(c)) {
        if let Some(kept) = decided.next() {
            *condition = kept.clone();
        }
    }
}

/// Fills in the times of conditions: a transition keeps its time while its status stays.
fn stamp_conditions(object: &mut Object, old: &Object) {
    let now = time::now();
    let before = rules::list(old, &["status", "conditions"]);
    for condition in rules::objects_mut(object.map_mut(&["status"]), "conditions") {
        rules::set_default(condition, "lastUpdateTime", now.as_str());
        let same = before.iter().find(|c| {
            c.get("type") == condition.get("type") && c.get("status") == condition.get("status")
        });
        let kept = same.and_then(|c| c.get("lastTransitionTime")).filter(|t| !t.is_null());
        let at = kept.cloned().unwrap_or_else(|| now.as_str().into());
        rules::set_default(condition, "lastTransitionTime", at);
    }
}
