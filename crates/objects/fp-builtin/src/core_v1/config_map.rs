//! ConfigMap (`pkg/registry/core/configmap`, `ValidateConfigMap`).

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value, names};
use fp_schema::{Strategy, Sub};

use super::secret::DATA_BYTES_MAX;
use crate::resources::PLAIN;
use crate::rules;

pub const STRATEGY: Strategy = Strategy { validate, validate_update, ..PLAIN };

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = rules::meta(object, true, names::name_is_dns_subdomain);
    let mut n_bytes = 0;
    let binary = object.get("binaryData").and_then(Value::as_object);
    for (key, value) in rules::entries(object, &["data"]) {
        let path = Path::Root.child("data");
        let path = path.key(key);
        for message in names::is_config_map_key(key) {
            errors.push(FieldError::invalid(path, key.as_str(), message));
        }
        if binary.is_some_and(|b| b.contains_key(key)) {
            let message = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(path, key.as_str(), message));
        }
        n_bytes += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary.into_iter().flatten() {
        for message in names::is_config_map_key(key) {
            let path = Path::Root.child("binaryData");
            errors.push(FieldError::invalid(path.key(key), key.as_str(), message));
        }
        n_bytes += value.as_str().map_or(0, rules::base64_len);
    }
    if n_bytes > DATA_BYTES_MAX {
        // The error is the whole object's: Go prints the path without a name as `[]`.
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
    errors
}

fn validate_update(object: &Object, old: &Object, _sub: Sub) -> Vec<FieldError> {
    let mut errors = rules::meta_update(object, old);
    errors.extend(super::secret::immutable(object, old, &["data", "binaryData"]));
    errors.extend(validate(object));
    errors
}
