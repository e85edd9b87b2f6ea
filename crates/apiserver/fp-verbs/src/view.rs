//! From a stored object to what a request sees: the requested version, pruned and defaulted.
//!
//! A custom resource's stored body may predate its schema; it is pruned and defaulted on reading
//! by the schema of the version it is stored in (apiextensions' `crdConversionRESTOptionsGetter`).
//! An entry that needs neither says so from then on, and is served by its bytes.

use std::sync::Arc;

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
    if version.name != stored.name {
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
    if let Some(schema) = &stored.schema {
        if !entry.is_clean(info.content_hash) {
            let _ = schema.decode(&mut object, false, true);
            schema.default(&mut object);
        }
    }
    convert(info, &mut object, stored, version)?;
    Ok(object)
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
