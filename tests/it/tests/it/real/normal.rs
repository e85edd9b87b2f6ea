//! The form in which answers are compared: what differs from run to run is gone, schemas and
//! descriptions are digests, as the record has them.

use aws_lc_rs::digest;
use it::Answer;
use regex::Regex;
use serde_json::{Value, json};

/// How much of a CRD's schemas is kept.
#[derive(Clone, Copy, PartialEq)]
pub enum Depth {
    /// The digest of the whole.
    Whole,
    /// Also one for each property two levels down.
    Properties,
}

/// Code, reason, message, causes, warnings.
pub fn answer(answer: &Answer) -> Value {
    let mut out = json!({"status": answer.code});
    if answer.code >= 400 {
        match serde_json::from_slice::<Value>(&answer.body) {
            Ok(status) if status.is_object() => {
                out["reason"] = status["reason"].clone();
                out["message"] = scrub(status["message"].as_str().unwrap_or("")).into();
                let causes = status["details"]["causes"].as_array().into_iter().flatten();
                let causes = causes.map(|c| {
                    json!([c["field"], c["reason"], scrub(c["message"].as_str().unwrap_or(""))])
                });
                let causes: Vec<Value> = causes.collect();
                if !causes.is_empty() {
                    out["causes"] = causes.into();
                }
            }
            _ => out["message"] = scrub(&answer.text()).into(),
        }
    }
    let warnings = answer.headers.iter().filter(|(k, _)| k.eq_ignore_ascii_case("warning"));
    let warnings: Vec<Value> = warnings.map(|(_, v)| scrub(v).into()).collect();
    if !warnings.is_empty() {
        out["warnings"] = warnings.into();
    }
    out
}

/// The record does not repeat long quoted objects, nor the dump of all versions of a CRD. Ours are
/// shorter: an object has no managedFields yet, and of a version only its flags are told.
fn scrub(text: &str) -> String {
    let text = text.trim_end_matches('\n');
    if !text.contains("Invalid value: ") {
        return text.to_owned();
    }
    let object = Regex::new(r#"Invalid value: "\{(?:[^"\\]|\\.)*\}""#).expect("a valid pattern");
    let text = object.replace_all(text, "Invalid value: <long string>");
    let dump = Regex::new(r#"(?s)Invalid value: \[\{"Name":.*?\}\]: "#).expect("a valid pattern");
    dump.replace_all(&text, "Invalid value: <long dump>: ").into_owned()
}

/// An object without what is made anew each time. managedFields are not written yet.
pub fn object(mut object: Value) -> Value {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        meta.remove(key);
    }
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kcp.io/cluster");
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
    object
}

pub fn crd(crd: Value, depth: Depth) -> Value {
    let mut crd = object(crd);
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(schema) = version["schema"].get("openAPIV3Schema") {
            version["schema"] = digests(schema, depth);
        } else {
            version.as_object_mut().expect("a version").remove("schema");
        }
    }
    if let Some(conditions) = crd.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        for condition in conditions.iter_mut() {
            condition.as_object_mut().expect("a condition").remove("lastTransitionTime");
        }
        conditions.sort_by_key(|c| c["type"].to_string());
    }
    crd
}

/// From an established CRD: the answer to the request that wrote it.
pub fn as_written(established: &Value) -> Value {
    let mut crd = established.clone();
    crd.as_object_mut().expect("an object").remove("status");
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(whole) = version["schema"].get("").cloned() {
            version["schema"] = json!({"": whole});
        }
    }
    crd
}

fn digests(schema: &Value, depth: Depth) -> Value {
    let mut out = json!({"": digest_of(schema)});
    let properties = |of: &Value| of["properties"].as_object().cloned().unwrap_or_default();
    if depth == Depth::Properties {
        for (key, below) in properties(schema) {
            out[&key] = digest_of(&below).into();
            for (inner, value) in properties(&below) {
                out[format!("{key}.{inner}")] = digest_of(&value).into();
            }
        }
    }
    out
}

