//! `PartialObjectMetadata`: an object cut down to its metadata (`as=PartialObjectMetadata`).

use crate::{Object, Value, json};

/// The versions of `meta.k8s.io` that clients may ask for.
pub const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// The kind of one object; a list's kind has `List` after it.
pub const KIND: &str = "PartialObjectMetadata";

/// The metadata of an object, in `meta.k8s.io/<version>`.
pub fn from_object(object: &Object, version: &str) -> Object {
    let metadata = object.get("metadata").filter(|m| m.is_object()).cloned();
    Object::from_iter([
        ("apiVersion".to_owned(), format!("meta.k8s.io/{version}").into()),
        ("kind".to_owned(), KIND.into()),
        ("metadata".to_owned(), metadata.unwrap_or_else(|| Value::Object(Object::new()))),
    ])
}

/// The same from an object's JSON, without a parse where the scanner finds its metadata.
pub fn from_json(object: &[u8], version: &str) -> Result<Vec<u8>, json::Error> {
    let Some(metadata) = json::metadata_slice(object) else {
        return Ok(json::to_go_vec(&from_object(&json::decode_stored(object)?, version)));
    };
    let head = format!(r#"{{"apiVersion":"meta.k8s.io/{version}","kind":"{KIND}","metadata":"#);
    Ok([head.as_bytes(), metadata, b"}"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_metadata_only() {
        for (object, want) in [
            (
                r#"{"apiVersion":"v1","data":{"metadata":{}},"kind":"ConfigMap","metadata":{"name":"n","labels":{"a":"b"}}}"#,
                r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"n","labels":{"a":"b"}}}"#,
            ),
            (
                "{}",
                r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{}}"#,
            ),
            (
                r#"{"metadata":null}"#,
                r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{}}"#,
            ),
        ] {
            let got = from_json(object.as_bytes(), "v1").expect("an object");
            assert_eq!(String::from_utf8(got).expect("UTF-8"), want);
            let parsed =
                from_object(&json::decode(object.as_bytes()).expect("an object").object, "v1");
            assert_eq!(parsed, json::decode(want.as_bytes()).expect("an object").object);
        }
    }
}
