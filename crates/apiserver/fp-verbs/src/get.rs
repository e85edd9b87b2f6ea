//! get.

use fp_object::status::Status;

use crate::options;
use crate::request::{Query, Response};
use crate::status::from_registry;
use crate::target::Target;

/// One object, or the `status` subresource, which reads the whole object too.
pub async fn get(target: Target<'_>, query: &Query) -> Result<Response, Status> {
    let freshness = options::get_freshness(query)?;
    let found = target.surface.backend.get(target.info, &target.key(), freshness).await;
    let entry = found
        .map_err(|e| from_registry(&e, target.about()))?
        .ok_or_else(|| Status::not_found(target.about()))?;
    Ok(Response::Object { code: 200, view: target.view(entry)? })
}
