//! update and patch: one pipeline.
//!
//! Sources: apiserver's `registry/generic/registry/store.go` (Update), `registry/rest/update.go`,
//! `endpoints/handlers/{update,patch}.go`.

use std::sync::Arc;

use fp_admission::Operation;
use fp_auth::Attributes as Asked;
use fp_informer::Entry;
use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::{About, Status};
use fp_object::{Object, Value, go};
use fp_registry::{Error, Freshness};
use fp_schema::Sub;

use crate::body::{self, Expected};
use crate::crd;
use crate::options::{WriteKind, WriteOptions};
use crate::request::{Request, Response};
use crate::rounds::{Round, Rounds};
use crate::status::{OPTIMISTIC_LOCK, from_registry};
use crate::target::Target;
use crate::view;
use crate::write::{CLUSTER, Stored, Write, dedup_owners};
use crate::{authorize, create};

/// How the new object is made of the current one (`None`: there is none).
pub trait Change: Send + Sync {
    /// The resourceVersion that the object must have, when one was named.
    fn expects(&self) -> Option<&str>;
    /// Called once for each round whose object has the version that is expected.
    fn apply(
        &mut self,
        current: Option<&Object>,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status>;
    /// The body of a PUT may make a new object, where the resource allows it.
    fn may_create(&self) -> bool;
}

/// A PUT's body.
pub struct Replace {
    object: Object,
    expects: Option<String>,
}

impl Replace {
    pub fn new(object: Object) -> Self {
        let expects = match object.resource_version() {
            "" | "0" => None,
            revision => Some(revision.to_owned()),
        };
        Self { object, expects }
    }
}

impl Change for Replace {
    fn expects(&self) -> Option<&str> {
        self.expects.as_deref()
    }

    fn apply(&mut self, _: Option<&Object>, _: &mut Vec<String>) -> Result<Object, Status> {
        // Once the expected object has changed there is no round that needs the body again.
        Ok(match self.expects {
            Some(_) => std::mem::take(&mut self.object),
            None => self.object.clone(),
        })
    }

    fn may_create(&self) -> bool {
        true
    }
}

/// What a write did.
pub struct Done {
    pub stored: Stored,
    pub created: bool,
}

pub async fn update(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, WriteKind::Update)?;
    let mut write = Write::new(target, options.dry_run, warnings);
    let expected = Expected { info: target.info, version: target.version };
    let mut object =
        body::decode(expected, request.media, &request.body, options.fields, write.warnings)?;
    write.settle_namespace(&mut object)?;
    check_name(&object, target.name)?;
    dedup_owners(&mut object, write.warnings);
    let done = run(&mut write, &mut Replace::new(object)).await?;
    answer(&write, done)
}

pub fn answer(write: &Write<'_>, done: Done) -> Result<Response, Status> {
    let code = if done.created { 201 } else { 200 };
    Ok(Response::Object { code, view: write.view(done.stored)? })
}

pub fn check_name(object: &Object, name: &str) -> Result<(), Status> {
    let got = object.name();
    if got == name {
        return Ok(());
    }
    if got.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(Status::bad_request(format!(
        "the name of the object ({got}) does not match the name on the URL ({name})"
    )))
}

/// Changes the target's object.
pub async fn run(write: &mut Write<'_>, change: &mut dyn Change) -> Result<Done, Status> {
    let kept = write.warnings.len();
    let mut rounds = Rounds::begin(write.target).await?;
    loop {
        write.warnings.truncate(kept);
        let outcome = match rounds.entry.clone() {
            Some(entry) => existing(write, change, entry).await,
            None => absent(write, change).await,
        };
        if let Some(result) = rounds.after(outcome).await {
            return result;
        }
    }
}

