//! The controllers, one row each.

use crate::routes::Controller;
use crate::{
    api_binding, api_binding_deletion, api_export, cluster_roles, crd, crd_cleanup, endpoint_slice,
    logical_cluster, logical_cluster_deletion, namespace, namespace_defaults, replicate, workspace,
    workspace_type,
};

pub const CONTROLLERS: &[Controller] = &[
    workspace::CONTROLLER,
    logical_cluster::CONTROLLER,
    logical_cluster_deletion::CONTROLLER,
    workspace_type::CONTROLLER,
    api_export::CONTROLLER,
    endpoint_slice::CONTROLLER,
    api_binding::CONTROLLER,
    api_binding_deletion::CONTROLLER,
    crd::CONTROLLER,
    crd_cleanup::CONTROLLER,
    namespace::CONTROLLER,
    namespace_defaults::CONTROLLER,
    cluster_roles::CONTROLLER,
    replicate::ROLES,
    replicate::BINDINGS,
    replicate::LOGICAL_CLUSTERS,
];
