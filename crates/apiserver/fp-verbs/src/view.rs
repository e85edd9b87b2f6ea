//! From a stored object to what a request sees: the requested version, pruned and defaulted.
//!
//! A custom resource's stored body may predate its schema; it is pruned and defaulted on reading
//! by the schema of the version it is stored in (apiextensions' `crdConversionRESTOptionsGetter`).
//! An entry that needs neither says so from then on, and is served by its bytes.

use std::sync::Arc;

use fp_builtin::core_v1::event;
use fp_informer::Entry;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};
use fp_schema::{ResourceInfo, VersionInfo};

use crate::request::{Content, View};

/// The entry in `version`, by its bytes where they are right.
pub fn of_entry(
    info: &Arc<ResourceInfo>,
    version: &VersionInfo,
    entry: Arc<Entry>,
) -> Result<View, Status> {
    let stored = info.storage_version();
    let view = |content| View { info: info.clone(), version: version.name.clone(), content };
    if version.name != stored.name || is_alias(info) {
        let object = in_version(info, version, &entry)?;
        return Ok(view(Content::Object(Arc::new(object))));
    }
    let Some(schema) = &stored.schema else { return Ok(view(Content::Entry(entry))) };
    if entry.is_clean(info.content_hash) {
        return Ok(view(Content::Entry(entry)));
    }
    let before = entry.object();
    let mut object = before.clone();
    // Invalid metadata of an old body is dropped, so there is no error.
    let _ = schema.decode(&mut object, false, true);
    schema.default(&mut object);
    if object == before {
        entry.mark_clean(info.content_hash);
        return Ok(view(Content::Entry(entry)));
    }
    Ok(view(Content::Object(Arc::new(object))))
}

/// The entry as an object of `version`, for a write to work on.
pub fn in_version(
    info: &ResourceInfo,
    version: &VersionInfo,
    entry: &Entry,
) -> Result<Object, Status> {
    let mut object = entry.object();
    let stored = info.storage_version();
    if let Some(schema) = &stored.schema
        && !entry.is_clean(info.content_hash)
    {
        let _ = schema.decode(&mut object, false, true);
        schema.default(&mut object);
    }
    if is_alias(info) {
        event::from_core(&mut object);
    }
    convert(info, &mut object, stored, version)?;
    Ok(object)
}

/// An object of `version` in the form in which the resource is stored.
pub fn to_storage(
    info: &ResourceInfo,
    version: &VersionInfo,
    mut object: Object,
) -> Result<Object, Status> {
    convert(info, &mut object, version, info.storage_version())?;
    if is_alias(info) {
        event::to_core(&mut object);
    }
    Ok(object)
}

/// Events of `events.k8s.io` are stored, and kept in memory, as core events.
pub fn is_alias(info: &ResourceInfo) -> bool {
    fp_builtin::stored_as(info).is_some()
}

/// An object made for this answer, which is in `version` already.
pub fn of_object(info: &Arc<ResourceInfo>, version: &VersionInfo, object: Object) -> View {
    View {
        info: info.clone(),
        version: version.name.clone(),
        content: Content::Object(Arc::new(object)),
    }
}

/// Turns an object of version `from` into version `to`, and prunes by `to`'s schema.
pub fn convert(
    info: &ResourceInfo,
    object: &mut Object,
    from: &VersionInfo,
    to: &VersionInfo,
) -> Result<(), Status> {
    if from.name == to.name {
        return Ok(());
    }
    if let Some(convert) = info.convert {
        convert(object, &from.name, &to.name).map_err(|e| {
            Status::internal(format_args!("conversion of {} to {}: {e}", info.gr, to.name))
        })?;
    }
    object.insert("apiVersion".into(), Value::from(info.api_version(&to.name)));
    if let Some(schema) = &to.schema {
        let _ = schema.decode(object, false, true);
    }
    Ok(())
}

/// Writes the revision of a change into an object.
pub fn with_revision(mut object: Object, revision: fp_base::Revision) -> Object {
    object.set_meta("resourceVersion", revision.to_string());
    object
}
