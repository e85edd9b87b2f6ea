//! The scale subresource of custom resources: `autoscaling/v1` Scale made of three paths.
//!
//! Source: apiextensions' `registry/customresource/{etcd,validator}.go`.

use fp_object::field::FieldError;
use fp_object::meta::Meta;
use fp_object::status::{Reason, Status};
use fp_object::{Object, Value};
use fp_schema::{Scale, VersionInfo};
use serde_json::json;

use crate::options::{self, WriteKind, WriteOptions};
use crate::patch::{self, Patch};
use crate::request::{Content, Query, Request, Response};
use crate::status::from_registry;
use crate::target::Target;
use crate::update::{self, Change};
use crate::view;
use crate::write::Write;

const API_VERSION: &str = "autoscaling/v1";

/// `.spec.replicas` as keys.
fn keys(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

/// Checks what a scale subresource's paths point at. `spec` is false for a status update.
pub fn validate(version: &VersionInfo, object: &Object, spec: bool) -> Vec<FieldError> {
    let Some(scale) = &version.scale else { return Vec::new() };
    let mut errors = Vec::new();
    let mut count = |path: &str| {
        let value = match object.at(&keys(path)) {
            None => return,
            Some(value) => value,
        };
        match value.as_i64() {
            None => {
                let detail =
                    format!("{path} accessor error: {value} is of the wrong type, expected int64");
                errors.push(FieldError::invalid(path, 0, detail));
            }
            Some(n) if n < 0 => {
                errors.push(FieldError::invalid(path, n, "should be a non-negative integer"))
            }
            Some(n) if n > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path, n, detail));
            }
            Some(_) => {}
        }
    };
    if spec {
        count(&scale.spec_replicas);
    }
    count(&scale.status_replicas);
    if let Some(path) = &scale.label_selector
        && let Some(value) = object.at(&keys(path)).filter(|v| !v.is_string())
    {
        let detail =
            format!("{path} accessor error: {value} is of the wrong type, expected string");
        errors.push(FieldError::invalid(path, "", detail));
    }
    errors
}

/// The Scale of an object, and whether the object says how many replicas it wants.
fn of(scale: &Scale, object: &Object) -> Result<(Object, bool), Status> {
    let count = |path: &str| match object.at(&keys(path)) {
        None => Ok(None),
        Some(v) => v
            .as_i64()
            .map(Some)
            .ok_or_else(|| Status::internal(format_args!("{path} is no integer"))),
    };
    let replicas = count(&scale.spec_replicas)?;
    let mut status = json!({ "replicas": count(&scale.status_replicas)?.unwrap_or(0) });
    if let Some(selector) = scale.label_selector.as_ref().and_then(|path| object.text(&keys(path)))
    {
        status["selector"] = Value::from(selector);
    }
    let mut metadata = Object::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", field]) {
            metadata.insert(field.into(), value.clone());
        }
    }
    let mut spec = Object::new();
    if let Some(replicas) = replicas.filter(|n| *n != 0) {
        spec.insert("replicas".into(), replicas.into());
    }
    let mut out = Object::new();
    out.insert("apiVersion".into(), API_VERSION.into());
    out.insert("kind".into(), "Scale".into());
    out.insert("metadata".into(), metadata.into());
    out.insert("spec".into(), spec.into());
    out.insert("status".into(), status);
    Ok((out, replicas.is_some()))
}

fn paths<'a>(target: &Target<'a>) -> &'a Scale {
    target
        .version
        .scale
        .as_ref()
        .expect("`serve` routes here only where there is a scale subresource")
}

fn plain(object: Object) -> Response {
    Response::Plain { code: 200, object, proto: None }
}

