//! Table rows of the built-in kinds.

use expect_test::{Expect, expect};
use fp_object::Object;
use fp_schema::resource::Cell;
use serde_json::{Value, json};

fn check(group: &str, resource: &str, object: Value, expected: Expect) {
    let info = fp_builtin::resource(group, resource).expect("a built-in");
    let object: &Object = object.as_object().expect("an object");
    let mut out = String::new();
    for column in &info.versions[0].columns {
        let Cell::Fn(cell) = column.cell else { panic!("built-ins have functions") };
        let mark = if column.priority > 0 { "*" } else { "" };
        out.push_str(&format!("{mark}{} ({}): {}\n", column.name, column.kind, cell(object)));
    }
    expected.assert_eq(&out);
}

#[test]
fn rows() {
    check(
        "",
        "configmaps",
        json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "binaryData": {"b": ""}}),
        expect![[r#"
            Name (string): "c"
            Data (string): 2
            Age (string): "<unknown>"
        "#]],
    );
    check(
        "",
        "secrets",
        json!({"metadata": {"name": "s", "creationTimestamp": "2999-01-01T00:00:00Z"}, "type": "Opaque"}),
        expect![[r#"
            Name (string): "s"
            Type (string): "Opaque"
            Data (string): 0
            Age (string): "<invalid>"
        "#]],
    );
    check(
        "rbac.authorization.k8s.io",
        "rolebindings",
        json!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [
                {"kind": "User", "name": "a"}, {"kind": "User", "name": "b"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
            ],
        }),
        expect![[r#"
            Name (string): "b"
            Role (string): "Role/reader"
            Age (string): "<unknown>"
            *Users (string): "a, b"
            *Groups (string): ""
            *ServiceAccounts (string): "default/robot"
        "#]],
    );
    check(
        "rbac.authorization.k8s.io",
        "roles",
        json!({"metadata": {"name": "r", "creationTimestamp": "2026-11-29T21:13:52Z"}}),
        expect![[r#"
            Name (string): "r"
            Created At (date): "2026-11-29T21:13:52Z"
        "#]],
    );
    check(
        "events.k8s.io",
        "events",
        json!({
            "apiVersion": "events.k8s.io/v1", "metadata": {"name": "e"}, "type": "Normal",
            "reason": "Made", "note": " text ", "reportingController": "c", "reportingInstance": "i",
            "regarding": {"kind": "ConfigMap", "name": "x", "fieldPath": "data"},
        }),
        expect![[r#"
            Last Seen (string): "<unknown>"
            Type (string): "Normal"
            Reason (string): "Made"
            Object (string): "configmap/x"
            *Subobject (string): "data"
            *Source (string): "c, i"
            Message (string): "text"
            *First Seen (string): "<unknown>"
            *Count (string): 1
            *Name (string): "e"
        "#]],
    );
    check(
        "",
        "resourcequotas",
        json!({
            "metadata": {"name": "q"},
            "status": {"hard": {"count/configmaps": "5", "limits.cpu": "1"}, "used": {"count/configmaps": "2"}},
        }),
        expect![[r#"
            Name (string): "q"
            Request (string): "count/configmaps: 2/5"
            Limit (string): "limits.cpu: 0/1"
            Age (string): "<unknown>"
        "#]],
    );
    check(
        "certificates.k8s.io",
        "certificatesigningrequests",
        json!({
            "metadata": {"name": "r"}, "spec": {"username": "u", "expirationSeconds": 3600},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
        }),
        expect![[r#"
            Name (string): "r"
            Age (string): "<unknown>"
            SignerName (string): "<none>"
            Requestor (string): "u"
            RequestedDuration (string): "60m"
            Condition (string): "Approved,Issued"
        "#]],
    );
}
