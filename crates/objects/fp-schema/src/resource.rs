//! [`ResourceInfo`]: one resource as data.

use std::sync::Arc;

use fp_base::{Gr, Gv, Gvk, Identity};
use fp_object::field::FieldError;
use fp_object::{Object, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// The storage key's segment after the resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// None: built-in types.
    Builtin,
    /// `customresources`: system CRDs and a workspace's own CRDs.
    CustomResources,
    /// The export's identity: bound CRDs.
    Identity(Identity),
}

/// Where the resource comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Builtin,
    /// A CRD of the cluster, by name and uid.
    Crd {
        name: Arc<str>,
        uid: Arc<str>,
    },
    /// A CRD of `system:system-crds`: present in every cluster.
    System {
        name: Arc<str>,
    },
    /// A CRD of `system:bound-crds`, served through an APIBinding.
    Bound {
        name: Arc<str>,
        schema_name: Arc<str>,
    },
}

/// Which part of an object a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    Main,
    Status,
    /// The main part and the status of a custom resource at once. No URL means it: it is for
    /// callers in the process, who may write both.
    Whole,
    Scale,
    /// `finalize` of a namespace, `approval` of a certificate request, ...
    Other(&'static str),
}

/// A printer column (`metav1.TableColumnDefinition`) and where its cell comes from.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i32,
    pub cell: Cell,
}

#[derive(Clone, Debug)]
pub enum Cell {
    /// A CRD's JSONPath, `.spec.x`.
    JsonPath(String),
    /// A built-in's own function: the object to a cell.
    Fn(fn(&Object) -> Value),
}

/// The scale subresource's paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// What a built-in resource does beyond what its descriptor says; `None` in a [`ResourceInfo`] is
/// a custom resource, which its schema rules.
pub struct Strategy {
    /// Fills in Kubernetes' defaults, on every decode.
    pub default: fn(&mut Object),
    /// Before validation of a create: drops status, sets generation, hashes, finalizers.
    pub prepare_create: fn(&mut Object),
    /// Before validation of an update: keeps what this part may not change, bumps generation.
    pub prepare_update: fn(&mut Object, &Object, Sub),
    pub validate: fn(&Object) -> Vec<FieldError>,
    pub validate_update: fn(&Object, &Object, Sub) -> Vec<FieldError>,
    /// Field labels that a selector may name beyond `metadata.name` and `metadata.namespace`.
    pub field_labels: &'static [&'static str],
    /// The value of such a field label.
    pub field_value: fn(&Object, &str) -> String,
    pub allow_create_on_update: bool,
    /// An update without resourceVersion is allowed.
    pub allow_unconditional_update: bool,
    /// Subresources beside `status` and `scale`: `finalize`, `token`, `approval`.
    pub subresources: &'static [&'static str],
    /// How long a deleted object lives by default, seconds; `None`: deletion is never graceful.
    pub grace_secs: Option<i64>,
    /// Names the part that is missing when a create answers 501.
    pub create_not_built: Option<&'static str>,
    /// Not stored: its create is answered by the server (reviews).
    pub virtual_only: bool,
}

/// One version of a resource.
pub struct VersionInfo {
    pub name: Arc<str>,
    pub served: bool,
    /// The warning that a deprecated version's requests carry.
    pub deprecated: Option<String>,
    /// Custom resources: prune, default and validate by it. Built-ins: `None`.
    pub schema: Option<Arc<crate::structural::Structural>>,
    /// Has a status subresource.
    pub status: bool,
    pub scale: Option<Scale>,
    pub columns: Vec<Column>,
    /// Paths of a CRD's `selectableFields`, `.spec.x`.
    pub selectable: Vec<String>,
    /// The OpenAPI v3 schema of the kind, as JSON, and the schemas it refers to by
    /// `#/components/schemas/<name>`; built when asked.
    pub openapi: crate::openapi::Source,
}

/// A resource. Shared by content: every workspace that binds an API holds the same one.
pub struct ResourceInfo {
    pub gr: Gr,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub singular: Arc<str>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub scope: Scope,
    pub segment: Segment,
    pub origin: Origin,
    /// In discovery order: the preferred one first.
    pub versions: Vec<VersionInfo>,
    /// Index of the version that is stored.
    pub storage: usize,
    pub strategy: Option<&'static Strategy>,
    /// Built-ins: how the value is written, on the wire and in the store.
    pub proto: Option<&'static fp_object::proto::Message>,
    /// Verbs in discovery, sorted.
    pub verbs: Vec<&'static str>,
    /// The CRD is being deleted: creates are refused.
    pub terminating: bool,
    /// kcp's `PathSegmentName`: names need only be a valid path segment.
    pub path_segment_names: bool,
    /// How an object of one version becomes another. `None` changes only `apiVersion`.
    pub convert: Option<Convert>,
    /// Distinguishes two infos with other content; equal for equal content.
    pub content_hash: u64,
}

/// Turns an object of version `from` into version `to` (indexes), in place.
pub type Convert = fn(&mut Object, from: &str, to: &str) -> Result<(), String>;

impl ResourceInfo {
    pub fn version(&self, name: &str) -> Option<&VersionInfo> {
        self.versions.iter().find(|v| &*v.name == name)
    }

    pub fn storage_version(&self) -> &VersionInfo {
        &self.versions[self.storage]
    }

    pub fn gvk(&self, version: &str) -> Gvk {
        Gvk::new(&self.gr.group, version, &self.kind)
    }

    pub fn api_version(&self, version: &str) -> String {
        Gv::new(&self.gr.group, version).to_string()
    }

    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin
    }
}