/// The record's digest: SHA-256 of JSON with sorted keys, its first 12 digits.
fn digest_of(value: &Value) -> String {
    // serde_json's maps are sorted; its numbers are written as the record's are, but for exponents,
    // which schemas do not have.
    let sum = digest::digest(&digest::SHA256, value.to_string().as_bytes());
    sum.as_ref()[..6].iter().map(|b| format!("{b:02x}")).collect()
}

pub fn table(table: &Value) -> Value {
    let list = |key: &str| table[key].as_array().cloned().unwrap_or_default();
    let columns = list("columnDefinitions");
    let time = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$").expect("a valid pattern");
    let cell = |at: usize, cell: &Value| {
        let date = columns.get(at).is_some_and(|c| c["type"] == "date") && !cell.is_null();
        if date || cell.as_str().is_some_and(|text| time.is_match(text)) {
            json!("<date>")
        } else {
            cell.clone()
        }
    };
    let row = |row: &Value| -> Value {
        let cells = row["cells"].as_array().into_iter().flatten();
        cells.enumerate().map(|(at, c)| cell(at, c)).collect()
    };
    let rows: Vec<Value> = list("rows").iter().map(row).collect();
    let columns: Vec<Value> = columns
        .iter()
        .map(|c| {
            json!([c["name"], c["type"], c["format"], c["priority"], digest_of(&c["description"])])
        })
        .collect();
    json!({"columns": columns, "rows": rows})
}

/// How `got` differs from the record.
pub fn differences(want: &Value, got: &Value) -> Vec<String> {
    // Go kcp dropped the connection: any clean refusal is as good.
    if want["panics"] == true {
        let clean = matches!(got["status"].as_u64(), Some(400 | 422));
        return if clean { Vec::new() } else { vec![format!("{} is no refusal", got["status"])] };
    }
    let mut out = Vec::new();
    for key in ["status", "reason"] {
        if want[key] != got[key] {
            out.push(format!("{key} {}, expected {} ({})", got[key], want[key], got["message"]));
        }
    }
    if !out.is_empty() {
        return out;
    }
    if !same_message(want, got) {
        out.push(format!("message\n    {}\n  expected\n    {}", got["message"], want["message"]));
    }
    for key in ["causes", "warnings"] {
        let (want, got) = (sorted(&want[key]), sorted(&got[key]));
        if want != got {
            out.push(format!("{key} {got:?}, expected {want:?}"));
        }
    }
    let stored = want.get("stored").cloned().map(object);
    diff(stored.as_ref(), got.get("stored"), "stored", &mut out);
    diff(want.get("table"), got.get("table"), "table", &mut out);
    out
}

/// Messages with several causes list them in no fixed order.
fn same_message(want: &Value, got: &Value) -> bool {
    let start = |of: &Value| {
        let message = of["message"].as_str().unwrap_or("");
        message.split(" is invalid: ").next().unwrap_or("").to_owned()
    };
    let several = want["causes"].as_array().is_some_and(|c| c.len() > 1);
    want["message"] == got["message"] || several && start(want) == start(got)
}

fn sorted(list: &Value) -> Vec<String> {
    let mut out: Vec<String> =
        list.as_array().into_iter().flatten().map(Value::to_string).collect();
    out.sort();
    out
}

fn diff(want: Option<&Value>, got: Option<&Value>, path: &str, out: &mut Vec<String>) {
    match (want, got) {
        (Some(Value::Object(w)), Some(Value::Object(g))) => {
            let keys: std::collections::BTreeSet<&String> = w.keys().chain(g.keys()).collect();
            for key in keys {
                diff(w.get(key), g.get(key), &format!("{path}.{key}"), out);
            }
        }
        (Some(Value::Array(w)), Some(Value::Array(g))) if w.len() == g.len() => {
            for (at, (w, g)) in w.iter().zip(g).enumerate() {
                diff(Some(w), Some(g), &format!("{path}[{at}]"), out);
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{path}: {}, expected {}", short(got), short(want))),
    }
}

fn short(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    if text.len() <= 300 {
        text
    } else {
        format!("{}...", text.chars().take(300).collect::<String>())
    }
}
