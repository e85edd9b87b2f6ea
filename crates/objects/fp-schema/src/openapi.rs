//! OpenAPI v3: one document per group-version of a cluster, as kubectl reads it to validate, apply
//! and explain (`kube-openapi/pkg/builder3`, `apiextensions/pkg/controller/openapi/builder`).
//!
//! Descriptions of our own are left out; a CRD's are kept. Deliberately absent: OpenAPI v2.

mod listing;
mod paths;
mod schema;

use std::collections::BTreeSet;
use std::sync::Arc;

use fp_base::Gv;
use fp_object::{Object, Value};
use serde_json::json;
use sha2::{Digest, Sha512};

pub use listing::Listing;

use crate::ResourceInfo;

/// Where a kind's OpenAPI schema comes from.
#[derive(Clone)]
pub enum Source {
    /// A built-in: the schema's component name; the table is in fp-builtin.
    Builtin(&'static str),
    /// A CRD: its `openAPIV3Schema` as written.
    Crd(Arc<Value>),
    /// Nothing is published.
    None,
}

const META_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
/// How built-in components are named in references.
const PREFIX: &str = "#/components/schemas/";

/// The document of a group-version. `infos` are the cluster's resources; those that the
/// group-version does not serve are passed over. `component` gives the schema of a built-in
/// component by its name.
pub fn document(
    gv: &Gv,
    infos: &[&ResourceInfo],
    component: &dyn Fn(&str) -> Option<Value>,
) -> Value {
    let mut paths = Object::new();
    let mut schemas = Object::new();
    let mut builtin = false;
    for info in infos.iter().filter(|i| i.gr.group == gv.group) {
        let Some(version) = info.version(&gv.version).filter(|v| v.served) else { continue };
        match &version.openapi {
            Source::Builtin(_) => builtin = true,
            Source::Crd(schema) => schema::insert(info, version, Some(schema), &mut schemas),
            Source::None if info.is_builtin() => continue,
            Source::None => schema::insert(info, version, None, &mut schemas),
        }
        paths::insert(gv, info, version, &mut paths);
    }
    if builtin {
        paths::insert_root(gv, &mut paths);
    }
    add_components(&paths, &mut schemas, component);
    let info = if builtin {
        builtin_info()
    } else {
        trim_delete_options(&mut schemas);
        json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"})
    };
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})
}

/// The index at `/openapi/v3` of documents by their path (`api/v1`, `apis/apps/v1`) and hash.
pub fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let mut paths = Object::new();
    for (path, hash) in documents {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path.to_owned(), json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// A document's hash in the index, from its bytes: SHA-512 in capitals.
pub fn hash(document: &[u8]) -> String {
    Sha512::digest(document).iter().map(|b| format!("{b:02X}")).collect()
}

/// The path of a group-version below `/openapi/v3/`, and its URL below `/`.
pub fn path_of(gv: &Gv) -> String {
    if gv.group.is_empty() {
        format!("api/{}", gv.version)
    } else {
        format!("apis/{}/{}", gv.group, gv.version)
    }
}

/// The component of a CRD's kind: the group's domain reversed, `dev.example.home.v1.Lamp`.
pub fn component_name(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "io.k8s.api.core".to_owned(),
        group => group.split('.').rev().collect::<Vec<_>>().join("."),
    };
    format!("{package}.{version}.{kind}")
}

fn builtin_info() -> Value {
    json!({"title": "Kubernetes", "version": "1.36"})
}

/// Go builds the documents of definitions with a scheme that lacks three groups of the server's.
fn trim_delete_options(schemas: &mut Object) {
    let name = format!("{META_V1}.DeleteOptions");
    let kinds = schemas.get_mut(&name).and_then(|s| s.get_mut("x-kubernetes-group-version-kind"));
    if let Some(kinds) = kinds.and_then(Value::as_array_mut) {
        let lacks = ["admission.k8s.io", "apiextensions.k8s.io", "imagepolicy.k8s.io"];
        kinds.retain(|kind| kind["group"].as_str().is_none_or(|group| !lacks.contains(&group)));
    }
}

fn meta_v1(name: &str) -> Value {
    reference(&format!("{META_V1}.{name}"))
}

fn reference(component: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{component}")})
}

/// Adds the built-in components that paths and schemas refer to, and those that these refer to.
fn add_components(paths: &Object, schemas: &mut Object, component: &dyn Fn(&str) -> Option<Value>) {
    let mut wanted = BTreeSet::new();
    paths.values().chain(schemas.values()).for_each(|v| references(v, &mut wanted));
    let mut asked = BTreeSet::new();
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) || !asked.insert(name.clone()) {
            continue;
        }
        if let Some(schema) = component(&name) {
            references(&schema, &mut wanted);
            schemas.insert(name, schema);
        }
    }
}

fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                match item.as_str().and_then(|text| text.strip_prefix(PREFIX)) {
                    Some(name) if key == "$ref" => {
                        out.insert(name.to_owned());
                    }
                    _ => references(item, out),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
