//! CRDs that are no schemas, or too much of one.

use serde_json::json;

use super::*;

/// The CPU bar of this row, in milliseconds.
const CPU_MS: u64 = 100;

fn refused(rig: &Rig, what: &str, schema: &Value) {
    answered(rig, what, schema, "422 [Invalid]");
}

fn answered(rig: &Rig, what: &str, schema: &Value, want: &str) {
    let body = crd("widgets", schema).to_string();
    let cost = rig.checked_cost(what, want, || rig.put("POST", CRDS, JSON, body.as_bytes()));
    cost.assert_below(what, CPU_MS, PEAK_MIB);
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// `inner` in so many levels; the innermost first.
fn nested(levels: usize, wrap: impl Fn(Value) -> Value, inner: Value) -> Value {
    (0..levels).fold(inner, |schema, _| wrap(schema))
}

#[test]
fn row_10_schemas_that_are_not_structural() {
    let rig = Rig::start();
    let spec = |schema: Value| object(json!({"spec": schema}));
    for (what, schema) in [
        ("no type at the root", json!({"properties": {"spec": {"type": "object"}}})),
        ("a property without a type", spec(json!({"description": "nothing"}))),
        ("a junctor with a type", spec(json!({"type": "object", "anyOf": [{"type": "object"}]}))),
        (
            "a junctor beside nothing",
            json!({"type": "object", "allOf": [{"properties": {"a": {"minimum": 1}}}]}),
        ),
        ("items that are a list", spec(json!({"type": "array", "items": [{"type": "string"}]}))),
        (
            "additionalProperties beside properties",
            spec(
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ),
        ),
        ("$ref", spec(json!({"$ref": "#/definitions/a"}))),
        ("$ref to a file", spec(json!({"type": "object", "$ref": "file:///etc/passwd"}))),
        ("definitions", json!({"type": "object", "definitions": {"a": {"type": "string"}}})),
        (
            "patternProperties",
            spec(json!({"type": "object", "patternProperties": {"a": {"type": "string"}}})),
        ),
        ("dependencies", spec(json!({"type": "object", "dependencies": {"a": ["b"]}}))),
        ("an unknown type", spec(json!({"type": "file"}))),
    ] {
        refused(&rig, what, &schema);
    }
}

#[test]
fn row_10_schemas_that_are_too_deep() {
    let rig = Rig::start();
    let text = || json!({"type": "string"});
    for (what, schema) in [
        ("1,000 properties deep", nested(1000, |s| object(json!({"a": s})), text())),
        (
            "1,000 lists deep",
            object(json!({"a": nested(1000, |s| json!({"type": "array", "items": s}), text())})),
        ),
        (
            "1,000 maps deep",
            object(
                json!({"a": nested(1000, |s| json!({"type": "object", "additionalProperties": s}), text())}),
            ),
        ),
        (
            "1,000 not deep",
            object(
                json!({"a": {"type": "string", "not": nested(999, |s| json!({"not": s}), json!({}))}}),
            ),
        ),
        (
            "1,000 allOf deep",
            object(
                json!({"a": {"type": "string", "allOf": [nested(999, |s| json!({"allOf": [s]}), json!({}))]}}),
            ),
        ),
    ] {
        refused(&rig, what, &schema);
    }
}

#[test]
fn row_10_schemas_that_are_too_large() {
    let rig = Rig::start();
    const N: usize = 100_000;
    let many = |schema: &Value| -> Value {
        (0..N).map(|n| (format!("p{n}"), schema.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    refused(&rig, "100,000 properties", &object(many(&json!({"type": "x"}))));
    refused(&rig, "100,000 properties below", &object(json!({"spec": object(many(&json!({})))})));
    let junctors = Value::Array(vec![json!({}); N]);
    refused(&rig, "100,000 anyOf", &object(json!({"a": {"type": "string", "anyOf": junctors}})));
    // As many as fit into a body.
    let body = object(
        json!({"spec": object((0..250_000).map(|n| (format!("{n:x}"), json!({}))).collect::<serde_json::Map<_, _>>().into())}),
    );
    refused(&rig, "250,000 properties", &body);
    // Not the schema, but what stands in it.
    let required: Vec<String> = (0..200_000).map(|n| format!("{n}")).collect();
    let required = json!({"type": "object", "required": required, "properties": {"a": {}}});
    refused(&rig, "200,000 required", &required);
    let deep_default = nested(1000, |v| json!([v]), json!(1));
    let default = object(json!({"a": {"type": "string", "default": deep_default}}));
    refused(&rig, "a default of 1,000 levels", &default);
}

/// What is just taken costs more than what is refused, once: the schema is compiled and served.
#[test]
fn row_10_the_largest_schema_that_is_taken() {
    let rig = Rig::start();
    let text = json!({"type": "string"});
    let many: serde_json::Map<_, _> =
        (0..18_000).map(|n| (format!("p{n}"), text.clone())).collect();
    let schema = object(json!({"spec": object(many.into())}));
    let body = crd("widgets", &schema).to_string();
    let (made, cost) = rig.server.cost(|| {
        let made = rig.put("POST", CRDS, JSON, &body);
        rig.server.until("the CRD is served", || (rig.get(WIDGETS).code == 200).then_some(()));
        made
    });
    assert_eq!(made.code, 201, "{}", made.text());
    cost.assert_below("18,000 properties that are taken", 500, 64);
    let object = widget("w", &json!({"p1": "a", "unknown": 1}));
    let (made, cost) = rig.server.cost(|| rig.post(WIDGETS, &object));
    assert_eq!(made.json()["spec"], json!({"p1": "a"}));
    cost.assert_below("one of 18,000 properties", 10, PEAK_MIB);
}

#[test]
fn row_10_versions_that_are_too_many() {
    let rig = Rig::start();
    let mut crd = crd("widgets", &json!({"type": "object"}));
    let version = |n: usize| json!({"name": format!("v{n}"), "served": true, "storage": n <= 2, "schema": {"openAPIV3Schema": {"type": "object"}}});
    crd["spec"]["versions"] = (1..=5_000).map(version).collect();
    let body = crd.to_string();
    let cost =
        rig.checked_cost("5,000 versions", "422 [Invalid]", || rig.put("POST", CRDS, JSON, &body));
    cost.assert_below("5,000 versions, all stored", CPU_MS, PEAK_MIB);
    let columns: Vec<Value> = (0..5_000)
        .map(|n| json!({"name": format!("c{n}"), "type": "x", "jsonPath": ".spec"}))
        .collect();
    crd["spec"]["versions"] = json!([version(1)]);
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = columns.into();
    let body = crd.to_string();
    let cost =
        rig.checked_cost("5,000 columns", "422 [Invalid]", || rig.put("POST", CRDS, JSON, &body));
    cost.assert_below("5,000 columns of no type", CPU_MS, PEAK_MIB);
}

#[test]
fn row_11_patterns() {
    let rig = Rig::start();
    for pattern in [
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "(?:(?:a{0,1000}){0,1000})",
        "a{1001}",
        "a{0,1001}",
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"\C",
        r"(a)\1",
        "(?>a)",
        "a**",
        "(",
        "[a",
        "[z-a]",
        r"\p{Nowhere}",
        "(?P<a>x)(?P<a>y)",
    ] {
        let schema = object(json!({"spec": {"type": "string", "pattern": pattern}}));
        refused(&rig, pattern, &schema);
    }
    let long = "(a|b)".repeat(100_000) + "(?=x)";
    refused(&rig, "a long pattern", &object(json!({"a": {"type": "string", "pattern": long}})));
    let nested = "(".repeat(10_000) + &")".repeat(10_000);
    refused(&rig, "a deep pattern", &object(json!({"a": {"type": "string", "pattern": nested}})));
    // Repeats up to 1,000 are kept, and what matches slowly elsewhere matches in linear time here.
    rig.widgets(json!({"type": "object", "properties": {
        "long": {"type": "string", "pattern": "^a{1000}$"},
        "slow": {"type": "string", "pattern": "^(a+)+$"},
    }}));
    let made = rig.post(WIDGETS, &widget("fits", &json!({"long": "a".repeat(1000)})));
    assert_eq!(made.code, 201, "{}", made.text());
    let short = rig.post(WIDGETS, &widget("short", &json!({"long": "a".repeat(999)})));
    rig.check("999 of 1,000", &short, "422 [Invalid]");
    let slow = widget("slow", &json!({"slow": format!("{}!", "a".repeat(100_000))})).to_string();
    let cost =
        rig.checked_cost("a slow text", "422 [Invalid]", || rig.put("POST", WIDGETS, JSON, &slow));
    cost.assert_below("a slow text", CPU_MS, PEAK_MIB);
}
