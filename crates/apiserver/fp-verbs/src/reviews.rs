//! Access reviews and rules: resources that are answered, not stored.
//!
//! Sources: Kubernetes' `registry/authorization/*/rest.go`, `apis/authorization/validation`,
//! `registry/authentication/selfsubjectreview`.

use fp_auth::{Attributes, Decision, User};
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value, time};
use serde_json::json;

use crate::body::{self, Expected};
use crate::options::{WriteKind, WriteOptions};
use crate::request::{Request, Response};
use crate::target::Target;

pub async fn create(
    target: Target<'_>,
    request: &Request,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, WriteKind::Create)?;
    if let Some(part) = target.info.strategy.and_then(|s| s.create_not_built) {
        return Err(Status::not_implemented(part));
    }
    let expected = Expected { info: target.info, version: target.version };
    let mut object =
        body::decode(expected, request.media, &request.body, options.fields, warnings)?;
    match &*target.info.gr.resource {
        "selfsubjectaccessreviews" => access(target, &mut object, None, false).await?,
        "subjectaccessreviews" => {
            let user = subject(&object);
            access(target, &mut object, Some(user), request.deep_sar).await?;
        }
        "localsubjectaccessreviews" => {
            let user = subject(&object);
            access(target, &mut object, Some(user), false).await?;
        }
        "selfsubjectrulesreviews" => rules(target, &mut object).await?,
        "selfsubjectreviews" => who_am_i(target.user, &mut object),
        other => return Err(Status::not_implemented(other)),
    }
    Ok(Response::Plain { code: 201, object, proto: target.info.proto })
}

/// The user that a SubjectAccessReview speaks of.
fn subject(review: &Object) -> User {
    let list = |value: Option<&Value>| {
        let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let text = |field| review.text(&["spec", field]).unwrap_or("").to_owned();
    let extra = review.at(&["spec", "extra"]).and_then(Value::as_object);
    User {
        name: text("user"),
        uid: text("uid"),
        groups: list(review.at(&["spec", "groups"])),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.to_ascii_lowercase(), list(Some(v))))
            .collect(),
    }
}

async fn access(
    target: Target<'_>,
    review: &mut Object,
    user: Option<User>,
    deep: bool,
) -> Result<(), Status> {
    if !target.namespace.is_empty() {
        match review.namespace() {
            "" => review.set_meta("namespace", target.namespace),
            given if given != target.namespace => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            _ => {}
        }
    }
    if let Some(strategy) = target.info.strategy {
        let errors = (strategy.validate)(review);
        if !errors.is_empty() {
            return Err(Status::invalid(&target.info.gr.group, &target.info.kind, "", &errors));
        }
    }
    let of_resource = |field| review.text(&["spec", "resourceAttributes", field]).unwrap_or("");
    let of_path = |field| review.text(&["spec", "nonResourceAttributes", field]).unwrap_or("");
    let resource = review.at(&["spec", "resourceAttributes"]).is_some();
    let asked = Attributes {
        user: user.as_ref().unwrap_or(target.user),
        cluster: Some(target.scope),
        verb: if resource { of_resource("verb") } else { of_path("verb") },
        group: of_resource("group"),
        version: of_resource("version"),
        resource: of_resource("resource"),
        subresource: of_resource("subresource"),
        namespace: of_resource("namespace"),
        name: of_resource("name"),
        path: (!resource).then(|| of_path("path")),
        deep: deep && target.user.is_master(),
    };
    let verdict = target.surface.authorizer.authorize(&asked).await;
    let mut status = json!({ "allowed": verdict.decision == Decision::Allow });
    if verdict.decision == Decision::Deny {
        status["denied"] = true.into();
    }
    if !verdict.reason.is_empty() {
        status["reason"] = verdict.reason.into();
    }
    review.insert("status".into(), status);
    Ok(())
}

async fn rules(target: Target<'_>, review: &mut Object) -> Result<(), Status> {
    let namespace = review.text(&["spec", "namespace"]).unwrap_or("").to_owned();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let found = target.surface.authorizer.rules(target.user, target.scope, &namespace).await;
    let (mut of_resources, mut of_paths) = (Vec::new(), Vec::new());
    for rule in &found.rules {
        if !rule.resources.is_empty() || !rule.api_groups.is_empty() {
            let mut out = json!({ "verbs": rule.verbs });
            for (key, list) in [
                ("apiGroups", &rule.api_groups),
                ("resources", &rule.resources),
                ("resourceNames", &rule.resource_names),
            ] {
                if !list.is_empty() {
                    out[key] = json!(list);
                }
            }
            of_resources.push(out);
        }
        if !rule.non_resource_urls.is_empty() {
            of_paths
                .push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
        }
    }
    let mut status = json!({
        "resourceRules": of_resources, "nonResourceRules": of_paths, "incomplete": found.incomplete.is_some(),
    });
    if let Some(why) = found.incomplete {
        status["evaluationError"] = why.into();
    }
    // Kubernetes answers with a new object: the spec is not repeated.
    review.insert("metadata".into(), json!({}));
    review.insert("spec".into(), json!({}));
    review.insert("status".into(), status);
    Ok(())
}

fn who_am_i(user: &User, review: &mut Object) {
    let mut info = Object::new();
    if !user.name.is_empty() {
        info.insert("username".into(), user.name.as_str().into());
    }
    if !user.uid.is_empty() {
        info.insert("uid".into(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        info.insert("groups".into(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra".into(), json!(user.extra));
    }
    review.insert("metadata".into(), json!({ "creationTimestamp": time::now() }));
    review.insert("status".into(), json!({ "userInfo": info }));
}
