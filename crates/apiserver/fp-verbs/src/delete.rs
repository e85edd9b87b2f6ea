//! delete and deletecollection.
//!
//! Sources: apiserver's `registry/generic/registry/store.go` (Delete), Kubernetes'
//! `registry/core/namespace/storage`.

use std::sync::Arc;

use fp_admission::Operation;
use fp_informer::Entry;
use fp_object::meta::Meta;
use fp_object::status::{Reason, Status};
use fp_object::{Object, Value, json as text, time};
use fp_registry::Error;
use fp_schema::ResourceInfo;
use serde_json::json;

use crate::body;
use crate::crd;
use crate::options::{DeleteOptions, ListOptions};
use crate::request::{Media, Request, Response, View};
use crate::rounds::{Round, Rounds};
use crate::select::Selection;
use crate::status::from_registry;
use crate::target::Target;
use crate::update::has_spec_finalizers;
use crate::view;
use crate::write::{Stored, Write};

/// How many objects deletecollection reads at once.
const COLLECTION_PAGE: usize = 1000;
/// Finalizers of the garbage collector, which an explicit Background takes away.
const COLLECTOR_FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

/// Resources whose delete answers with the object (`ReturnDeletedObject`).
const RETURNS_OBJECT: [&str; 3] = ["namespaces", "resourcequotas", "serviceaccounts"];

pub fn is_namespace(info: &ResourceInfo) -> bool {
    info.gr.group.is_empty() && &*info.gr.resource == "namespaces"
}

/// What is left of a deleted object.
pub enum Gone {
    /// Removed; its last state.
    Removed(Arc<Entry>),
    /// Still there, waiting for its finalizers.
    Waits(Stored),
}

pub async fn delete(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = options(request)?;
    let mut write = Write::new(target, options.dry_run, warnings);
    match run(&mut write, &options).await? {
        Gone::Waits(stored) => {
            let view = write.view(stored)?;
            Ok(Response::Object { code: 200, view })
        }
        Gone::Removed(entry) if returns_object(target.info) => {
            let view = target.view(entry)?;
            Ok(Response::Object { code: 200, view })
        }
        Gone::Removed(entry) => {
            let status = success(target.info, &entry);
            Ok(Response::Success { code: 200, status })
        }
    }
}

fn returns_object(info: &ResourceInfo) -> bool {
    info.gr.group.is_empty() && RETURNS_OBJECT.contains(&&*info.gr.resource)
}

fn success(info: &ResourceInfo, entry: &Entry) -> Object {
    let uid = text::scan_meta(&entry.json).map(|m| m.uid).unwrap_or_default();
    let mut details = json!({ "name": &*entry.key.name, "kind": &*info.gr.resource, "uid": uid });
    if !info.gr.group.is_empty() {
        details["group"] = Value::from(&*info.gr.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    match status {
        Value::Object(object) => object,
        _ => unreachable!("the literal above is an object"),
    }
}

/// A delete's options stand in its body, or in the query when there is none.
fn options(request: &Request) -> Result<DeleteOptions, Status> {
    if request.body.is_empty() {
        return DeleteOptions::from_query(&request.query);
    }
    let object = match request.media {
        None | Some(Media::Json) => {
            text::decode(&request.body).map_err(|e| Status::bad_request(e.to_string()))?.object
        }
        Some(Media::Yaml) => {
            fp_object::yaml::decode(&request.body)
                .map_err(|e| Status::bad_request(e.to_string()))?
                .object
        }
        Some(Media::Protobuf) => body::delete_options(&request.body)?,
        Some(_) => {
            return Err(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, application/vnd.kubernetes.protobuf",
            ));
        }
    };
    DeleteOptions::from_object(&object)
}

/// Deletes the target's object, or marks it.
pub async fn run(write: &mut Write<'_>, options: &DeleteOptions) -> Result<Gone, Status> {
    let target = write.target;
    // Namespaces and CRDs take a while to go: the one that was meant is the first one seen.
    let lasting = is_namespace(target.info) || crd::is_crd(target.info);
    let mut uid = options.uid.clone();
    let mut rounds = Rounds::begin(target).await?;
    loop {
        let outcome = match rounds.entry.clone() {
            None => Err(Status::not_found(target.about())),
            Some(entry) => round(write, options, lasting, &mut uid, entry).await,
        };
        if let Some(result) = rounds.after(outcome).await {
            return result;
        }
    }
}

fn check_preconditions(
    write: &Write<'_>,
    uid: Option<&str>,
    revision: Option<&str>,
    old: &Object,
) -> Result<(), Status> {
    // Kubernetes names the kind here, not the resource.
    let info = write.target.info;
    let about = fp_object::status::About {
        group: &info.gr.group,
        resource: &info.kind,
        name: write.target.name,
    };
    if let Some(asked) = uid.filter(|asked| *asked != old.uid()) {
        let is = old.uid();
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({is}). The object might have \
             been deleted and then recreated"
        );
        return Err(Status::conflict(about, why));
    }
    if let Some(asked) = revision.filter(|asked| *asked != old.resource_version()) {
        let is = old.resource_version();
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({is}). \
             The object might have been modified"
        );
        return Err(Status::conflict(about, why));
    }
    Ok(())
}

