//! Discovery: which groups, versions and resources a cluster serves, plain and aggregated.
//!
//! Documents are kept per cluster view and fingerprint. Sources: apiserver's
//! `endpoints/discovery`, apiextensions' `customresource_discovery.go`.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use fp_base::url::Discovery;
use fp_base::{ClusterScope, Gv};
use fp_object::json;
use fp_object::status::Status;
use fp_schema::crd::info::by_priority;
use fp_schema::{Origin, ResourceInfo, VersionInfo};
use http::header::{ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderValue, Response, StatusCode};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answer;
use crate::body::Body;
use crate::negotiate::{self, JSON};
use crate::paths::PathRequest;

/// Documents kept at once, over all clusters. One is some tens of kilobytes.
const KEPT_MAX: usize = 256;
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A document and its entity tag.
#[derive(Clone)]
struct Document {
    body: Bytes,
    etag: HeaderValue,
}

/// Which document.
#[derive(Clone, PartialEq, Eq, Hash)]
enum What {
    /// `/apis`, or `/api` when `core`.
    Groups {
        core: bool,
        aggregated: bool,
    },
    Group(String),
    Resources(String, String),
}

/// Documents by content: clusters with one fingerprint that differ in nothing else share them.
#[derive(Default)]
pub struct Cache {
    kept: Mutex<HashMap<(ClusterScope, What), (u64, Document)>>,
}

/// Answers a discovery path.
pub fn answer(request: &PathRequest<'_>, found: Discovery) -> Result<Response<Body>, Status> {
    let aggregated = negotiate::wants_aggregated(request.headers);
    let what = match found {
        Discovery::CoreVersions => What::Groups { core: true, aggregated },
        Discovery::Groups => What::Groups { core: false, aggregated },
        Discovery::Group(group) => What::Group(group),
        Discovery::Resources { group, version } => What::Resources(group, version),
    };
    let both = matches!(what, What::Groups { .. });
    let document = document(request, what)?;
    let unchanged =
        request.headers.get_all(IF_NONE_MATCH).iter().any(|tags| {
            tags.to_str().is_ok_and(|t| t.split(',').any(|t| t.trim() == document.etag))
        });
    let content_type = if both && aggregated { AGGREGATED } else { JSON };
    let mut response = answer::whole(200, content_type, document.body);
    if unchanged {
        *response.body_mut() = Body::empty();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if both {
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    }
    response.headers_mut().insert(ETAG, document.etag);
    Ok(response)
}

fn document(request: &PathRequest<'_>, what: What) -> Result<Document, Status> {
    let server = request.server;
    let scope = scope(request)?;
    let fingerprint = server.surface.resolver.fingerprint(scope);
    let key = (scope.clone(), what);
    if let Some((at, document)) = server.discovery.kept.lock().get(&key)
        && *at == fingerprint
    {
        return Ok(document.clone());
    }
    let view = View { infos: server.surface.resolver.list(scope), scope };
    let body = view.render(&key.1, &server.external_address)?;
    let etag: String = Sha256::digest(&body).iter().map(|b| format!("{b:02X}")).collect();
    let etag = HeaderValue::try_from(format!("\"{etag}\"")).expect("hex digits in quotes");
    let document = Document { body: body.into(), etag };
    let mut kept = server.discovery.kept.lock();
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(key, (fingerprint, document.clone()));
    Ok(document)
}

/// Discovery of no cluster: there is none (only masters come here).
fn scope<'a>(request: &PathRequest<'a>) -> Result<&'a ClusterScope, Status> {
    request.place.scope.as_ref().ok_or_else(Status::no_such_resource)
}

/// The discovery paths of a cluster, for the index at `/`: as in Go those of compiled-in groups.
pub fn paths(request: &PathRequest<'_>) -> Result<Vec<String>, Status> {
    let Some(scope) = request.place.scope.as_ref() else { return Ok(Vec::new()) };
    let view = View { infos: request.server.surface.resolver.list(scope), scope };
    let mut out: Vec<String> = ["/api", "/apis", "/apis/"].map(str::to_owned).into();
    for group in view.groups().iter().filter(|g| g.builtin) {
        let root =
            if group.name.is_empty() { "/api".into() } else { format!("/apis/{}", group.name) };
        out.extend(group.versions.iter().map(|v| format!("{root}/{v}")));
        if !group.name.is_empty() {
            out.push(root);
        }
    }
    Ok(out)
}

