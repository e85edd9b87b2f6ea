//! Resources for tests: names and scope only.

use std::sync::Arc;

use fp_base::{Gr, Identity};
use fp_schema::{Origin, ResourceInfo, Scope, Segment, VersionInfo, openapi};

use crate::CUSTOM_RESOURCES;

/// A built-in resource without a descriptor.
pub fn builtin(group: &str, resource: &str, namespaced: bool) -> ResourceInfo {
    info(group, resource, namespaced, Segment::Builtin, Origin::Builtin)
}

/// A custom resource under `segment`.
pub fn custom(group: &str, resource: &str, namespaced: bool, segment: &str) -> ResourceInfo {
    let segment = match segment {
        CUSTOM_RESOURCES => Segment::CustomResources,
        identity => Segment::Identity(Identity::parse(identity).expect("an identity")),
    };
    let origin = Origin::System { name: format!("{resource}.{group}").into() };
    info(group, resource, namespaced, segment, origin)
}

fn info(
    group: &str,
    resource: &str,
    namespaced: bool,
    segment: Segment,
    origin: Origin,
) -> ResourceInfo {
    let version = VersionInfo {
        name: "v1".into(),
        served: true,
        deprecated: None,
        schema: None,
        status: false,
        scale: None,
        columns: Vec::new(),
        selectable: Vec::new(),
        openapi: openapi::Source::None,
    };
    let kind: Arc<str> = resource.trim_end_matches('s').into();
    ResourceInfo {
        gr: Gr::new(group, resource),
        list_kind: format!("{kind}List").into(),
        singular: kind.clone(),
        kind,
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
        segment,
        origin,
        versions: vec![version],
        storage: 0,
        strategy: None,
        proto: None,
        verbs: Vec::new(),
        terminating: false,
        path_segment_names: false,
        convert: None,
        content_hash: 0,
    }
}
