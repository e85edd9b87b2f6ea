//! ServiceAccount (`pkg/registry/core/serviceaccount`).

use fp_object::field::FieldError;
use fp_object::{Object, names};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

pub const STRATEGY: Strategy = Strategy {
    prepare_create,
    prepare_update: |object, _, _| prepare_create(object),
    validate,
    validate_update,
    subresources: &["token"],
    ..PLAIN
};

/// Of a secret's reference only the name is kept.
fn prepare_create(object: &mut Object) {
    for secret in rules::objects_mut(object, "secrets") {
        secret.retain(|key, _| key == "name");
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    rules::meta(object, true, names::name_is_dns_subdomain)
}

fn validate_update(object: &Object, old: &Object, _sub: Sub) -> Vec<FieldError> {
    let mut errors = rules::meta_update(object, old);
    errors.extend(validate(object));
    errors
}
