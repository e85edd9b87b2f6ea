//! Object uids: random UUIDs (version 4), as text.

/// A new uid, as `metadata.uid` holds it.
pub fn new() -> String {
    uuid::Uuid::new_v4().to_string()
}
