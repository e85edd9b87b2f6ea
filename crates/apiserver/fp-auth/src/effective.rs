//! Whom a caller counts as in one cluster: scopes, warrants and foreign service accounts.
//!
//! Rules: kcp's Kubernetes fork, `pkg/registry/rbac/validation/kcp.go`. A malformed scope or
//! warrant gives nothing: the caller is then anonymous.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fp_base::ClusterName;

use crate::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};

/// Extra: JSON users whose rights are added.
pub const WARRANT: &str = "authorization.kcp.io/warrant";
/// Extra: `cluster:a,cluster:b` restricts the caller; several values intersect.
pub const SCOPES: &str = "authentication.kcp.io/scopes";
/// Extra: the cluster that an identity belongs to.
pub const CLUSTER_NAME: &str = "authentication.kcp.io/cluster-name";

/// How deep warrants may nest; deeper ones give nothing.
const WARRANT_DEPTH_MAX: usize = 8;
/// How many identities one caller may count as.
const IDENTITIES_MAX: usize = 64;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

#[derive(serde::Deserialize, serde::Serialize, Default)]
#[serde(default)]
struct Warrant {
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
}

impl From<Warrant> for User {
    fn from(w: Warrant) -> Self {
        User { name: w.user, uid: w.uid, groups: w.groups, extra: w.extra }
    }
}

fn extra<'a>(user: &'a User, key: &str) -> &'a [String] {
    user.extra.get(key).map(Vec::as_slice).unwrap_or_default()
}

pub fn is_service_account(user: &User) -> bool {
    user.name.starts_with(SERVICE_ACCOUNT)
}

/// A service account of another cluster. One that names no cluster counts as local.
fn is_foreign(user: &User, cluster: &str) -> bool {
    match extra(user, CLUSTER_NAME) {
        [] => false,
        [one] => one != cluster,
        _ => true,
    }
}

/// The caller counts as itself in `cluster`.
pub fn in_scope(user: &User, cluster: &str) -> bool {
    if is_service_account(user) && is_foreign(user, cluster) {
        return false;
    }
    let names_it =
        |scopes: &String| scopes.split(',').any(|s| s.strip_prefix("cluster:") == Some(cluster));
    extra(user, SCOPES).iter().all(names_it)
}

/// `system:cluster:<name>` for each scope that is in force.
fn cluster_groups(user: &User) -> Vec<String> {
    let Some((first, rest)) = extra(user, SCOPES).split_first() else { return Vec::new() };
    first
        .split(',')
        .filter(|s| s.starts_with("cluster:") && rest.iter().all(|r| r.split(',').any(|x| x == *s)))
        .map(|s| format!("system:{s}"))
        .collect()
}

/// Everyone the caller counts as in `cluster`: a role binding that fits one of them applies.
pub fn users<'a>(user: &'a User, cluster: &ClusterName) -> Vec<Cow<'a, User>> {
    if user.extra.is_empty() && !is_service_account(user) {
        return vec![Cow::Borrowed(user)];
    }
    let mut found = Found::default();
    found.add(Cow::Borrowed(user), cluster.as_str(), 0);
    if found.authenticated {
        let mut groups = vec![AUTHENTICATED.to_owned()];
        groups.extend(cluster_groups(user));
        found.users.push(Cow::Owned(User { name: ANONYMOUS.into(), groups, ..User::default() }));
    }
    if found.unauthenticated {
        found.users.push(Cow::Owned(User::new(ANONYMOUS, &[UNAUTHENTICATED])));
    }
    found.users
}

#[derive(Default)]
struct Found<'a> {
    users: Vec<Cow<'a, User>>,
    authenticated: bool,
    unauthenticated: bool,
}

impl<'a> Found<'a> {
    fn add(&mut self, user: Cow<'a, User>, cluster: &str, depth: usize) {
        if depth > WARRANT_DEPTH_MAX || self.users.len() >= IDENTITIES_MAX {
            return;
        }
        let warrants: Vec<String> = extra(&user, WARRANT).to_vec();
        if is_service_account(&user)
            && let [home] = extra(&user, CLUSTER_NAME)
        {
            self.users.push(Cow::Owned(global_service_account(&user, home)));
        }
        if in_scope(&user, cluster) {
            self.users.push(user);
        } else if user.in_group(AUTHENTICATED) {
            self.authenticated = true;
        } else {
            self.unauthenticated = true;
        }
        for text in warrants {
            let Ok(warrant) = serde_json::from_str::<Warrant>(&text) else { continue };
            let mut other = User::from(warrant);
            if is_service_account(&other) && extra(&other, CLUSTER_NAME).is_empty() {
                continue;
            }
            let more = cluster_groups(&other);
            other.groups.extend(more);
            self.add(Cow::Owned(other), cluster, depth + 1);
        }
    }
}

