//! create.

use fp_admission::Operation;
use fp_object::meta::Meta;
use fp_object::status::{Reason, Status};
use fp_object::{Object, Value, names, time, uid};
use fp_registry::{Error, Freshness};

use crate::body::{self, Expected};
use crate::crd;
use crate::options::{WriteKind, WriteOptions};
use crate::request::{Request, Response};
use crate::status::from_registry;
use crate::target::Target;
use crate::write::{Stored, Write, dedup_owners, wipe_server_fields};

/// How often a taken generated name is made anew (`maxNameGenerationCreateAttempts`).
const GENERATE_TRIES_MAX: usize = 8;

pub async fn create(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, WriteKind::Create)?;
    let mut write = Write::new(target, options.dry_run, warnings);
    let expected = Expected { info: target.info, version: target.version };
    let object =
        body::decode(expected, request.media, &request.body, options.fields, write.warnings)?;
    let stored = run(&mut write, object).await?;
    Ok(Response::Object { code: 201, view: write.view(stored)? })
}

/// Stores a new object of the request's version.
pub async fn run(write: &mut Write<'_>, object: Object) -> Result<Stored, Status> {
    let object = begin(write, object).await?;
    let generates = object.name().is_empty()
        && object.text(&["metadata", "generateName"]).is_some_and(|base| !base.is_empty());
    if !generates {
        return store(write, object).await;
    }
    for _ in 1..GENERATE_TRIES_MAX {
        match store(write, named(object.clone())).await {
            Err(status) if status.reason == Reason::AlreadyExists => {}
            done => return done,
        }
    }
    store(write, named(object)).await.map_err(|mut status| {
        if status.reason == Reason::AlreadyExists {
            status
                .message
                .push_str(", the server was not able to generate a unique name for the object");
        }
        status
    })
}

/// What comes before the name is final: the server's own fields go, admission changes.
async fn begin(write: &mut Write<'_>, mut object: Object) -> Result<Object, Status> {
    let info = write.target.info;
    if let Some(part) = info.strategy.and_then(|s| s.create_not_built) {
        return Err(Status::not_implemented(part));
    }
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata".into(), Object::new().into());
    }
    wipe_server_fields(&mut object);
    write.settle_namespace(&mut object)?;
    if info.terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(write.about(object.name()), why));
    }
    dedup_owners(&mut object, write.warnings);
    let name = object.name().to_owned();
    let attributes = write.attributes(Operation::Create, &name, None);
    write.target.surface.admission.mutate(&attributes, &mut object).await?;
    dedup_owners(&mut object, write.warnings);
    Ok(object)
}

/// Gives the object a name made of its `generateName`.
fn named(mut object: Object) -> Object {
    let name = names::generate(object.text(&["metadata", "generateName"]).unwrap_or(""));
    object.set_meta("name", name);
    object
}

/// What comes once the name is final, up to storing: identity, validation, admission's say.
async fn prepare(write: &mut Write<'_>, mut object: Object) -> Result<Object, Status> {
    object.set_meta("creationTimestamp", time::now());
    object.set_meta("uid", uid::new());
    write.prepare_create(&mut object);
    if crd::is_crd(write.target.info) {
        crd::check(&object)?;
    }
    let errors = write.validate_create(&object);
    write.check(&object, object.name(), &errors)?;
    write.warn(&object, None);
    if !matches!(object.resource_version(), "" | "0") {
        return Err(Status::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    object.remove_at(&["metadata", "resourceVersion"]);
    let attributes = write.attributes(Operation::Create, object.name(), None);
    write.target.surface.admission.validate(&attributes, Some(&object)).await?;
    Ok(object)
}

async fn store(write: &mut Write<'_>, object: Object) -> Result<Stored, Status> {
    let object = prepare(write, object).await?;
    let backend = &write.target.surface.backend;
    let name = object.name().to_owned();
    let (info, key) = (write.target.info, write.key(&name));
    if write.dry_run {
        let existing = backend.get(info, &key, Freshness::Newest).await;
        return match existing.map_err(|e| from_registry(&e, write.about(&name)))? {
            Some(existing) => Err(exists(write, &name, existing.deleting)),
            None => Ok(Stored::Object(object)),
        };
    }
    let object = write.to_storage(object)?;
    match backend.create(info, &key, &object, write.guards).await {
        Ok(entry) => Ok(Stored::Entry(entry)),
        Err(Error::Exists) => {
            let existing = backend.get(info, &key, Freshness::Any).await;
            let deleting = matches!(existing, Ok(Some(entry)) if entry.deleting);
            Err(exists(write, &name, deleting))
        }
        Err(error) => Err(from_registry(&error, write.about(&name))),
    }
}

fn exists(write: &Write<'_>, name: &str, deleting: bool) -> Status {
    let mut status = Status::already_exists(write.about(name));
    if deleting {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
