//! Schema and object in, text out.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn lookup(rule: &str) -> Option<RuleFn> {
    match rule {
        "self.min <= self.max" => Some(|v, _| v["min"].as_i64() <= v["max"].as_i64()),
        "self == oldSelf" => Some(|v, old| old.is_none_or(|old| old == v)),
        "self > 1" => Some(|v, _| v.as_i64() > Some(1)),
        _ => None,
    }
}

fn compile(schema: Value) -> Structural {
    Structural::compile(&schema, &lookup).unwrap_or_else(|e| panic!("{e}"))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn lines(errors: Vec<FieldError>) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

/// Validates `spec` against the schema of `spec`.
fn check(schema: Value, spec: Value, want: Expect) {
    let root = compile(json!({"type": "object", "properties": {"spec": schema}}));
    want.assert_eq(&lines(root.validate(&object(json!({"spec": spec})), None)));
}

fn lamp() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["watts"],
                "properties": {
                    "watts": {"type": "integer", "minimum": 1, "maximum": 100},
                    "lit": {"type": "boolean", "default": false},
                    "bulbs": {"type": "integer", "default": 1},
                    "color": {"type": "string", "enum": ["warm", "cold"], "default": "warm"},
                },
            },
            "status": {"type": "object", "properties": {"bulbs": {"type": "integer"}}},
        },
    })
}

