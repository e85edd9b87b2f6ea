//! From a body to an object of the requested version: media type, kind, unknown and duplicate
//! fields, pruning and defaults.
//!
//! Sources: apiserver's `endpoints/handlers/{create,rest}.go`, apiextensions'
//! `apiserver/customresource_handler.go`.

use bytes::Bytes;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value, json, proto, yaml};
use fp_schema::{ResourceInfo, VersionInfo};

use crate::crd;
use crate::options::FieldValidation;
use crate::request::Media;

/// How much of a body an error repeats, in bytes (`summarizeData`).
const SUMMARY_BYTES: usize = 30;

/// Media types that a create or update takes, as Kubernetes lists them.
const BUILTIN_MEDIA: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const CUSTOM_MEDIA: &str = "application/json, application/yaml";

/// A body as an object, before its kind has been looked at.
struct Raw {
    object: Object,
    /// Duplicate fields, as strict decoding names them.
    strict: Vec<String>,
}

/// What a body must be.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    pub info: &'a ResourceInfo,
    pub version: &'a VersionInfo,
}

impl Expected<'_> {
    fn api_version(&self) -> String {
        self.info.api_version(&self.version.name)
    }
}

/// Decodes the body of a create or update. What `fields` lets pass with a warning is added to
/// `warnings`.
pub fn decode(
    expected: Expected<'_>,
    media: Option<Media>,
    body: &Bytes,
    fields: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let kind = &expected.info.kind;
    let is_crd = crd::is_crd(expected.info);
    if is_crd {
        crd::check_body(body)?;
    }
    let raw = read(expected.info, media, body)?;
    let Raw { mut object, mut strict } = raw;
    if is_crd {
        crd::check_size(&object)?;
    }
    check_kind(expected, &mut object, body)?;
    let named = object.kind().to_owned();
    let report = fields != FieldValidation::Ignore;
    let version = &expected.version.name;
    let cannot = |why: &dyn std::fmt::Display| {
        Status::bad_request(format!(
            "{named} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    strict.extend(settle(expected, &mut object, report).map_err(|e| cannot(&e))?);
    match fields {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.append(&mut strict),
        FieldValidation::Strict if strict.is_empty() => {}
        FieldValidation::Strict => return Err(cannot(&json::strict_message(&strict))),
    }
    Ok(object)
}

fn read(info: &ResourceInfo, media: Option<Media>, body: &Bytes) -> Result<Raw, Status> {
    let unknown = |why: &dyn std::fmt::Display| {
        let kind = &info.kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body)
        ))
    };
    match media {
        None | Some(Media::Json) => {
            let decoded = json::decode(body).map_err(|e| {
                unknown(&format_args!("couldn't get version/kind; json parse error: {e}"))
            })?;
            Ok(Raw { object: decoded.object, strict: decoded.strict })
        }
        Some(Media::Yaml) => {
            let decoded = yaml::decode(body).map_err(|e| unknown(&e))?;
            Ok(Raw { object: decoded.object, strict: decoded.strict })
        }
        Some(Media::Protobuf) if info.proto.is_some() => Ok(Raw {
            object: read_protobuf(info, body).map_err(|e| unknown(&e))?,
            strict: Vec::new(),
        }),
        Some(_) => {
            let accepted = if info.proto.is_some() { BUILTIN_MEDIA } else { CUSTOM_MEDIA };
            Err(Status::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            )))
        }
    }
}

fn read_protobuf(info: &ResourceInfo, body: &Bytes) -> Result<Object, proto::Error> {
    let message = info.proto.expect("the caller has checked it");
    let envelope = proto::unwrap(body)?;
    let mut object = proto::decode_body(message, envelope.raw)?;
    object.insert("kind".into(), envelope.kind.into());
    object.insert("apiVersion".into(), envelope.api_version.into());
    Ok(object)
}

