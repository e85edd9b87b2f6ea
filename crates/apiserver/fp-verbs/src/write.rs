//! What create, update and patch share: the write in progress and its steps.
//!
//! Sources: apiserver's `registry/rest/{create,update,meta}.go`,
//! `registry/generic/registry/store.go`, apiextensions' `registry/customresource/strategy.go`.

use std::sync::Arc;

use fp_admission::{Attributes, Operation};
use fp_informer::{Entry, ObjectKey};
use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::status::{About, Status};
use fp_object::{Object, Value, names, object_meta};
use fp_registry::Guard;
use fp_schema::{Sub, VersionInfo};

use crate::crd;
use crate::request::View;
use crate::target::Target;
use crate::{status, view};

/// kcp's annotation that names an object's cluster. It is made from the key and never believed.
pub const CLUSTER: &str = "kcp.io/cluster";

const METADATA: Path<'_> = Path::Child(&Path::Root, "metadata");

/// What a write leaves behind.
pub enum Stored {
    Entry(Arc<Entry>),
    /// Not stored (dry run, or nothing changed): the object in the version of the request.
    Object(Object),
}

/// One write.
pub struct Write<'a> {
    pub target: Target<'a>,
    pub dry_run: bool,
    pub guards: &'a [Guard],
    /// Those of the whole request.
    pub warnings: &'a mut Vec<String>,
}

impl<'a> Write<'a> {
    pub fn new(target: Target<'a>, dry_run: bool, warnings: &'a mut Vec<String>) -> Self {
        Self { target, dry_run, guards: &[], warnings }
    }