/// What one cluster serves.
struct View<'a> {
    infos: Vec<Arc<ResourceInfo>>,
    scope: &'a ClusterScope,
}

/// One API group; `versions` with the preferred one first.
struct Group<'a> {
    name: &'a str,
    versions: Vec<&'a str>,
    /// Go's server tells the address only for groups that it compiled in.
    builtin: bool,
}

impl View<'_> {
    fn render(&self, what: &What, address: &str) -> Result<Vec<u8>, Status> {
        let address = [ServerAddress { client_cidr: "0.0.0.0/0", server_address: address }];
        match what {
            What::Groups { core, aggregated: true } => Ok(self.aggregated(*core)),
            What::Groups { core: true, .. } => {
                let core = self.groups().into_iter().find(|g| g.name.is_empty());
                let versions = core.map_or_else(Vec::new, |g| g.versions);
                Ok(json::to_vec(&ApiVersions {
                    kind: "APIVersions",
                    versions,
                    addresses: &address,
                }))
            }
            What::Groups { .. } => {
                let groups = self.groups();
                let groups = groups.iter().filter(|g| !g.name.is_empty());
                let groups: Vec<_> = groups.map(|g| ApiGroup::new(g, &address)).collect();
                let list = ApiGroupList { kind: "APIGroupList", api_version: "v1", groups };
                Ok(json::to_vec(&list))
            }
            What::Group(name) => {
                let groups = self.groups();
                let group =
                    groups.iter().find(|g| g.name == name).ok_or_else(Status::no_such_resource)?;
                let mut group = ApiGroup::new(group, &address);
                (group.kind, group.api_version) = (Some("APIGroup"), Some("v1"));
                Ok(json::to_vec(&group))
            }
            What::Resources(group, version) => self.resources(group, version),
        }
    }

    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for info in &self.infos {
            let name = &*info.gr.group;
            let served = info.versions.iter().filter(|v| v.served).map(|v| &*v.name);
            let at = match groups.iter().position(|g| g.name == name) {
                Some(at) => at,
                None => {
                    groups.push(Group { name, versions: Vec::new(), builtin: false });
                    groups.len() - 1
                }
            };
            let group = &mut groups[at];
            group.builtin |= info.is_builtin();
            for version in served {
                if !group.versions.contains(&version) {
                    group.versions.push(version);
                }
            }
        }
        groups.retain(|g| !g.versions.is_empty());
        for group in &mut groups {
            group.versions.sort_by(|a, b| by_priority(a, b));
        }
        groups
    }

    fn resources(&self, group: &str, version: &str) -> Result<Vec<u8>, Status> {
        let mut resources = Vec::new();
        let mut known = false;
        for info in self.infos.iter().filter(|i| &*i.gr.group == group) {
            let Some(found) = info.version(version).filter(|v| v.served) else { continue };
            known = true;
            resources.push(ApiResource {
                name: info.gr.resource.to_string(),
                singular_name: &info.singular,
                namespaced: info.namespaced(),
                group: None,
                version: None,
                kind: &info.kind,
                verbs: info.verbs.clone(),
                short_names: &info.short_names,
                categories: &info.categories,
                storage_version_hash: storage_version_hash(info, self.scope),
            });
            for sub in subresources(info, found) {
                resources.push(ApiResource {
                    name: format!("{}/{}", info.gr.resource, sub.name),
                    singular_name: "",
                    namespaced: info.namespaced(),
                    group: sub.gv.map(|(group, _)| group),
                    version: sub.gv.map(|(_, version)| version),
                    kind: sub.kind,
                    verbs: sub.verbs,
                    short_names: &[],
                    categories: &[],
                    storage_version_hash: None,
                });
            }
        }
        if !known {
            return Err(Status::no_such_resource());
        }
        let gv = Gv::new(group, version).to_string();
        let list = ApiResourceList {
            kind: "APIResourceList",
            // As Go prints it: the core list has none.
            api_version: (!group.is_empty()).then_some("v1"),
            group_version: &gv,
            resources,
        };
        Ok(json::to_vec(&list))
    }

    /// `apidiscovery.k8s.io/v2`.
    fn aggregated(&self, core: bool) -> Vec<u8> {
        let mut items = Vec::new();
        for group in self.groups().iter().filter(|g| g.name.is_empty() == core) {
            let versions = group.versions.iter().map(|version| {
                let infos = self.infos.iter().filter(|i| &*i.gr.group == group.name);
                let resources: Vec<_> = infos
                    .filter_map(|info| Some((info, info.version(version).filter(|v| v.served)?)))
                    .map(|(info, found)| aggregated_resource(info, found))
                    .collect();
                serde_json::json!({"version": version, "resources": resources, "freshness": "Current"})
            });
            let versions: Vec<_> = versions.collect();
            // The core group has the empty name, which Go leaves out.
            let metadata = match group.name {
                "" => serde_json::json!({}),
                name => serde_json::json!({ "name": name }),
            };
            items.push(serde_json::json!({"metadata": metadata, "versions": versions}));
        }
        json::to_vec(&serde_json::json!({"kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}))
    }
}

fn aggregated_resource(info: &ResourceInfo, version: &VersionInfo) -> fp_object::Value {
    let kind = |group: &str, version: &str, kind: &str| serde_json::json!({"group": group, "version": version, "kind": kind});
    let mut out = serde_json::json!({
        "resource": &*info.gr.resource,
        "responseKind": kind(&info.gr.group, &version.name, &info.kind),
        "scope": if info.namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": &*info.singular,
        "verbs": info.verbs,
    });
    if !info.short_names.is_empty() {
        out["shortNames"] = info.short_names.clone().into();
    }
    if !info.categories.is_empty() {
        out["categories"] = info.categories.clone().into();
    }
    let subs: Vec<_> = subresources(info, version)
        .into_iter()
        .map(|sub| {
            let (group, version) = sub.gv.unwrap_or((&info.gr.group, &version.name));
            serde_json::json!({"subresource": sub.name,
                "responseKind": kind(group, version, sub.kind), "verbs": sub.verbs})
        })
        .collect();
    if !subs.is_empty() {
        out["subresources"] = subs.into();
    }
    out
}

/// A subresource as discovery shows it. `gv` is set when its kind is of another group.
struct SubResource<'a> {
    name: &'a str,
    kind: &'a str,
    gv: Option<(&'static str, &'static str)>,
    verbs: Vec<&'static str>,
}

fn subresources<'a>(info: &'a ResourceInfo, version: &'a VersionInfo) -> Vec<SubResource<'a>> {
    let own = |name: &'a str, verbs: &[&'static str]| SubResource {
        name,
        kind: &info.kind,
        gv: None,
        verbs: verbs.to_vec(),
    };
    let all = ["get", "patch", "update"];
    let mut out: Vec<SubResource<'a>> = Vec::new();
    if version.status {
        out.push(own("status", &all));
    }
    if version.scale.is_some() {
        let gv = Some(("autoscaling", "v1"));
        out.push(SubResource { name: "scale", kind: "Scale", gv, verbs: all.to_vec() });
    }
    for name in info.strategy.map_or(&[][..], |s| s.subresources) {
        out.push(match *name {
            "token" => SubResource {
                name,
                kind: "TokenRequest",
                gv: Some(("authentication.k8s.io", "v1")),
                verbs: vec!["create"],
            },
            "finalize" => own(name, &["update"]),
            name => own(name, &all),
        });
    }
    if info.is_builtin() {
        // Compiled-in resources are installed in order of their paths; a CRD's are not sorted.
        out.sort_by_key(|s| s.name);
    }
    out
}

