//! One resource's objects over all clusters, its recent changes, and who waits for more.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fp_base::{ClusterName, ClusterScope, Revision};
use parking_lot::RwLock;

use crate::cursor::{Cursor, Slot};
use crate::ring::Ring;
use crate::{Change, ChangeKind, Entry, ObjectKey, TableId};

/// What a list asks for. A limit of 0 is none.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub scope: &'a ClusterScope,
    /// `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<&'a str>,
    pub start_after: Option<&'a ObjectKey>,
    pub limit: usize,
    /// Sees every entry before it counts towards the limit; called without a lock held.
    pub filter: Option<&'a (dyn Fn(&Entry) -> bool + Send + Sync)>,
}

/// A list's answer, in key order.
pub struct Listed {
    pub entries: Vec<Arc<Entry>>,
    /// The entries are the table's state at this revision.
    pub revision: Revision,
    /// They are its state at every revision from this one to `revision`.
    pub changed: Revision,
    /// More entries follow the last one.
    pub more: bool,
    /// How many follow; unknown when a filter is in use.
    pub remaining: Option<u64>,
}

/// The ring no longer holds what comes after the revision asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changes are kept only after revision {floor}")]
pub struct Behind {
    pub floor: Revision,
}

/// One resource's objects.
pub struct Table {
    id: TableId,
    pub(crate) state: RwLock<State>,
    /// The informer's revision.
    pub(crate) revision: Arc<AtomicI64>,
}

pub(crate) struct State {
    pub entries: BTreeMap<ObjectKey, Arc<Entry>>,
    pub ring: Ring,
    /// The last change, or the revision of the load.
    pub changed: Revision,
    /// Those who watch one cluster.
    pub of_cluster: HashMap<ClusterName, Vec<Arc<Slot>>>,
    /// Those who watch all clusters.
    pub of_all: Vec<Arc<Slot>>,
}

impl Table {
    pub(crate) fn new(id: TableId, revision: Arc<AtomicI64>, loaded: Revision) -> Self {
        let state = State {
            entries: BTreeMap::new(),
            ring: Ring::new(loaded),
            changed: loaded,
            of_cluster: HashMap::new(),
            of_all: Vec::new(),
        };
        Self { id, state: RwLock::new(state), revision }
    }

