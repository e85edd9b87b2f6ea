//! Lease (`pkg/apis/coordination/validation`, `pkg/registry/coordination/lease`).

use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::{Object, Value, names};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

/// Members of coordinated leader election, a feature that is off in Kubernetes 1.36 and here.
const COORDINATED: [&str; 2] = ["strategy", "preferredHolder"];

pub const STRATEGY: Strategy = Strategy {
    prepare_create: |object| {
        for member in COORDINATED {
            object.remove_at(&["spec", member]);
        }
    },
    prepare_update,
    validate,
    validate_update,
    allow_create_on_update: true,
    allow_unconditional_update: false,
    ..PLAIN
};

/// A stored lease may keep the members that a new one may not have.
fn prepare_update(object: &mut Object, old: &Object, _sub: Sub) {
    for member in COORDINATED {
        if old.at(&["spec", member]).is_none() {
            object.remove_at(&["spec", member]);
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = rules::meta(object, true, names::name_is_dns_subdomain);
    validate_spec(object, &mut errors);
    errors
}

fn validate_update(object: &Object, old: &Object, _sub: Sub) -> Vec<FieldError> {
    let mut errors = rules::meta_update(object, old);
    validate_spec(object, &mut errors);
    errors
}

fn validate_spec(object: &Object, errors: &mut Vec<FieldError>) {
    let number = |member| object.at(&["spec", member]).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|n| *n <= 0) {
        let path = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(path, seconds, "must be greater than 0"));
    }
    if let Some(n_transitions) = number("leaseTransitions").filter(|n| *n < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.leaseTransitions", n_transitions, detail));
    }
    let strategy = rules::text(object, &["spec", "strategy"]);
    if object.at(&["spec", "strategy"]).is_some_and(|v| !v.is_null()) {
        // Go adds the member's name twice.
        let path = "spec.strategy.strategy";
        if strategy.contains('/') {
            for message in names::is_qualified_name(strategy) {
                errors.push(FieldError::invalid(path, strategy, message));
            }
        } else if strategy != "OldestEmulationVersion" {
            errors.push(FieldError::not_supported(path, strategy, &["OldestEmulationVersion"]));
        }
    }
    if strategy.is_empty() && !rules::text(object, &["spec", "preferredHolder"]).is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden("spec.preferredHolder", detail));
    }
}
