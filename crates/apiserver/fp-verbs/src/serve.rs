//! One request: authorization, resolution, then its verb.

use fp_base::url::ResourcePath;
use fp_object::names;
use fp_object::status::{About, Status};
use fp_schema::{Origin, ResourceInfo, Sub, VersionInfo};

use crate::authorize::{self, Verb};
use crate::request::{Answer, Request, Response};
use crate::status::no_such_method;
use crate::surface::{Resolved, Surface};
use crate::target::Target;
use crate::update::sub_of;
use crate::{create, delete, get, list, patch, reviews, scale, update, watch};

/// Answers a resource request.
pub async fn serve(surface: &Surface, request: Request) -> Answer {
    let mut warnings = Vec::new();
    let result = route(surface, &request, &mut warnings).await;
    Answer { result, warnings }
}

async fn route(
    surface: &Surface,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let path = &request.path;
    check_segment("Namespace", path.namespace.as_deref())?;
    check_segment("Name", path.name.as_deref())?;
    let verb = Verb::of(request.method, path, &request.query);
    let (user, scope) = (&request.user, &request.scope);
    authorize::check(&*surface.authorizer, user, scope, verb, path, &request.query).await?;

    let name = path.name.as_deref().unwrap_or("");
    if scope.one().is_none() && (!verb.is_collection_read() || path.subresource.is_some()) {
        let about = About { group: &path.group, resource: &path.resource, name };
        let mut status = Status::method_not_allowed(about, verb.as_str());
        status.message.push_str(" in the `*` logical cluster");
        return Err(status);
    }
    let identity = path.identity.as_deref();
    let info = match surface.resolver.resolve(
        scope,
        &path.group,
        &path.resource,
        identity,
        request.partial,
    ) {
        Resolved::Found(info) => info,
        Resolved::Unknown => return Err(Status::no_such_resource()),
        Resolved::Unavailable(why) => return Err(Status::unavailable(why)),
    };
    let custom = info.strategy.is_none();
    let mixed = scope.one().is_none()
        && request.partial
        && identity.is_none()
        && custom
        && !matches!(info.origin, Origin::System { .. });
    let version = version(&info, &path.version, mixed)?;
    let namespace = namespace(&info, path, verb)?;
    let sub = sub(&info, version, path.subresource.as_deref().unwrap_or(""), name)?;
    let target = Target { surface, user, scope, info: &info, version, namespace, name, sub, mixed };
    warnings.extend(target.deprecation());
    dispatch(target, verb, request, warnings).await
}

/// A name must be one segment of a path.
fn check_segment(what: &str, text: Option<&str>) -> Result<(), Status> {
    let Some(text) = text else { return Ok(()) };
    let errors = names::name_is_path_segment(text, false);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::bad_request(format!("{what} parameter invalid: {text:?}: {}", errors.join(";"))))
}

/// The version of the URL. A metadata read across clusters is content with any: definitions differ.
fn version<'a>(info: &'a ResourceInfo, name: &str, mixed: bool) -> Result<&'a VersionInfo, Status> {
    match info.version(name) {
        Some(version) if version.served => Ok(version),
        _ if mixed => Ok(info.storage_version()),
        _ => Err(Status::no_such_resource()),
    }
}

/// The namespace of the URL, which must fit the resource's scope.
fn namespace<'a>(
    info: &ResourceInfo,
    path: &'a ResourcePath,
    verb: Verb,
) -> Result<&'a str, Status> {
    let namespace = path.namespace.as_deref();
    // `namespaces/x` is a request within namespace x for authorization only.
    if delete::is_namespace(info) && (namespace.is_none() || namespace == path.name.as_deref()) {
        return Ok("");
    }
    match namespace {
        Some(_) if !info.namespaced() => Err(Status::no_such_resource()),
        None if info.namespaced() && !verb.is_collection_read() => Err(Status::no_such_resource()),
        namespace => Ok(namespace.unwrap_or("")),
    }
}

fn sub(
    info: &ResourceInfo,
    version: &VersionInfo,
    name: &str,
    object: &str,
) -> Result<Sub, Status> {
    let known = info.strategy.map_or(&[][..], |s| s.subresources);
    let found = sub_of(name, known).filter(|sub| match sub {
        Sub::Status => version.status,
        Sub::Scale => version.scale.is_some(),
        Sub::Whole => false,
        Sub::Main | Sub::Other(_) => true,
    });
    match found {
        Some(sub) => Ok(sub),
        None if info.strategy.is_none() => {
            Err(Status::not_found(crate::status::about(info, object)))
        }
        None => Err(Status::no_such_resource()),
    }
}

async fn dispatch(
    target: Target<'_>,
    verb: Verb,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let named = !target.name.is_empty();
    let query = &request.query;
    match target.sub {
        Sub::Main | Sub::Whole => {}
        Sub::Scale => {
            return match verb {
                Verb::Get if named => scale::get(target, query).await,
                Verb::Update if named => scale::update(target, request, warnings).await,
                Verb::Patch if named => scale::patch(target, request, warnings).await,
                _ => Err(Status::method_not_allowed(target.about(), verb.as_str())),
            };
        }
        Sub::Other("token") => {
            return match verb {
                Verb::Create => Err(Status::not_implemented("serviceaccounts/token")),
                _ => Err(no_such_method(target.info, target.name)),
            };
        }
        Sub::Other("finalize") if verb != Verb::Update => {
            return Err(no_such_method(target.info, target.name));
        }
        Sub::Status | Sub::Other(_) => {
            if !named || !matches!(verb, Verb::Get | Verb::Update | Verb::Patch) {
                return Err(Status::method_not_allowed(target.about(), verb.as_str()));
            }
        }
    }
    // A custom resource whose definition is going shows fewer verbs, but its objects' finalizers
    // must still be taken away.
    let builtin = target.info.strategy.is_some();
    if target.sub == Sub::Main && builtin && !target.info.verbs.contains(&verb.as_str()) {
        return Err(Status::method_not_allowed(target.about(), verb.as_str()));
    }
    match verb {
        Verb::Get => get::get(target, query).await,
        Verb::List => list::list(target, query).await,
        Verb::Watch => watch::watch(target, query).await,
        Verb::Create if named => Err(no_such_method(target.info, target.name)),
        Verb::Create if target.info.strategy.is_some_and(|s| s.virtual_only) => {
            reviews::create(target, request, warnings).await
        }
        Verb::Create => create::create(target, request, warnings).await,
        Verb::Update | Verb::Patch if !named => Err(no_such_method(target.info, target.name)),
        Verb::Update => update::update(target, request, warnings).await,
        Verb::Patch => patch::patch(target, request, warnings).await,
        Verb::Delete => delete::delete(target, request, warnings).await,
        Verb::DeleteCollection => delete::collection(target, request, warnings).await,
    }
}
