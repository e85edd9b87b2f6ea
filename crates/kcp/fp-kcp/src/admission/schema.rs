//! An APIResourceSchema: its name says what it defines, it makes a CRD that is served, and it never
//! changes.

use async_trait::async_trait;
use fp_admission::{Attributes, Operation, Plugin};
use fp_object::Object;
use fp_object::field::{Bad, ErrorType, FieldError};
use fp_object::meta::Meta;
use fp_object::status::Status;

use super::forbidden;
use crate::bound;
use crate::names::group;

pub struct ApiResourceSchema;

/// Kubernetes' own groups without a dot.
const SINGLE_WORD_GROUPS: [&str; 5] = ["apps", "autoscaling", "batch", "extensions", "policy"];

#[async_trait]
impl Plugin for ApiResourceSchema {
    fn name(&self) -> &'static str {
        "tenancy.kcp.io/APIResourceSchema"
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.is(group::APIS, "apiresourceschemas"))
        else {
            return Ok(());
        };
        let mut errors = match (attributes.operation, attributes.old) {
            // An equal spec was checked when it was stored.
            (Operation::Update, Some(old)) if old.get("spec") == object.get("spec") => Vec::new(),
            _ => invalid(object),
        };
        if attributes.old.is_some_and(|old| old.get("spec") != object.get("spec")) {
            // The value is left out: it is a whole schema.
            let (kind, field, detail) =
                (ErrorType::Invalid, "spec".to_owned(), "is immutable".to_owned());
            errors.push(FieldError { kind, field, bad: Bad::Omit, detail });
        }
        if errors.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Err(forbidden(attributes, Some(object), format!("[{}]", list.join(" "))))
    }
}

fn invalid(schema: &Object) -> Vec<FieldError> {
    let of = schema.text(&["spec", "group"]).unwrap_or("");
    let plural = schema.text(&["spec", "names", "plural"]).unwrap_or("");
    let mut errors: Vec<FieldError> = invalid_name(schema.name(), plural, of).into_iter().collect();
    if of == "core" {
        errors.push(FieldError::invalid(
            "spec.group",
            of,
            "must be empty string for the core group",
        ));
    }
    if !errors.is_empty() {
        return errors;
    }
    let mut crd = match bound::crd(schema) {
        Ok(crd) => crd,
        // The schema of schemas has a rule of its own for that.
        Err(bound::Error::NoConversion(_)) => return errors,
    };
    // The schema's uid, which names the CRD, is not made yet.
    crd.set_meta("name", "schema");
    let strategy = &crate::crds::STRATEGY;
    (strategy.default)(&mut crd);
    (strategy.prepare_create)(&mut crd);
    let mut errors = (strategy.validate)(&crd);
    errors.retain(|e| e.field != "spec.group" || !SINGLE_WORD_GROUPS.contains(&of));
    errors.iter_mut().for_each(to_schema_path);
    errors
}

fn invalid_name(name: &str, plural: &str, of: &str) -> Option<FieldError> {
    if plural.is_empty() {
        return None;
    }
    let of = if of.is_empty() { "core" } else { of };
    let suffix = format!(".{plural}.{of}");
    let Some(prefix) = name.strip_suffix(&suffix) else {
        return Some(FieldError::invalid("metadata.name", name, format!("must end in {suffix}")));
    };
    let bytes = prefix.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    let ok = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(inner)
        && bytes.last().is_some_and(|b| *b != b'-');
    (!ok).then(|| {
        let why = format!("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of {suffix}");
        FieldError::invalid("metadata.name", name, why)
    })
}

/// What a CRD of one version has at its top, a schema has in its version.
fn to_schema_path(error: &mut FieldError) {
    for (hoisted, own) in [
        ("spec.validation", "spec.versions[0].schema"),
        ("spec.subresources", "spec.versions[0].subresources"),
        ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
        ("spec.selectableFields", "spec.versions[0].selectableFields"),
    ] {
        if let Some(rest) = error.field.strip_prefix(hoisted) {
            error.field = format!("{own}{rest}");
            return;
        }
    }
}
