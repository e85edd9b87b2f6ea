//! The form in which both sides are compared: words for what is random, digests for schemas.

use aws_lc_rs::digest;
use regex::Regex;
use serde_json::{Map, Value};

/// What is made anew on every server, or is not compared (managedFields, and the annotation that
/// only kcp's bootstrap writes); one text is prose.
const LEFT_OUT: [&str; 9] = [
    "uid",
    "UID",
    "resourceVersion",
    "creationTimestamp",
    "lastTransitionTime",
    "managedFields",
    "bootstrap.kcp.io/create-only",
    "kubernetes.io/description",
    // The day on which a server first started.
    "since",
];

/// The words for what is random on one server.
pub struct Words {
    random: Vec<(String, &'static str)>,
    patterns: Vec<(Regex, &'static str)>,
}

impl Words {
    pub fn new<const N: usize>(random: [(String, &'static str); N]) -> Self {
        let pattern = |text: &str| Regex::new(text).expect("a constant pattern");
        let patterns = vec![
            (pattern(r"((?:tenancy|topology)\.kcp\.io)-[a-z0-9]{5}\b"), "$1-<suffix>"),
            (pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
            (pattern(r"\b[0-9a-f]{64}\b"), "<identity>"),
            (pattern(r"(?s)-----BEGIN CERTIFICATE.*"), "<CA PEM>"),
        ];
        Self { random: random.into(), patterns }
    }

    pub fn text(&self, text: &str) -> String {
        let text = self.random.iter().fold(text.to_owned(), |t, (from, to)| t.replace(from, to));
        self.patterns.iter().fold(text, |t, (from, to)| from.replace_all(&t, *to).into_owned())
    }

    /// Only what was made here, such as clusters.
    pub fn cluster(&self, name: &str) -> String {
        let found = self.random.iter().find(|(_, word)| word.get(1..word.len() - 1) == Some(name));
        found.map_or(name, |(cluster, _)| cluster).to_owned()
    }

    pub fn object(&self, value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let secret = map.get("kind").is_some_and(|kind| kind == "Secret");
                let kept = map.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
                let entry = |(key, value): (&String, &Value)| {
                    let value = match key.as_str() {
                        "openAPIV3Schema" if value.is_object() => {
                            format!("sha256:{}", digest_of(value)).into()
                        }
                        "data" if secret => redacted(value),
                        // In the order in which definitions were established: Go's is random too.
                        "boundResources" => sorted(self.object(value)),
                        _ => self.object(value),
                    };
                    (self.text(key), value)
                };
                kept.map(entry).collect::<Map<String, Value>>().into()
            }
            Value::Array(list) => list.iter().map(|item| self.object(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }
}

fn sorted(mut list: Value) -> Value {
    if let Some(list) = list.as_array_mut() {
        list.sort_by_key(Value::to_string);
    }
    list
}

fn redacted(data: &Value) -> Value {
    let keys = data.as_object().into_iter().flatten();
    keys.map(|(key, _)| (key.clone(), Value::from("<redacted>"))).collect::<Map<_, _>>().into()
}

/// SHA-256 of JSON with sorted keys, its first 16 digits.
pub fn digest_of(value: &Value) -> String {
    // serde_json's maps are sorted.
    let sum = digest::digest(&digest::SHA256, value.to_string().as_bytes());
    sum.as_ref()[..8].iter().map(|b| format!("{b:02x}")).collect()
}

/// Where two values differ, by path.
pub fn differ(path: &str, ours: Option<&Value>, theirs: Option<&Value>, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differ(&format!("{path}/{key}"), a.get(key), b.get(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}/{at}"), Some(a), Some(b), out);
            }
        }
        _ if ours != theirs => {
            let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
            out.push(format!("{path}: {}, Go kcp {}", show(ours), show(theirs)));
        }
        _ => {}
    }
}
