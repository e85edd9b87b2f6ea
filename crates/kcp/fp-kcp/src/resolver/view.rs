//! What a cluster serves, shared by all clusters with the same bindings and CRDs.

use std::collections::hash_map::{DefaultHasher, HashMap};
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use fp_base::{Gr, Identity};
use fp_object::Object;
use fp_object::meta::Meta;
use fp_schema::{ResourceInfo, Segment};
use fp_verbs::Resolved;
use parking_lot::RwLock;

use super::definitions::{Definition, Definitions, Origin};
use super::unavailable;
use crate::api::{self, ApiBindingSpec, ApiBindingStatus};

/// What a binding brings. Equal contents are one allocation.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct BindingContent {
    /// Path, which may be empty, and name.
    export: (Arc<str>, Arc<str>),
    deleting: bool,
    resources: Vec<BoundRef>,
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct BoundRef {
    gr: Gr,
    /// Name of the bound CRD.
    uid: Arc<str>,
    schema_name: Arc<str>,
    identity: Identity,
    /// Objects live in the CRD, not with another server.
    stored: bool,
}

impl BindingContent {
    pub fn read(binding: &Object) -> Self {
        let status: ApiBindingStatus = api::part(binding, "status");
        let spec: ApiBindingSpec = api::part(binding, "spec");
        let export = spec.reference.export.unwrap_or_default();
        let resources = status.bound_resources.into_iter().filter_map(|r| {
            Some(BoundRef {
                gr: Gr::new(&r.group, &r.resource),
                identity: r.schema.identity()?,
                uid: r.schema.uid.into(),
                schema_name: r.schema.name.into(),
                stored: !r.storage_versions.is_empty(),
            })
        });
        Self {
            export: (export.path.into(), export.name.into()),
            deleting: binding.is_deleting(),
            resources: resources.collect(),
        }
    }
}

/// One cluster's entry.
#[derive(Default)]
pub struct Cluster {
    /// By binding name, sorted.
    bindings: Vec<(Arc<str>, Arc<BindingContent>)>,
    /// Its own established CRDs, by name, sorted.
    local: Vec<(Arc<str>, Arc<ResourceInfo>)>,
    slot: Option<Arc<Slot>>,
}

impl Cluster {
    pub fn view(&self) -> Option<Arc<View>> {
        self.slot.as_ref().map(|slot| slot.view.read().clone())
    }

    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty() && self.local.is_empty()
    }

    /// The export through which a resource is bound.
    pub fn bound_export(&self, group: &str, resource: &str) -> Option<(Arc<str>, Arc<str>)> {
        let has = |r: &BoundRef| &*r.gr.group == group && &*r.gr.resource == resource;
        let mut bindings = self.bindings.iter().map(|(_, content)| content);
        bindings
            .find(|content| content.resources.iter().any(has))
            .map(|content| content.export.clone())
    }

    /// Answers whether anything changed.
    pub fn set_binding(&mut self, name: &Arc<str>, content: Option<Arc<BindingContent>>) -> bool {
        let same =
            |old: &Arc<BindingContent>| content.as_ref().is_some_and(|new| Arc::ptr_eq(old, new));
        let at = self.bindings.binary_search_by(|(n, _)| n.cmp(name));
        if at.is_ok_and(|i| same(&self.bindings[i].1)) {
            return false;
        }
        replace(&mut self.bindings, at, name, content);
        true
    }

    /// Answers the one before.
    pub fn set_local(
        &mut self,
        name: &Arc<str>,
        info: Option<Arc<ResourceInfo>>,
    ) -> Option<Arc<ResourceInfo>> {
        let at = self.local.binary_search_by(|(n, _)| n.cmp(name));
        replace(&mut self.local, at, name, info)
    }

    /// Takes the view that fits the bindings and CRDs.
    pub fn renew(&mut self, views: &mut Views, build: &mut dyn FnMut(&ViewKey) -> View) {
        let key = ViewKey {
            bindings: self.bindings.iter().map(|(_, content)| content.clone()).collect(),
            local: self.local.iter().map(|(_, info)| info.clone()).collect(),
        };
        let old = self.slot.take();
        if !self.is_empty() {
            self.slot = Some(views.slot(key, build));
        }
        if let Some(old) = old {
            views.release(old);
        }
    }
}

