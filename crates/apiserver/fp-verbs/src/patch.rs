//! patch: JSON patch, merge patch, and strategic merge patch of built-ins and of custom resources in
//! Kubernetes' own groups, such as Deployments.
//!
//! Sources: apiserver's `endpoints/handlers/patch.go`; for custom resources kcp's
//! `apiextensions-apiserver/pkg/apiserver/customresource_handler.go`. There a list of type `map` is
//! replaced, and what the patch leaves out is lost; here it merges by its key, which is what clients
//! mean who made the patch of the built-in type.

use std::sync::Arc;

use bytes::Bytes;
use fp_object::field::FieldError;
use fp_object::patch::{self, Patched};
use fp_object::status::{Details, Reason, Status};
use fp_object::{Object, Value, json};
use fp_schema::{ResourceInfo, VersionInfo};

use crate::body::{self, Expected};
use crate::options::{FieldValidation, WriteKind, WriteOptions};
use crate::request::{Media, Request, Response};
use crate::target::Target;
use crate::update::{self, Change};
use crate::write::Write;

/// How a patch is written.
#[derive(Clone, Copy)]
pub enum Kind {
    Json,
    Merge,
    Strategic,
}

impl Kind {
    /// By the body's media type. Asked for before the options, whose rules depend on it.
    pub fn of(target: Target<'_>, media: Option<Media>) -> Result<Self, Status> {
        let strategic = target.info.proto.is_some() || is_kubernetes_group(&target.info.gr.group);
        match media {
            Some(Media::JsonPatch) => Ok(Self::Json),
            Some(Media::MergePatch) => Ok(Self::Merge),
            Some(Media::StrategicMergePatch) if strategic => Ok(Self::Strategic),
            Some(Media::ApplyPatch | Media::ApplyPatchCbor) => {
                Err(Status::not_implemented("server-side apply"))
            }
            _ => Err(unsupported(strategic)),
        }
    }
}

/// A patch body, applied to each round's object.
pub struct Patch {
    kind: Kind,
    body: Bytes,
    fields: FieldValidation,
    info: Arc<ResourceInfo>,
    version: Arc<str>,
}

pub async fn patch(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let kind = Kind::of(target, request.media)?;
    let options = WriteOptions::parse(&request.query, WriteKind::Patch)?;
    let mut patch = Patch::new(target, kind, request, options.fields);
    let mut write = Write::new(target, options.dry_run, warnings);
    let done = update::run(&mut write, &mut patch).await?;
    update::answer(&write, done)
}

impl Patch {
    pub fn new(target: Target<'_>, kind: Kind, request: &Request, fields: FieldValidation) -> Self {
        let version = target.version.name.clone();
        Self { kind, body: request.body.clone(), fields, info: target.info.clone(), version }
    }

    fn version(&self) -> &VersionInfo {
        self.info.version(&self.version).expect("the version was resolved from this resource")
    }

    /// Applies the patch to an object that has no schema here, as the Scale.
    pub fn apply_plain(
        &self,
        current: &Object,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let Patched { object, strict } = self.patched(current)?;
        self.report(&object, strict, warnings)?;
        Ok(object)
    }

    fn patched(&self, current: &Object) -> Result<Patched, Status> {
        let result = match self.kind {
            Kind::Json => patch::json_patch(current.clone(), &self.body),
            Kind::Merge => patch::merge_patch(current.clone(), &self.body),
            Kind::Strategic => self.strategic(current.clone()),
        };
        result.map_err(|error| match error {
            patch::Error::Malformed(why) => Status::bad_request(why),
            patch::Error::TooManyOperations(_) => Status::too_large(error),
            patch::Error::Rejected(why) => {
                tracing::debug!(%why, "a patch does not apply");
                Status::new(422, Reason::Invalid, patch::REJECTED_MESSAGE)
                    .with_details(Details::default())
            }
            patch::Error::NotObject { patched, detail } => refused(&patched, &detail),
        })
    }

    fn strategic(&self, current: Object) -> Result<Patched, patch::Error> {
        if let Some(message) = self.info.proto {
            return patch::strategic_merge_patch(current, &self.body, message);
        }
        let shape = self.version().schema.as_ref().map(|s| s.shape()).unwrap_or_default();
        let meta = &fp_builtin::tables::meta::OBJECT_META;
        patch::strategic_merge_custom(current, &self.body, meta, &shape)
    }

    fn report(
        &self,
        object: &Object,
        strict: Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        match self.fields {
            FieldValidation::Strict if !strict.is_empty() => {
                Err(refused(&json::to_go_string(object), &json::strict_message(&strict)))
            }
            FieldValidation::Warn => {
                warnings.extend(strict);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The 422 about what a patch made of the object.
fn refused(patched: &str, why: &str) -> Status {
    Status::invalid("", "", "", &[FieldError::invalid("patch", Value::from(patched), why)])
}

impl Change for Patch {
    fn expects(&self) -> Option<&str> {
        None
    }

    fn apply(
        &mut self,
        current: Option<&Object>,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let current = current.expect("a patch makes no new object");
        let Patched { mut object, mut strict } = self.patched(current)?;
        let expected = Expected { info: &self.info, version: self.version() };
        body::check_api_version(expected, &object)?;
        match body::settle(expected, &mut object, self.fields != FieldValidation::Ignore) {
            Ok(unknown) => strict.extend(unknown),
            Err(why) => return Err(refused(&json::to_go_string(&object), &why)),
        }
        self.report(&object, strict, warnings)?;
        Ok(object)
    }

    fn may_create(&self) -> bool {
        false
    }
}

/// A group that client-go knows types of: clients patch them as they would the built-in.
fn is_kubernetes_group(group: &str) -> bool {
    const WITHOUT_SUFFIX: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];
    const WITH_SUFFIX: [&str; 16] = [
        "admissionregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    ];
    let short = group.strip_suffix(".k8s.io");
    short.map_or(WITHOUT_SUFFIX.contains(&group), |short| WITH_SUFFIX.contains(&short))
}

fn unsupported(strategic: bool) -> Status {
    let mut accepted = vec!["application/json-patch+json", "application/merge-patch+json"];
    if strategic {
        accepted.push("application/strategic-merge-patch+json");
    }
    accepted.push("application/apply-patch+yaml");
    let accepted = accepted.join(", ");
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    ))
}
