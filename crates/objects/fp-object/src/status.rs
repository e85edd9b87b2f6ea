//! Kubernetes' `Status`: every refusal that a client sees, with the code, reason and message that
//! client-go parses (`apimachinery/pkg/api/errors/errors.go`).

use serde_json::json;

use crate::field::{self, FieldError};
use crate::go::quote;
use crate::{Object, Value};

/// `metav1.StatusReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
    /// 501: the part is not built here yet.
    NotImplemented,
    Unknown,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Invalid => "Invalid",
            Self::ServerTimeout => "ServerTimeout",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::BadRequest => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InternalError => "InternalError",
            Self::Expired => "Expired",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::NotImplemented => "NotImplemented",
            Self::Unknown => "",
        }
    }
}

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// `status.details`. Empty members are left out of the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// Usually the resource, in lower case plural; the kind for `Invalid`.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_secs: u32,
}

/// A refusal. `Display` is its message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    pub code: u16,
    pub reason: Reason,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// For `410 Expired` of a paged list: the token that continues it inconsistently.
    pub continue_token: Option<String>,
}

/// `resource.group` of the object that a Status speaks of, and its name.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub group: &'a str,
    pub resource: &'a str,
    pub name: &'a str,
}

impl About<'_> {
    fn gr(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Details {
        Details {
            name: self.name.into(),
            group: self.group.into(),
            kind: self.resource.into(),
            ..Details::default()
        }
    }
}

impl Status {
    pub fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    /// `configmaps "x" is forbidden: why`.
    pub fn forbidden(about: About<'_>, why: impl std::fmt::Display) -> Self {
        let message = match (about.resource, about.name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", about.gr()),
            (_, name) => format!("{} {} is forbidden: {why}", about.gr(), quote(name)),
        };
        Self::new(403, Reason::Forbidden, message).with_details(about.details())
    }

    pub fn not_found(about: About<'_>) -> Self {
        Self::new(404, Reason::NotFound, format!("{} {} not found", about.gr(), quote(about.name)))
            .with_details(about.details())
    }

    /// What an unknown URL gets: client-go prints it as "the server could not find the requested resource".
    pub fn no_such_resource() -> Self {
        Self::new(404, Reason::NotFound, "the server could not find the requested resource")
            .with_details(Details::default())
    }

    pub fn already_exists(about: About<'_>) -> Self {
        Self::new(
            409,
            Reason::AlreadyExists,
            format!("{} {} already exists", about.gr(), quote(about.name)),
        )
        .with_details(about.details())
    }

    /// A name made from `generateName` was taken; the client may try again.
    pub fn generated_name_taken(about: About<'_>, retry_after_secs: u32) -> Self {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            about.gr(),
            quote(about.name)
        );
        Self::new(409, Reason::AlreadyExists, message)
            .with_details(Details { retry_after_secs, ..about.details() })
    }

    pub fn conflict(about: About<'_>, why: impl std::fmt::Display) -> Self {
        Self::new(
            409,
            Reason::Conflict,
            format!("Operation cannot be fulfilled on {} {}: {why}", about.gr(), quote(about.name)),
        )
        .with_details(about.details())
    }

    /// 422 with a cause per error. `kind` is the object's kind, `name` its name.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let list = match errors {
            [] => String::new(),
            _ => format!(": {}", field::aggregate(errors)),
        };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let causes = errors
            .iter()
            .map(|e| Cause {
                reason: e.cause_reason().into(),
                message: e.body(),
                field: e.field.clone(),
            })
            .collect();
        Self::new(422, Reason::Invalid, format!("{qualified} {} is invalid{list}", quote(name)))
            .with_details(Details {
                name: name.into(),
                group: group.into(),
                kind: kind.into(),
                causes,
                ..Details::default()
            })
    }

    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = format!("Internal error occurred: {message}");
        let causes = vec![Cause { message: message.to_string(), ..Cause::default() }];
        Self::new(500, Reason::InternalError, text)
            .with_details(Details { causes, ..Details::default() })
    }

    /// 501: names the part that is not here yet.
    pub fn not_implemented(part: impl std::fmt::Display) -> Self {
        Self::new(
            501,
            Reason::NotImplemented,
            format!("{part} is not served by this version of Ferroplane"),
        )
    }

    pub fn method_not_allowed(about: About<'_>, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {}", quote(&about.gr()));
        let details = Details { name: String::new(), ..about.details() };
        Self::new(405, Reason::MethodNotAllowed, message).with_details(details)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, Reason::UnsupportedMediaType, message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, Reason::NotAcceptable, message)
    }

    /// `Request entity too large: limit is 3145728`.
    pub fn too_large(message: impl std::fmt::Display) -> Self {
        Self::new(
            413,
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: {message}"),
        )
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message)
    }

    /// `Timeout: message`.
    pub fn timeout(message: impl std::fmt::Display, retry_after_secs: u32) -> Self {
        Self::new(504, Reason::Timeout, format!("Timeout: {message}"))
            .with_details(Details { retry_after_secs, ..Details::default() })
    }

    /// 500: the operation should be tried again.
    pub fn server_timeout(about: About<'_>, operation: &str, retry_after_secs: u32) -> Self {
        let message = format!(
            "The {operation} operation against {} could not be completed at this time, please try again.",
            about.gr()
        );
        let details = Details { name: operation.into(), retry_after_secs, ..about.details() };
        Self::new(500, Reason::ServerTimeout, message).with_details(details)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, Reason::ServiceUnavailable, message)
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_secs: u32) -> Self {
        Self::new(429, Reason::TooManyRequests, message)
            .with_details(Details { retry_after_secs, ..Details::default() })
    }

    /// The Status as Kubernetes prints it.
    pub fn to_json(&self) -> Value {
        let mut metadata = Object::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut out = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.as_str().is_empty() {
            out["reason"] = self.reason.as_str().into();
        }
        if let Some(details) = &self.details {
            out["details"] = details.to_json();
        }
        out
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                out.insert(key.into(), value.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            out.insert("causes".into(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_secs > 0 {
            out.insert("retryAfterSeconds".into(), self.retry_after_secs.into());
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        for (key, value) in
            [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !value.is_empty() {
                out.insert(key.into(), value.as_str().into());
            }
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(status: Status, want: Expect) {
        want.assert_eq(&status.to_json().to_string());
    }

    #[test]
    fn prints_as_kubernetes() {
        let about = About { group: "apps", resource: "deployments", name: "x" };
        check(
            Status::not_found(about),
            expect![[
                r#"{"apiVersion":"v1","code":404,"details":{"group":"apps","kind":"deployments","name":"x"},"kind":"Status","message":"deployments.apps \"x\" not found","metadata":{},"reason":"NotFound","status":"Failure"}"#
            ]],
        );
        let twice = FieldError::required("spec.x", "");
        check(
            Status::invalid(
                "",
                "Pod",
                "p",
                &[twice.clone(), twice, FieldError::invalid("spec.y", "v", "no")],
            ),
            expect![[
                r#"{"apiVersion":"v1","code":422,"details":{"causes":[{"field":"spec.x","message":"Required value","reason":"FieldValueRequired"},{"field":"spec.x","message":"Required value","reason":"FieldValueRequired"},{"field":"spec.y","message":"Invalid value: \"v\": no","reason":"FieldValueInvalid"}],"kind":"Pod","name":"p"},"kind":"Status","message":"Pod \"p\" is invalid: [spec.x: Required value, spec.y: Invalid value: \"v\": no]","metadata":{},"reason":"Invalid","status":"Failure"}"#
            ]],
        );
    }
}
