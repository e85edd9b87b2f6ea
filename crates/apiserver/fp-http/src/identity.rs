//! Who asks: credentials become a user, and a user may act as another.
//!
//! `X-Remote-*` headers are never read: no proxy in front of this server speaks for its users.
//! Sources: apiserver's `endpoints/filters/{authentication,impersonation}`, kcp's
//! `pkg/server/filters/impersonation.go`. Stricter than kcp, whose list of reserved groups grew
//! with each advisory: whatever begins with `system:` or mentions `kcp.io` is reserved.

use std::collections::BTreeMap;
use std::sync::Arc;

use fp_auth::{
    AUTHENTICATED, Attributes, Authenticator, Authorizer, Credentials, UNAUTHENTICATED, User,
};
use fp_base::ClusterScope;
use fp_net::Peer;
use fp_object::status::{About, Status};
use fp_verbs::authorize::forbidden;
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The most things one request may ask to impersonate; each costs an authorization.
const IMPERSONATED_MAX: usize = 128;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// kcp's extra that confines a user to clusters.
const SCOPES: &str = fp_auth::effective::SCOPES;

/// The caller behind the credentials of a request.
pub async fn authenticate(
    authenticator: &dyn Authenticator,
    headers: &HeaderMap,
    peer: &Peer,
) -> Result<Arc<User>, Status> {
    let token = bearer(headers);
    let (client_cert, refused) = match peer.cert.trusted() {
        Ok(cert) => (cert, None),
        Err(why) => (None, Some(why)),
    };
    // A connection's certificate never changes: who it stands for is found once.
    let by_cert_only = token.is_none() && client_cert.is_some();
    if by_cert_only && let Some(user) = peer.memo.get().and_then(|m| m.downcast_ref::<Arc<User>>())
    {
        return Ok(user.clone());
    }
    // A certificate that does not verify is worse than none: only a token can save the request.
    if let (Some(why), None) = (refused, token) {
        tracing::debug!(addr = %peer.addr, why, "client certificate refused");
        return Err(Status::unauthorized());
    }
    match authenticator.authenticate(&Credentials { token, client_cert }).await {
        Ok(Some(user)) => {
            let user = Arc::new(user);
            if by_cert_only {
                let _ = peer.memo.set(Box::new(user.clone()));
            }
            Ok(user)
        }
        Ok(None) => Err(Status::unauthorized()),
        Err(why) => {
            tracing::debug!(addr = %peer.addr, %why, "credentials refused");
            Err(Status::unauthorized())
        }
    }
}

/// The token of `Authorization: Bearer <token>`; other schemes are no credentials.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    // More than one word after the scheme is no token (Go takes the second of the split).
    let token = token.split(' ').next().unwrap_or("");
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What the `Impersonate-*` headers ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

/// The user that the request acts as: `caller`, or whom its headers name if `caller` may.
pub async fn impersonate(
    authorizer: &dyn Authorizer,
    headers: &HeaderMap,
    caller: Arc<User>,
    scope: Option<&ClusterScope>,
) -> Result<Arc<User>, Status> {
    let Some(asked) = asked(headers)? else { return Ok(caller) };
    if !caller.is_master() && reserved(&caller, &asked) {
        let about = About { group: "", resource: "", name: "" };
        return Err(Status::forbidden(about, "impersonation is not allowed for the requestor"));
    }
    let account = asked.user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    let account = account.filter(|(namespace, name)| {
        !namespace.is_empty() && !name.is_empty() && !name.contains(':')
    });
    let check = |group, version, resource, subresource, namespace, name| {
        may(authorizer, &caller, scope, [group, version, resource, subresource, namespace, name])
    };
    match account {
        Some((namespace, name)) => {
            check("", "v1", "serviceaccounts", "", namespace, name).await?;
        }
        None => check("", "", "users", "", "", asked.user.as_str()).await?,
    }
    for group in &asked.groups {
        check("", "", "groups", "", "", group.as_str()).await?;
    }
    for (key, values) in &asked.extra {
        for value in values {
            check("authentication.k8s.io", "v1", "userextras", key.as_str(), "", value).await?;
        }
    }
    if !asked.uid.is_empty() {
        check("authentication.k8s.io", "v1", "uids", "", "", asked.uid.as_str()).await?;
    }
    let implied = account_groups(account);
    Ok(Arc::new(acting(asked, implied, &caller, scope)))
}

