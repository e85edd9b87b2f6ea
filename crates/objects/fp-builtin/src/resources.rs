//! The rows of the table: every built-in resource, in the order of discovery.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use fp_base::{Gr, Gv};
use fp_object::proto::Message;
use fp_schema::{Origin, ResourceInfo, Scope, Segment, Strategy, VersionInfo};
use sha2::{Digest, Sha256};

use crate::columns::{self, Columns};
use crate::core_v1::{config_map, event, namespace, quota, secret, service_account};
use crate::{admission, certificate, crd, lease, rbac, review, rules, tables};

/// A kind that has no rules of its own: what the others start from.
pub(crate) const PLAIN: Strategy = Strategy {
    default: rules::change_nothing,
    prepare_create: rules::change_nothing,
    prepare_update: rules::keep_nothing,
    validate: |_| Vec::new(),
    validate_update: rules::meta_update_only,
    field_labels: &[],
    field_value: rules::no_field_value,
    allow_create_on_update: false,
    allow_unconditional_update: true,
    subresources: &[],
    grace_secs: None,
    create_not_built: None,
    virtual_only: false,
};

const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NO_COLLECTION: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];

const API_EXTENSIONS: &[&str] = &["api-extensions"];

/// A row; all built-in resources have the one version `v1`.
struct Row {
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    scope: Scope,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    verbs: &'static [&'static str],
    status: bool,
    strategy: &'static Strategy,
    message: &'static Message,
    columns: Columns,
}