/// A service account as other clusters may name it.
fn global_service_account(user: &User, home: &str) -> User {
    let rest = user.name.strip_prefix(SERVICE_ACCOUNT).unwrap_or(&user.name);
    let mut groups: Vec<String> =
        user.groups.iter().filter(|g| *g == AUTHENTICATED).cloned().collect();
    groups.extend(cluster_groups(user));
    User {
        name: format!("system:kcp:serviceaccount:{home}:{rest}"),
        groups,
        extra: user.extra.clone(),
        ..User::default()
    }
}

/// The caller as a maximal permission policy names it: name, groups and warrants prefixed.
pub fn prefixed(user: &User, prefix: &str) -> User {
    prefixed_to(user, prefix, 0)
}

fn prefixed_to(user: &User, prefix: &str, depth: usize) -> User {
    let mut name = format!("{prefix}{}", user.name);
    if is_service_account(user) {
        match extra(user, CLUSTER_NAME) {
            [home] => name = format!("{prefix}{}", global_service_account(user, home).name),
            _ => {
                let group =
                    if user.in_group(AUTHENTICATED) { AUTHENTICATED } else { UNAUTHENTICATED };
                return User::new(&format!("{prefix}{ANONYMOUS}"), &[&format!("{prefix}{group}")]);
            }
        }
    }
    let mut out = User {
        name,
        uid: user.uid.clone(),
        groups: user.groups.iter().map(|g| format!("{prefix}{g}")).collect(),
        extra: user.extra.clone(),
    };
    if let Some(warrants) = out.extra.remove(WARRANT)
        && depth < WARRANT_DEPTH_MAX
    {
        let again = |text: &String| {
            let warrant = serde_json::from_str::<Warrant>(text).ok()?;
            let User { name, uid, groups, extra } = prefixed_to(&warrant.into(), prefix, depth + 1);
            serde_json::to_string(&Warrant { user: name, groups, extra, uid }).ok()
        };
        out.extra.insert(WARRANT.into(), warrants.iter().filter_map(again).collect());
    }
    out
}

/// The groups of everyone the caller counts as.
pub fn in_group(user: &User, cluster: &ClusterName, group: &str) -> bool {
    users(user, cluster).iter().any(|u| u.in_group(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user: &User, cluster: &str, want: &[&str]) {
        let cluster = ClusterName::parse(cluster).unwrap();
        let mut got: Vec<String> = users(user, &cluster)
            .iter()
            .map(|u| format!("{} {}", u.name, u.groups.join("+")))
            .collect();
        got.sort();
        assert_eq!(got, want);
    }

    fn with(mut user: User, key: &str, values: &[&str]) -> User {
        user.extra.insert(key.into(), values.iter().map(|v| (*v).to_owned()).collect());
        user
    }

    #[test]
    fn scopes() {
        let alice = User::new("alice", &[AUTHENTICATED, "devs"]);
        check(&alice, "one", &["alice system:authenticated+devs"]);
        let scoped = with(alice.clone(), SCOPES, &["cluster:one,cluster:two", "cluster:one"]);
        check(&scoped, "one", &["alice system:authenticated+devs"]);
        check(&scoped, "two", &["system:anonymous system:authenticated+system:cluster:one"]);
        let broken = with(alice, SCOPES, &["one"]);
        check(&broken, "one", &["system:anonymous system:authenticated"]);
    }

    #[test]
    fn service_accounts_and_warrants() {
        let robot =
            User::new("system:serviceaccount:ns:robot", &[AUTHENTICATED, "system:serviceaccounts"]);
        let robot = with(robot, CLUSTER_NAME, &["one"]);
        check(
            &robot,
            "one",
            &[
                "system:kcp:serviceaccount:one:ns:robot system:authenticated",
                "system:serviceaccount:ns:robot system:authenticated+system:serviceaccounts",
            ],
        );
        check(
            &robot,
            "two",
            &[
                "system:anonymous system:authenticated",
                "system:kcp:serviceaccount:one:ns:robot system:authenticated",
            ],
        );
        let warranted = with(
            User::new("alice", &[]),
            WARRANT,
            &[
                r#"{"user":"bob","groups":["g"]}"#,
                "not json",
                r#"{"user":"system:serviceaccount:a:b"}"#,
            ],
        );
        check(&warranted, "two", &["alice ", "bob g"]);
    }

    #[test]
    fn prefixes() {
        let user = with(User::new("alice", &["g"]), WARRANT, &[r#"{"user":"bob"}"#]);
        let user = prefixed(&user, "p:");
        assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("p:alice", "p:g"));
        assert_eq!(user.extra[WARRANT], [r#"{"user":"p:bob"}"#]);
    }
}
