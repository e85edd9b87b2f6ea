//! A backend over a real store, with its pump.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fp_base::{ClusterName, ClusterScope, Gr, Identity, Revision};
use fp_informer::{Entry, Informer, ObjectKey};
use fp_keyspace::{Layout, PREFIX};
use fp_object::{Object, json};
use fp_schema::{Origin, ResourceInfo, Scope, Segment, VersionInfo, openapi};
use fp_store::{MemoryStore, Op, Outcome, Store, Txn};
use fp_store_sql::SqliteStore;
use tokio::task::JoinHandle;

use crate::pump::Pump;
use crate::store::StoreBackend;
use crate::{Backend, Change, Error, Freshness, ListQuery, Page, Place, Step, Watch, WatchFrom};

pub struct Rig {
    pub backend: Arc<StoreBackend>,
    pub store: Arc<dyn Store>,
    pub configmaps: Arc<ResourceInfo>,
    pub shirts: Arc<ResourceInfo>,
    /// The same resource, bound from two exports.
    pub bound_shirts: [Arc<ResourceInfo>; 2],
    pump: Option<Pump>,
    running: Option<JoinHandle<()>>,
    _folder: Option<tempfile::TempDir>,
}

/// A rig on each kind of store, its pump running. `ring_bytes_max` is the informer's.
pub async fn rigs(ring_bytes_max: usize) -> [Rig; 2] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tuning = fp_store_sql::Tuning {
        n_readers: 2,
        ring_bytes_max: 1 << 20,
        compact_interval: None,
        compact_keep: Duration::ZERO,
        compact_keep_revisions: 0,
    };
    let sqlite =
        SqliteStore::open(&folder.path().join("db"), tuning).expect("a new database opens");
    let mut rigs = [
        Rig::new(MemoryStore::new(), ring_bytes_max).await,
        Rig::new(sqlite, ring_bytes_max).await,
    ];
    rigs[1]._folder = Some(folder);
    rigs.iter_mut().for_each(Rig::run);
    rigs
}

impl Rig {
    /// A rig whose pump has loaded and does not run.
    pub async fn new(store: Arc<dyn Store>, ring_bytes_max: usize) -> Self {
        let configmaps = fp_builtin::resource("", "configmaps").expect("built in").clone();
        let layout = Layout::new(PREFIX, fp_builtin::resources().iter().cloned());
        let informer = Arc::new(Informer::with_ring(ring_bytes_max));
        let backend = Arc::new(StoreBackend::new(store.clone(), informer, layout));
        let pump = Some(backend.load().await.expect("the store can be read"));
        let shirts = Arc::new(shirts());
        let bound_shirts = ["a", "b"].map(|letter| Arc::new(bound_shirts(letter)));
        let (running, _folder) = (None, None);
        Self { backend, store, configmaps, shirts, bound_shirts, pump, running, _folder }
    }

    pub fn run(&mut self) {
        let pump = self.pump.take().expect("a rig runs once");
        self.running = Some(tokio::spawn(pump.run()));
    }

    pub async fn create(&self, key: &str, text: &str) -> Arc<Entry> {
        let object = object(key, text);
        let made = self.backend.create(&self.configmaps, &object_key(key), &object, &[]).await;
        made.expect("the object is new")
    }

    pub async fn create_shirt(&self, info: &Arc<ResourceInfo>, key: &str) -> Arc<Entry> {
        let mut shirt = object(key, "1");
        shirt.insert("apiVersion".into(), "example.dev/v1".into());
        self.backend.create(info, &object_key(key), &shirt, &[]).await.expect("it is new")
    }

    pub async fn update(&self, at: &Entry, text: &str) -> Arc<Entry> {
        let object = object(&show_key(&at.key), text);
        let (info, key) = (&self.configmaps, &at.key);
        self.backend.update(info, key, at.revision, &object, &[]).await.expect("nobody else writes")
    }

    pub async fn delete(&self, at: &Entry) -> Arc<Entry> {
        let deleted = self.backend.delete(&self.configmaps, &at.key, at.revision, &[]).await;
        deleted.expect("nobody else writes")
    }

    pub async fn get(&self, key: &str, freshness: Freshness) -> Result<Option<Arc<Entry>>, Error> {
        self.backend.get(&self.configmaps, &object_key(key), freshness).await
    }

    pub async fn list(
        &self,
        scope: &ClusterScope,
        freshness: Freshness,
        start_after: Option<&ObjectKey>,
        limit: usize,
    ) -> Result<Page, Error> {
        let place = Place { info: &self.configmaps, scope, namespace: None, mixed: false };
        self.backend.list(place, ListQuery { freshness, start_after, limit, filter: None }).await
    }

    /// The shirts of every definition.
    pub fn mixed<'a>(&'a self, namespace: Option<&'a str>) -> Place<'a> {
        Place { info: &self.shirts, scope: &ClusterScope::All, namespace, mixed: true }
    }