const fn row(
    (group, resource, kind, scope): (&'static str, &'static str, &'static str, Scope),
    strategy: &'static Strategy,
    message: &'static Message,
    columns: Columns,
) -> Row {
    let (short_names, categories): (&[&str], &[&str]) = (&[], &[]);
    Row {
        group,
        resource,
        kind,
        scope,
        short_names,
        categories,
        verbs: ALL,
        status: false,
        strategy,
        message,
        columns,
    }
}

impl Row {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn status(mut self) -> Self {
        self.status = true;
        self
    }

    const fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.verbs = verbs;
        self
    }

    const fn extension(mut self) -> Self {
        self.categories = API_EXTENSIONS;
        self
    }

    fn info(&self) -> ResourceInfo {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        let mut hasher = DefaultHasher::new();
        (self.group, self.resource, self.kind).hash(&mut hasher);
        ResourceInfo {
            gr: Gr::new(self.group, self.resource),
            kind: self.kind.into(),
            list_kind: format!("{}List", self.kind).into(),
            singular: self.kind.to_lowercase().into(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            scope: self.scope,
            segment: Segment::Builtin,
            origin: Origin::Builtin,
            versions: vec![VersionInfo {
                name: "v1".into(),
                served: true,
                deprecated: None,
                schema: None,
                status: self.status,
                scale: None,
                columns: self.columns.build(),
                selectable: Vec::new(),
                openapi: fp_schema::openapi::Source::Builtin(self.message.name),
            }],
            storage: 0,
            strategy: Some(self.strategy),
            proto: Some(self.message),
            verbs: self.verbs.to_vec(),
            terminating: false,
            path_segment_names: self.group == rbac::GROUP,
            convert: None,
            content_hash: hasher.finish(),
        }
    }
}

use Scope::{Cluster, Namespaced};

static ROWS: &[Row] = &[
    row(
        ("", "configmaps", "ConfigMap", Namespaced),
        &config_map::STRATEGY,
        &tables::core::CONFIG_MAP,
        columns::CONFIG_MAP,
    )
    .short(&["cm"]),
    row(("", "events", "Event", Namespaced), &event::CORE, &tables::core::EVENT, columns::EVENT)
        .short(&["ev"]),
    row(
        ("", "namespaces", "Namespace", Cluster),
        &namespace::STRATEGY,
        &tables::core::NAMESPACE,
        columns::NAMESPACE,
    )
    .short(&["ns"])
    .verbs(NO_COLLECTION)
    .status(),
    row(
        ("", "resourcequotas", "ResourceQuota", Namespaced),
        &quota::STRATEGY,
        &tables::core::RESOURCE_QUOTA,
        columns::QUOTA,
    )
    .short(&["quota"])
    .status(),
    row(
        ("", "secrets", "Secret", Namespaced),
        &secret::STRATEGY,
        &tables::core::SECRET,
        columns::SECRET,
    ),
    row(
        ("", "serviceaccounts", "ServiceAccount", Namespaced),
        &service_account::STRATEGY,
        &tables::core::SERVICE_ACCOUNT,
        columns::NAME_AND_AGE,
    )
    .short(&["sa"]),
    row(
        (AUTHN, "selfsubjectreviews", "SelfSubjectReview", Cluster),
        &review::BASE,
        &tables::authentication::SELF_SUBJECT_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        (AUTHN, "tokenreviews", "TokenReview", Cluster),
        &review::TOKEN,
        &tables::authentication::TOKEN_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        (AUTHZ, "localsubjectaccessreviews", "LocalSubjectAccessReview", Namespaced),
        &review::LOCAL_SUBJECT,
        &tables::authorization::LOCAL_SUBJECT_ACCESS_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        (AUTHZ, "selfsubjectaccessreviews", "SelfSubjectAccessReview", Cluster),
        &review::SELF_SUBJECT,
        &tables::authorization::SELF_SUBJECT_ACCESS_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        (AUTHZ, "selfsubjectrulesreviews", "SelfSubjectRulesReview", Cluster),
        &review::BASE,
        &tables::authorization::SELF_SUBJECT_RULES_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        (AUTHZ, "subjectaccessreviews", "SubjectAccessReview", Cluster),
        &review::SUBJECT,
        &tables::authorization::SUBJECT_ACCESS_REVIEW,
        columns::DEFAULT,
    )
    .verbs(CREATE),
    row(
        ("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", Cluster),
        &certificate::STRATEGY,
        &tables::certificates::CERTIFICATE_SIGNING_REQUEST,
        columns::CERTIFICATE,
    )
    .short(&["csr"])
    .status(),
    row(
        ("coordination.k8s.io", "leases", "Lease", Namespaced),
        &lease::STRATEGY,
        &tables::coordination::LEASE,
        columns::LEASE,
    ),
    row(
        (rbac::GROUP, "clusterrolebindings", "ClusterRoleBinding", Cluster),
        &rbac::CLUSTER_ROLE_BINDING,
        &tables::rbac::CLUSTER_ROLE_BINDING,
        columns::ROLE_BINDING,
    ),
    row(
        (rbac::GROUP, "clusterroles", "ClusterRole", Cluster),
        &rbac::CLUSTER_ROLE,
        &tables::rbac::CLUSTER_ROLE,
        columns::DEFAULT,
    ),
    row(
        (rbac::GROUP, "rolebindings", "RoleBinding", Namespaced),
        &rbac::ROLE_BINDING,
        &tables::rbac::ROLE_BINDING,
        columns::ROLE_BINDING,
    ),
    row(
        (rbac::GROUP, "roles", "Role", Namespaced),
        &rbac::ROLE,
        &tables::rbac::ROLE,
        columns::DEFAULT,
    ),
    row(
        (ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", Cluster),
        &admission::POLICY,
        &tables::admissionregistration::MUTATING_ADMISSION_POLICY,
        columns::MUTATING_POLICY,
    )
    .extension(),
    row(
        (ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", Cluster),
        &admission::BINDING,
        &tables::admissionregistration::MUTATING_ADMISSION_POLICY_BINDING,
        columns::POLICY_BINDING,
    )
    .extension(),
    row(
        (ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Cluster),
        &admission::WEBHOOKS,
        &tables::admissionregistration::MUTATING_WEBHOOK_CONFIGURATION,
        columns::WEBHOOKS,
    )
    .extension(),
    row(
        (ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", Cluster),
        &admission::POLICY_WITH_STATUS,
        &tables::admissionregistration::VALIDATING_ADMISSION_POLICY,
        columns::VALIDATING_POLICY,
    )
    .extension()
    .status(),
    row(
        (
            ADMISSION,
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            Cluster,
        ),
        &admission::BINDING,
        &tables::admissionregistration::VALIDATING_ADMISSION_POLICY_BINDING,
        columns::POLICY_BINDING,
    )
    .extension(),
    row(
        (ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Cluster),
        &admission::WEBHOOKS,
        &tables::admissionregistration::VALIDATING_WEBHOOK_CONFIGURATION,
        columns::WEBHOOKS,
    )
    .extension(),
    row(
        ("events.k8s.io", "events", "Event", Namespaced),
        &event::EVENTS,
        &tables::events::EVENT,
        columns::EVENT,
    )
    .short(&["ev"]),
    row(
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", Cluster),
        &crd::STRATEGY,
        &tables::apiextensions::CUSTOM_RESOURCE_DEFINITION,
        columns::DEFAULT,
    )
    .short(&["crd", "crds"])
    .extension()
    .status(),
];

const AUTHN: &str = "authentication.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

static RESOURCES: LazyLock<Vec<Arc<ResourceInfo>>> =
    LazyLock::new(|| ROWS.iter().map(|row| Arc::new(row.info())).collect());

/// The built-in resources in the order of discovery: the core group, then the groups as `/apis`
/// lists them.
pub fn resources() -> &'static [Arc<ResourceInfo>] {
    &RESOURCES
}

/// The same, where CRDs follow `crds`: which CEL rules can be enforced is the caller's to know.
pub fn resources_with(crds: &'static Strategy) -> Vec<Arc<ResourceInfo>> {
    let info = |(row, info): (&Row, &Arc<ResourceInfo>)| match row.resource {
        "customresourcedefinitions" => {
            Arc::new(ResourceInfo { strategy: Some(crds), ..row.info() })
        }
        _ => info.clone(),
    };
    ROWS.iter().zip(RESOURCES.iter()).map(info).collect()
}

/// The built-in resource of that name.
pub fn resource(group: &str, resource: &str) -> Option<&'static Arc<ResourceInfo>> {
    RESOURCES.iter().find(|r| &*r.gr.group == group && &*r.gr.resource == resource)
}

/// The resource under whose key and in whose form objects of `info` are stored, when it is another:
/// events of `events.k8s.io` are core events.
pub fn stored_as(info: &ResourceInfo) -> Option<&'static Arc<ResourceInfo>> {
    let is_alias = &*info.gr.group == "events.k8s.io" && &*info.gr.resource == "events";
    if is_alias { resource("", "events") } else { None }
}

/// The group and version in which objects of the resource are stored. Where they differ from the
/// served ones the wire form is the same, but for events and CRDs.
pub fn stored_gv(info: &ResourceInfo) -> Gv {
    match (&*info.gr.group, &*info.gr.resource) {
        ("events.k8s.io", _) => Gv::new("", "v1"),
        ("apiextensions.k8s.io", _)
        | (ADMISSION, "mutatingadmissionpolicies" | "mutatingadmissionpolicybindings") => {
            Gv::new(&info.gr.group, "v1beta1")
        }
        (group, _) => Gv::new(group, "v1"),
    }
}

/// `storageVersionHash` of discovery, from the group, version and kind that are stored. kcp puts
/// the cluster before them, which is empty for built-in resources (`discovery.StorageVersionHash`).
/// `None` for what is not stored.
pub fn storage_version_hash(info: &ResourceInfo) -> Option<String> {
    if info.strategy.is_some_and(|s| s.virtual_only) {
        return None;
    }
    let Gv { group, version } = stored_gv(info);
    let digest = Sha256::digest(format!("/{group}/{version}/{}", info.kind));
    Some(BASE64.encode(&digest[..8]))
}
