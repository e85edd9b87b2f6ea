//! ResourceQuota (`pkg/registry/core/resourcequota`). Quotas are not enforced yet, so their creation
//! is refused; stored ones may be read, changed and deleted.

use std::collections::BTreeSet;

use fp_object::field::FieldError;
use fp_object::{Object, Value, names, object_meta};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

pub const STRATEGY: Strategy = Strategy {
    prepare_create: |object| drop(object.remove("status")),
    prepare_update,
    validate: |object| rules::meta(object, true, names::name_is_dns_subdomain),
    validate_update,
    create_not_built: Some("Resource quota"),
    ..PLAIN
};

fn prepare_update(object: &mut Object, old: &Object, sub: Sub) {
    rules::keep(object, old, if sub == Sub::Status { "spec" } else { "status" });
}

fn validate_update(object: &Object, old: &Object, sub: Sub) -> Vec<FieldError> {
    let mut errors = rules::meta_update(object, old);
    let scopes = |o| -> BTreeSet<&str> {
        rules::list(o, &["spec", "scopes"]).iter().filter_map(Value::as_str).collect()
    };
    if sub == Sub::Main && scopes(object) != scopes(old) {
        let bad: Value = rules::list(object, &["spec", "scopes"]).into();
        errors.push(FieldError::invalid("spec.scopes", bad, object_meta::IMMUTABLE));
    }
    errors
}