async fn absent(write: &mut Write<'_>, change: &mut dyn Change) -> Result<Round<Done>, Status> {
    let target = write.target;
    if !change.may_create() || !write.allows_create_on_update() {
        return Err(Status::not_found(target.about()));
    }
    let mut object = change.apply(None, write.warnings)?;
    if !object.uid().is_empty() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: ",
            object.uid()
        );
        return Err(Status::conflict(target.about(), why));
    }
    let asked = Asked {
        user: target.user,
        cluster: Some(target.scope),
        verb: "create",
        group: &target.info.gr.group,
        version: &target.version.name,
        resource: &target.info.gr.resource,
        subresource: "",
        namespace: target.namespace,
        name: target.name,
        path: None,
        deep: false,
    };
    let verdict = target.surface.authorizer.authorize(&asked).await;
    if !verdict.allowed() {
        return Err(authorize::forbidden(&asked, &verdict));
    }
    object.remove_at(&["metadata", "resourceVersion"]);
    match create::run(write, object).await {
        Ok(stored) => Ok(Round::Written(Done { stored, created: true })),
        Err(status) if status.reason == fp_object::status::Reason::AlreadyExists => {
            let found =
                target.surface.backend.get(target.info, &target.key(), Freshness::Newest).await;
            Ok(Round::Again(found.map_err(|e| from_registry(&e, target.about()))?))
        }
        Err(status) => Err(status),
    }
}

async fn existing(
    write: &mut Write<'_>,
    change: &mut dyn Change,
    entry: Arc<Entry>,
) -> Result<Round<Done>, Status> {
    let target = write.target;
    let revision = entry.revision.to_string();
    if change.expects().is_some_and(|expected| expected != revision) {
        return Err(revision_refused(target, change.expects().unwrap_or("")));
    }
    let old = view::in_version(target.info, target.version, &entry)?;
    let mut object = change.apply(Some(&old), write.warnings)?;
    write.settle_namespace(&mut object)?;
    check_name(&object, target.name)?;
    check_uid(target.about(), &object, &old)?;
    keep_server_fields(&mut object, &old);

    let surface = target.surface;
    {
        let attributes = write.attributes(Operation::Update, target.name, Some(&old));
        surface.admission.mutate(&attributes, &mut object).await?;
    }
    dedup_owners(&mut object, write.warnings);
    check_revision(write, &object, &revision)?;
    object.set_meta("resourceVersion", revision);

    before_update(write, &mut object, &old);
    if crd::is_crd(target.info) {
        crd::check(&object)?;
    }
    let errors = write.validate_update(&object, &old);
    write.check(&object, target.name, &errors)?;
    write.warn(&object, Some(&old));
    {
        let attributes = write.attributes(Operation::Update, target.name, Some(&old));
        surface.admission.validate(&attributes, Some(&object)).await?;
    }

    if goes_with_update(target, &object, &old) {
        return remove(write, object, &entry).await;
    }
    if object == old && is_stored_so(write, &entry, &old) {
        return Ok(Round::Kept(Done { stored: Stored::Entry(entry), created: false }));
    }
    if write.dry_run {
        return Ok(Round::Kept(Done { stored: Stored::Object(object), created: false }));
    }
    let object = write.to_storage(object)?;
    match surface
        .backend
        .update(target.info, &target.key(), entry.revision, &object, write.guards)
        .await
    {
        Ok(entry) => Ok(Round::Written(Done { stored: Stored::Entry(entry), created: false })),
        // A body that names its resourceVersion is refused in the next round.
        Err(Error::Conflict(now)) => Ok(Round::Again(now)),
        Err(Error::NotFound) => Ok(Round::Again(None)),
        Err(error) => Err(from_registry(&error, target.about())),
    }
}

/// False when storing the very same object would change the bytes: they predate the schema.
fn is_stored_so(write: &Write<'_>, entry: &Entry, old: &Object) -> bool {
    let info = write.target.info;
    let stored = info.storage_version();
    let ruled = stored.schema.is_some() && write.target.version.name == stored.name;
    !ruled || entry.is_clean(info.content_hash) || entry.object() == *old
}

