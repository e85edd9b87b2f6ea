//! Patches that ask for too much.

use serde_json::json;

use super::*;

#[test]
fn row_09_patches() {
    let rig = Rig::start();
    let target = format!("{CONFIG_MAPS}/patched");
    let made = rig.post(CONFIG_MAPS, &json!({"metadata": {"name": "patched"}, "data": {"a": "x"}}));
    assert_eq!(made.code, 201, "{}", made.text());
    let operations = |n: usize| {
        let one = json!({"op": "test", "path": "/data/a", "value": "x"});
        Value::Array(vec![one; n]).to_string()
    };
    let cost = rig.checked_cost("10,001 operations", "413 [RequestEntityTooLarge]", || {
        rig.put("PATCH", &target, JSON_PATCH, operations(10_001))
    });
    cost.assert_below("10,001 operations", 100, PEAK_MIB);
    let most = rig.put("PATCH", &target, JSON_PATCH, operations(10_000));
    assert_eq!(most.code, 200, "{}", most.text());

    // Every copy doubles what there is: 4 MiB after 22 of them, 2^1000 after all.
    let copies: Vec<Value> = (0..1000)
        .map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/c{n}")}))
        .collect();
    let start = json!({"op": "add", "path": "/data/long", "value": "x".repeat(1024)});
    let patch = Value::Array([vec![start], copies].concat()).to_string();
    let cost = rig.checked_cost("copies that double", "422 [Invalid]", || {
        rig.put("PATCH", &target, JSON_PATCH, &patch)
    });
    cost.assert_below("copies that double", 100, PEAK_MIB);
    // One long value, copied often.
    let long = json!({"op": "add", "path": "/data/long", "value": "x".repeat(1 << 20)});
    let copy =
        |n: usize| json!({"op": "copy", "from": "/data/long", "path": format!("/data/d{n}")});
    let patch = Value::Array([vec![long], (0..1000).map(copy).collect()].concat()).to_string();
    let cost = rig.checked_cost("copies of 1 MiB", "422 [Invalid]", || {
        rig.put("PATCH", &target, JSON_PATCH, &patch)
    });
    cost.assert_below("copies of 1 MiB", 100, PEAK_MIB);

    for (patch, want) in [
        ("{", "400 [BadRequest]"),
        ("{}", "400 [BadRequest]"),
        ("[1]", "400 [BadRequest]"),
        (r#"[{"op":"fly","path":"/data"}]"#, "422 [Invalid]"),
        (r#"[{"op":"remove","path":"/data/none"}]"#, "422 [Invalid]"),
        (r#"[{"op":"add","path":"/data/a/b/c","value":1}]"#, "422 [Invalid]"),
        (r#"[{"op":"replace","path":"","value":[]}]"#, "422 [Invalid]"),
    ] {
        rig.check(patch, &rig.put("PATCH", &target, JSON_PATCH, patch), want);
    }

    rig.widgets(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let made = rig.post(WIDGETS, &widget("patched", &json!({"a": 1})));
    assert_eq!(made.code, 201, "{}", made.text());
    let media = "application/strategic-merge-patch+json";
    let answer = rig.put("PATCH", &format!("{WIDGETS}/patched"), media, r#"{"spec":{"a":2}}"#);
    rig.check("a strategic merge patch", &answer, "415 [UnsupportedMediaType]");
}
