//! CRDs in, the errors of their validation out.

use expect_test::{Expect, expect};
use serde_json::json;

use super::names::{Taken, apply, decide};
use super::*;
use crate::structural::RuleFn;

fn rules(rule: &str) -> Option<RuleFn> {
    (rule == "self == oldSelf").then_some(|new, old| old.is_none_or(|old| new == old))
}

/// A good CRD.
fn lamps() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.home.example.dev"},
        "spec": {
            "group": "home.example.dev", "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "watts": {"type": "integer"},
                }}}}},
            }],
        },
    })
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// Fills in what a create leaves to defaults.
fn complete(crd: &mut Object) {
    let names = crd.map_mut(&["spec", "names"]);
    if let Some(kind) = names.text(&["kind"]).map(str::to_owned) {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    let stored: Vec<Value> = versions(crd)
        .iter()
        .filter(|v| v["storage"] == true)
        .take(1)
        .map(|v| v["name"].clone())
        .collect();
    if !stored.is_empty() {
        crd.insert("status".into(), json!({"storedVersions": stored}));
    }
}

/// As a create does: defaults, then validation.
fn errors(crd: Value) -> String {
    let mut crd = object(crd);
    complete(&mut crd);
    validate(&crd, &rules).iter().map(|e| format!("{e}\n")).collect()
}

/// Validates the good CRD after a change.
fn check(change: impl FnOnce(&mut Value), want: Expect) {
    let mut crd = lamps();
    change(&mut crd);
    want.assert_eq(&errors(crd));
}

/// Validates the good CRD with another property of `spec`.
fn check_property(schema: Value, want: Expect) {
    check(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
                ["x"] = schema
        },
        want,
    );
}

#[test]
fn a_good_one() {
    check(|_| {}, expect![[""]]);
}