async fn round(
    write: &mut Write<'_>,
    options: &DeleteOptions,
    lasting: bool,
    uid: &mut Option<String>,
    entry: Arc<Entry>,
) -> Result<Round<Gone>, Status> {
    let target = write.target;
    let old = &view::in_version(target.info, target.version, &entry)?;
    check_preconditions(write, uid.as_deref(), options.resource_version.as_deref(), old)?;
    if lasting {
        uid.get_or_insert_with(|| old.uid().to_owned());
    }
    let surface = target.surface;
    let attributes = write.attributes(Operation::Delete, target.name, Some(old));
    surface.admission.validate(&attributes, None).await?;
    if is_namespace(target.info) && old.is_deleting() && has_spec_finalizers(old) {
        return Ok(Round::Kept(Gone::Waits(Stored::Entry(entry))));
    }
    let (key, at) = (target.key(), entry.revision);
    let written = match mark(target.info, options, old) {
        None if write.dry_run => return Ok(Round::Kept(Gone::Removed(entry))),
        None => {
            surface.backend.delete(target.info, &key, at, write.guards).await.map(Gone::Removed)
        }
        Some(marked) if marked == *old => {
            return Ok(Round::Kept(Gone::Waits(Stored::Entry(entry))));
        }
        Some(marked) if write.dry_run => {
            return Ok(Round::Kept(Gone::Waits(Stored::Object(marked))));
        }
        Some(marked) => {
            let marked = write.to_storage(marked)?;
            let updated =
                surface.backend.update(target.info, &key, at, &marked, write.guards).await;
            updated.map(|entry| Gone::Waits(Stored::Entry(entry)))
        }
    };
    match written {
        Ok(gone) => Ok(Round::Written(gone)),
        Err(Error::Conflict(now)) => Ok(Round::Again(now)),
        Err(error) => Err(from_registry(&error, target.about())),
    }
}

/// The object as a delete leaves it while something must be done first; `None`: it goes at once.
fn mark(info: &ResourceInfo, options: &DeleteOptions, old: &Object) -> Option<Object> {
    let mut object = old.clone();
    if options.background {
        let kept: Vec<Value> = object
            .finalizers()
            .into_iter()
            .filter(|f| !COLLECTOR_FINALIZERS.contains(f))
            .map(Value::from)
            .collect();
        if kept.is_empty() {
            object.remove_at(&["metadata", "finalizers"]);
        } else {
            object.set_meta("finalizers", kept);
        }
    }
    if !old.is_deleting() && is_namespace(info) {
        object.set_meta("deletionTimestamp", time::now());
        object.map_mut(&["status"]).insert("phase".into(), "Terminating".into());
        return Some(object);
    }
    if !old.is_deleting() && crd::is_crd(info) {
        crd::mark_deleted(&mut object);
        return Some(object);
    }
    if object.finalizers().is_empty() {
        return None;
    }
    if !old.is_deleting() {
        object.set_meta("deletionTimestamp", time::now());
        if old.generation() > 0 {
            object.set_meta("generation", old.generation() + 1);
        }
    }
    object.set_meta("deletionGracePeriodSeconds", 0);
    Some(object)
}

/// Deletes what a list selects, one by one; the answer is the list.
pub async fn collection(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let mut list = ListOptions::parse(&request.query, false)?;
    let selection = Selection::parse(target.info, target.version, list.labels, list.fields)?;
    let options = options(request)?;
    let limited = list.limit > 0;
    if !limited {
        list.limit = COLLECTION_PAGE;
    }
    let mut items: Vec<View> = Vec::new();
    let mut token = list.continue_token.to_owned();
    let mut first = None;
    loop {
        let page_options = ListOptions { continue_token: &token, ..list.clone() };
        let (page, meta) = crate::list::page(target, &page_options, &selection).await?;
        for entry in page.entries {
            let key = entry.key.clone();
            let one = Target { namespace: &key.namespace, name: &key.name, ..target };
            let mut write = Write::new(one, options.dry_run, warnings);
            match run(&mut write, &options).await {
                Ok(_) => {}
                Err(status) if status.reason == Reason::NotFound => {}
                Err(status) => return Err(status),
            }
            items.push(target.view(entry)?);
        }
        let next = meta.continue_token.clone();
        let meta = first.get_or_insert(meta);
        match next {
            Some(next) if !limited => {
                token = next;
                list.revision = None;
                list.exact = false;
                meta.continue_token = None;
                meta.remaining = None;
            }
            _ => break,
        }
    }
    Ok(Response::List {
        info: target.info.clone(),
        version: target.version.name.clone(),
        items,
        meta: first.unwrap_or_default(),
    })
}