fn check_uid(about: About<'_>, object: &Object, old: &Object) -> Result<(), Status> {
    let (asked, is) = (object.uid(), old.uid());
    if asked.is_empty() || asked == is {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {is}");
    Err(Status::conflict(about, why))
}

/// The cluster's annotation and managed fields are as stored, whatever the body says.
fn keep_server_fields(object: &mut Object, old: &Object) {
    match old.at(&["metadata", "managedFields"]) {
        Some(fields) => object.set_meta("managedFields", fields.clone()),
        None => drop(object.remove_at(&["metadata", "managedFields"])),
    }
    object.remove_at(&["metadata", "selfLink"]);
    match old.annotation(CLUSTER) {
        Some(cluster) => object.set_annotation(CLUSTER, cluster),
        None => drop(object.remove_at(&["metadata", "annotations", CLUSTER])),
    }
}

/// Checks the new object's resourceVersion against the current one.
fn check_revision(write: &Write<'_>, object: &Object, current: &str) -> Result<(), Status> {
    let target = write.target;
    match object.resource_version() {
        "" | "0" if write.allows_unconditional_update() => Ok(()),
        "" | "0" => {
            let detail = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", 0, detail);
            let gr = &target.info.gr;
            Err(Status::invalid(&gr.group, &gr.resource, target.name, &[error]))
        }
        asked if asked == current => Ok(()),
        asked => Err(revision_refused(target, asked)),
    }
}

/// 409 for another revision than the current one, 422 for what is none.
fn revision_refused(target: Target<'_>, asked: &str) -> Status {
    if asked.parse::<u64>().is_ok() {
        return Status::conflict(target.about(), OPTIMISTIC_LOCK);
    }
    let why = format!("strconv.ParseUint: parsing {}: invalid syntax", go::quote(asked));
    let error = FieldError::invalid("metadata.resourceVersion", asked, why);
    Status::invalid(&target.info.gr.group, &target.info.kind, target.name, &[error])
}

/// `rest.BeforeUpdate` up to validation.
fn before_update(write: &Write<'_>, object: &mut Object, old: &Object) {
    match old.at(&["metadata", "generation"]) {
        Some(generation) => object.set_meta("generation", generation.clone()),
        None => drop(object.remove_at(&["metadata", "generation"])),
    }
    write.prepare_update(object, old);
    if object.uid().is_empty() {
        object.set_meta("uid", old.uid());
    }
    // An update neither changes when the object was made nor when it began to be deleted.
    for field in ["creationTimestamp", "deletionTimestamp"] {
        match old.at(&["metadata", field]) {
            Some(time) => object.set_meta(field, time.clone()),
            None if field == "deletionTimestamp" => drop(object.remove_at(&["metadata", field])),
            None => {}
        }
    }
    let grace = ["metadata", "deletionGracePeriodSeconds"];
    match old.at(&grace) {
        Some(secs) if object.at(&grace).is_none() => object.set_meta(grace[1], secs.clone()),
        None => drop(object.remove_at(&grace)),
        Some(_) => {}
    }
}

/// An update that takes the last finalizer from an object that is being deleted removes it
/// (`ShouldDeleteDuringUpdate`); a namespace has finalizers in its spec too.
fn goes_with_update(target: Target<'_>, object: &Object, old: &Object) -> bool {
    let grace =
        old.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    let held = crate::delete::is_namespace(target.info) && has_spec_finalizers(object);
    old.is_deleting() && grace == 0 && object.finalizers().is_empty() && !held
}

/// `spec.finalizers` of a namespace.
pub fn has_spec_finalizers(namespace: &Object) -> bool {
    namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|l| !l.is_empty())
}

async fn remove(write: &Write<'_>, object: Object, entry: &Entry) -> Result<Round<Done>, Status> {
    let target = write.target;
    let done = Done { stored: Stored::Object(object), created: false };
    if write.dry_run {
        return Ok(Round::Kept(done));
    }
    let key = target.key();
    match target.surface.backend.delete(target.info, &key, entry.revision, write.guards).await {
        Ok(_) | Err(Error::NotFound | Error::Conflict(None)) => Ok(Round::Written(done)),
        Err(Error::Conflict(now)) => Ok(Round::Again(now)),
        Err(error) => Err(from_registry(&error, target.about())),
    }
}

/// Which part of an object a subresource's URL writes.
pub fn sub_of(name: &str, known: &'static [&'static str]) -> Option<Sub> {
    match name {
        "" => Some(Sub::Main),
        "status" => Some(Sub::Status),
        "scale" => Some(Sub::Scale),
        other => known.iter().find(|k| **k == other).map(|k| Sub::Other(k)),
    }
}
