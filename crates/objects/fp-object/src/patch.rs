//! The three patches that change an object without field ownership: JSON patch, merge patch,
//! strategic merge patch (`apiserver/pkg/endpoints/handlers/patch.go`).

mod json_patch;
mod merge;
mod strategic;

pub use json_patch::json_patch;
pub use merge::merge_patch;
pub use strategic::{Shape, strategic_merge_custom, strategic_merge_patch};

use crate::{Object, json};

/// The most operations of one JSON patch.
pub const OPERATIONS_MAX: usize = 10_000;
/// How many bytes the `copy` operations of one JSON patch may add.
pub const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// What Kubernetes tells a client whose patch does not apply, whatever the reason.
pub const REJECTED_MESSAGE: &str = "the server rejected our request due to an error in our request";

/// Why a patch has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// 400 with this message: the patch cannot be read. Go answers 500 for some of them.
    #[error("{0}")]
    Malformed(String),
    /// 413: more than [`OPERATIONS_MAX`].
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooManyOperations(usize),
    /// 422 Invalid with [`REJECTED_MESSAGE`] and empty details. The text here is for the log.
    #[error("{0}")]
    Rejected(String),
    /// 422 Invalid of no kind and no name: `patch: Invalid value: "<patched>": <detail>`.
    #[error("{detail}")]
    NotObject { patched: String, detail: String },
}

/// A patched object, with what `fieldValidation` may complain of in the patch itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    pub object: Object,
    pub strict: Vec<String>,
}

/// A patch body that is an object.
fn decode_object(body: &[u8]) -> Result<json::Decoded, Error> {
    json::decode(body).map_err(|e| match e {
        // Go reads `null` as an empty map, and only then finds that it is no patch.
        json::Error::NotObject("null") => Error::Malformed("Invalid JSON Patch".into()),
        e => Error::Malformed(format!("error decoding patch: {e}")),
    })
}
