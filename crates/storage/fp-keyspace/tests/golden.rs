//! Keys and values that a Go kcp wrote (`tests/oracle/golden`).

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fp_base::Revision;
use fp_builtin::crd;
use fp_keyspace::{Layout, PREFIX, Spot};
use fp_object::meta::Meta;
use fp_object::{Value, json, proto};
use fp_schema::ResourceInfo;

fn golden(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/golden");
    std::fs::read_to_string(root.join(name)).expect("a file of facts")
}

fn layout() -> Layout {
    Layout::new(PREFIX, fp_builtin::resources().iter().cloned())
}

#[test]
fn every_key_splits() {
    let keys = golden("keys.txt");
    let layout = layout();
    for key in keys.lines() {
        let parts = layout.split(key).unwrap_or_else(|| panic!("{key} does not split"));
        let Some(info) = fp_builtin::resource(parts.group, parts.resource) else {
            assert!(!parts.segment.is_empty(), "{key} is of an unknown built-in");
            continue;
        };
        let spot = Spot { cluster: &parts.cluster, namespace: parts.namespace, name: parts.name };
        assert_eq!(&*layout.key(info, spot).expect("a key"), key);
    }
}

/// Each value decodes, and a built-in's encodes back to the same bytes: by the layout, but for the
/// annotation that we do not store; with it by what the layout is made of.
#[test]
fn every_value_decodes() {
    let values = golden("values.json");
    let (values, _) = json::decode_value(values.as_bytes()).expect("golden data is JSON");
    let layout = layout();
    let mut n_same = 0;
    for item in values.as_array().expect("a list") {
        let key = item["key"].as_str().expect("a key");
        let parts = layout.split(key).unwrap_or_else(|| panic!("{key} does not split"));
        let value = match item.get("json").and_then(Value::as_str) {
            Some(text) => Bytes::from(text.to_owned()),
            None => {
                STANDARD.decode(item["base64"].as_str().expect("bytes")).expect("base64").into()
            }
        };
        let served = layout.decode(&parts, &value).unwrap_or_else(|e| panic!("{key}: {e}"));
        let served = served.json(&parts.cluster, Revision(7));
        let object = json::decode(&served).expect("served JSON can be read").object;
        assert_eq!(object.name(), parts.name);
        assert_eq!(object.namespace(), parts.namespace);
        assert_eq!(object.annotation("kcp.io/cluster"), Some(parts.cluster.as_str()));
        let builtin = fp_builtin::resource(parts.group, parts.resource);
        let Some(info) = builtin else { continue };
        let encoded = if contains(&value, b"kcp.io/cluster") {
            again(info, &value)
        } else {
            layout.encode(info, &object).expect("what was stored can be stored").value
        };
        assert_eq!(encoded.escape_ascii().to_string(), value.escape_ascii().to_string(), "{key}");
        n_same += 1;
    }
    assert_eq!(n_same, 8, "values of built-ins");
}

/// Decoded and encoded, nothing left out.
fn again(info: &ResourceInfo, value: &[u8]) -> Bytes {
    if &*info.kind == "CustomResourceDefinition" {
        let object = crd::decode_stored(value).expect("a stored definition");
        return crd::encode_stored(&object).expect("what was stored can be stored").into();
    }
    let message = info.proto.expect("every built-in has a message");
    let unknown = proto::unwrap(value).expect("an envelope");
    let object = proto::decode(message, unknown.raw).expect("protobuf");
    let raw = proto::encode(message, &object).expect("what was stored can be stored");
    proto::wrap(unknown.api_version, &info.kind, &raw).into()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