    pub async fn list_mixed(
        &self,
        freshness: Freshness,
        start_after: Option<&ObjectKey>,
        limit: usize,
    ) -> Page {
        let query = ListQuery { freshness, start_after, limit, filter: None };
        self.backend.list(self.mixed(None), query).await.expect("a page")
    }

    pub async fn watch(
        &self,
        scope: &ClusterScope,
        from: WatchFrom,
    ) -> Result<Box<dyn Watch>, Error> {
        let place = Place { info: &self.configmaps, scope, namespace: None, mixed: false };
        self.backend.watch(place, from).await
    }

    /// Writes a raw value into the store.
    pub async fn put_raw(&self, key: &str, value: &'static [u8]) -> Revision {
        let value = Bytes::from_static(value);
        let op = Op::Put { key: key.into(), value, lease_ttl_secs: 0 };
        match self.store.commit(Txn { compares: Vec::new(), ops: vec![op] }).await {
            Ok(Outcome::Committed(revisions)) => revisions[0],
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

pub fn root() -> ClusterScope {
    ClusterScope::One(ClusterName::root())
}

/// A key as the tests write it, `cluster/namespace/name`.
pub fn object_key(text: &str) -> ObjectKey {
    let parts: Vec<&str> = text.split('/').collect();
    crate::key(&ClusterName::parse(parts[0]).expect("a cluster name"), parts[1], parts[2])
}

/// A config map with one entry of data.
pub fn object(key: &str, text: &str) -> Object {
    let key = object_key(key);
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","namespace":"{}"}},"data":{{"k":"{text}"}}}}"#,
        key.name, key.namespace
    );
    json::decode(body.as_bytes()).expect("the test's object is JSON").object
}

pub fn show_key(key: &ObjectKey) -> String {
    format!("{}/{}/{}", key.cluster, key.namespace, key.name)
}

/// Name and text of a config map: `a=1`. Its body says the entry's own revision and cluster.
pub fn show(entry: &Entry) -> String {
    use fp_object::meta::Meta;
    let object = entry.object();
    assert_eq!(object.resource_version(), entry.revision.to_string());
    assert_eq!(object.annotation("kcp.io/cluster"), Some(entry.key.cluster.as_str()));
    format!("{}={}", object.name(), object.text(&["data", "k"]).unwrap_or("-"))
}

pub fn show_all(entries: &[Arc<Entry>]) -> String {
    entries.iter().map(|entry| show(entry)).collect::<Vec<_>>().join(" ")
}

pub fn show_change(change: &Change) -> String {
    let old = |old: &Arc<Entry>| {
        old.object().get("data").and_then(|d| d["k"].as_str().map(str::to_owned))
    };
    let old = change.old.as_ref().map(|entry| old(entry).unwrap_or_default());
    let old = old.map(|old| format!("<{old}")).unwrap_or_default();
    format!("{:?}:{}{old}", change.kind, show(&change.entry))
}

/// What a watch yields until it has delivered `until`.
pub async fn collect(watch: &mut Box<dyn Watch>, until: Revision) -> String {
    let mut out = Vec::new();
    let mut last = Revision::ZERO;
    while watch.delivered() < until {
        for step in watch.next().await.expect("the watch goes on") {
            out.push(match &step {
                Step::Change(change) => show_change(change),
                Step::Synced(_) => "synced".into(),
                Step::Bookmark(_) => "bookmark".into(),
            });
            if let Step::Change(change) = step
                && change.old.is_some()
            {
                assert!(change.revision() > last, "revisions grow");
                last = change.revision();
            }
        }
    }
    out.join(" ")
}

fn shirts() -> ResourceInfo {
    let origin = Origin::System { name: "shirts.example.dev".into() };
    info(Gr::new("example.dev", "shirts"), Segment::CustomResources, origin)
}

fn bound_shirts(letter: &str) -> ResourceInfo {
    let identity = Identity::parse(&letter.repeat(64)).expect("hex digits");
    let origin = Origin::Bound { name: letter.into(), schema_name: "v1.shirts.example.dev".into() };
    info(Gr::new("example.dev", "shirts"), Segment::Identity(identity), origin)
}

/// A namespaced resource without a schema.
fn info(gr: Gr, segment: Segment, origin: Origin) -> ResourceInfo {
    let version = VersionInfo {
        name: "v1".into(),
        served: true,
        deprecated: None,
        schema: None,
        status: false,
        scale: None,
        columns: Vec::new(),
        selectable: Vec::new(),
        openapi: openapi::Source::None,
    };
    ResourceInfo {
        gr,
        kind: "Shirt".into(),
        list_kind: "List".into(),
        singular: "one".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        segment,
        origin,
        versions: vec![version],
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
