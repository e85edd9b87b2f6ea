//! Shared strings: thousands of clusters have the same few namespaces and names.

use std::collections::HashSet;
use std::sync::Arc;

use fp_base::ClusterName;
use fp_informer::ObjectKey;
use parking_lot::Mutex;

/// Strings that are remembered. Beyond it all are forgotten; those in use live on in their entries.
const STRINGS_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct Strings {
    sets: Mutex<Sets>,
}

#[derive(Default)]
struct Sets {
    clusters: HashSet<ClusterName>,
    texts: HashSet<Arc<str>>,
}

impl Strings {
    /// The same key, in strings that are shared with other keys.
    pub fn key(&self, cluster: ClusterName, namespace: &str, name: &str) -> ObjectKey {
        let mut sets = self.sets.lock();
        ObjectKey {
            cluster: sets.cluster(cluster),
            namespace: sets.text(namespace),
            name: sets.text(name),
        }
    }
}

impl Sets {
    fn cluster(&mut self, cluster: ClusterName) -> ClusterName {
        if let Some(known) = self.clusters.get(&cluster) {
            return known.clone();
        }
        if self.clusters.len() >= STRINGS_MAX {
            self.clusters.clear();
        }
        self.clusters.insert(cluster.clone());
        cluster
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() >= STRINGS_MAX {
            self.texts.clear();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}
