//! What a request's query (or a delete's body) asks for, checked with Kubernetes' rules and words.
//!
//! Sources: apimachinery's `runtime/conversion.go`, `apis/meta/v1/validation/validation.go`,
//! `apis/meta/internalversion/validation/validation.go`.

use fp_base::Revision;
use fp_object::field::{Bad, ErrorType, FieldError};
use fp_object::names::field_manager_errors;
use fp_object::status::Status;
use fp_object::{Object, Value};
use fp_registry::Freshness;

use crate::request::Query;

/// The group of Kubernetes' option kinds, as its 422 names them.
const META_GROUP: &str = "meta.k8s.io";

/// The first value of a parameter, as Go reads a query.
pub fn first<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A boolean parameter: everything but `0` and `false` is true.
pub fn flag(query: &Query, name: &str) -> Option<bool> {
    first(query, name).map(|v| v != "0" && !v.eq_ignore_ascii_case("false"))
}

/// An integer parameter, with the message of Go's `strconv`.
fn int(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    let Some(text) = first(query, name) else { return Ok(None) };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let well_formed = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().map(Some).map_err(|_| {
        let why = if well_formed { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}

/// What to do with fields that a body has and the kind does not, and with duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of create, update and patch.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub fields: FieldValidation,
}

/// Which of Kubernetes' option kinds a write's query is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    Create,
    Update,
    Patch,
}

impl WriteOptions {
    pub fn parse(query: &Query, kind: WriteKind) -> Result<Self, Status> {
        let mut errors = Vec::new();
        if kind == WriteKind::Patch && first(query, "force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        errors.extend(field_manager_errors(
            first(query, "fieldManager").unwrap_or(""),
            "fieldManager",
        ));
        let dry_run: Vec<&str> =
            query.iter().filter(|(k, _)| k == "dryRun").map(|(_, v)| v.as_str()).collect();
        check_dry_run(&dry_run, &mut errors);
        let fields = match first(query, "fieldValidation").unwrap_or("") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        let name = match kind {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch => "PatchOptions",
        };
        invalid(name, &errors)?;
        Ok(Self { dry_run: !dry_run.is_empty(), fields })
    }
}

fn invalid(kind: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(META_GROUP, kind, "", errors)) }
}

fn check_dry_run(values: &[&str], errors: &mut Vec<FieldError>) {
    if values.iter().any(|v| *v != "All") {
        let bad: Vec<Value> = values.iter().map(|v| Value::from(*v)).collect();
        errors.push(FieldError::not_supported("dryRun", Value::Array(bad), &["All"]));
    }
}

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub grace_secs: Option<i64>,
    /// `propagationPolicy=Background` was asked for: finalizers of the garbage collector go.
    pub background: bool,
}

impl DeleteOptions {
    /// From the query, when a delete has no body.
    pub fn from_query(query: &Query) -> Result<Self, Status> {
        let dry_run: Vec<&str> =
            query.iter().filter(|(k, _)| k == "dryRun").map(|(_, v)| v.as_str()).collect();
        let grace_secs = int(query, "gracePeriodSeconds")?;
        let mut options = Self::checked(
            &dry_run,
            flag(query, "orphanDependents"),
            first(query, "propagationPolicy"),
        )?;
        options.grace_secs = grace_secs;
        Ok(options)
    }

