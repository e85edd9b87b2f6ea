//! Event in both of its groups (`pkg/registry/core/event`, `pkg/apis/core/validation/events.go`).
//!
//! Both are one resource: `events.k8s.io` gives the stored core event other member names
//! ([`to_core`], [`from_core`]) and stricter rules.

use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::{Object, Value, names, object_meta};
use fp_schema::Strategy;

use crate::resources::PLAIN;
use crate::rules;

const REPORTING_INSTANCE_MAX: usize = 128;
const ACTION_MAX: usize = 128;
const REASON_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

const API_VERSION: &str = "events.k8s.io/v1";

/// Members of an `events.k8s.io` event and of the core event, where they differ.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

pub const CORE: Strategy = Strategy {
    validate: |object| legacy(object, "reportingComponent"),
    validate_update: |object, _, _| legacy(object, "reportingComponent"),
    field_labels: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    field_value,
    allow_create_on_update: true,
    ..PLAIN
};

pub const EVENTS: Strategy = Strategy {
    validate: |object| strict(&core_form(object)),
    validate_update: |object, old, _| strict_update(&core_form(object), &core_form(old)),
    field_labels: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    field_value,
    allow_create_on_update: true,
    ..PLAIN
};

/// Turns an `events.k8s.io/v1` event into the core event that is stored.
pub fn to_core(object: &mut Object) {
    rename(object, "v1", |(events, core)| (events, core));
}

/// Turns a core event into its `events.k8s.io/v1` form.
pub fn from_core(object: &mut Object) {
    rename(object, API_VERSION, |(events, core)| (core, events));
}

/// What the member that a core event calls `core` is called in this object.
pub fn name_in(object: &Object, core: &'static str) -> &'static str {
    let renamed = RENAMED.iter().find(|(_, name)| *name == core);
    match renamed {
        Some((events, _)) if object.api_version() == API_VERSION => events,
        _ => core,
    }
}

fn rename(
    object: &mut Object,
    api_version: &str,
    order: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    for (from, to) in RENAMED.map(order) {
        if let Some(value) = object.remove(from) {
            object.insert(to.into(), value);
        }
    }
    object.insert("apiVersion".into(), api_version.into());
}

fn core_form(object: &Object) -> Object {
    let mut core = object.clone();
    to_core(&mut core);
    core
}

fn field_value(object: &Object, label: &str) -> String {
    if label == "source" {
        let component = rules::text(object, &[name_in(object, "source"), "component"]);
        let fallback = rules::text(object, &[name_in(object, "reportingComponent")]);
        return if component.is_empty() { fallback } else { component }.to_owned();
    }
    // A label of one form may be asked of an object in the other.
    let (head, rest) = label.split_once('.').unwrap_or((label, ""));
    let renamed = RENAMED.iter().find(|(events, core)| *events == head || *core == head);
    let head = renamed.map_or(head, |(_, core)| name_in(object, core));
    let path: &[&str] = if rest.is_empty() { &[head] } else { &[head, rest] };
    rules::text(object, path).to_owned()
}

fn legacy(event: &Object, reporting_name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = event.namespace();
    let involved = rules::text(event, &["involvedObject", "namespace"]);
    let is_new = event.get("eventTime").is_some_and(|t| !t.is_null());
    let agrees = match (is_new, involved.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !agrees {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", involved, detail));
    }
    if is_new {
        new_event(event, reporting_name, &mut errors);
    }
    for message in names::is_dns1123_subdomain(namespace) {
        errors.push(FieldError::invalid("namespace", namespace, message));
    }
    errors
}

/// What an event with `eventTime` must say.
fn new_event(event: &Object, reporting_name: &str, errors: &mut Vec<FieldError>) {
    let controller = rules::text(event, &["reportingComponent"]);
    if controller.is_empty() {
        errors.push(FieldError::required(reporting_name, ""));
    }
    for message in names::is_qualified_name(controller) {
        errors.push(FieldError::invalid(reporting_name, controller, message));
    }
    let limits = [
        ("reportingInstance", REPORTING_INSTANCE_MAX),
        ("action", ACTION_MAX),
        ("reason", REASON_MAX),
    ];
    for (member, max) in limits {
        let text = rules::text(event, &[member]);
        if text.is_empty() {
            errors.push(FieldError::required(member, ""));
        }
        too_long(member, text, max, errors);
    }
    too_long("message", rules::text(event, &["message"]), NOTE_MAX, errors);
}

fn too_long(member: &str, text: &str, max: usize, errors: &mut Vec<FieldError>) {
    if text.len() > max {
        let detail = format!("can have at most {max} characters");
        errors.push(FieldError::invalid(member, "", detail));
    }
}

/// The rules of `events.k8s.io/v1`, over the event's core form.
fn strict(event: &Object) -> Vec<FieldError> {
    let mut errors = legacy(event, "reportingController");
    errors.extend(rules::meta(event, true, names::name_is_dns_subdomain));
    series(event, &mut errors);
    let is_set = |member: &str| event.get(member).is_some_and(|v| !v.is_null());
    if !is_set("eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = rules::text(event, &["type"]);
    if kind != "Normal" && kind != "Warning" {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    let has_source =
        ["component", "host"].iter().any(|m| !rules::text(event, &["source", m]).is_empty());
    let has_count = event.get("count").and_then(Value::as_i64).unwrap_or(0) != 0;
    for (member, set) in [
        ("firstTimestamp", is_set("firstTimestamp")),
        ("lastTimestamp", is_set("lastTimestamp")),
        ("count", has_count),
        ("source", has_source),
    ] {
        if set {
            errors.push(FieldError::invalid(member, "", "needs to be unset"));
        }
    }
    errors
}

fn series(event: &Object, errors: &mut Vec<FieldError>) {
    let Some(series) = event.get("series").and_then(Value::as_object) else { return };
    if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn strict_update(event: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = legacy(event, "reportingController");
    errors.extend(rules::meta_update(event, old));
    if event.get("series") != old.get("series") {
        series(event, &mut errors);
    }
    for member in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ] {
        if event.get(member) != old.get(member) {
            let bad = event.get(member).cloned().unwrap_or(Value::Null);
            let path = if member == "reportingComponent" { "reportingController" } else { member };
            errors.push(FieldError::invalid(path, bad, object_meta::IMMUTABLE));
        }
    }
    errors
}