    pub fn id(&self) -> &TableId {
        &self.id
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Entry>> {
        self.state.read().entries.get(key).cloned()
    }

    /// True when some entry fits. `fits` runs with the table held: it must be quick.
    pub fn any(&self, fits: impl Fn(&Entry) -> bool) -> bool {
        self.state.read().entries.values().any(|entry| fits(entry))
    }

    /// The entries in key order.
    pub fn list(&self, query: Query<'_>) -> Listed {
        let state = self.state.read();
        let (changed, revision) = (state.changed, self.known(&state));
        let mut range = state.range(&query);
        let Some(filter) = query.filter else {
            let take = if query.limit == 0 { usize::MAX } else { query.limit };
            let entries: Vec<_> = range.by_ref().take(take).cloned().collect();
            let remaining = range.count() as u64;
            return Listed {
                entries,
                revision,
                changed,
                more: remaining > 0,
                remaining: Some(remaining),
            };
        };
        let mut entries: Vec<_> = range.cloned().collect();
        drop(state);
        let (mut kept, mut more) = (0, false);
        entries.retain(|entry| {
            let wanted = !more && filter(entry);
            if wanted && query.limit != 0 && kept == query.limit {
                more = true;
                return false;
            }
            kept += usize::from(wanted);
            wanted
        });
        Listed { entries, revision, changed, more, remaining: (!more).then_some(0) }
    }

    /// How many entries there are.
    pub fn count(&self, scope: &ClusterScope, namespace: Option<&str>) -> u64 {
        let state = self.state.read();
        if let (ClusterScope::All, None) = (scope, namespace) {
            return state.entries.len() as u64;
        }
        state.range(&Query { scope, namespace, start_after: None, limit: 0, filter: None }).count()
            as u64
    }

    /// The revision of the last change of any object of the table. Between it and the informer's
    /// revision the table is what it was at every revision.
    pub fn changed(&self) -> Revision {
        self.state.read().changed
    }

    /// The ring holds every change after this revision.
    pub fn floor(&self) -> Revision {
        self.state.read().ring.floor()
    }

    /// Follows the changes after `after`.
    pub fn watch(
        self: &Arc<Self>,
        scope: &ClusterScope,
        namespace: Option<&str>,
        after: Revision,
    ) -> Result<Cursor, Behind> {
        let mut state = self.state.write();
        let floor = state.ring.floor();
        if after < floor {
            return Err(Behind { floor });
        }
        Ok(self.cursor(&mut state, scope, namespace, after))
    }

    /// Everything that exists, in key order, and a cursor over the changes from then on.
    pub fn snapshot(
        self: &Arc<Self>,
        scope: &ClusterScope,
        namespace: Option<&str>,
    ) -> (Vec<Arc<Entry>>, Cursor) {
        let mut state = self.state.write();
        let query = Query { scope, namespace, start_after: None, limit: 0, filter: None };
        let entries = state.range(&query).cloned().collect();
        let revision = self.known(&state);
        (entries, self.cursor(&mut state, scope, namespace, revision))
    }

    fn cursor(
        self: &Arc<Self>,
        state: &mut State,
        scope: &ClusterScope,
        namespace: Option<&str>,
        after: Revision,
    ) -> Cursor {
        let slot = Arc::new(Slot::new(namespace));
        let first = state.ring.from(after.next()).find(|c| {
            scope.contains(c.entry.key.cluster.as_str()) && slot.wants(&c.entry.key.namespace)
        });
        if let Some(first) = first {
            slot.mark(first.revision());
        }
        match scope {
            ClusterScope::One(cluster) => {
                state.of_cluster.entry(cluster.clone()).or_default().push(slot.clone());
            }
            ClusterScope::All => state.of_all.push(slot.clone()),
        }
        Cursor::new(self.clone(), scope.clone(), slot, after)
    }

    /// The revision whose state the table surely shows: the informer's, or a change that is here
    /// already although the informer's revision has not moved yet.
    pub(crate) fn known(&self, state: &State) -> Revision {
        state.changed.max(Revision(self.revision.load(Ordering::Acquire)))
    }
}

impl State {
    /// The entries of a query's place after its start, in key order.
    fn range<'s>(&'s self, query: &Query<'s>) -> impl Iterator<Item = &'s Arc<Entry>> + use<'s> {
        let (scope, namespace) = (query.scope, query.namespace);
        let lower = scope.one().map(|cluster| ObjectKey {
            cluster: cluster.clone(),
            namespace: namespace.unwrap_or_default().into(),
            name: Arc::default(),
        });
        let start = match (lower, query.start_after) {
            (Some(lower), Some(after)) if *after < lower => Bound::Included(lower),
            (_, Some(after)) => Bound::Excluded(after.clone()),
            (Some(lower), None) => Bound::Included(lower),
            (None, None) => Bound::Unbounded,
        };
        let one = scope.one();
        self.entries
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| {
                one.is_none_or(|cluster| {
                    key.cluster == *cluster && namespace.is_none_or(|ns| *key.namespace == *ns)
                })
            })
            .filter(move |(key, _)| namespace.is_none_or(|ns| *key.namespace == *ns))
            .map(|(_, entry)| entry)
    }

    /// Makes a change. Those who must be woken for it are added to `woken`; they learn of it when
    /// the informer's revision has moved. Returns the bytes the ring grew by.
    pub fn apply(&mut self, change: Change, woken: &mut Vec<Arc<Slot>>) -> usize {
        let entry = &change.entry;
        let revision = change.revision();
        if change.kind == ChangeKind::Deleted {
            self.entries.remove(&entry.key);
        } else if let Some(slot) = self.entries.get_mut(&entry.key) {
            *slot = entry.clone();
        } else {
            self.entries.insert(entry.key.clone(), entry.clone());
        }
        let of_cluster = self.of_cluster.get(&entry.key.cluster);
        for slot in of_cluster.into_iter().flatten().chain(&self.of_all) {
            if slot.wants(&entry.key.namespace) && slot.mark(revision) {
                woken.push(slot.clone());
            }
        }
        self.changed = revision;
        let bytes = change.bytes();
        self.ring.push(change);
        bytes
    }

    /// Puts another state in place of this one, as of revision `at`. Every cursor is behind then.
    pub fn replace(
        &mut self,
        entries: BTreeMap<ObjectKey, Arc<Entry>>,
        at: Revision,
        woken: &mut Vec<Arc<Slot>>,
    ) {
        self.entries = entries;
        self.ring = Ring::new(at);
        self.changed = at;
        for slot in self.of_cluster.values().flatten().chain(&self.of_all) {
            slot.mark_lost(at);
            woken.push(slot.clone());
        }
    }
}