pub async fn get(target: Target<'_>, query: &Query) -> Result<Response, Status> {
    let freshness = options::get_freshness(query)?;
    let found = target.surface.backend.get(target.info, &target.key(), freshness).await;
    let entry = found
        .map_err(|e| from_registry(&e, target.about()))?
        .ok_or_else(|| Status::not_found(target.about()))?;
    let paths = paths(&target);
    let (scale, found) = of(paths, &view::in_version(target.info, target.version, &entry)?)?;
    if !found {
        let path = &paths.spec_replicas;
        return Err(Status::internal(format_args!(
            "the spec replicas field {path:?} does not exist"
        )));
    }
    Ok(plain(scale))
}

/// How the Scale changes; the object follows.
enum Wanted {
    Body(Object),
    Patch(Patch),
}

struct Rescale<'a> {
    paths: &'a Scale,
    name: &'a str,
    wanted: Wanted,
}

impl Change for Rescale<'_> {
    fn expects(&self) -> Option<&str> {
        None
    }

    fn apply(
        &mut self,
        current: Option<&Object>,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let current = current.expect("a scale makes no new object");
        let (old, replicas_found) = of(self.paths, current)?;
        let scale = match &self.wanted {
            Wanted::Body(scale) => scale.clone(),
            Wanted::Patch(patch) => patch.apply_plain(&old, warnings)?,
        };
        check_kind(&scale)?;
        update::check_name(&scale, self.name)?;
        let path = &self.paths.spec_replicas;
        let replicas = match scale.at(&["spec", "replicas"]) {
            None if !replicas_found && matches!(self.wanted, Wanted::Patch(_)) => {
                return Err(Status::bad_request(format!(
                    "the spec replicas field {path:?} cannot be empty"
                )));
            }
            None => 0,
            Some(value) => value.as_i64().filter(|n| i32::try_from(*n).is_ok()).ok_or_else(|| {
                Status::bad_request(format!(
                    "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {value} into Go \
                     struct field ScaleSpec.spec.replicas of type int32"
                ))
            })?,
        };
        let mut object = current.clone();
        let keys = keys(path);
        let (last, up) = keys.split_last().expect("a path has a segment");
        object.map_mut(up).insert((*last).into(), replicas.into());
        let revision = scale.resource_version();
        if !revision.is_empty() {
            object.set_meta("resourceVersion", revision);
        }
        let uid = scale.uid();
        if !uid.is_empty() {
            object.set_meta("uid", uid);
        }
        Ok(object)
    }

    fn may_create(&self) -> bool {
        false
    }
}

fn check_kind(scale: &Object) -> Result<(), Status> {
    let (kind, api_version) = (scale.kind(), scale.api_version());
    if !matches!(kind, "" | "Scale") || !matches!(api_version, "" | API_VERSION) {
        return Err(Status::bad_request(format!(
            "{kind} in version {api_version:?} cannot be handled as a Scale: no kind {kind:?} is registered"
        )));
    }
    Ok(())
}

pub async fn update(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, WriteKind::Update)?;
    let body = crate::body::read_plain(request.media, &request.body, "Scale")?;
    run(target, options, Wanted::Body(body), warnings).await
}

pub async fn patch(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let kind = patch::Kind::of(target, request.media)?;
    let options = WriteOptions::parse(&request.query, WriteKind::Patch)?;
    let patch = Patch::new(target, kind, request, options.fields);
    run(target, options, Wanted::Patch(patch), warnings).await
}

async fn run(
    target: Target<'_>,
    options: WriteOptions,
    wanted: Wanted,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let mut write = Write::new(target, options.dry_run, warnings);
    let mut change = Rescale { paths: paths(&target), name: target.name, wanted };
    let done = update::run(&mut write, &mut change).await?;
    let object = match write.view(done.stored)?.content {
        Content::Entry(entry) => entry.object(),
        Content::Object(object) => std::sync::Arc::unwrap_or_clone(object),
    };
    let (scale, _) =
        of(paths(&target), &object).map_err(|s| Status::new(400, Reason::BadRequest, s.message))?;
    Ok(plain(scale))
}