    pub fn about<'b>(&self, name: &'b str) -> About<'b>
    where
        'a: 'b,
    {
        status::about(self.target.info, name)
    }

    pub fn key(&self, name: &str) -> ObjectKey {
        fp_registry::key(self.target.cluster(), self.target.namespace, name)
    }

    pub fn attributes<'b>(
        &'b self,
        operation: Operation,
        name: &'b str,
        old: Option<&'b Object>,
    ) -> Attributes<'b> {
        let target = &self.target;
        Attributes {
            user: target.user,
            cluster: target.cluster(),
            info: target.info,
            version: &target.version.name,
            sub: target.sub,
            operation,
            namespace: target.namespace,
            name,
            dry_run: self.dry_run,
            old,
        }
    }

    /// 422 when there are errors. A custom resource is called what it calls itself.
    pub fn check(&self, object: &Object, name: &str, errors: &[FieldError]) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        let info = self.target.info;
        let kind = if info.strategy.is_some() { &*info.kind } else { object.kind() };
        Err(Status::invalid(&info.gr.group, kind, name, errors))
    }

    /// Makes sure that the body is meant for the request's namespace, and says which it is.
    pub fn settle_namespace(&self, object: &mut Object) -> Result<(), Status> {
        let (asked, given) = (self.target.namespace, object.namespace());
        if asked.is_empty() {
            object.remove_at(&["metadata", "namespace"]);
        } else if given.is_empty() {
            object.set_meta("namespace", asked);
        } else if given != asked {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// The object in the form in which it is stored.
    pub fn to_storage(&self, object: Object) -> Result<Object, Status> {
        view::to_storage(self.target.info, self.target.version, object)
    }

    /// Whether what this request has written is what its schema makes of it on reading: not when it
    /// went through a conversion, nor when a create took away a `status` that has a default.
    fn wrote_clean(&self) -> bool {
        let (info, version) = (self.target.info, self.target.version);
        let no_status = !version.status
            || version.schema.as_ref().is_none_or(|schema| !schema.defaults_member("status"));
        version.name == info.storage_version().name && no_status
    }

    pub fn view(&self, stored: Stored) -> Result<View, Status> {
        match stored {
            Stored::Entry(entry) => {
                if self.wrote_clean() {
                    entry.mark_clean(self.target.info.content_hash);
                }
                self.target.view(entry)
            }
            Stored::Object(mut object) => {
                // What is not stored is shown as if it had been, and read again.
                if let Some(schema) = &self.target.version.schema {
                    schema.default(&mut object);
                }
                Ok(view::of_object(self.target.info, self.target.version, object))
            }
        }
    }
}

/// Removes what only the server may say (`WipeObjectMetaSystemFields`), managed fields, which are
/// not kept by this version, and the cluster's annotation.
pub fn wipe_server_fields(object: &mut Object) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    for field in [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
        "uid",
    ] {
        metadata.remove(field);
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(CLUSTER);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Drops owner references that are there twice, with Kubernetes' warning.
pub fn dedup_owners(object: &mut Object, warnings: &mut Vec<String>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") else { return };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            twice.push(owner.get("uid").and_then(Value::as_str).unwrap_or("").to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !twice.is_empty() {
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

/// What differs between a built-in, ruled by its strategy, and a custom resource, ruled by its
/// schema: before and at validation.
impl Write<'_> {
    pub fn prepare_create(&self, object: &mut Object) {
        let target = &self.target;
        if let Some(strategy) = target.info.strategy {
            (strategy.prepare_create)(object);
            return;
        }
        if target.version.status && target.sub != Sub::Whole {
            object.remove("status");
        }
        object.set_meta("generation", 1);
    }

    pub fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        let target = self.target;
        if let Some(strategy) = target.info.strategy {
            let mut errors = (strategy.validate)(object);
            if errors.is_empty() {
                errors = object_meta::validate(
                    object,
                    target.info.namespaced(),
                    names::name_is_path_segment,
                    METADATA,
                );
            }
            return errors;
        }
        let errors = self.type_errors(object);
        if !errors.is_empty() {
            return errors;
        }
        let name_fn = if target.info.path_segment_names {
            names::name_is_path_segment
        } else {
            names::name_is_dns_subdomain
        };
        let mut errors = object_meta::validate(object, target.info.namespaced(), name_fn, METADATA);
        if let Some(schema) = &target.version.schema {
            errors.extend(schema.validate(object, None));
        }
        errors.extend(crate::scale::validate(target.version, object, true));
        errors
    }

    pub fn prepare_update(&self, object: &mut Object, old: &Object) {
        let target = &self.target;
        if let Some(strategy) = target.info.strategy {
            (strategy.prepare_update)(object, old, target.sub);
            return;
        }
        if target.sub == Sub::Status {
            let status = object.remove("status");
            let revision = object.resource_version().to_owned();
            *object = old.clone();
            if !revision.is_empty() {
                object.set_meta("resourceVersion", revision);
            }
            set_or_remove(object, "status", status);
            return;
        }
        if target.version.status && target.sub != Sub::Whole {
            set_or_remove(object, "status", old.get("status").cloned());
        }
        let counts = |key: &str| key != "metadata" && !(target.version.status && key == "status");
        let same = |a: &Object, b: &Object| {
            a.iter().all(|(key, value)| !counts(key) || b.get(key) == Some(value))
        };
        if !same(object, old) || !same(old, object) {
            object.set_meta("generation", old.generation() + 1);
        }
    }

    pub fn validate_update(&self, object: &Object, old: &Object) -> Vec<FieldError> {
        let target = self.target;
        let namespaced = target.info.namespaced();
        let mut errors =
            object_meta::validate(object, namespaced, names::name_is_path_segment, METADATA);
        errors.extend(object_meta::validate_update(object, old, METADATA));
        if let Some(strategy) = target.info.strategy {
            errors.extend((strategy.validate_update)(object, old, target.sub));
            return errors;
        }
        let types = self.type_errors(object);
        if !types.is_empty() {
            return types;
        }
        let status_only = target.sub == Sub::Status;
        if let Some(schema) = &target.version.schema {
            errors.extend(if status_only {
                schema.validate_status(object, Some(old))
            } else {
                schema.validate(object, Some(old))
            });
        }
        errors.extend(crate::scale::validate(target.version, object, !status_only));
        errors
    }

    fn type_errors(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (kind, api_version) =
            (&*self.target.info.kind, self.target.info.api_version(&self.target.version.name));
        if object.kind() != kind {
            errors.push(FieldError::invalid("kind", object.kind(), format!("must be {kind}")));
        }
        if object.api_version() != api_version {
            errors.push(FieldError::invalid(
                "apiVersion",
                object.api_version(),
                format!("must be {api_version}"),
            ));
        }
        errors
    }

    /// Says what is odd about an object that is valid: one that is refused is not warned of
    /// (`rest.BeforeCreate`, `rest.BeforeUpdate`).
    pub fn warn(&mut self, object: &Object, old: Option<&Object>) {
        let info = self.target.info;
        if crd::is_crd(info) {
            for warning in fp_schema::crd::warnings(object, old) {
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        if info.strategy.is_none() && self.target.sub != Sub::Status {
            self.warn_of_finalizers(object, old);
        }
    }

    fn warn_of_finalizers(&mut self, object: &Object, old: Option<&Object>) {
        const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
        let before = old.map(Meta::finalizers).unwrap_or_default();
        for finalizer in object.finalizers() {
            if before.contains(&finalizer)
                || finalizer.contains('/')
                || STANDARD.contains(&finalizer)
            {
                continue;
            }
            let including = if finalizer.contains('.') { " including a path (/)" } else { "" };
            self.warnings.push(format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{including} to avoid \
                 accidental conflicts with other finalizer writers"
            ));
        }
    }

    pub fn allows_unconditional_update(&self) -> bool {
        self.target.info.strategy.is_some_and(|s| s.allow_unconditional_update)
    }

    pub fn allows_create_on_update(&self) -> bool {
        self.target.sub == Sub::Main
            && self.target.info.strategy.is_some_and(|s| s.allow_create_on_update)
    }

    pub fn version(&self) -> &VersionInfo {
        self.target.version
    }
}

fn set_or_remove(object: &mut Object, key: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(object.insert(key.into(), value)),
        None => drop(object.remove(key)),
    }
}
