//! Authorizers that need no RBAC, and the one that asks several in turn.

use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterScope;

use crate::{Attributes, Authorizer, Decision, PolicyRule, Rules, User, Verdict};

/// Asks each in turn; the first that allows or denies decides.
pub struct Union(pub Vec<Arc<dyn Authorizer>>);

#[async_trait]
impl Authorizer for Union {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        let mut reasons: Vec<String> = Vec::new();
        let mut hint = "";
        for authorizer in &self.0 {
            let verdict = authorizer.authorize(attributes).await;
            if verdict.decision != Decision::NoOpinion {
                return verdict;
            }
            if hint.is_empty() {
                hint = verdict.hint;
            }
            if !verdict.reason.is_empty() {
                reasons.push(verdict.reason);
            }
        }
        Verdict::no_opinion(reasons.join(", ")).with_hint(hint)
    }

    async fn rules(&self, user: &User, cluster: &ClusterScope, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for authorizer in &self.0 {
            let mut some = authorizer.rules(user, cluster, namespace).await;
            all.rules.append(&mut some.rules);
            all.incomplete = all.incomplete.or(some.incomplete);
        }
        all
    }
}

/// `--authorization-order`'s AlwaysAllowGroups: members may do everything.
pub struct AllowGroups(pub Vec<String>);

#[async_trait]
impl Authorizer for AllowGroups {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        if self.0.iter().any(|g| attributes.user.in_group(g)) {
            return Verdict::allow("access granted");
        }
        Verdict::no_opinion("")
    }

    async fn rules(&self, user: &User, _cluster: &ClusterScope, _namespace: &str) -> Rules {
        let mut out = Rules::default();
        if self.0.iter().any(|g| user.in_group(g)) {
            let all = || vec!["*".to_owned()];
            out.rules.push(PolicyRule {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                ..Default::default()
            });
            out.rules.push(PolicyRule {
                verbs: all(),
                non_resource_urls: all(),
                ..Default::default()
            });
        }
        out
    }
}

/// AlwaysAllowPaths: everyone may read these; a trailing `*` is a prefix.
pub struct AllowPaths(pub Vec<String>);

#[async_trait]
impl Authorizer for AllowPaths {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        let fits = |rule: &String, path: &str| match rule.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == rule,
        };
        match attributes.path {
            Some(path) if self.0.iter().any(|rule| fits(rule, path)) => {
                Verdict::allow("access granted")
            }
            _ => Verdict::no_opinion(""),
        }
    }

    async fn rules(&self, _user: &User, _cluster: &ClusterScope, _namespace: &str) -> Rules {
        Rules::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refuses(&'static str, &'static str);

    #[async_trait]
    impl Authorizer for Refuses {
        async fn authorize(&self, _: &Attributes<'_>) -> Verdict {
            Verdict::no_opinion(self.0).with_hint(self.1)
        }

        async fn rules(&self, _: &User, _: &ClusterScope, _: &str) -> Rules {
            Rules::default()
        }
    }

    /// Reviews answer the reason alone, which clients compare as a whole.
    #[tokio::test]
    async fn a_refusal_keeps_reason_and_hint_apart() {
        let nobody = User::default();
        let asked = Attributes::of_path(&nobody, None, "get", "/");
        let union = Union(vec![
            Arc::new(Refuses("", "")),
            Arc::new(Refuses("access denied", "ask an admin")),
        ]);
        let want = Verdict::no_opinion("access denied").with_hint("ask an admin");
        assert_eq!(union.authorize(&asked).await, want);
    }
}