fn replace<V>(
    list: &mut Vec<(Arc<str>, V)>,
    at: Result<usize, usize>,
    name: &Arc<str>,
    value: Option<V>,
) -> Option<V> {
    let old = match (at, value) {
        (Ok(i), Some(value)) => Some(std::mem::replace(&mut list[i].1, value)),
        (Ok(i), None) => Some(list.remove(i).1),
        (Err(i), Some(value)) => {
            list.insert(i, (name.clone(), value));
            None
        }
        (Err(_), None) => None,
    };
    list.shrink_to_fit();
    old
}

/// What a view is made of. Contents and definitions are shared, so identity is equality.
pub struct ViewKey {
    bindings: Vec<Arc<BindingContent>>,
    local: Vec<Arc<ResourceInfo>>,
}

impl ViewKey {
    fn addresses(&self) -> impl Iterator<Item = (bool, usize)> {
        let bindings = self.bindings.iter().map(|b| (true, Arc::as_ptr(b) as usize));
        bindings.chain(self.local.iter().map(|i| (false, Arc::as_ptr(i) as usize)))
    }
}

impl PartialEq for ViewKey {
    fn eq(&self, other: &Self) -> bool {
        self.addresses().eq(other.addresses())
    }
}

impl Eq for ViewKey {}

impl Hash for ViewKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addresses().for_each(|a| a.hash(state));
    }
}

/// A view that changes in place when a definition it uses does.
pub struct Slot {
    key: Arc<ViewKey>,
    view: RwLock<Arc<View>>,
}

/// All views and binding contents that clusters use.
#[derive(Default)]
pub struct Views {
    slots: HashMap<Arc<ViewKey>, Arc<Slot>>,
    contents: HashSet<Arc<BindingContent>>,
}

impl Views {
    pub fn share_binding(&mut self, content: BindingContent) -> Arc<BindingContent> {
        if let Some(shared) = self.contents.get(&content) {
            return shared.clone();
        }
        let content = Arc::new(content);
        self.contents.insert(content.clone());
        content
    }

    fn slot(&mut self, key: ViewKey, build: &mut dyn FnMut(&ViewKey) -> View) -> Arc<Slot> {
        if let Some(slot) = self.slots.get(&key) {
            return slot.clone();
        }
        let key = Arc::new(key);
        let slot = Arc::new(Slot { view: RwLock::new(Arc::new(build(&key))), key: key.clone() });
        self.slots.insert(key, slot.clone());
        slot
    }

    /// Drops a slot that no cluster uses any more, and the contents that only it used.
    fn release(&mut self, slot: Arc<Slot>) {
        if Arc::strong_count(&slot) > 2 {
            return;
        }
        self.slots.remove(&slot.key);
        for content in &slot.key.bindings {
            if Arc::strong_count(content) == 2 {
                self.contents.remove(content);
            }
        }
    }

    /// Renews the views that use the bound CRD `using`, or all.
    pub fn rebuild(&self, using: Option<&str>, build: &mut dyn FnMut(&ViewKey) -> View) {
        for slot in self.slots.values() {
            let uses = |uid: &str| {
                slot.key.bindings.iter().flat_map(|b| &b.resources).any(|r| &*r.uid == uid)
            };
            if using.is_none_or(uses) {
                *slot.view.write() = Arc::new(build(&slot.key));
            }
        }
    }

    /// The bound CRD (name and schema) of a resource with this identity, of any binding.
    pub fn bound(&self, gr: &Gr, identity: &Identity) -> Option<(Arc<str>, Arc<str>)> {
        let all = self.contents.iter().flat_map(|c| &c.resources);
        let fitting = all.filter(|r| r.gr == *gr && r.identity == *identity && r.stored);
        fitting.map(|r| (r.uid.clone(), r.schema_name.clone())).min()
    }

    /// An identity under which the resource is bound somewhere.
    pub fn identity_of(&self, gr: &Gr) -> Option<Identity> {
        let all = self.contents.iter().flat_map(|c| &c.resources);
        all.filter(|r| r.gr == *gr && r.stored).map(|r| r.identity.clone()).min()
    }

    #[cfg(test)]
    pub fn sizes(&self) -> (usize, usize) {
        (self.slots.len(), self.contents.len())
    }
}

/// What one cluster (and every cluster like it) serves.
pub struct View {
    /// In discovery order.
    pub served: Box<[Arc<ResourceInfo>]>,
    /// Sorted by group and resource; of several with one name the first counts.
    index: Box<[(Gr, Slotted)]>,
    pub fingerprint: u64,
}

