//! list.

use fp_base::Revision;
use fp_object::status::Status;
use fp_registry::{Error, Freshness, ListQuery, Page};

use crate::options::ListOptions;
use crate::request::{ListMeta, Query, Response, View};
use crate::select::Selection;
use crate::status::from_registry;
use crate::target::Target;
use crate::token::Token;

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old \
    to display a consistent list result. You can start a new list without \
    the continue parameter, or use the continue token in this response to \
    retrieve the remainder of the results. Continuing with the provided \
    token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned \
    and now may show up in the list.";

pub async fn list(target: Target<'_>, query: &Query) -> Result<Response, Status> {
    let options = ListOptions::parse(query, false)?;
    let selection = Selection::parse(target.info, target.version, options.labels, options.fields)?;
    let (page, meta) = page(target, &options, &selection).await?;
    let items: Vec<View> =
        page.entries.into_iter().map(|e| target.view(e)).collect::<Result<_, _>>()?;
    Ok(Response::List {
        info: target.info.clone(),
        version: target.version.name.clone(),
        items,
        meta,
    })
}

/// One page of what a list (or deletecollection) selects, and the list's metadata.
pub async fn page(
    target: Target<'_>,
    options: &ListOptions<'_>,
    selection: &Selection,
) -> Result<(Page, ListMeta), Status> {
    let place = selection.narrow(target).place();
    let token = match options.continue_token {
        "" => None,
        _ if options.revision.is_some_and(|r| r != Revision::ZERO) => {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        text => Some(Token::decode(text, target.scope, target.info.namespaced(), place.namespace)?),
    };
    let freshness = match &token {
        None => options.freshness(),
        Some(token) => token.revision.map_or(Freshness::Newest, Freshness::Exact),
    };
    let filter = |entry: &fp_informer::Entry| selection.matches(entry);
    let query = ListQuery {
        freshness,
        start_after: token.as_ref().map(|t| &t.after),
        // Kubernetes' cache ignores a limit when any state will do.
        limit: if freshness == Freshness::Any { 0 } else { options.limit },
        filter: if selection.is_empty() { None } else { Some(&filter) },
    };
    let page =
        target.surface.backend.list(place, query).await.map_err(|error| match (error, &token) {
            (Error::Compacted { .. }, Some(token)) => {
                let mut status = Status::expired(CONTINUE_EXPIRED);
                status.continue_token =
                    Some(Token { revision: None, after: token.after.clone() }.encode());
                status
            }
            (error, _) => from_registry(&error, target.about()),
        })?;
    let meta = meta(&page, selection);
    Ok((page, meta))
}

fn meta(page: &Page, selection: &Selection) -> ListMeta {
    let continue_token = page
        .entries
        .last()
        .filter(|_| page.more)
        .map(|last| Token { revision: Some(page.revision), after: last.key.clone() }.encode());
    ListMeta {
        resource_version: page.revision.to_string(),
        remaining: page.remaining.filter(|_| selection.is_empty() && continue_token.is_some()),
        continue_token,
    }
}
