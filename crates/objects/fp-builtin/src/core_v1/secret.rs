//! Secret (`pkg/registry/core/secret`, `ValidateSecret`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::{Object, Value, json, names, object_meta};
use fp_schema::{Strategy, Sub};

use crate::resources::PLAIN;
use crate::rules;

/// All values of a Secret or ConfigMap together, in bytes (`MaxSecretSize`).
pub const DATA_BYTES_MAX: usize = 1024 * 1024;

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub const STRATEGY: Strategy = Strategy {
    default,
    prepare_update,
    validate,
    validate_update,
    field_labels: &["type"],
    field_value: |object, _| rules::text(object, &["type"]).to_owned(),
    ..PLAIN
};

/// `stringData` is written only: it goes into `data` on every decode.
fn default(object: &mut Object) {
    if let Some(Value::Object(plain)) = object.remove("stringData") {
        let data = object.map_mut(&["data"]);
        for (key, value) in plain {
            data.insert(key, BASE64.encode(value.as_str().unwrap_or("")).into());
        }
    }
    rules::set_default(object, "type", "Opaque");
}

fn prepare_update(object: &mut Object, old: &Object, _sub: Sub) {
    if rules::text(object, &["type"]).is_empty() {
        rules::keep(object, old, "type");
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = rules::meta(object, true, names::name_is_dns_subdomain);
    let data_path = Path::Root.child("data");
    let mut n_bytes = 0;
    for (key, value) in rules::entries(object, &["data"]) {
        for message in names::is_config_map_key(key) {
            errors.push(FieldError::invalid(data_path.key(key), key.as_str(), message));
        }
        n_bytes += value.as_str().map_or(0, rules::base64_len);
    }
    if n_bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(data_path, DATA_BYTES_MAX));
    }
    validate_type(object, &mut errors);
    errors
}

/// What each well-known type must hold.
fn validate_type(object: &Object, errors: &mut Vec<FieldError>) {
    let data_path = Path::Root.child("data");
    let held = |key: &str| object.at(&["data", key]).and_then(Value::as_str);
    let mut require = |key: &str| errors.push(FieldError::required(data_path.key(key), ""));
    match rules::text(object, &["type"]) {
        "kubernetes.io/service-account-token"
            if object.annotation(SERVICE_ACCOUNT_NAME).unwrap_or("").is_empty() =>
        {
            let path = Path::Root.child("metadata");
            let path = path.child("annotations");
            errors.push(FieldError::required(path.key(SERVICE_ACCOUNT_NAME), ""));
        }
        "kubernetes.io/dockercfg" => validate_json(".dockercfg", held(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => {
            validate_json(".dockerconfigjson", held(".dockerconfigjson"), errors);
        }
        "kubernetes.io/basic-auth" if held("username").is_none() && held("password").is_none() => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if held("ssh-privatekey").unwrap_or("").is_empty() => {
            require("ssh-privatekey");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if held(key).is_none() {
                    require(key);
                }
            }
        }
        _ => {}
    }
}

fn validate_json(key: &str, held: Option<&str>, errors: &mut Vec<FieldError>) {
    let data_path = Path::Root.child("data");
    let path = data_path.key(key);
    let Some(text) = held else {
        errors.push(FieldError::required(path, ""));
        return;
    };
    let bytes = BASE64.decode(text).unwrap_or_default();
    if let Err(error) = json::decode(&bytes) {
        errors.push(FieldError::invalid(path, "<secret contents redacted>", error.to_string()));
    }
}

fn validate_update(object: &Object, old: &Object, _sub: Sub) -> Vec<FieldError> {
    let mut errors = rules::meta_update(object, old);
    if object.get("type") != old.get("type") {
        let bad = rules::text(object, &["type"]);
        errors.push(FieldError::invalid("type", bad, object_meta::IMMUTABLE));
    }
    errors.extend(immutable(object, old, &["data"]));
    errors.extend(validate(object));
    errors
}

/// What may not change once `immutable` is set. An absent map equals an empty one.
pub fn immutable(object: &Object, old: &Object, members: &[&str]) -> Vec<FieldError> {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    let is_set = |o: &Object| o.get("immutable") == Some(&Value::Bool(true));
    if !is_set(old) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if !is_set(object) {
        errors.push(FieldError::forbidden("immutable", DETAIL));
    }
    for member in members {
        let held = |o: &Object| {
            o.get(*member).filter(|v| v.as_object().is_some_and(|m| !m.is_empty())).cloned()
        };
        if held(object) != held(old) {
            errors.push(FieldError::forbidden(member, DETAIL));
        }
    }
    errors
}