enum Slotted {
    Found(Arc<ResourceInfo>),
    /// A bound resource whose CRD is not there (or that another server has).
    Missing(Identity),
}

impl View {
    /// Makes the view of a key out of the tiers.
    pub fn build(
        builtins: &[Arc<ResourceInfo>],
        system: &[Arc<ResourceInfo>],
        bound_crds: &HashMap<Arc<str>, Arc<Definition>>,
        definitions: &mut Definitions,
        key: &ViewKey,
    ) -> Self {
        let mut bound = Vec::new();
        for content in &key.bindings {
            for r in &content.resources {
                let origin = Origin::Bound {
                    name: &r.uid,
                    schema_name: &r.schema_name,
                    identity: &r.identity,
                    terminating: content.deleting,
                };
                let definition = bound_crds.get(&r.uid).filter(|_| r.stored);
                let slotted = match definition.and_then(|d| definitions.info(d, origin)) {
                    Some(info) => Slotted::Found(info),
                    None => Slotted::Missing(r.identity.clone()),
                };
                bound.push((r.gr.clone(), slotted));
            }
        }
        Self::assemble(builtins, system, bound, &key.local)
    }

    /// A cluster with nothing of its own.
    pub fn common(builtins: &[Arc<ResourceInfo>], system: &[Arc<ResourceInfo>]) -> Self {
        Self::assemble(builtins, system, Vec::new(), &[])
    }

    fn assemble(
        builtins: &[Arc<ResourceInfo>],
        system: &[Arc<ResourceInfo>],
        bound: Vec<(Gr, Slotted)>,
        local: &[Arc<ResourceInfo>],
    ) -> Self {
        let found = |i: &Arc<ResourceInfo>| (i.gr.clone(), Slotted::Found(i.clone()));
        // Built-ins of the core group come last: a CRD shadows them.
        let (core, named): (Vec<_>, Vec<_>) = builtins.iter().partition(|i| i.gr.group.is_empty());
        let mut index: Vec<(Gr, Slotted)> = named.into_iter().map(found).collect();
        index.extend(system.iter().map(found));
        index.extend(bound);
        index.extend(local.iter().map(found));
        index.extend(core.into_iter().map(found));

        let mut seen = BTreeSet::new();
        let first = |(gr, slotted): &(Gr, Slotted)| match slotted {
            Slotted::Found(info) => seen.insert(gr.clone()).then(|| info.clone()),
            Slotted::Missing(_) => None,
        };
        let winners: Vec<Arc<ResourceInfo>> = index.iter().filter_map(first).collect();
        // Discovery: built-ins in their own order, then the tiers.
        let (mut served, tiers): (Vec<_>, Vec<_>) =
            winners.into_iter().partition(|i| i.is_builtin());
        let place = |i: &Arc<ResourceInfo>| builtins.iter().position(|b| Arc::ptr_eq(b, i));
        served.sort_by_key(place);
        served.extend(tiers);

        index.sort_by(|a, b| a.0.cmp(&b.0));
        let fingerprint = fingerprint(&served);
        Self { served: served.into(), index: index.into(), fingerprint }
    }

    /// The definition of a resource; an identity is asked of bound ones only.
    pub fn find(&self, group: &str, resource: &str, identity: Option<&str>) -> Option<Resolved> {
        let start =
            self.index.partition_point(|(gr, _)| (&*gr.group, &*gr.resource) < (group, resource));
        let same = self.index[start..]
            .iter()
            .take_while(|(gr, _)| (&*gr.group, &*gr.resource) == (group, resource));
        let fits = |of: &Identity| identity.is_none_or(|asked| asked == of.as_str());
        same.into_iter().find_map(|(gr, slotted)| match slotted {
            Slotted::Found(info) => match (&info.segment, &info.origin) {
                (Segment::Identity(of), _) if !fits(of) => None,
                (_, fp_schema::Origin::Crd { .. }) if identity.is_some() => None,
                _ => Some(Resolved::Found(info.clone())),
            },
            Slotted::Missing(of) => fits(of).then(|| Resolved::Unavailable(unavailable(gr))),
        })
    }
}

fn fingerprint(served: &[Arc<ResourceInfo>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for info in served {
        (info.content_hash, info.terminating, &info.gr).hash(&mut hasher);
    }
    hasher.finish()
}
