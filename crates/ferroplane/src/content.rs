//! Reading single objects of the informer by resource, whatever table they are in.

use std::sync::Arc;

use fp_base::{ClusterName, Gr};
use fp_informer::{Entry, Informer, ObjectKey};
use fp_object::Object;

#[derive(Clone)]
pub struct Content(pub Arc<Informer>);

impl Content {
    /// The entry, from the table of the resource that holds it: a resource that several exports
    /// bring has several tables, but one object of a cluster is in one of them.
    pub fn entry(
        &self,
        cluster: &ClusterName,
        gr: &Gr,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Entry>> {
        let key =
            ObjectKey { cluster: cluster.clone(), namespace: namespace.into(), name: name.into() };
        self.0.tables_of(gr).iter().find_map(|t| t.get(&key))
    }

    pub fn get(
        &self,
        cluster: &ClusterName,
        gr: &Gr,
        namespace: &str,
        name: &str,
    ) -> Option<Object> {
        self.entry(cluster, gr, namespace, name).map(|e| e.object())
    }
}
