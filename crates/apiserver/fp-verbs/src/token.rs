//! The continue token of a paged list.
//!
//! Kubernetes' form (`storage/continue.go`): base64 of `{"v":"meta.k8s.io/v1","rv":n,"start":key}`,
//! the key being the last item's with a NUL behind it. Ours begins with the cluster, so that a
//! token of another cluster or namespace is told apart and refused.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fp_base::{ClusterName, ClusterScope, Revision};
use fp_informer::ObjectKey;
use fp_object::status::Status;
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";
/// The longest token that is read, in bytes: a key fits many times.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

/// Where the next page begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    /// `None`: the newest state, which is not consistent with the pages before.
    pub revision: Option<Revision>,
    /// The last object of the page before.
    pub after: ObjectKey,
}

impl Token {
    pub fn encode(&self) -> String {
        let ObjectKey { cluster, namespace, name } = &self.after;
        let start = match &**namespace {
            "" => format!("{cluster}/{name}\0"),
            namespace => format!("{cluster}/{namespace}/{name}\0"),
        };
        let wire = Wire { v: VERSION.into(), rv: self.revision.map_or(-1, |r| r.0), start };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).expect("strings and a number are JSON"))
    }

    /// Reads a token of a list in `scope` and `namespace` of a resource that is namespaced or not.
    pub fn decode(
        text: &str,
        scope: &ClusterScope,
        namespaced: bool,
        namespace: Option<&str>,
    ) -> Result<Self, Status> {
        let bad = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        };
        if text.len() > TOKEN_BYTES_MAX {
            return Err(bad(": too long"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad(": illegal base64 data"))?;
        let wire: Wire =
            serde_json::from_slice(&bytes).map_err(|_| bad(": not the JSON of a token"))?;
        if wire.v != VERSION {
            return Err(bad(&format!(
                ": server does not recognize this encoded version {}",
                wire.v
            )));
        }
        if wire.rv == 0 || wire.rv < -1 {
            return Err(bad(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = wire.start.strip_suffix('\0').unwrap_or(&wire.start);
        let parts: Vec<&str> = start.split('/').collect();
        let foreign = || bad(&format!(": {start}"));
        let (cluster, in_namespace, name) = match (namespaced, parts.as_slice()) {
            (true, [cluster, namespace, name]) => (*cluster, *namespace, *name),
            (false, [cluster, name]) => (*cluster, "", *name),
            _ => return Err(foreign()),
        };
        let segment = |s: &str| !s.is_empty() && s != "." && s != ".." && !s.contains(['\0', '%']);
        let cluster = ClusterName::parse(cluster).map_err(|_| foreign())?;
        let known = segment(name) && (!namespaced || segment(in_namespace));
        let own = scope.contains(cluster.as_str()) && namespace.is_none_or(|n| n == in_namespace);
        if !known || !own {
            return Err(foreign());
        }
        let revision = (wire.rv > 0).then_some(Revision(wire.rv));
        Ok(Self {
            revision,
            after: ObjectKey { cluster, namespace: in_namespace.into(), name: name.into() },
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn token(revision: Option<i64>, cluster: &str) -> String {
        let cluster = ClusterName::parse(cluster).expect("a test's name");
        let after = ObjectKey { cluster, namespace: "default".into(), name: "a".into() };
        Token { revision: revision.map(Revision), after }.encode()
    }

    fn forged(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    #[test]
    fn only_own_tokens_are_read() {
        let scope = ClusterScope::One(ClusterName::root());
        let show = |text: &str| match Token::decode(text, &scope, true, Some("default")) {
            Ok(token) => format!("{:?} {}", token.revision, token.after.name),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        let cases = [
            token(Some(7), "root"),
            token(None, "root"),
            token(Some(7), "other"),
            forged(r#"{"v":"meta.k8s.io/v1","rv":7,"start":"root/default/../x"}"#),
            forged(r#"{"v":"meta.k8s.io/v1","rv":7,"start":"root/default/.."}"#),
            forged(r#"{"v":"meta.k8s.io/v1","rv":7,"start":"root/kube-system/a"}"#),
            forged(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"root/default/a"}"#),
            forged(r#"{"v":"meta.k8s.io/v2","rv":7,"start":"root/default/a"}"#),
            forged("7"),
            "***".into(),
        ];
        expect![[r#"
            Some(Revision(7)) a
            None a
            400 invalid continue token: continue key is not valid: other/default/a
            400 invalid continue token: continue key is not valid: root/default/../x
            400 invalid continue token: continue key is not valid: root/default/..
            400 invalid continue token: continue key is not valid: root/kube-system/a
            400 invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)
            400 invalid continue token: continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2
            400 invalid continue token: continue key is not valid: not the JSON of a token
            400 invalid continue token: continue key is not valid: illegal base64 data"#]]
        .assert_eq(&cases.map(|c| show(&c)).join("\n"));
    }
}
