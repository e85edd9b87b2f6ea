//! Verbs for callers in the process: controllers, bootstrap.
//!
//! The same pipeline as HTTP's, without its authorization: such a caller is the server itself.
//! Admission still sees the user. Objects are given and taken in the version of the [`Gvr`].

use std::sync::Arc;

use fp_auth::User;
use fp_base::{ClusterName, ClusterScope, Gvr, Revision};
use fp_informer::Entry;
use fp_object::meta::Meta;
use fp_object::status::Status;
use fp_object::{Object, Value};
use fp_registry::{Freshness, Guard, ListQuery};
use fp_schema::{ResourceInfo, Sub, VersionInfo};

use crate::body::{self, Expected};
use crate::delete::{self, Gone};
use crate::options::DeleteOptions;
use crate::request::Content;
use crate::status::{about, from_registry};
use crate::surface::{Resolved, Surface};
use crate::target::Target;
use crate::update::{self, Change, Replace};
use crate::write::{Stored, Write};
use crate::{create, view};

/// A caller in the process.
#[derive(Clone)]
pub struct LocalClient {
    surface: Surface,
    user: Arc<User>,
    guards: Arc<[Guard]>,
}

/// What must hold for a delete.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

/// Where one object lives.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub cluster: &'a ClusterName,
    pub gvr: &'a Gvr,
    /// Empty for cluster-scoped resources.
    pub namespace: &'a str,
    pub name: &'a str,
}

impl LocalClient {
    pub fn new(surface: Surface, user: Arc<User>) -> Self {
        Self { surface, user, guards: Arc::new([]) }
    }

    /// The same client, whose every write also asks that these hold (a controller's epoch).
    pub fn guarded(&self, guards: Vec<Guard>) -> Self {
        Self { guards: guards.into(), ..self.clone() }
    }

    /// The same client, which writes only while the object at `at` has this revision.
    pub fn while_unchanged(&self, at: At<'_>, revision: Revision) -> Result<Self, Status> {
        let key = fp_registry::key(at.cluster, at.namespace, at.name);
        Ok(self.guarded(vec![Guard { info: self.found(at)?, key, revision }]))
    }

    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The resource as a cluster (or all) sees it.
    pub fn resolve(&self, scope: &ClusterScope, gvr: &Gvr) -> Result<Arc<ResourceInfo>, Status> {
        match self.surface.resolver.resolve(scope, &gvr.group, &gvr.resource, None, false) {
            Resolved::Found(info) if info.version(&gvr.version).is_some() => Ok(info),
            Resolved::Found(_) | Resolved::Unknown => Err(Status::no_such_resource()),
            Resolved::Unavailable(why) => Err(Status::unavailable(why)),
        }
    }

    /// The resource of an object's place.
    fn found(&self, at: At<'_>) -> Result<Arc<ResourceInfo>, Status> {
        self.resolve(&ClusterScope::One(at.cluster.clone()), at.gvr)
    }

    /// The newest state of one object, in the stored version.
    pub async fn get(&self, at: At<'_>) -> Result<Arc<Entry>, Status> {
        let info = self.found(at)?;
        let key = fp_registry::key(at.cluster, at.namespace, at.name);
        let found = self.surface.backend.get(&info, &key, Freshness::Newest).await;
        found
            .map_err(|e| from_registry(&e, about(&info, at.name)))?
            .ok_or_else(|| Status::not_found(about(&info, at.name)))
    }

    /// The newest state of one object, in the version of its [`Gvr`].
    pub async fn get_object(&self, at: At<'_>) -> Result<Object, Status> {
        let info = self.found(at)?;
        let entry = self.get(at).await?;
        view::in_version(&info, served(&info, at.gvr)?, &entry)
    }

    /// Everything of a resource, at least as new as the call, in the stored version.
    pub async fn list(
        &self,
        scope: &ClusterScope,
        gvr: &Gvr,
        namespace: Option<&str>,
    ) -> Result<Vec<Arc<Entry>>, Status> {
        let info = self.resolve(scope, gvr)?;
        let place = fp_registry::Place { info: &info, scope, namespace, mixed: false };
        let query =
            ListQuery { freshness: Freshness::Newest, start_after: None, limit: 0, filter: None };
        let page = self.surface.backend.list(place, query).await;
        Ok(page.map_err(|e| from_registry(&e, about(&info, "")))?.entries)
    }

    /// Creates the object in the namespace that it names. A custom resource keeps the status that
    /// it comes with.
    pub async fn create(
        &self,
        cluster: &ClusterName,
        gvr: &Gvr,
        mut object: Object,
    ) -> Result<Object, Status> {
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let at = At { cluster, gvr, namespace: &namespace, name: &name };
        let scope = ClusterScope::One(cluster.clone());
        let info = self.resolve(&scope, gvr)?;
        let mut unheard = Vec::new();
        let mut write = self.write(&scope, &info, at, Sub::Whole, &mut unheard)?;
        settle(&info, write.target.version, &mut object)?;
        let stored = create::run(&mut write, object).await?;
        content(&write, stored)
    }

    /// Replaces the object; its resourceVersion decides as for any client.
    pub async fn update(
        &self,
        cluster: &ClusterName,
        gvr: &Gvr,
        object: Object,
    ) -> Result<Object, Status> {
        self.replace(cluster, gvr, object, Sub::Main).await
    }

    /// Replaces the object's status.
    pub async fn update_status(
        &self,
        cluster: &ClusterName,
        gvr: &Gvr,
        object: Object,
    ) -> Result<Object, Status> {
        self.replace(cluster, gvr, object, Sub::Status).await
    }

