//! From a CRD to the [`ResourceInfo`] that serves it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use fp_base::Gr;
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::openapi::Source;
use crate::resource::Cell;
use crate::structural::{self, Rules, Structural};
use crate::{Column, Origin, ResourceInfo, Scale, Scope, Segment, VersionInfo};

/// kcp: objects' names need only be path segments.
pub const VALIDATE_NAME: &str = "internal.kcp.io/validate-name";

/// The order of Kubernetes' discovery, and without the verbs that a deleted CRD refuses.
const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const TERMINATING_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// Schemas that are shared; more than these are compiled anew each time.
const SHARED_MAX: usize = 4096;

/// Why a CRD cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("conversion webhooks are not served by this version")]
    Webhook,
    #[error("schema of version {version}")]
    Schema {
        version: String,
        #[source]
        source: structural::Error,
    },
}

/// What serves the CRD's objects. `rules` gives the functions of CEL rules by their text.
pub fn from_crd(
    crd: &Object,
    segment: Segment,
    origin: Origin,
    rules: Rules<'_>,
) -> Result<ResourceInfo, Error> {
    let spec = crd.get("spec").and_then(Value::as_object).ok_or(Error::Missing("spec"))?;
    if spec.get("conversion").is_some_and(|c| c["strategy"] == "Webhook") {
        return Err(Error::Webhook);
    }
    let names = names(crd, spec).ok_or(Error::Missing("spec.names"))?;
    let name = |key: &str| names.get(key).and_then(Value::as_str).unwrap_or("");
    let list =
        spec.get("versions").and_then(Value::as_array).ok_or(Error::Missing("spec.versions"))?;
    let mut versions = Vec::with_capacity(list.len());
    for version in list {
        versions.push((version["storage"] == true, version_info(version, rules)?));
    }
    versions.sort_by(|(_, a), (_, b)| by_priority(&a.name, &b.name));
    let storage = versions
        .iter()
        .position(|(stored, _)| *stored)
        .ok_or(Error::Missing("a storage version"))?;
    let terminating = crd.is_deleting() || super::names::is_true(crd, "Terminating");
    let group = spec.get("group").and_then(Value::as_str).unwrap_or("");
    let path_segment_names = crd.annotation(VALIDATE_NAME) == Some("path-segment");
    let hash = content_hash(spec, names, &segment, terminating, path_segment_names);
    Ok(ResourceInfo {
        gr: Gr::new(group, name("plural")),
        kind: name("kind").into(),
        list_kind: if name("listKind").is_empty() {
            format!("{}List", name("kind")).into()
        } else {
            name("listKind").into()
        },
        singular: if name("singular").is_empty() {
            name("kind").to_lowercase().into()
        } else {
            name("singular").into()
        },
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        scope: if spec.get("scope").is_some_and(|s| s == "Namespaced") {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        segment,
        origin,
        versions: versions.into_iter().map(|(_, version)| version).collect(),
        storage,
        strategy: None,
        proto: None,
        verbs: if terminating { TERMINATING_VERBS.to_vec() } else { VERBS.to_vec() },
        terminating,
        path_segment_names,
        convert: None,
        content_hash: hash,
    })
}

/// Kubernetes' order of versions, the preferred one first: GA, beta, alpha, each with the highest
/// number first, then other names by the alphabet (`apimachinery/pkg/version/helpers.go`).
pub fn by_priority(a: &str, b: &str) -> Ordering {
    match (kube_version(a), kube_version(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// `v1beta2` as (stability, major, minor).
fn kube_version(name: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| {
        let first = text.bytes().next()?;
        if first == b'0' || !text.bytes().all(|b| b.is_ascii_digit()) {
            None
        } else {
            text.parse().ok()
        }
    };
    let rest = name.strip_prefix('v')?;
    for (stability, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

/// Accepted names where there are some, else those asked for.
fn names<'a>(crd: &'a Object, spec: &'a Object) -> Option<&'a Object> {
    let accepted = crd.at(&["status", "acceptedNames"]).and_then(Value::as_object);
    let usable =
        accepted.filter(|names| names.get("plural").is_some_and(|p| p.as_str() != Some("")));
    usable.or_else(|| spec.get("names")?.as_object())
}

fn version_info(version: &Value, rules: Rules<'_>) -> Result<VersionInfo, Error> {
    let name = version["name"].as_str().unwrap_or("");
    let schema = version.get("schema").and_then(|s| s.get("openAPIV3Schema"));
    let (compiled, openapi) = match schema {
        None | Some(Value::Null) => (Arc::new(Structural::preserving()), Source::None),
        Some(schema) => {
            let compiled = shared(schema, rules)
                .map_err(|source| Error::Schema { version: name.to_owned(), source })?;
            (compiled, Source::Crd(Arc::new(schema.clone())))
        }
    };
    let sub = |name: &str| {
        version.get("subresources").and_then(|s| s.get(name)).filter(|s| s.is_object())
    };
    let scale = sub("scale").map(|scale| {
        let path = |key: &str| scale.get(key).and_then(Value::as_str).map(str::to_owned);
        Scale {
            spec_replicas: path("specReplicasPath").unwrap_or_default(),
            status_replicas: path("statusReplicasPath").unwrap_or_default(),
            label_selector: path("labelSelectorPath").filter(|p| !p.is_empty()),
        }
    });
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Ok(VersionInfo {
        name: name.into(),
        served: version["served"] == true,
        deprecated: (version["deprecated"] == true)
            .then(|| version["deprecationWarning"].as_str().unwrap_or("").to_owned()),
        schema: Some(compiled),
        status: sub("status").is_some(),
        scale,
        columns: columns(version),
        selectable: selectable.filter_map(|f| f["jsonPath"].as_str()).map(str::to_owned).collect(),
        openapi,
    })
}

/// The version's printer columns; a version without any gets `Age`.
fn columns(version: &Value) -> Vec<Column> {
    let list = version["additionalPrinterColumns"].as_array().filter(|l| !l.is_empty());
    let Some(list) = list else {
        return vec![Column {
            name: "Age".into(),
            kind: "date".into(),
            format: String::new(),
            description: crate::docs::metadata("creationTimestamp").into(),
            priority: 0,
            cell: Cell::JsonPath(".metadata.creationTimestamp".into()),
        }];
    };
    let column = |column: &Value| {
        let text = |key: &str| column[key].as_str().unwrap_or("").to_owned();
        let path = text("jsonPath");
        let mut description = text("description");
        if description.is_empty() {
            description = format!("Custom resource definition column (in JSONPath format): {path}");
        }
        Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description,
            priority: column["priority"].as_i64().and_then(|p| p.try_into().ok()).unwrap_or(0),
            cell: Cell::JsonPath(path),
        }
    };
    list.iter().map(column).collect()
}

/// Compiled schemas by the hash of their JSON, for as long as someone holds them.
static SHARED: LazyLock<Mutex<HashMap<[u8; 32], Weak<Structural>>>> = LazyLock::new(Mutex::default);

/// Equal schemas are compiled once. One with rules is not shared: whose functions it holds depends
/// on the caller.
fn shared(schema: &Value, rules: Rules<'_>) -> Result<Arc<Structural>, structural::Error> {
    let key: [u8; 32] = Sha256::digest(schema.to_string()).into();
    if let Some(found) = SHARED.lock().get(&key).and_then(Weak::upgrade) {
        return Ok(found);
    }
    let compiled = Arc::new(Structural::compile(schema, rules)?);
    if !compiled.has_rules() {
        let mut shared = SHARED.lock();
        // Another thread may have compiled it meanwhile; who came first is shared.
        if let Some(found) = shared.get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        if shared.len() >= SHARED_MAX {
            shared.retain(|_, weak| weak.strong_count() > 0);
        }
        if shared.len() < SHARED_MAX {
            shared.insert(key, Arc::downgrade(&compiled));
        }
    }
    Ok(compiled)
}

fn content_hash(
    spec: &Object,
    names: &Object,
    segment: &Segment,
    terminating: bool,
    path_names: bool,
) -> u64 {
    let mut hash = Sha256::new();
    for part in [spec, names] {
        hash.update(serde_json::to_vec(part).expect("JSON has no unprintable value"));
        hash.update([0]);
    }
    if let Segment::Identity(identity) = segment {
        hash.update(identity.as_str());
    }
    hash.update([
        0,
        u8::from(*segment == Segment::Builtin),
        u8::from(terminating),
        u8::from(path_names),
    ]);
    let digest: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes(digest[..8].try_into().expect("eight of thirty-two bytes"))
}

fn texts(names: &Object, key: &str) -> Vec<String> {
    let list = names.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lamps() -> Object {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"watts": {"type": "integer"}}}}});
        let version = |name: &str, storage: bool| {
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema.clone()},
                   "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}})
        };
        let crd = json!({
            "metadata": {"name": "lamps.home.example.dev"},
            "spec": {
                "group": "home.example.dev", "scope": "Namespaced",
                "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList", "shortNames": ["lp"]},
                "versions": [version("v1beta1", false), version("v1", true), version("foo", false), version("v2alpha1", false)],
            },
        });
        crd.as_object().expect("an object").clone()
    }

    fn info(crd: &Object) -> Result<ResourceInfo, Error> {
        from_crd(crd, Segment::CustomResources, Origin::System { name: "x".into() }, &|_| None)
    }

    #[test]
    fn makes_an_info() {
        let info = info(&lamps()).expect("a good CRD");
        let versions: Vec<&str> = info.versions.iter().map(|v| &*v.name).collect();
        assert_eq!(versions, ["v1", "v1beta1", "v2alpha1", "foo"]);
        assert_eq!(&*info.storage_version().name, "v1");
        assert!(info.namespaced());
        assert_eq!(info.short_names, ["lp"]);
        assert_eq!(info.versions[0].columns[0].name, "Age");
        assert!(info.versions[0].status);
        assert_eq!(info.versions[0].scale.as_ref().expect("scale").spec_replicas, ".spec.n");
        let [a, b] = [0, 1].map(|i| info.versions[i].schema.as_ref().expect("a schema"));
        assert!(Arc::ptr_eq(a, b), "equal schemas are one");
    }

    #[test]
    fn versions_by_priority() {
        let mut names = vec![
            "v1",
            "foo10",
            "v1alpha1",
            "v11alpha2",
            "v10",
            "v2",
            "foo1",
            "v3beta1",
            "v11beta2",
            "v12alpha1",
        ];
        names.sort_by(|a, b| by_priority(a, b));
        assert_eq!(
            names,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }

    #[test]
    fn deletion_takes_verbs_and_changes_the_hash() {
        let mut crd = lamps();
        let before = info(&crd).expect("a good CRD").content_hash;
        crd.set_meta("deletionTimestamp", "2024-01-01T00:00:00Z");
        let after = info(&crd).expect("a good CRD");
        assert!(after.terminating && !after.verbs.contains(&"create"));
        assert_ne!(before, after.content_hash);
    }
}
