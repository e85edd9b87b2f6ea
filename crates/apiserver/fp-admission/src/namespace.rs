//! Kubernetes' NamespaceLifecycle: nothing is created in a namespace that is missing or going away,
//! and some namespaces stay.
//!
//! Rules: `apiserver/pkg/admission/plugin/namespace/lifecycle`. Whether the immortal ones may go
//! after all is for the caller to say: kcp lets them go with their workspace.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use fp_base::ClusterName;
use fp_object::Object;
use fp_object::status::{About, Cause, Status};

use crate::{Attributes, Operation, Plugin};

/// What is known of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    Missing,
    Active,
    Terminating,
}

/// Reads a namespace; sees what this process has written before.
pub type ReadNamespace = Arc<
    dyn Fn(ClusterName, String) -> Pin<Box<dyn Future<Output = Result<Namespace, Status>> + Send>>
        + Send
        + Sync,
>;

/// Namespaces that may not be deleted.
pub const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The plugin.
pub struct NamespaceLifecycle {
    pub read: ReadNamespace,
    /// The cluster is going away, and its immortal namespaces with it.
    pub cluster_ends: Box<dyn Fn(&ClusterName) -> bool + Send + Sync>,
}

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "WorkspaceNamespaceLifecycle"
    }

    async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        _object: &mut Object,
    ) -> Result<(), Status> {
        let namespace = attributes.namespace;
        // Answering about the namespace of a review would tell whether it exists.
        let review = attributes.is("authorization.k8s.io", "localsubjectaccessreviews");
        if namespace.is_empty()
            || attributes.is("", "namespaces")
            || review
            || attributes.operation != Operation::Create
        {
            return Ok(());
        }
        match (self.read)(attributes.cluster.clone(), namespace.to_owned()).await? {
            Namespace::Active => Ok(()),
            Namespace::Missing => {
                Err(Status::not_found(About { group: "", resource: "namespaces", name: namespace }))
            }
            Namespace::Terminating => Err(terminating(attributes)),
        }
    }

    async fn validate(
        &self,
        attributes: &Attributes<'_>,
        _object: Option<&Object>,
    ) -> Result<(), Status> {
        let deletes = attributes.operation == Operation::Delete && attributes.is("", "namespaces");
        if deletes
            && IMMORTAL.contains(&attributes.name)
            && !(self.cluster_ends)(attributes.cluster)
        {
            let about = About { group: "", resource: "namespaces", name: attributes.name };
            return Err(Status::forbidden(about, "this namespace may not be deleted"));
        }
        Ok(())
    }
}

fn terminating(attributes: &Attributes<'_>) -> Status {
    let (gr, namespace) = (&attributes.info.gr, attributes.namespace);
    let about = About { group: &gr.group, resource: &gr.resource, name: attributes.name };
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = Status::forbidden(about, why);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        });
    }
    status
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::testing::{attributes, info, run};

    fn plugin(cluster_ends: bool) -> NamespaceLifecycle {
        let read: ReadNamespace = Arc::new(|_, namespace| {
            let found = match namespace.as_str() {
                "default" => Namespace::Active,
                "gone" => Namespace::Terminating,
                _ => Namespace::Missing,
            };
            Box::pin(async move { Ok(found) })
        });
        NamespaceLifecycle { read, cluster_ends: Box::new(move |_| cluster_ends) }
    }

    fn show(result: Result<(), Status>) -> String {
        match result {
            Ok(()) => "ok".into(),
            Err(status) => format!("{} {}", status.code, status.message),
        }
    }

    #[test]
    fn creates_need_a_live_namespace() {
        let create = |namespace| {
            let (info, plugin) = (info("", "configmaps", true), plugin(false));
            let attributes = attributes(&info, Operation::Create, namespace, "a");
            show(run(plugin.mutate(&attributes, &mut Object::new())))
        };
        expect![[r#"
            ok
            404 namespaces "none" not found
            403 configmaps "a" is forbidden: unable to create new content in namespace gone because it is being terminated"#]]
        .assert_eq(&["default", "none", "gone"].map(create).join("\n"));
    }

    #[test]
    fn immortal_while_the_cluster_lives() {
        let delete = |(name, cluster_ends)| {
            let info = info("", "namespaces", false);
            let attributes = attributes(&info, Operation::Delete, "", name);
            show(run(plugin(cluster_ends).validate(&attributes, None)))
        };
        expect![[r#"
            403 namespaces "default" is forbidden: this namespace may not be deleted
            ok
            ok"#]]
        .assert_eq(
            &[("default", false), ("default", true), ("mine", false)].map(delete).join("\n"),
        );
    }
}
