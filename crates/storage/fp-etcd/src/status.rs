//! gRPC statuses with etcd's codes and texts (`api/v3rpc/rpctypes`), which clients compare.

use std::borrow::Cow;
use std::error::Error as _;

use fp_store::Error;

/// A gRPC status code, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidArgument = 3,
    NotFound = 5,
    ResourceExhausted = 8,
    OutOfRange = 11,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// How a call ended that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    pub message: Cow<'static, str>,
}

const fn known(code: Code, message: &'static str) -> Status {
    Status { code, message: Cow::Borrowed(message) }
}

use Code::{InvalidArgument, NotFound, OutOfRange, Unavailable};

pub const EMPTY_KEY: Status = known(InvalidArgument, "etcdserver: key is not provided");
pub const KEY_NOT_FOUND: Status = known(InvalidArgument, "etcdserver: key not found");
pub const VALUE_PROVIDED: Status = known(InvalidArgument, "etcdserver: value is provided");
pub const LEASE_PROVIDED: Status = known(InvalidArgument, "etcdserver: lease is provided");
pub const TOO_MANY_OPS: Status =
    known(InvalidArgument, "etcdserver: too many operations in txn request");
pub const DUPLICATE_KEY: Status =
    known(InvalidArgument, "etcdserver: duplicate key given in txn request");
pub const SORT_OPTION: Status = known(InvalidArgument, "etcdserver: invalid sort option");
pub const TOO_LARGE: Status = known(InvalidArgument, "etcdserver: request is too large");
pub const COMPACTED: Status =
    known(OutOfRange, "etcdserver: mvcc: required revision has been compacted");
pub const FUTURE: Status =
    known(OutOfRange, "etcdserver: mvcc: required revision is a future revision");
pub const NO_SPACE: Status =
    known(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded");
pub const LEASE_NOT_FOUND: Status = known(NotFound, "etcdserver: requested lease not found");
pub const LEASE_TTL_TOO_LARGE: Status = known(OutOfRange, "etcdserver: too large lease TTL");
pub const TOO_MANY_REQUESTS: Status =
    known(Code::ResourceExhausted, "etcdserver: too many requests");
pub const STOPPED: Status = known(Unavailable, "etcdserver: server stopped");
/// The outcome is unknown: etcd's clients know this text for it.
pub const TIMEOUT: Status = known(Unavailable, "etcdserver: request timed out");

impl Status {
    pub fn unimplemented(what: &str) -> Self {
        let message = format!("{what} is not served by ferroplane store");
        Self { code: Code::Unimplemented, message: message.into() }
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: InvalidArgument, message: message.into() }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Compacted { .. } => COMPACTED,
            Error::Future { .. } => FUTURE,
            Error::TooLarge { .. } => TOO_LARGE,
            Error::Key(_) => Self::invalid(format!("etcdserver: {error}")),
            Error::Unknown(_) => {
                tracing::warn!(%error, source = error.source().map(|e| e.to_string()), "write");
                TIMEOUT
            }
            Error::Unavailable { ref what, .. } if what.contains("no space") => NO_SPACE,
            Error::Unavailable { .. } => {
                tracing::debug!(%error, source = error.source().map(|e| e.to_string()), "store");
                Self { code: Unavailable, message: format!("etcdserver: {error}").into() }
            }
        }
    }
}
