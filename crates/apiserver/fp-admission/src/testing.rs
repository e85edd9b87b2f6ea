//! What the plugins' tests share.

use std::future::Future;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use fp_auth::User;
use fp_base::{ClusterName, Gr};
use fp_schema::{Origin, ResourceInfo, Scope, Segment, Sub};

use crate::{Attributes, Operation};

static USER: LazyLock<User> = LazyLock::new(User::default);
static ROOT: LazyLock<ClusterName> = LazyLock::new(ClusterName::root);

/// A resource by name and scope only.
pub fn info(group: &str, resource: &str, namespaced: bool) -> ResourceInfo {
    ResourceInfo {
        gr: Gr::new(group, resource),
        kind: "Kind".into(),
        list_kind: "KindList".into(),
        singular: "kind".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
        segment: Segment::Builtin,
        origin: Origin::Builtin,
        versions: Vec::new(),
        storage: 0,
        strategy: None,
        proto: None,
        verbs: Vec::new(),
        terminating: false,
        path_segment_names: false,
        convert: None,
        content_hash: 0,
    }
}

pub fn attributes<'a>(
    info: &'a ResourceInfo,
    operation: Operation,
    namespace: &'a str,
    name: &'a str,
) -> Attributes<'a> {
    Attributes {
        user: &USER,
        cluster: &ROOT,
        info,
        version: "v1",
        sub: Sub::Main,
        operation,
        namespace,
        name,
        dry_run: false,
        old: None,
    }
}

/// Runs a future that waits for nothing.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a test's reader waits for nothing"),
    }
}
