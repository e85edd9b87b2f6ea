//! Webhook configurations and admission policies (`pkg/apis/admissionregistration`). None of them
//! acts yet, so their creation is refused; stored ones may be read, changed and deleted.

use fp_object::meta::Meta;
use fp_object::names::name_is_dns_subdomain;
use fp_object::{Object, Value};
use fp_schema::{Strategy, Sub};
use serde_json::json;

use crate::resources::PLAIN;
use crate::rules;

const BASE: Strategy = Strategy {
    prepare_create: |object| object.set_meta("generation", 1),
    prepare_update: |object, old, _| rules::bump_generation(object, old, "spec"),
    validate: |object| rules::meta(object, false, name_is_dns_subdomain),
    validate_update: rules::meta_update_only,
    allow_unconditional_update: false,
    ..PLAIN
};

pub const WEBHOOKS: Strategy = Strategy {
    default: default_webhooks,
    prepare_update: |object, old, _| rules::bump_generation(object, old, "webhooks"),
    create_not_built: Some("Webhook admission"),
    ..BASE
};

pub const POLICY: Strategy =
    Strategy { default: default_policy, create_not_built: Some("Policy admission"), ..BASE };

pub const POLICY_WITH_STATUS: Strategy = Strategy {
    prepare_create: |object| {
        object.remove("status");
        object.set_meta("generation", 1);
    },
    prepare_update: update_policy,
    ..POLICY
};

pub const BINDING: Strategy = Strategy {
    default: |object| default_constraints(object.map_mut(&["spec"]), "matchResources"),
    create_not_built: Some("Policy admission"),
    ..BASE
};

fn default_webhooks(object: &mut Object) {
    let is_mutating = object.kind() == "MutatingWebhookConfiguration";
    for webhook in rules::objects_mut(object, "webhooks") {
        rules::set_default(webhook, "failurePolicy", "Fail");
        rules::set_default(webhook, "matchPolicy", "Equivalent");
        rules::set_default(webhook, "namespaceSelector", json!({}));
        rules::set_default(webhook, "objectSelector", json!({}));
        rules::set_default(webhook, "timeoutSeconds", 10);
        if is_mutating {
            rules::set_default(webhook, "reinvocationPolicy", "Never");
        }
        for rule in rules::objects_mut(webhook, "rules") {
            rules::set_default(rule, "scope", "*");
        }
        let service = webhook.get_mut("clientConfig").and_then(|c| c.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            rules::set_default(service, "port", 443);
        }
    }
}

fn default_policy(object: &mut Object) {
    let spec = object.map_mut(&["spec"]);
    rules::set_default(spec, "failurePolicy", "Fail");
    default_constraints(spec, "matchConstraints");
}

fn default_constraints(spec: &mut Object, member: &str) {
    let Some(constraints) = rules::object_mut(spec, member) else { return };
    rules::set_default(constraints, "matchPolicy", "Equivalent");
    rules::set_default(constraints, "namespaceSelector", json!({}));
    rules::set_default(constraints, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in rules::objects_mut(constraints, list) {
            rules::set_default(rule, "scope", "*");
        }
    }
}

fn update_policy(object: &mut Object, old: &Object, sub: Sub) {
    if sub == Sub::Status {
        rules::keep(object, old, "spec");
        return;
    }
    rules::keep(object, old, "status");
    rules::bump_generation(object, old, "spec");
}