/// A built-in's kind and apiVersion may be left out; a custom resource's kind may not.
fn check_kind(expected: Expected<'_>, object: &mut Object, body: &Bytes) -> Result<(), Status> {
    let kind = &expected.info.kind;
    let builtin = expected.info.strategy.is_some();
    for field in ["kind", "apiVersion"] {
        if object.get(field).is_some_and(|v| !v.is_string() && !v.is_null()) {
            let why =
                format!("couldn't get version/kind; json parse error: {field} is not a string");
            let summary = summary(body);
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
            )));
        }
    }
    if object.kind().is_empty() {
        if !builtin {
            let text = String::from_utf8_lossy(body);
            let summary = summary(body);
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({summary})"
            )));
        }
        object.insert("kind".into(), Value::from(&**kind));
    }
    let want = expected.api_version();
    if object.api_version().is_empty() && builtin {
        object.insert("apiVersion".into(), want.clone().into());
    }
    check_api_version(expected, object)?;
    if builtin && object.kind() != &**kind {
        let (got, version) = (object.kind(), &expected.version.name);
        return Err(Status::bad_request(format!(
            "{got} in version {version:?} cannot be handled as a {kind}: no kind {got:?} is registered for version {want:?} here"
        )));
    }
    Ok(())
}

/// The body's version must be that of the URL.
pub fn check_api_version(expected: Expected<'_>, object: &Object) -> Result<(), Status> {
    let (got, want) = (object.api_version(), expected.api_version());
    if got == want {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the API version in the data ({got}) does not match the expected API version ({want})"
    )))
}

/// Gives an object its kind's form: types checked, unknown fields gone (and named, when `report`
/// is set), defaults filled in. The error is Go's message about a wrong type.
pub fn settle(
    expected: Expected<'_>,
    object: &mut Object,
    report: bool,
) -> Result<Vec<String>, String> {
    let info = expected.info;
    let mut unknown = Vec::new();
    match (info.strategy, &expected.version.schema) {
        (Some(strategy), _) => {
            if let Some(message) = info.proto {
                *object =
                    proto::conform(message, object, &mut unknown).map_err(|e| e.to_string())?;
            }
            (strategy.default)(object);
        }
        (None, Some(schema)) => {
            unknown = schema.decode(object, report, false).map_err(|e| e.to_string())?;
            schema.default(object);
        }
        (None, None) => {}
    }
    Ok(unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect())
}

/// The start of a body, for an error message.
pub fn summary(body: &[u8]) -> String {
    let start = &body[..body.len().min(SUMMARY_BYTES)];
    let dots = if body.len() > SUMMARY_BYTES { " ..." } else { "" };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(start)),
        Some(_) => {
            let hex: String = start.iter().map(|b| format!("{b:02x}")).collect();
            format!("{hex}{dots}")
        }
    }
}

/// A JSON or YAML body of a kind that is no resource's own.
pub fn read_plain(media: Option<Media>, body: &Bytes, kind: &str) -> Result<Object, Status> {
    let unknown = |why: &dyn std::fmt::Display| {
        let summary = summary(body);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
        ))
    };
    match media {
        None | Some(Media::Json) => Ok(json::decode(body).map_err(|e| unknown(&e))?.object),
        Some(Media::Yaml) => Ok(yaml::decode(body).map_err(|e| unknown(&e))?.object),
        Some(_) => Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {CUSTOM_MEDIA}"
        ))),
    }
}

/// A protobuf `DeleteOptions`.
pub fn delete_options(body: &Bytes) -> Result<Object, Status> {
    let bad = |e: proto::Error| Status::bad_request(e.to_string());
    let envelope = proto::unwrap(body).map_err(bad)?;
    let mut object =
        proto::decode_body(&fp_builtin::tables::meta::DELETE_OPTIONS, envelope.raw).map_err(bad)?;
    object.insert("kind".into(), envelope.kind.into());
    Ok(object)
}