fn account_groups(account: Option<(&str, &str)>) -> Vec<String> {
    match account {
        Some((namespace, _)) => {
            vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
        }
        None => Vec::new(),
    }
}

/// The user made from what was asked for; `implied` are a service account's groups, which count
/// when none are named.
fn acting(asked: Asked, implied: Vec<String>, caller: &User, scope: Option<&ClusterScope>) -> User {
    let mut groups = if asked.groups.is_empty() { implied } else { asked.groups };
    let has = |groups: &[String], name: &str| groups.iter().any(|g| g == name);
    if asked.user == fp_auth::ANONYMOUS {
        if !has(&groups, UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.into());
        }
    } else if !has(&groups, AUTHENTICATED) && !has(&groups, UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.into());
    }
    let mut extra = asked.extra;
    if !caller.is_master() {
        // What a caller may act as holds only where it was allowed to.
        let cluster = match scope {
            Some(ClusterScope::One(name)) => name.as_str(),
            Some(ClusterScope::All) | None => "",
        };
        extra.entry(SCOPES.into()).or_default().push(format!("cluster:{cluster}"));
    }
    User { name: asked.user, uid: asked.uid, groups, extra }
}

async fn may(
    authorizer: &dyn Authorizer,
    user: &User,
    cluster: Option<&ClusterScope>,
    [group, version, resource, subresource, namespace, name]: [&str; 6],
) -> Result<(), Status> {
    let attributes = Attributes {
        user,
        cluster,
        verb: "impersonate",
        group,
        version,
        resource,
        subresource,
        namespace,
        name,
        path: None,
        deep: false,
    };
    let verdict = authorizer.authorize(&attributes).await;
    if verdict.allowed() { Ok(()) } else { Err(forbidden(&attributes, &verdict)) }
}

/// Whether something is asked for that only a master (or a member, for groups) may become.
fn reserved(caller: &User, asked: &Asked) -> bool {
    let group = |name: &String| {
        let open = name == "system:serviceaccounts"
            || name.starts_with("system:serviceaccounts:")
            || name == UNAUTHENTICATED;
        // kcp's binding identities stand in RBAC beside plain names: they are as good as a group.
        let special = name.starts_with("system:") || name.starts_with("apis.kcp.io:");
        special && !open && !caller.in_group(name)
    };
    let name = &asked.user;
    let user = (name.starts_with("system:") || name.starts_with("apis.kcp.io:"))
        && !name.starts_with(SERVICE_ACCOUNT)
        && name != fp_auth::ANONYMOUS
        && *name != caller.name;
    user || asked.groups.iter().any(group) || asked.extra.keys().any(|key| key.contains("kcp.io"))
}

fn asked(headers: &HeaderMap) -> Result<Option<Asked>, Status> {
    let mut asked = Asked::default();
    let mut n_things = 0;
    for (name, value) in headers {
        let Some(rest) = name.as_str().strip_prefix("impersonate-") else { continue };
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        n_things += 1;
        match name.as_str() {
            USER if asked.user.is_empty() => asked.user = text,
            GROUP => asked.groups.push(text),
            UID if asked.uid.is_empty() => asked.uid = text,
            _ if name.as_str().starts_with(EXTRA) => {
                let key = decode_key(&rest["extra-".len()..]);
                asked.extra.entry(key).or_default().push(text);
            }
            _ => {}
        }
    }
    if n_things > IMPERSONATED_MAX {
        return Err(Status::bad_request(format!(
            "a request may carry {IMPERSONATED_MAX} Impersonate headers, not {n_things}"
        )));
    }
    if asked.user.is_empty() {
        if asked == Asked::default() {
            return Ok(None);
        }
        return Err(Status::bad_request(
            "requested groups, uid or extra without impersonating a user",
        ));
    }
    Ok(Some(asked))
}

/// Header names are lower case already; the key is percent-encoded, or taken as it stands.
fn decode_key(encoded: &str) -> String {
    let mut out = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let hex = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
        match (hex(bytes.next()), hex(bytes.next())) {
            (Some(hi), Some(lo)) => out.push((hi * 16 + lo) as u8),
            _ => return encoded.to_owned(),
        }
    }
    // The key reaches checks that look for lower-case names: decoding must not smuggle others in.
    String::from_utf8(out).map_or_else(|_| encoded.to_owned(), |key| key.to_ascii_lowercase())
}
