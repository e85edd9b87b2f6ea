//! Reading and setting a few fields of `metadata` in JSON bytes, without parsing the whole document.
//!
//! The scanner trusts that the bytes are JSON which this module or Go wrote. What it does not
//! understand (an escaped key, a repeated member, a `metadata` of another type) it leaves to a parse.

use std::ops::Range;

use super::{Error, decode, decode_value, to_go_vec};
use crate::meta::Meta;
use crate::{Object, Value};

/// What is asked of a stored object often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: String,
    pub generation: i64,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    pub deleting: bool,
}

/// Reads [`Scanned`] from an object's JSON; members that are absent or mistyped stay empty.
pub fn scan_meta(json: &[u8]) -> Result<Scanned, Error> {
    let mut out = Scanned::default();
    let Some(top) = members(json, 0) else { return Ok(Scanned::of(&decode(json)?.object)) };
    for member in top {
        let raw = &json[member.value.clone()];
        match &json[member.key] {
            b"apiVersion" => out.api_version = text(raw)?,
            b"kind" => out.kind = text(raw)?,
            b"metadata" if raw.first() == Some(&b'{') => {
                let Some(metadata) = members(raw, 0) else {
                    return Ok(Scanned::of(&decode(json)?.object));
                };
                for member in metadata {
                    out.take(&raw[member.key], &raw[member.value])?;
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

impl Scanned {
    fn take(&mut self, key: &[u8], raw: &[u8]) -> Result<(), Error> {
        match key {
            b"name" => self.name = text(raw)?,
            b"namespace" => self.namespace = text(raw)?,
            b"uid" => self.uid = text(raw)?,
            b"resourceVersion" => self.resource_version = text(raw)?,
            b"creationTimestamp" => self.creation_timestamp = text(raw)?,
            b"generation" => self.generation = decode_value(raw)?.0.as_i64().unwrap_or(0),
            b"deletionTimestamp" => self.deleting = raw != b"null",
            b"labels" => {
                if let (Value::Object(map), _) = decode_value(raw)? {
                    self.labels = sorted_labels(&map);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The same from a parsed object.
    pub fn of(object: &Object) -> Self {
        let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        Self {
            api_version: object.api_version().into(),
            kind: object.kind().into(),
            name: object.name().into(),
            namespace: object.namespace().into(),
            uid: object.uid().into(),
            resource_version: object.resource_version().into(),
            creation_timestamp: object
                .text(&["metadata", "creationTimestamp"])
                .unwrap_or("")
                .into(),
            generation: object.generation(),
            labels: labels.map(sorted_labels).unwrap_or_default(),
            deleting: object.is_deleting(),
        }
    }
}

fn sorted_labels(map: &Object) -> Box<[(Box<str>, Box<str>)]> {
    map.iter().filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into()))).collect()
}

fn text(raw: &[u8]) -> Result<String, Error> {
    match decode_value(raw)?.0 {
        Value::String(text) => Ok(text),
        _ => Ok(String::new()),
    }
}

/// The bytes of `metadata` within an object's JSON, where the scanner finds them.
pub fn metadata_slice(json: &[u8]) -> Option<&[u8]> {
    let member = members(json, 0)?.into_iter().find(|m| &json[m.key.clone()] == b"metadata")?;
    let raw = &json[member.value];
    (raw.first() == Some(&b'{')).then_some(raw)
}

/// The object with `metadata.resourceVersion` and the annotation `kcp.io/cluster` set: what a stored
/// body lacks or must not be trusted for. All else is copied as it stands; white space at the end goes.
pub fn with_server_fields(
    json: &[u8],
    resource_version: &str,
    cluster: &str,
) -> Result<Vec<u8>, Error> {
    let json = json.trim_ascii_end();
    if let Some(out) = spliced(json, resource_version, cluster) {
        return Ok(out);
    }
    let mut object = decode(json)?.object;
    object.set_meta("resourceVersion", resource_version);
    object.set_annotation(CLUSTER_ANNOTATION, cluster);
    Ok(to_go_vec(&object))
}

/// kcp's annotation that tells an object's logical cluster.
const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

fn spliced(json: &[u8], resource_version: &str, cluster: &str) -> Option<Vec<u8>> {
    let top = members(json, 0)?;
    let metadata_at = top.iter().find(|m| &json[m.key.clone()] == b"metadata")?.value.start;
    if json[metadata_at] != b'{' {
        return None;
    }
    let metadata = members(json, metadata_at)?;
    if metadata.is_empty() {
        return None;
    }
    let version = to_go_vec(&resource_version);
    let cluster = to_go_vec(&cluster);
    let annotations_edit = match find(json, &metadata, "annotations") {
        Some(member) if json[member.value.start] == b'{' => {
            let start = member.value.start;
            set(json, start, &members(json, start)?, CLUSTER_ANNOTATION, cluster)
        }
        _ => {
            let value = [b"{\"kcp.io/cluster\":".as_slice(), &cluster, b"}"].concat();
            set(json, metadata_at, &metadata, "annotations", value)
        }
    };
    let mut edits =
        [annotations_edit, set(json, metadata_at, &metadata, "resourceVersion", version)];
    // Two insertions at one place stay in this order: annotations sort before resourceVersion.
    edits.sort_by_key(|(range, _)| range.start);
    let mut out =
        Vec::with_capacity(json.len() + edits.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut from = 0;
    for (range, text) in edits {
        out.extend_from_slice(&json[from..range.start]);
        out.extend_from_slice(&text);
        from = range.end;
    }
    out.extend_from_slice(&json[from..]);
    Some(out)
}

/// The edit that gives `key` of the object at `open` a value: replaces it, or inserts it before the
/// first greater key.
fn set(
    json: &[u8],
    open: usize,
    members: &[Member],
    key: &str,
    value: Vec<u8>,
) -> (Range<usize>, Vec<u8>) {
    if let Some(member) = find(json, members, key) {
        return (member.value.clone(), value);
    }
    let name = format!("\"{key}\":");
    let next = members.iter().find(|m| json[m.key.clone()] > *key.as_bytes());
    match (next, members.last()) {
        (Some(next), _) => {
            let at = next.key.start - 1;
            (at..at, [name.as_bytes(), &value, b","].concat())
        }
        (None, Some(last)) => {
            (last.value.end..last.value.end, [b",", name.as_bytes(), &value].concat())
        }
        (None, None) => (open + 1..open + 1, [name.as_bytes(), &value].concat()),
    }
}

fn find<'a>(json: &[u8], members: &'a [Member], key: &str) -> Option<&'a Member> {
    members.iter().find(|m| &json[m.key.clone()] == key.as_bytes())
}

/// Where a member's key (without quotes) and its value lie.
struct Member {
    key: Range<usize>,
    value: Range<usize>,
}

/// The members of the object that opens at `open`, or None where it is no plain object: another type,
/// an escaped key, a key twice, or broken.
fn members(json: &[u8], open: usize) -> Option<Vec<Member>> {
    let mut at = skip_space(json, open);
    if json.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(json, at + 1);
    let mut out: Vec<Member> = Vec::new();
    if json.get(at) == Some(&b'}') {
        return Some(out);
    }
    loop {
        if json.get(at) != Some(&b'"') {
            return None;
        }
        let end = skip_string(json, at)?;
        let key = at + 1..end - 1;
        if memchr::memchr(b'\\', &json[key.clone()]).is_some()
            || out.iter().any(|m| json[m.key.clone()] == json[key.clone()])
        {
            return None;
        }
        at = skip_space(json, end);
        if json.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(json, at + 1);
        let end = skip_value(json, at)?;
        out.push(Member { key, value: at..end });
        at = skip_space(json, end);
        match json.get(at)? {
            b',' => at = skip_space(json, at + 1),
            b'}' => return Some(out),
            _ => return None,
        }
    }
}

fn skip_space(json: &[u8], mut at: usize) -> usize {
    while json.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Past the string that opens at `at`.
fn skip_string(json: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        match json[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// Past the value that starts at `at`.
fn skip_value(json: &[u8], mut at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => return skip_string(json, at),
        b'{' | b'[' => {}
        _ => {
            let end = json[at..]
                .iter()
                .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r'));
            return Some(end.map_or(json.len(), |n| at + n));
        }
    }
    let mut depth = 0_usize;
    loop {
        match json.get(at)? {
            b'"' => {
                at = skip_string(json, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(json: &str, want: &str) {
        let out = with_server_fields(json.as_bytes(), "7", "c1")
            .map(|b| String::from_utf8(b).expect("UTF-8"));
        assert_eq!(out.unwrap_or_else(|e| e.to_string()), want, "{json}");
    }

    #[test]
    fn sets_server_fields() {
        check(
            "{\"metadata\":{}}\n",
            r#"{"metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
        check(
            r#"{"a":{"metadata":1},"metadata":{"name":"n","uid":"u"},"z":"}\"{"}"#,
            r#"{"a":{"metadata":1},"metadata":{"annotations":{"kcp.io/cluster":"c1"},"name":"n","resourceVersion":"7","uid":"u"},"z":"}\"{"}"#,
        );
        check(
            r#"{"metadata":{"annotations":{"a":"b","z":"y"},"name":"n","resourceVersion":"3"}}"#,
            r#"{"metadata":{"annotations":{"a":"b","kcp.io/cluster":"c1","z":"y"},"name":"n","resourceVersion":"7"}}"#,
        );
        check(
            r#"{"metadata": {"annotations": {"kcp.io/cluster": "forged"} , "name": "n"} }"#,
            r#"{"metadata": {"annotations": {"kcp.io/cluster": "c1"} , "name": "n","resourceVersion":"7"} }"#,
        );
        check(
            r#"{"metadata":{"annotations":null}}"#,
            r#"{"metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
        check(
            r#"{"metadata":{"annotations":{}}}"#,
            r#"{"metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
    }

    #[test]
    fn parses_what_it_cannot_scan() {
        check(
            r#"{"kind":"X"}"#,
            r#"{"kind":"X","metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
        check(
            r#"{"metadata":{"annotations":{"kcp\u002eio/cluster":"forged"}}}"#,
            r#"{"metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
        check(
            r#"{"metadata":{"resourceVersion":"1","resourceVersion":"2"}}"#,
            r#"{"metadata":{"annotations":{"kcp.io/cluster":"c1"},"resourceVersion":"7"}}"#,
        );
        check("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}");
        check(r#"{"metadata":{"a":["#, "unexpected end of JSON input");
    }

    #[test]
    fn scans_metadata() {
        let json = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"t","deletionTimestamp":"d","generation":3,"labels":{"b":"2","a":"\u0031"},"managedFields":[{"name":"no"}],"name":"n","namespace":"ns","resourceVersion":"9","uid":"u"},"spec":{"metadata":{}}}"#;
        let scanned = scan_meta(json).expect("scans");
        assert_eq!(scanned, Scanned::of(&decode(json).expect("parses").object));
        assert_eq!(
            (&*scanned.labels[0].0, &*scanned.labels[0].1, scanned.deleting),
            ("a", "1", true)
        );
        assert!(!scan_meta(br#"{"metadata":{"deletionTimestamp":null}}"#).expect("scans").deleting);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\\\\\"{}<é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let key = "metadata|annotations|kcp.io/cluster|resourceVersion|[a-z\\\\\"{}]{0,3}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Splicing is the same as parse, set, write.
        #[test]
        fn splice_equals_parse(metadata in json_value(), rest in json_value()) {
            let mut object = Object::new();
            object.insert("metadata".into(), metadata);
            object.insert("spec".into(), rest);
            let spliced = with_server_fields(&to_go_vec(&object), "12", "root").expect("an object");
            object.set_meta("resourceVersion", "12");
            object.set_annotation(CLUSTER_ANNOTATION, "root");
            prop_assert_eq!(String::from_utf8(spliced).expect("UTF-8"), super::super::to_go_string(&object));
        }
    }
}