#[test]
fn a_bad_lamp() {
    let schema = compile(lamp());
    let mut bad = object(json!({
        "apiVersion": "home.example.dev/v1", "kind": "Lamp", "metadata": {"name": "bad", "shade": 1},
        "spec": {"watts": 400, "color": "green", "shade": "round"}, "extra": 1,
    }));
    let unknown = schema.decode(&mut bad, true, false).expect("good metadata");
    assert_eq!(unknown, ["metadata.shade", "extra", "spec.shade"]);
    schema.default(&mut bad);
    expect![[r#"{"apiVersion":"home.example.dev/v1","kind":"Lamp","metadata":{"name":"bad"},"spec":{"bulbs":1,"color":"green","lit":false,"watts":400}}"#]]
        .assert_eq(&Value::Object(bad.clone()).to_string());
    expect![[r#"
        spec.color: Unsupported value: "green": supported values: "warm", "cold"
        spec.watts: Invalid value: 400: spec.watts in body should be less than or equal to 100
    "#]]
    .assert_eq(&lines(schema.validate(&bad, None)));
}

#[test]
fn types() {
    let schema = json!({
        "type": "object", "required": ["gone"],
        "properties": {
            "a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "array", "items": {"type": "string"}},
            "d": {"type": "object"}, "e": {"type": "integer", "format": "int32"}, "f": {"type": "number"},
            "g": {"x-kubernetes-int-or-string": true}, "h": {"type": "boolean", "nullable": true},
            "i": {"type": "string", "format": "date-time"}, "j": {"type": "integer"},
        },
    });
    check(
        schema,
        json!({"a": 1.5, "b": 1, "c": [1, "x", null], "d": [], "e": 3000000000_i64, "f": 1, "g": true, "h": null, "i": "x", "j": 1.0}),
        expect![[r#"
            spec.a: Invalid value: "number": spec.a in body must be of type integer: "number"
            <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.a
            spec.b: Invalid value: "integer": spec.b in body must be of type string: "integer"
            spec.c[0]: Invalid value: "integer": spec.c[0] in body must be of type string: "integer"
            spec.c[2]: Invalid value: "null": spec.c[2] in body must be of type string: "null"
            spec.d: Invalid value: "array": spec.d in body must be of type object: "array"
            <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.e
            spec.g: Invalid value: "boolean": spec.g in body must be of type integer,string: "boolean"
            spec.i: Invalid value: "x": spec.i in body must be of type date-time: "x"
            spec.gone: Required value
        "#]],
    );
}

#[test]
fn bounds() {
    let schema = json!({
        "type": "object", "minProperties": 1, "maxProperties": 3,
        "properties": {
            "a": {"type": "integer", "minimum": 2, "exclusiveMinimum": true},
            "b": {"type": "number", "maximum": 1.5}, "c": {"type": "integer", "multipleOf": 5},
            "d": {"type": "string", "minLength": 2}, "e": {"type": "string", "maxLength": 2},
            "f": {"type": "string", "pattern": "^a+$"}, "g": {"type": "array", "minItems": 2, "items": {"type": "integer"}},
            "h": {"type": "array", "maxItems": 1, "items": {"type": "integer"}}, "i": {"type": "number", "multipleOf": 0.1},
        },
    });
    check(
        schema,
        json!({"a": 2, "b": 2.5, "c": 7, "d": "é", "e": "abc", "f": "b", "g": [1], "h": [1, 2], "i": 0.25}),
        expect![[r#"
            spec: Too many: 9: must have at most 3 items
            spec.a: Invalid value: 2: spec.a in body should be greater than 2
            spec.b: Invalid value: 2.5: spec.b in body should be less than or equal to 1.5
            spec.c: Invalid value: 7: spec.c in body should be a multiple of 5
            spec.d: Invalid value: "é": spec.d in body should be at least 2 chars long
            spec.e: Too long: may not be more than 2 bytes
            spec.f: Invalid value: "b": spec.f in body should match '^a+$'
            spec.g: Invalid value: 1: spec.g in body should have at least 2 items
            spec.h: Too many: 2: must have at most 1 item
            spec.i: Invalid value: 0.25: spec.i in body should be a multiple of 0.1
        "#]],
    );
}

#[test]
fn junctors() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    check(schema.clone(), json!({"a": 1}), expect![[""]]);
    check(
        schema.clone(),
        json!({"a": 1, "b": 1}),
        expect![[r#"
            <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives
        "#]],
    );
    check(
        schema,
        json!({}),
        expect![[r#"
            <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid
            spec.a: Required value
        "#]],
    );
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "integer"}},
        "anyOf": [{"properties": {"a": {"minimum": 5}}}, {"properties": {"a": {"maximum": 1}}}],
        "allOf": [{"properties": {"a": {"enum": [1, 2]}}}, {"required": ["b"]}],
        "not": {"required": ["a"]},
    });
    check(
        schema,
        json!({"a": 3}),
        expect![[r#"
            <nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)
            spec.a: Invalid value: 3: spec.a in body should be greater than or equal to 5
            spec.a: Unsupported value: 3: supported values: "1", "2"
            spec.b: Required value
            <nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated
            <nil>: Invalid value: "": "spec" must not validate the schema (not)
        "#]],
    );
}

#[test]
fn sets_and_maps() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
    let schema = json!({
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item},
            "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"], "items": item},
        },
    });
    check(
        schema,
        json!({
            "set": ["a", "b", "a", "a"],
            "map": [{"k": "x"}, {"k": "y"}, {"k": "x", "n": 1}],
            "two": [{"k": "x", "n": 1}, {"k": "x", "n": 2}, {"n": 1, "k": "x"}],
        }),
        expect![[r#"
            spec.map[2]: Duplicate value: {"k":"x"}
            spec.set[2]: Duplicate value: "a"
            spec.two[2]: Duplicate value: {"k":"x","n":1}
        "#]],
    );
}

#[test]
fn pruning() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"closed": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "raw": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "closed": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        },
    }));
    let mut value = object(json!({
        "metadata": {"name": "x"}, "other": {"a": 1},
        "open": {"x": 1, "closed": {"a": "1", "b": 2}},
        "labels": {"x": {"a": "1", "b": 2}},
        "list": [{"a": "1"}, {"b": 1}],
        "raw": {"metadata": {"name": "x", "junk": 1}, "data": 1},
        "closed": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": null}}, "data": 1, "spec": {"x": 1}},
    }));
    let unknown = schema.decode(&mut value, true, false).expect("good metadata");
    expect![[r#"
        closed.data
        closed.spec.x
        labels.x.b
        list[1].b
        open.closed.b
        other
        raw.metadata.junk"#]]
    .assert_eq(&unknown.join("\n"));
    expect![[r#"{"closed":{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":""}},"spec":{}},"labels":{"x":{"a":"1"}},"list":[{"a":"1"},{}],"metadata":{"name":"x"},"open":{"closed":{"a":"1"},"x":1},"raw":{"data":1,"metadata":{"name":"x"}}}"#]]
        .assert_eq(&Value::Object(value).to_string());
}

#[test]
fn nulls_and_defaults() {
    let schema = compile(json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "default": "x"}, "c": {"type": "string", "nullable": true},
            "d": {"type": "string", "nullable": true, "default": "y"}, "e": {"type": "string", "nullable": true, "default": "y"},
            "f": {"type": "object", "default": {}, "properties": {"g": {"type": "integer", "default": 3}}},
            "l": {"type": "array", "items": {"type": "object", "properties": {"g": {"type": "integer", "default": 3}}}},
            "m": {"type": "object", "additionalProperties": {"type": "string", "default": "z"}},
            "n": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }));
    let mut value = object(json!({
        "a": null, "b": null, "c": null, "d": null, "l": [{}, {"g": 1}], "m": {"x": null}, "n": {"x": null},
    }));
    schema.default(&mut value);
    expect![[r#"{"b":"x","c":null,"d":null,"e":"y","f":{"g":3},"l":[{"g":3},{"g":1}],"m":{"x":"z"},"n":{}}"#]]
        .assert_eq(&Value::Object(value).to_string());
}

#[test]
fn metadata_of_a_wrong_type() {
    let schema = compile(json!({"type": "object"}));
    let check = |metadata: Value, want: &str| {
        let mut body = object(json!({"metadata": metadata}));
        let error = schema.decode(&mut body.clone(), false, false).expect_err("malformed metadata");
        assert_eq!(error, want);
        schema.decode(&mut body, false, true).expect("malformed members are dropped");
        assert_eq!(body["metadata"], json!({"name": "x"}));
    };
    check(
        json!({"name": "x", "labels": {"a": 1}}),
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
    );
    check(
        json!({"name": "x", "finalizers": "a"}),
        "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
    );
}

#[test]
fn embedded_resources_are_validated() {
    check(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"kind": "a_b", "metadata": {"name": "a/b", "labels": {"-": "x"}}}),
        expect![[r#"
            spec.apiVersion: Required value
            spec.kind: Invalid value: "a_b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.metadata.name: Invalid value: "a/b": may not contain '/'
            spec.metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        "#]],
    );
}

#[test]
fn rules() {
    let schema = json!({
        "type": "object",
        "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "too low"}]},
            "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable", "reason": "FieldValueForbidden"}]},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
                "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}},
        },
        "x-kubernetes-validations": [{"rule": "self.min <= self.max", "fieldPath": ".max"}, {"rule": "self.min <= self.max"}],
    });
    let root = compile(json!({"type": "object", "properties": {"spec": schema}}));
    let old =
        object(json!({"spec": {"name": "a", "list": [{"k": "x", "v": 1}, {"k": "y", "v": 1}]}}));
    let new = object(
        json!({"spec": {"name": "b", "min": 2, "max": 1, "list": [{"k": "y", "v": 2}, {"k": "z", "v": 3}]}}),
    );
    expect![[r#"
        spec.max: Invalid value: failed rule: self.min <= self.max
        spec: Invalid value: failed rule: self.min <= self.max
        spec.list[0].v: Invalid value: 2: failed rule: self == oldSelf
        spec.max: Invalid value: 1: too low
        spec.name: Forbidden: is immutable
    "#]]
    .assert_eq(&lines(root.validate(&new, Some(&old))));
    // A schema error that makes rules meaningless keeps them from running.
    let new = object(json!({"spec": {"max": "x"}}));
    expect![[r#"
        spec.max: Invalid value: "string": spec.max in body must be of type integer: "string"
        <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    "#]]
    .assert_eq(&lines(root.validate(&new, None)));
}

/// Another server may have stored a rule that is unknown here.
#[test]
fn unknown_rules_let_pass_what_does_not_change() {
    let rule = json!([{"rule": "self.x.matches('a')"}]);
    let root = compile(json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'a'"}],
        "properties": {
            "spec": {"type": "object", "x-kubernetes-validations": rule, "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }));
    let old = object(json!({"metadata": {"name": "a"}, "spec": {"x": "a"}}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(lines(root.validate(&new, Some(&old))), "");
    new["spec"]["x"] = "b".into();
    expect![[r#"
        <nil>: Forbidden: CEL rules are not served by this version of Ferroplane, and this one guards the value: self.metadata.name == 'a'
        spec: Forbidden: CEL rules are not served by this version of Ferroplane, and this one guards the value: self.x.matches('a')
    "#]]
    .assert_eq(&lines(root.validate(&new, Some(&old))));
    new.insert("status".into(), json!({}));
    new["spec"]["x"] = "a".into();
    expect![[r#"
        <nil>: Forbidden: CEL rules are not served by this version of Ferroplane, and this one guards the value: self.metadata.name == 'a'
    "#]]
    .assert_eq(&lines(root.validate(&new, Some(&old))));
}

#[test]
fn what_does_not_compile() {
    let check = |schema: Value, want: &str| {
        let error = Structural::compile(&schema, &lookup).expect_err("a bad schema");
        assert_eq!(error.to_string(), want);
    };
    check(
        json!({"$ref": "x"}),
        "<nil>: Invalid value: \"\": OpenAPIV3Schema '$ref' is not supported",
    );
    check(
        json!({"properties": {"a": {"pattern": "(?=x)"}}}),
        "properties[a].pattern: Invalid value: \"(?=x)\": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
    );
    let mut deep = json!({"type": "object"});
    for _ in 0..MAX_DEPTH {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    check(deep, "<nil>: Invalid value: \"\": must not be nested deeper than 200 levels");
    let wide: Object = (0..100_000).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect();
    check(
        json!({"properties": wide}),
        "<nil>: Invalid value: \"\": must not have more than 20000 properties",
    );
}
