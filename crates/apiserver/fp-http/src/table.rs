//! `as=Table`: rows of cells for humans. The table itself is fp-schema's.

use fp_object::Value;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_schema::ResourceInfo;
pub use fp_schema::table::{Include, Options};
use fp_schema::table::{Now, Printer};
use fp_verbs::request::{ListMeta, Query, View};

use crate::encode;

/// The query's `includeObject`; metadata when it has none.
pub fn include(query: &Query) -> Result<Include, Status> {
    match query.iter().find(|(k, _)| k == "includeObject").map_or("", |(_, v)| v) {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
    }
}

/// A table of `views`, which belong to one list.
pub fn of_list(
    info: &ResourceInfo,
    version: &str,
    views: &[View],
    list_meta: &ListMeta,
    options: Options,
) -> Value {
    let version = info.version(version).unwrap_or_else(|| info.storage_version());
    let objects: Vec<_> = views.iter().map(encode::view_object).collect();
    let objects = objects.iter().map(|o| &**o);
    Printer::new(version).table(objects, encode::meta_object(list_meta), options, Now::now_utc())
}

/// A table of one object, with its resourceVersion as the table's own.
pub fn of_one(view: &View, options: Options) -> Value {
    let version = view.info.version(&view.version).unwrap_or_else(|| view.info.storage_version());
    let object = encode::view_object(view);
    let resource_version = object.resource_version().to_owned();
    let list_meta = ListMeta { resource_version, ..ListMeta::default() };
    let metadata = encode::meta_object(&list_meta);
    Printer::new(version).table([&*object], metadata, options, Now::now_utc())
}