    /// From a decoded `DeleteOptions` of any group.
    pub fn from_object(object: &Object) -> Result<Self, Status> {
        match object.get("kind").and_then(Value::as_str) {
            None | Some("" | "DeleteOptions") => {}
            Some(_) => {
                return Err(Status::bad_request(
                    "decoded object cannot be converted to DeleteOptions",
                ));
            }
        }
        let wrong =
            |field: &str| Status::bad_request(format!("DeleteOptions: {field} has the wrong type"));
        let text = |at: Option<&Value>, field: &str| match at {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.clone())),
            Some(_) => Err(wrong(field)),
        };
        let dry_run: Vec<&str> = match object.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .map(|v| v.as_str().ok_or_else(|| wrong("dryRun")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(wrong("dryRun")),
        };
        let orphan = match object.get("orphanDependents") {
            None | Some(Value::Null) => None,
            Some(v) => Some(v.as_bool().ok_or_else(|| wrong("orphanDependents"))?),
        };
        let policy = text(object.get("propagationPolicy"), "propagationPolicy")?;
        let mut options = Self::checked(&dry_run, orphan, policy.as_deref())?;
        options.grace_secs = match object.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(v) => Some(v.as_i64().ok_or_else(|| wrong("gracePeriodSeconds"))?),
        };
        if let Some(preconditions) = object.get("preconditions").filter(|v| !v.is_null()) {
            let map = preconditions.as_object().ok_or_else(|| wrong("preconditions"))?;
            options.uid = text(map.get("uid"), "preconditions.uid")?;
            options.resource_version =
                text(map.get("resourceVersion"), "preconditions.resourceVersion")?;
        }
        Ok(options)
    }

    fn checked(
        dry_run: &[&str],
        orphan: Option<bool>,
        policy: Option<&str>,
    ) -> Result<Self, Status> {
        let mut errors = Vec::new();
        if let (Some(_), Some(policy)) = (orphan, policy) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy, detail));
        }
        if let Some(other) =
            policy.filter(|p| !matches!(*p, "Foreground" | "Background" | "Orphan"))
        {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported("propagationPolicy", other, &supported));
        }
        check_dry_run(dry_run, &mut errors);
        invalid("DeleteOptions", &errors)?;
        if orphan == Some(true) || matches!(policy, Some("Foreground" | "Orphan")) {
            return Err(Status::not_implemented(
                "garbage collection (propagationPolicy Foreground and Orphan)",
            ));
        }
        let background = policy == Some("Background") || orphan == Some(false);
        Ok(Self { dry_run: !dry_run.is_empty(), background, ..Self::default() })
    }
}

/// A resourceVersion of a read: `None` for empty.
pub fn revision(text: &str) -> Result<Option<Revision>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(n) if digits => Ok(Some(Revision(n))),
        _ => {
            let why = if digits { "value out of range" } else { "invalid syntax" };
            let error = FieldError {
                kind: ErrorType::Invalid,
                field: "resourceVersion".into(),
                bad: Bad::Value(text.into()),
                detail: format!("strconv.ParseUint: parsing {text:?}: {why}"),
            };
            Err(Status::bad_request(format!("invalid resource version: {error}")))
        }
    }
}

/// How fresh a get must be.
pub fn get_freshness(query: &Query) -> Result<Freshness, Status> {
    Ok(match revision(first(query, "resourceVersion").unwrap_or(""))? {
        None => Freshness::Newest,
        Some(Revision::ZERO) => Freshness::Any,
        Some(at) => Freshness::AtLeast(at),
    })
}

/// The options of list, watch and deletecollection, before selectors.
#[derive(Clone, Debug)]
pub struct ListOptions<'a> {
    pub labels: &'a str,
    pub fields: &'a str,
    pub limit: usize,
    pub continue_token: &'a str,
    /// The `resourceVersion` that was asked for, `None` when empty.
    pub revision: Option<Revision>,
    pub exact: bool,
    pub timeout_secs: Option<u64>,
    pub bookmarks: bool,
    /// Watch: begin with everything that exists. Kubernetes' legacy rule: so does a watch without a
    /// resourceVersion, or with `0`.
    pub initial_events: Option<bool>,
}

impl<'a> ListOptions<'a> {
    pub fn parse(query: &'a Query, watch: bool) -> Result<Self, Status> {
        let text = first(query, "resourceVersion").unwrap_or("");
        let matching = first(query, "resourceVersionMatch").unwrap_or("");
        let continue_token = first(query, "continue").unwrap_or("");
        let limit = int(query, "limit")?.unwrap_or(0);
        let timeout = int(query, "timeoutSeconds")?;
        let mut initial_events = flag(query, "sendInitialEvents");
        if watch && initial_events.is_none() && matching.is_empty() && matches!(text, "" | "0") {
            initial_events = Some(true);
        } else if watch {
            invalid("ListOptions", &watch_errors(matching, initial_events, continue_token))?;
        } else {
            invalid("ListOptions", &list_errors(text, matching, initial_events, continue_token))?;
        }
        Ok(Self {
            labels: first(query, "labelSelector").unwrap_or(""),
            fields: first(query, "fieldSelector").unwrap_or(""),
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token,
            revision: revision(text)?,
            exact: matching == "Exact",
            timeout_secs: timeout.and_then(|t| u64::try_from(t).ok()).filter(|t| *t > 0),
            bookmarks: flag(query, "allowWatchBookmarks").unwrap_or(false),
            initial_events,
        })
    }

    /// How fresh a list without a continue token must be. Kubernetes reads a plain
    /// `resourceVersion` with a limit as exact, so that pages fit together.
    pub fn freshness(&self) -> Freshness {
        match self.revision {
            None => Freshness::Newest,
            Some(Revision::ZERO) => Freshness::Any,
            Some(at) if self.exact || (self.limit > 0) => Freshness::Exact(at),
            Some(at) => Freshness::AtLeast(at),
        }
    }
}