    /// Replaces the main part and the status: in one write, but for a built-in, whose strategy
    /// knows no such.
    pub async fn update_whole(
        &self,
        cluster: &ClusterName,
        gvr: &Gvr,
        object: Object,
    ) -> Result<Object, Status> {
        let info = self.resolve(&ClusterScope::One(cluster.clone()), gvr)?;
        if info.strategy.is_none() {
            return self.replace(cluster, gvr, object, Sub::Whole).await;
        }
        let status = object.get("status").cloned().unwrap_or_default();
        let mut written = self.update(cluster, gvr, object).await?;
        written.insert("status".into(), status);
        self.update_status(cluster, gvr, written).await
    }

    /// Replaces a subresource's part of the object: `finalize` of a namespace, ...
    pub async fn replace(
        &self,
        cluster: &ClusterName,
        gvr: &Gvr,
        mut object: Object,
        sub: Sub,
    ) -> Result<Object, Status> {
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let at = At { cluster, gvr, namespace: &namespace, name: &name };
        let info = self.found(at)?;
        settle(&info, served(&info, gvr)?, &mut object)?;
        self.change(&info, at, sub, &mut Replace::new(object)).await
    }

    /// Applies `change` to the newest object, again when another write comes between.
    pub async fn modify(
        &self,
        at: At<'_>,
        sub: Sub,
        change: impl Fn(&mut Object) + Send + Sync,
    ) -> Result<Object, Status> {
        self.change(&self.found(at)?, at, sub, &mut Modify(change)).await
    }

    /// Applies a JSON merge patch to the newest object.
    pub async fn merge(&self, at: At<'_>, sub: Sub, patch: &Value) -> Result<Object, Status> {
        let body = serde_json::to_vec(patch).expect("a JSON value is JSON");
        self.change(&self.found(at)?, at, sub, &mut Merge(body)).await
    }

    async fn change(
        &self,
        info: &Arc<ResourceInfo>,
        at: At<'_>,
        sub: Sub,
        change: &mut dyn Change,
    ) -> Result<Object, Status> {
        let scope = ClusterScope::One(at.cluster.clone());
        let mut unheard = Vec::new();
        let mut write = self.write(&scope, info, at, sub, &mut unheard)?;
        let done = update::run(&mut write, change).await?;
        content(&write, done.stored)
    }

    /// Deletes the object, or marks it as being deleted.
    pub async fn delete(&self, at: At<'_>, preconditions: Preconditions) -> Result<Gone, Status> {
        let (scope, info) = (ClusterScope::One(at.cluster.clone()), self.found(at)?);
        let mut unheard = Vec::new();
        let mut write = self.write(&scope, &info, at, Sub::Main, &mut unheard)?;
        let options = DeleteOptions {
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
            ..DeleteOptions::default()
        };
        delete::run(&mut write, &options).await
    }

    fn write<'a>(
        &'a self,
        scope: &'a ClusterScope,
        info: &'a Arc<ResourceInfo>,
        at: At<'a>,
        sub: Sub,
        warnings: &'a mut Vec<String>,
    ) -> Result<Write<'a>, Status> {
        let version = served(info, at.gvr)?;
        let target = Target {
            surface: &self.surface,
            user: &self.user,
            scope,
            info,
            version,
            namespace: at.namespace,
            name: at.name,
            sub,
            mixed: false,
        };
        let mut write = Write::new(target, false, warnings);
        write.guards = &self.guards;
        Ok(write)
    }
}

fn served<'a>(info: &'a ResourceInfo, gvr: &Gvr) -> Result<&'a VersionInfo, Status> {
    info.version(&gvr.version).ok_or_else(Status::no_such_resource)
}

/// Gives a caller's object its kind's form; kind and apiVersion may be left out.
fn settle(info: &ResourceInfo, version: &VersionInfo, object: &mut Object) -> Result<(), Status> {
    if object.kind().is_empty() {
        object.insert("kind".into(), Value::from(&*info.kind));
    }
    if object.api_version().is_empty() {
        object.insert("apiVersion".into(), info.api_version(&version.name).into());
    }
    let expected = Expected { info, version };
    body::settle(expected, object, false).map(drop).map_err(Status::bad_request)
}

struct Modify<F>(F);

impl<F: Fn(&mut Object) + Send + Sync> Change for Modify<F> {
    fn expects(&self) -> Option<&str> {
        None
    }

    fn apply(&mut self, current: Option<&Object>, _: &mut Vec<String>) -> Result<Object, Status> {
        let mut object = current.expect("a change makes no new object").clone();
        (self.0)(&mut object);
        Ok(object)
    }

    fn may_create(&self) -> bool {
        false
    }
}

struct Merge(Vec<u8>);

impl Change for Merge {
    fn expects(&self) -> Option<&str> {
        None
    }

    fn apply(&mut self, current: Option<&Object>, _: &mut Vec<String>) -> Result<Object, Status> {
        let object = current.expect("a change makes no new object").clone();
        let patched = fp_object::patch::merge_patch(object, &self.0);
        patched.map(|p| p.object).map_err(|e| Status::bad_request(e.to_string()))
    }

    fn may_create(&self) -> bool {
        false
    }
}

fn content(write: &Write<'_>, stored: Stored) -> Result<Object, Status> {
    Ok(match write.view(stored)?.content {
        Content::Entry(entry) => entry.object(),
        Content::Object(object) => Arc::unwrap_or_clone(object),
    })
}