/// The hash by which clients tell that a resource is stored in another version. kcp's fork puts
/// the CRD's cluster first and writes a CRD's version twice.
fn storage_version_hash(info: &ResourceInfo, scope: &ClusterScope) -> Option<String> {
    let (group, kind) = (&info.gr.group, &info.kind);
    let version = &info.storage_version().name;
    let cluster = match (&info.origin, scope) {
        (Origin::Builtin, _) => return fp_builtin::storage_version_hash(info),
        (Origin::System { .. }, _) => "system:system-crds",
        (Origin::Bound { .. }, _) => "system:bound-crds",
        (Origin::Crd { .. }, ClusterScope::One(name)) => name.as_str(),
        (Origin::Crd { .. }, ClusterScope::All) => "",
    };
    let gv = Gv::new(group, version);
    Some(hash(&format!("{cluster}/{gv}/{version}/{kind}")))
}

fn hash(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(text.as_bytes())[..8])
}

#[derive(Serialize)]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'a str,
    #[serde(rename = "serverAddress")]
    server_address: &'a str,
}

#[derive(Serialize)]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: Vec<&'a str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: &'a [ServerAddress<'a>],
}

#[derive(Serialize)]
struct ApiGroupList<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(rename = "apiVersion", skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    #[serde(rename = "preferredVersion")]
    preferred: GroupVersion<'a>,
    #[serde(rename = "serverAddressByClientCIDRs", skip_serializing_if = "Option::is_none")]
    addresses: Option<&'a [ServerAddress<'a>]>,
}

