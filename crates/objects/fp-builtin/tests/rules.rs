//! Defaults, preparation and validation of each kind: objects in, messages and objects out.

use expect_test::{Expect, expect};
use fp_object::{Object, Value};
use fp_schema::{Strategy, Sub};
use serde_json::json;

fn strategy(group: &str, resource: &str) -> &'static Strategy {
    let info = fp_builtin::resource(group, resource).expect("a built-in");
    info.strategy.expect("every built-in has a strategy")
}

fn object(value: Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn lines(errors: Vec<fp_object::field::FieldError>) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

/// Defaults, prepares and validates a create; prints the errors, or the object without metadata.
fn create(group: &str, resource: &str, value: Value, expected: Expect) {
    let strategy = strategy(group, resource);
    let mut object = object(value);
    (strategy.default)(&mut object);
    (strategy.prepare_create)(&mut object);
    let errors = lines((strategy.validate)(&object));
    if !errors.is_empty() {
        return expected.assert_eq(&errors);
    }
    expected.assert_eq(&serde_json::to_string(&object).expect("JSON"));
}

/// The same for an update.
fn update(group: &str, resource: &str, sub: Sub, new: Value, old: Value, expected: Expect) {
    let strategy = strategy(group, resource);
    let (mut new, old) = (object(new), object(old));
    (strategy.default)(&mut new);
    (strategy.prepare_update)(&mut new, &old, sub);
    let errors = lines((strategy.validate_update)(&new, &old, sub));
    if !errors.is_empty() {
        return expected.assert_eq(&errors);
    }
    expected.assert_eq(&serde_json::to_string(&new).expect("JSON"));
}

fn meta(name: &str) -> Value {
    json!({"name": name, "namespace": "default", "uid": "u", "resourceVersion": "1"})
}

fn cluster(name: &str) -> Value {
    json!({"name": name, "uid": "u", "resourceVersion": "1"})
}

const RBAC: &str = "rbac.authorization.k8s.io";

#[test]
fn config_maps() {
    let data = json!({"data": {"a b": "", "x": "1"}, "binaryData": {"x": "eA==", "..": ""}});
    let mut bad = object(data);
    bad.insert("metadata".into(), meta("Bad"));
    create(
        "",
        "configmaps",
        bad.into(),
        expect![[r#"
        metadata.name: Invalid value: "Bad": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
        data[x]: Invalid value: "x": duplicate of key present in binaryData
        binaryData[..]: Invalid value: "..": must not be '..'
    "#]],
    );
    let big = json!({"metadata": meta("c"), "data": {"k": "x".repeat(1024 * 1024 + 1)}});
    create(
        "",
        "configmaps",
        big,
        expect![[r#"
        []: Too long: may not be more than 1048576 bytes
    "#]],
    );
    update(
        "",
        "configmaps",
        Sub::Main,
        json!({"metadata": meta("c"), "data": {"k": "2"}}),
        json!({"metadata": meta("c"), "data": {"k": "1"}, "immutable": true}),
        expect![[r#"
            immutable: Forbidden: field is immutable when `immutable` is set
            data: Forbidden: field is immutable when `immutable` is set
        "#]],
    );
}

#[test]
fn secrets() {
    create(
        "",
        "secrets",
        json!({"metadata": meta("s"), "data": {"a": "eA=="}, "stringData": {"a": "y", "b": "z"}}),
        expect![[
            r#"{"data":{"a":"eQ==","b":"eg=="},"metadata":{"name":"s","namespace":"default","resourceVersion":"1","uid":"u"},"type":"Opaque"}"#
        ]],
    );
    let validate = strategy("", "secrets").validate;
    let mut out = String::new();
    for (kind, data) in [
        ("kubernetes.io/service-account-token", json!({})),
        ("kubernetes.io/dockerconfigjson", json!({})),
        ("kubernetes.io/dockercfg", json!({".dockercfg": "eA=="})),
        ("kubernetes.io/basic-auth", json!({})),
        ("kubernetes.io/ssh-auth", json!({"ssh-privatekey": ""})),
        ("kubernetes.io/tls", json!({})),
    ] {
        let secret = json!({"metadata": meta("s"), "type": kind, "data": data});
        out.push_str(&lines(validate(&object(secret))));
    }
    expect![[r#"
        metadata.annotations[kubernetes.io/service-account.name]: Required value
        data[.dockerconfigjson]: Required value
        data[.dockercfg]: Invalid value: "<secret contents redacted>": invalid character 'x' looking for beginning of value
        data[username]: Required value
        data[password]: Required value
        data[ssh-privatekey]: Required value
        data[tls.crt]: Required value
        data[tls.key]: Required value
    "#]].assert_eq(&out);
    update(
        "",
        "secrets",
        Sub::Main,
        json!({"metadata": meta("s"), "type": "x", "immutable": true, "data": {}}),
        json!({"metadata": meta("s"), "type": "Opaque", "immutable": true, "data": {"a": "eA=="}}),
        expect![[r#"
            type: Invalid value: "x": field is immutable
            data: Forbidden: field is immutable when `immutable` is set
        "#]],
    );
}

#[test]
fn namespaces() {
    create(
        "",
        "namespaces",
        json!({"metadata": cluster("a")}),
        expect![[
            r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"1","uid":"u"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#
        ]],
    );
    create(
        "",
        "namespaces",
        json!({"metadata": cluster("a.b"), "spec": {"finalizers": ["mine"]}}),
        expect![[r#"
            metadata.name: Invalid value: "a.b": must not contain dots
            spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified
        "#]],
    );
    let stored = json!({
        "metadata": cluster("a"), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    let changed = json!({
        "metadata": cluster("a"), "spec": {"finalizers": []}, "status": {"phase": "Terminating"},
    });
    update(
        "",
        "namespaces",
        Sub::Main,
        changed.clone(),
        stored.clone(),
        expect![[
            r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"1","uid":"u"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#
        ]],
    );
    update(
        "",
        "namespaces",
        Sub::Status,
        changed.clone(),
        stored.clone(),
        expect![[r#"
        status.Phase: Invalid value: "Terminating": may only be 'Active' if `deletionTimestamp` is empty
    "#]],
    );
    update(
        "",
        "namespaces",
        Sub::Other("finalize"),
        changed,
        stored,
        expect![[
            r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"1","uid":"u"},"spec":{"finalizers":[]},"status":{"phase":"Active"}}"#
        ]],
    );
}

#[test]
fn service_accounts() {
    create(
        "",
        "serviceaccounts",
        json!({"metadata": meta("a"), "secrets": [{"name": "x", "namespace": "y"}]}),
        expect![[
            r#"{"metadata":{"name":"a","namespace":"default","resourceVersion":"1","uid":"u"},"secrets":[{"name":"x"}]}"#
        ]],
    );
}

#[test]
fn roles() {
    create(
        RBAC,
        "roles",
        json!({"metadata": meta("a/b"), "rules": [{}]}),
        expect![[r#"
        metadata.name: Invalid value: "a/b": may not contain '/'
        rules[0].verbs: Required value: verbs must contain at least one value
        rules[0].apiGroups: Required value: resource rules must supply at least one api group
        rules[0].resources: Required value: resource rules must supply at least one resource
    "#]],
    );
    create(
        RBAC,
        "roles",
        json!({"metadata": meta("system:x"), "rules": [
            {"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""]},
        ]}),
        expect![[r#"
            rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs
            rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs
        "#]],
    );
    create(
        RBAC,
        "clusterroles",
        json!({"metadata": cluster("r"), "rules": null, "aggregationRule": {}}),
        expect![[r#"
            aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil
        "#]],
    );
    create(
        RBAC,
        "clusterroles",
        json!({"metadata": cluster("r"), "aggregationRule": {"clusterRoleSelectors": [
            {"matchLabels": {"a": "b c"}},
        ]}}),
        expect![[r#"
            aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        "#]],
    );
}

#[test]
fn bindings() {
    create(
        RBAC,
        "rolebindings",
        json!({
            "metadata": meta("b"), "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        }),
        expect![[
            r#"{"metadata":{"name":"b","namespace":"default","resourceVersion":"1","uid":"u"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s","namespace":"n"}]}"#
        ]],
    );
    create(
        RBAC,
        "clusterrolebindings",
        json!({
            "metadata": cluster("b"), "roleRef": {"kind": "Role", "apiGroup": "x"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "S", "apiGroup": "x"}, {"kind": "Robot"},
                {"kind": "Group", "name": "g", "apiGroup": "x"},
            ],
        }),
        expect![[r#"
            roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
            roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"
            roleRef.name: Required value
            subjects[0].name: Invalid value: "S": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            subjects[0].apiGroup: Unsupported value: "x": supported values: ""
            subjects[0].namespace: Required value
            subjects[1].name: Required value
            subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"
            subjects[2].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
        "#]],
    );
    let role = |name: &str| json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name});
    update(
        RBAC,
        "clusterrolebindings",
        Sub::Main,
        json!({"metadata": cluster("b"), "roleRef": role("y")}),
        json!({"metadata": cluster("b"), "roleRef": role("x")}),
        expect![[r#"
            roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"y"}: cannot change roleRef
        "#]],
    );
}

#[test]
fn leases() {
    create(
        "coordination.k8s.io",
        "leases",
        json!({"metadata": meta("l"), "spec": {
            "leaseDurationSeconds": 0, "leaseTransitions": -1, "strategy": "x", "preferredHolder": "y",
        }}),
        expect![[r#"
            spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0
            spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0
        "#]],
    );
}

#[test]
fn events() {
    let event = json!({
        "metadata": meta("e"), "involvedObject": {"namespace": "other"}, "type": "Odd", "count": 1,
        "source": {"component": "c"},
    });
    create(
        "",
        "events",
        event,
        expect![[r#"
        involvedObject.namespace: Invalid value: "other": does not match event.namespace
    "#]],
    );
    let event = json!({
        "metadata": meta("e"), "regarding": {"namespace": "default"}, "eventTime": "2026-11-29T21:13:52.000000Z",
        "type": "Odd", "deprecatedCount": 1, "reportingController": "a b", "note": "n".repeat(1025),
        "series": {"count": 1}, "deprecatedSource": {"component": "c"},
    });
    create(
        "events.k8s.io",
        "events",
        event,
        expect![[r#"
        reportingController: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        reportingInstance: Required value
        action: Required value
        reason: Required value
        message: Invalid value: "": can have at most 1024 characters
        series.count: Invalid value: "": should be at least 2
        series.lastObservedTime: Required value
        type: Invalid value: "": has invalid value: Odd
        count: Invalid value: "": needs to be unset
        source: Invalid value: "": needs to be unset
    "#]],
    );
    let strategy = strategy("events.k8s.io", "events");
    let core = object(
        json!({"apiVersion": "v1", "involvedObject": {"name": "x"}, "reportingComponent": "c"}),
    );
    assert_eq!((strategy.field_value)(&core, "regarding.name"), "x");
    assert_eq!((strategy.field_value)(&core, "source"), "c");
}

#[test]
fn reviews() {
    let authz = "authorization.k8s.io";
    create(
        authz,
        "selfsubjectaccessreviews",
        json!({"metadata": {"name": "x"}, "spec": {}}),
        expect![[r#"
            spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified
            metadata: Invalid value: {"name":"x"}: must be empty
        "#]],
    );
    create(
        authz,
        "localsubjectaccessreviews",
        json!({"metadata": {"namespace": "a"}, "spec": {
            "nonResourceAttributes": {"path": "/x", "verb": "get"},
            "resourceAttributes": {"namespace": "b", "labelSelector": {}},
        }}),
        expect![[r#"
            spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes
            spec.user: Invalid value: "": at least one of user or group must be specified
            spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required
            spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace
            spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request
        "#]],
    );
}

#[test]
fn webhooks_get_their_defaults() {
    create(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        json!({"kind": "MutatingWebhookConfiguration", "metadata": cluster("w"), "webhooks": [
            {"name": "a", "clientConfig": {"service": {"name": "s"}}, "rules": [{"operations": ["CREATE"]}]},
        ]}),
        expect![[
            r#"{"kind":"MutatingWebhookConfiguration","metadata":{"generation":1,"name":"w","resourceVersion":"1","uid":"u"},"webhooks":[{"clientConfig":{"service":{"name":"s","port":443}},"failurePolicy":"Fail","matchPolicy":"Equivalent","name":"a","namespaceSelector":{},"objectSelector":{},"reinvocationPolicy":"Never","rules":[{"operations":["CREATE"],"scope":"*"}],"timeoutSeconds":10}]}"#
        ]],
    );
}

#[test]
fn parts_that_are_not_built() {
    let mut out = String::new();
    for info in fp_builtin::resources() {
        if let Some(part) = info.strategy.and_then(|s| s.create_not_built) {
            out.push_str(&format!("{}: {part}\n", info.gr));
        }
    }
    expect![[r#"
        resourcequotas: Resource quota
        tokenreviews.authentication.k8s.io: Token review
        certificatesigningrequests.certificates.k8s.io: Certificate signing
        mutatingadmissionpolicies.admissionregistration.k8s.io: Policy admission
        mutatingadmissionpolicybindings.admissionregistration.k8s.io: Policy admission
        mutatingwebhookconfigurations.admissionregistration.k8s.io: Webhook admission
        validatingadmissionpolicies.admissionregistration.k8s.io: Policy admission
        validatingadmissionpolicybindings.admissionregistration.k8s.io: Policy admission
        validatingwebhookconfigurations.admissionregistration.k8s.io: Webhook admission
    "#]]
    .assert_eq(&out);
}
