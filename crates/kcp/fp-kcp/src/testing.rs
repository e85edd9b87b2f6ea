//! Entries made from JSON, for this crate's tests.

use fp_base::{ClusterName, Revision};
use fp_informer::{Entry, ObjectKey};
use fp_object::{Object, Value};

pub fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).unwrap()
}

pub fn key(cluster_name: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: cluster(cluster_name), namespace: namespace.into(), name: name.into() }
}

pub fn entry(key: &ObjectKey, object: Value) -> Entry {
    let labels = match &object["metadata"]["labels"] {
        Value::Object(labels) => labels
            .iter()
            .map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or("").into()))
            .collect(),
        _ => Box::default(),
    };
    Entry::new(key.clone(), Revision(1), object.to_string().into(), labels, false)
}

pub fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}