#[derive(Clone, Serialize)]
struct GroupVersion<'a> {
    #[serde(rename = "groupVersion")]
    group_version: String,
    version: &'a str,
}

impl<'a> ApiGroup<'a> {
    fn new(group: &Group<'a>, addresses: &'a [ServerAddress<'a>]) -> Self {
        let name = group.name;
        let versions: Vec<GroupVersion<'a>> = group
            .versions
            .iter()
            .map(|v| GroupVersion { group_version: Gv::new(name, v).to_string(), version: v })
            .collect();
        Self {
            kind: None,
            api_version: None,
            name,
            preferred: versions[0].clone(),
            versions,
            addresses: group.builtin.then_some(addresses),
        }
    }
}

#[derive(Serialize)]
struct ApiResourceList<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion", skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    #[serde(rename = "groupVersion")]
    group_version: &'a str,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use fp_base::ClusterName;
    use fp_object::Value;

    use super::*;

    /// What Go kcp lists, one resource a line.
    #[test]
    fn builtins_are_listed_as_kcp_does() {
        let scope = ClusterScope::One(ClusterName::root());
        let view = View { infos: fp_builtin::resources().to_vec(), scope: &scope };
        let mut out = String::new();
        for group in view.groups() {
            assert!(group.builtin);
            let body = view.resources(group.name, group.versions[0]).unwrap();
            let list: Value = serde_json::from_slice(&body).unwrap();
            let text = |v: &Value| match v.as_str() {
                None | Some("") => "-".to_owned(),
                Some(text) => text.to_owned(),
            };
            let words = |v: &Value| {
                let list: Vec<_> = v.as_array().into_iter().flatten().map(&text).collect();
                if list.is_empty() { "-".to_owned() } else { list.join(" ") }
            };
            let (gv, api_version) = (text(&list["groupVersion"]), text(&list["apiVersion"]));
            writeln!(out, "{gv} apiVersion={api_version}").unwrap();
            for r in list["resources"].as_array().unwrap() {
                let scope = if r["namespaced"] == true { "namespaced" } else { "cluster" };
                let other = match r["group"].as_str() {
                    Some(group) => format!(" {group}/{}", text(&r["version"])),
                    None => String::new(),
                };
                let (short, categories) = (words(&r["shortNames"]), words(&r["categories"]));
                writeln!(
                    out,
                    "  {} {} {scope}{other} {} [{}] short={short} categories={categories} hash={}",
                    text(&r["name"]),
                    text(&r["kind"]),
                    text(&r["singularName"]),
                    words(&r["verbs"]),
                    text(&r["storageVersionHash"]),
                )
                .unwrap();
            }
        }
        expect_test::expect_file!["discovery_builtins.txt"].assert_eq(&out);
    }

    #[test]
    fn a_system_crd_hash_is_kcps() {
        // The hash that Go kcp gives apis.kcp.io/v1alpha2 APIExport.
        let got = hash("system:system-crds/apis.kcp.io/v1alpha2/v1alpha2/APIExport");
        assert_eq!(got, "NKCfL4yZ0MU=");
    }
}
