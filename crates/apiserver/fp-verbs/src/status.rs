//! The one place where a registry's error becomes a client's [`Status`].
//!
//! Sources: apiserver's `storage/errors/storage.go`, `storage/errors.go`, `etcd3/errors.go`.

use fp_object::status::{About, Cause, Details, Reason, Status};
use fp_registry::Error;
use fp_schema::ResourceInfo;

/// What a client reads when its resourceVersion is not the current one.
pub const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// How long a client waits before it repeats a request that surely was not applied.
const RETRY_AFTER_SECS: u32 = 1;

/// The resource (and object) that an error speaks of.
pub fn about<'a>(info: &'a ResourceInfo, name: &'a str) -> About<'a> {
    About { group: &info.gr.group, resource: &info.gr.resource, name }
}

/// The answer to a registry's error. An outcome that is not known is a 500 without `Retry-After`:
/// clients repeat a 5xx that carries one, and would send the write twice.
pub fn from_registry(error: &Error, about: About<'_>) -> Status {
    match error {
        Error::NotFound => Status::not_found(about),
        Error::Exists => Status::already_exists(about),
        Error::Conflict(_) => Status::conflict(about, OPTIMISTIC_LOCK),
        Error::Guard => Status::conflict(about, "the writer's epoch is over"),
        Error::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        Error::TooNew { asked, newest } => too_new(asked.0, newest.0),
        Error::TooLarge { .. } => {
            let max = fp_store::VALUE_BYTES_MAX;
            Status::too_large(format_args!("the stored object may have {max} bytes"))
        }
        Error::Codec(what) => Status::internal(what),
        Error::Unknown(_) => Status::internal("the outcome of the write is unknown"),
        Error::Store(store) => from_store(store),
    }
}

fn from_store(error: &fp_store::Error) -> Status {
    match error {
        fp_store::Error::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        fp_store::Error::Future { asked, newest } => too_new(asked.0, newest.0),
        fp_store::Error::TooLarge { max, .. } => {
            Status::too_large(format_args!("the stored object may have {max} bytes"))
        }
        fp_store::Error::Unknown(_) => Status::internal("the outcome of the write is unknown"),
        fp_store::Error::Key(_) => Status::internal(error),
        fp_store::Error::Unavailable { .. } => {
            let details = Details { retry_after_secs: RETRY_AFTER_SECS, ..Details::default() };
            Status::unavailable(error.to_string()).with_details(details)
        }
    }
}

/// A revision that memory has not reached.
pub fn too_new(asked: i64, newest: i64) -> Status {
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    Status::timeout(
        format!("Too large resource version: {asked}, current: {newest}"),
        RETRY_AFTER_SECS,
    )
    .with_details(Details {
        causes: vec![cause],
        retry_after_secs: RETRY_AFTER_SECS,
        ..Details::default()
    })
}

/// The last event of a watch whose history is gone.
pub fn watch_expired(asked: i64, oldest: i64) -> Status {
    Status::expired(format!("too old resource version: {asked} ({oldest})"))
}

/// 405 in Kubernetes' words for a URL that exists, but not with this method.
pub fn no_such_method(info: &ResourceInfo, name: &str) -> Status {
    let details = Details {
        name: name.into(),
        group: info.gr.group.to_string(),
        kind: info.gr.resource.to_string(),
        ..Details::default()
    };
    Status::new(
        405,
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    )
    .with_details(details)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use fp_base::Revision;

    use super::*;

    #[test]
    fn every_error_has_a_code() {
        let about = About { group: "", resource: "configmaps", name: "a" };
        let unavailable =
            || fp_store::Error::Unavailable { what: "disk is full".into(), source: None };
        let errors = [
            Error::NotFound,
            Error::Exists,
            Error::Conflict(None),
            Error::Guard,
            Error::Compacted { asked: Revision(1), oldest: Revision(5) },
            Error::TooNew { asked: Revision(9), newest: Revision(5) },
            Error::TooLarge { bytes: 9_000_000 },
            Error::Codec("x".into()),
            Error::Unknown(unavailable()),
            Error::Store(unavailable()),
        ];
        let lines: Vec<String> = errors
            .iter()
            .map(|e| {
                let s = from_registry(e, about);
                let retry = s.details.as_ref().map_or(0, |d| d.retry_after_secs);
                format!("{} {} retry={retry} {}", s.code, s.reason.as_str(), s.message)
            })
            .collect();
        expect![[r#"
            404 NotFound retry=0 configmaps "a" not found
            409 AlreadyExists retry=0 configmaps "a" already exists
            409 Conflict retry=0 Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
            409 Conflict retry=0 Operation cannot be fulfilled on configmaps "a": the writer's epoch is over
            410 Expired retry=0 The resourceVersion for the provided list is too old.
            504 Timeout retry=1 Timeout: Too large resource version: 9, current: 5
            413 RequestEntityTooLarge retry=0 Request entity too large: the stored object may have 1572864 bytes
            500 InternalError retry=0 Internal error occurred: x
            500 InternalError retry=0 Internal error occurred: the outcome of the write is unknown
            503 ServiceUnavailable retry=1 store is unavailable: disk is full"#]]
        .assert_eq(&lines.join("\n"));
    }
}