fn list_errors(text: &str, matching: &str, initial: Option<bool>, token: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = "resourceVersionMatch";
    if !matching.is_empty() {
        if text.is_empty() {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(field, matching, &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && text == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    if initial.is_some() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    errors
}

fn watch_errors(matching: &str, initial: Option<bool>, token: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = "resourceVersionMatch";
    if initial.is_some() && matching != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(field, detail));
    }
    if !matching.is_empty() {
        if initial.is_none() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(field, matching, &["NotOlderThan"]));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn show<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
        match result {
            Ok(value) => format!("{value:?}"),
            Err(status) => format!("{} {}", status.code, status.message),
        }
    }

    fn list(query: &str, watch: bool) -> String {
        let pairs = fp_base::url::query_pairs(query);
        show(ListOptions::parse(&pairs, watch).map(|o| (o.freshness(), o.limit, o.initial_events)))
    }

    fn check(got: &[String], want: Expect) {
        want.assert_eq(&got.join("\n"));
    }

    #[test]
    fn lists() {
        let queries = [
            "",
            "resourceVersion=0&limit=5",
            "resourceVersion=7",
            "resourceVersion=7&limit=5",
            "resourceVersion=7&resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=7&resourceVersionMatch=x",
            "sendInitialEvents=true",
            "limit=abc",
            "limit=99999999999999999999",
            "resourceVersion=abc",
            "resourceVersion=-1",
        ];
        check(
            &queries.map(|q| list(q, false)),
            expect![[r#"
            (Newest, 0, None)
            (Any, 5, None)
            (AtLeast(Revision(7)), 0, None)
            (Exact(Revision(7)), 5, None)
            (Exact(Revision(7)), 0, None)
            422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
            422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"
            422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "x": supported values: "Exact", "NotOlderThan", ""
            422 ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list
            400 strconv.ParseInt: parsing "abc": invalid syntax
            400 strconv.ParseInt: parsing "99999999999999999999": value out of range
            400 invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax
            400 invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax"#]],
        );
    }

    #[test]
    fn watches() {
        let queries = [
            "",
            "resourceVersion=0",
            "resourceVersion=7",
            "sendInitialEvents=true",
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch=Exact",
        ];
        check(
            &queries.map(|q| list(q, true)),
            expect![[r#"
            (Newest, 0, Some(true))
            (Any, 0, Some(true))
            (AtLeast(Revision(7)), 0, None)
            422 ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan
            (Newest, 0, Some(false))
            422 ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]"#]],
        );
    }

    #[test]
    fn writes() {
        let parse =
            |q: &str| show(WriteOptions::parse(&fp_base::url::query_pairs(q), WriteKind::Create));
        let queries = [
            "dryRun=All&fieldValidation=Strict&fieldManager=kubectl",
            "dryRun=All&dryRun=None",
            "fieldValidation=x",
            "fieldManager=a%09b",
        ];
        check(
            &queries.map(parse),
            expect![[r#"
            WriteOptions { dry_run: true, fields: Strict }
            422 CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["All","None"]: supported values: "All"
            422 CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"
            422 CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\tb": invalid character U+0009 (at position 1)"#]],
        );
    }

    #[test]
    fn deletes() {
        let parse = |text: &str| {
            let object: Object = serde_json::from_str(text).expect("a test's JSON");
            show(DeleteOptions::from_object(&object))
        };
        let bodies = [
            r#"{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Background"}"#,
            r#"{"propagationPolicy":"Foreground"}"#,
            r#"{"orphanDependents":true}"#,
            r#"{"orphanDependents":false,"propagationPolicy":"x"}"#,
            r#"{"kind":"ConfigMap"}"#,
        ];
        check(
            &bodies.map(parse),
            expect![[r#"
            DeleteOptions { dry_run: false, uid: Some("u"), resource_version: Some("7"), grace_secs: None, background: true }
            501 garbage collection (propagationPolicy Foreground and Orphan) is not served by this version of Ferroplane
            501 garbage collection (propagationPolicy Foreground and Orphan) is not served by this version of Ferroplane
            422 DeleteOptions.meta.k8s.io "" is invalid: [propagationPolicy: Invalid value: "x": orphanDependents and deletionPropagation cannot be both set, propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"]
            400 decoded object cannot be converted to DeleteOptions"#]],
        );
    }
}