#[test]
fn an_empty_one() {
    let crd = json!({"metadata": {"name": "xnopresources.nop.example.org"}, "spec": {"group": "nop.example.org", "names": {}}});
    expect![[r#"
        metadata.name: Invalid value: "xnopresources.nop.example.org": must be spec.names.plural+"."+spec.group
        spec.scope: Required value
        spec.versions: Invalid value: null: must have exactly one version marked as storage version
        spec.names.plural: Required value
        spec.names.singular: Required value
        spec.names.kind: Required value
        spec.names.listKind: Required value
        status.storedVersions: Invalid value: null: must have at least one stored version
    "#]]
    .assert_eq(&errors(crd));
}

#[test]
fn names_and_groups() {
    check(
        |crd| {
            crd["spec"]["names"] = json!({"plural": "lamps", "kind": "Lamp", "listKind": "Lamp", "shortNames": ["Bad_Name"]});
            crd["spec"]["scope"] = "Galaxy".into();
            crd["spec"]["preserveUnknownFields"] = true.into();
        },
        expect![[r#"
            spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"
            spec.names.shortNames[0]: Invalid value: "Bad_Name": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.listKind: Invalid value: "Lamp": kind and listKind may not be the same
            spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead
        "#]],
    );
    let group = |group: &'static str, name: &'static str| {
        move |crd: &mut Value| {
            crd["spec"]["group"] = group.into();
            crd["metadata"]["name"] = name.into();
        }
    };
    check(group("", "lamps.core"), expect![[""]]);
    check(
        group("dev", "lamps.dev"),
        expect![[r#"
        spec.group: Invalid value: "dev": should be a domain with at least one dot
    "#]],
    );
    check(
        group("x.k8s.io", "lamps.x.k8s.io"),
        expect![[r#"
        metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111
    "#]],
    );
    // The name of a bound CRD is a uid.
    check(
        |crd| {
            crd["metadata"] =
                json!({"name": "0b0c-1", "annotations": {"apis.kcp.io/bound-crd": ""}})
        },
        expect![[""]],
    );
}

#[test]
fn versions_of_several() {
    check(
        |crd| {
            let version = crd["spec"]["versions"][0].clone();
            let mut other = version.clone();
            other["schema"]["openAPIV3Schema"]["type"] = "array".into();
            other["subresources"] = json!({"status": {}, "scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.x"}});
            other["deprecationWarning"] = "x".into();
            other["additionalPrinterColumns"] =
                json!([{"name": "A", "type": "text", "jsonPath": ".x"}]);
            other["selectableFields"] =
                json!([{"jsonPath": ".spec.watts"}, {"jsonPath": ".spec"}, {"jsonPath": ".nope"}]);
            crd["spec"]["versions"] = json!([version, other]);
        },
        expect![[r#"
            spec.versions[1].deprecationWarning: Invalid value: "x": can only be set for deprecated versions
            spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled
            spec.versions[1].schema.openAPIV3Schema.items: Required value: must be specified
            spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "array": must be object at the root
            spec.versions[1].subresources.scale.specReplicasPath: Invalid value: "spec.x": must be a simple json path starting with .
            spec.versions[1].subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status
            spec.versions[1].additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string
            spec.versions[1].selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.
            spec.versions[1].selectableFields[2].jsonPath: Invalid value: ".nope": is an invalid path: does not refer to a valid field
            spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true},{"Name":"v1","Served":true,"Storage":true}]: must contain unique version names
            spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true},{"Name":"v1","Served":true,"Storage":true}]: must have exactly one version marked as storage version
        "#]],
    );
}

#[test]
fn structural_rules() {
    check_property(
        json!({}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Required value: must not be empty for specified object fields
    "#]],
    );
    check_property(
        json!({"type": "string", "pattern": "[a-"}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].pattern: Invalid value: "[a-": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[a-`
    "#]],
    );
    check_property(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"properties": {"a": {"type": "string"}, "b": {}}}]}),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].properties[x].oneOf[0].properties[a].type: Forbidden: must be empty to be structural
        "#]],
    );
    check_property(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        expect![[""]],
    );
    check_property(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields
    "#]],
    );
    check_property(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive
    "#]],
    );
    check_property(
        json!({"$ref": "#/x", "type": "object"}),
        expect![[r##"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].$ref: Forbidden: $ref is not supported
    "##]],
    );
    check_property(
        json!({"type": "array", "uniqueItems": true, "items": {"type": "text"}}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
        spec.validation.openAPIV3Schema.properties[spec].properties[x].items.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"
    "#]],
    );
    check(
        |crd| {
            let root = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            root["properties"]["metadata"] =
                json!({"type": "object", "properties": {"labels": {"type": "object"}}});
            root["nullable"] = true.into();
            root["oneOf"] = json!([{"properties": {"b": {}}}]);
        },
        expect![[r#"
            spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root
            spec.validation.openAPIV3Schema.properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.oneOf[0].properties[b]
            spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
        "#]],
    );
}

#[test]
fn lists() {
    let items = |items: Value, kind: &str, keys: Value| json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys, "items": items});
    check_property(
        items(json!({"type": "string"}), "bag", json!([])),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"
    "#]],
    );
    check_property(
        items(json!({"type": "object"}), "set", json!([])),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set
    "#]],
    );
    check_property(
        items(
            json!({"type": "object", "properties": {"k": {"type": "string", "nullable": true}}}),
            "map",
            json!(["k", "z"]),
        ),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-list-map-keys: Invalid value: ["k","z"]: entries must all be names of item properties
        spec.validation.openAPIV3Schema.properties[spec].properties[x].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
        spec.validation.openAPIV3Schema.properties[spec].properties[x].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable
    "#]],
    );
}

#[test]
fn defaults_keep_to_the_schema() {
    check_property(
        json!({"type": "integer", "default": "a"}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].default: Invalid value: "string":  in body must be of type integer: "string"
    "#]],
    );
    check_property(
        json!({"type": "object", "default": {"a": "b", "c": 1}, "properties": {"a": {"type": "string", "maxLength": 0}}}),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].properties[x].default: Invalid value: {"a":"b","c":1}: must not have unknown fields
            spec.validation.openAPIV3Schema.properties[spec].properties[x].default.a: Too long: may not be more than 0 bytes
        "#]],
    );
    check(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = json!({"type": "object", "properties": {"name": {"type": "string", "default": "x"}}});
        },
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata
        "#]],
    );
}

#[test]
fn rules_of_a_schema() {
    check_property(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
        expect![[""]],
    );
    check_property(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
        expect![[r#"
        spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Forbidden: CEL rules are not served by this version of Ferroplane
    "#]],
    );
    check_property(
        json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}, {"rule": "a\nb"}, {"rule": "a", "reason": "x", "fieldPath": ".nope"}]}),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified
            spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks
            spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[2].reason: Unsupported value: "x": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
            spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[2].fieldPath: Invalid value: ".nope": must be a valid path
        "#]],
    );
}

#[test]
fn hostile_schemas_are_refused_soon() {
    let begin = std::time::Instant::now();
    let wide: Object = (0..100_000).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect();
    let built = begin.elapsed();
    let mut crd = lamps();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = Value::Object(wide);
    expect![[r#"
        spec.validation.openAPIV3Schema: Invalid value: "": must not have more than 20000 properties
    "#]]
    .assert_eq(&errors(crd));
    // Refusing costs no more than a few times what building the value does.
    assert!(begin.elapsed() < built * 20 + std::time::Duration::from_millis(100));
}

#[test]
fn conversion() {
    let webhook = |crd: &mut Value| {
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"name": "a", "namespace": "b"}}}});
    };
    check(
        webhook,
        expect![[r#"
        spec.conversion.strategy: Forbidden: conversion webhooks are not served by this version of Ferroplane
    "#]],
    );
    let mut crd = lamps();
    webhook(&mut crd);
    assert_eq!(not_built(&object(crd)), Some("conversion webhooks"));
    check(
        |crd| crd["spec"]["conversion"] = json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}}}),
        expect![[r#"
            spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook
            spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook
        "#]],
    );
}

#[test]
fn updates() {
    let mut old = object(lamps());
    old.set_meta("resourceVersion", "1");
    complete(&mut old);
    let decided = decide(&old, &Taken::default());
    apply(&mut old, &decided, "2024-01-01T00:00:00Z");
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["names"]["kind"] = "Lump".into();
    new["spec"]["names"]["plural"] = "lumps".into();
    new["spec"]["versions"][0]["name"] = "v2".into();
    new.map_mut(&["status"]).insert("storedVersions".into(), json!(["v1", "v2"]));
    let errors: String =
        validate_update(&new, &old, Sub::Main, &rules).iter().map(|e| format!("{e}\n")).collect();
    expect![[r#"
        spec.scope: Invalid value: "Cluster": field is immutable
        spec.names.kind: Invalid value: "Lump": field is immutable
        spec.names.plural: Invalid value: "lumps": field is immutable
        status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions
    "#]]
    .assert_eq(&errors);
}

#[test]
fn conditions_of_names() {
    let mut first = object(lamps());
    complete(&mut first);
    let decided = decide(&first, &Taken::default());
    assert!(apply(&mut first, &decided, "2024-01-01T00:00:00Z"));
    expect![[r#"{"acceptedNames":{"kind":"Lamp","listKind":"LampList","plural":"lamps","singular":"lamp"},"conditions":[{"lastTransitionTime":"2024-01-01T00:00:00Z","message":"no conflicts found","reason":"NoConflicts","status":"True","type":"NamesAccepted"},{"lastTransitionTime":"2024-01-01T00:00:00Z","message":"the initial names have been accepted","reason":"InitialNamesAccepted","status":"True","type":"Established"}],"storedVersions":["v1"]}"#]]
        .assert_eq(&first["status"].to_string());
    let again = decide(&first, &Taken::of("home.example.dev", [&first]));
    assert!(!apply(&mut first, &again, "2025-01-01T00:00:00Z"), "nothing changes twice");

    let mut second = object(lamps());
    second["spec"]["names"] = json!({"plural": "lights", "kind": "Lamp", "singular": "light", "shortNames": ["lamp", "lt"]});
    complete(&mut second);
    let taken = Taken::of("home.example.dev", [&first]);
    expect![[r#"
        Some("\"LampList\" is already in use")
        {"plural":"lights","singular":"light"}
        NotAccepted"#]]
    .assert_eq(&format!(
        "{:?}\n{}\n{}",
        names::names_conflict(&second, &taken),
        Value::Object(decide(&second, &taken).accepted),
        decide(&second, &taken).established.reason,
    ));
    assert_eq!(names::names_conflict(&second, &Taken::of("other.example.dev", [&first])), None);
}

#[test]
fn warns_of_formats() {
    let mut crd = lamps();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] =
        json!({"type": "string", "format": "quantity"});
    let crd = object(crd);
    assert_eq!(warnings(&crd, None), ["unrecognized format \"quantity\""]);
    assert!(warnings(&crd, Some(&crd)).is_empty());
}
