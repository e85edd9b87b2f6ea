//! Objects that are referred to by workspace path and name: WorkspaceTypes and APIExports.
//!
//! An object is found under its cluster's name and under its annotation `kcp.io/path`.

use std::collections::HashMap;
use std::sync::Arc;

use fp_base::ClusterName;
use fp_informer::{Entry, ObjectKey};
use fp_object::Object;
use fp_object::meta::Meta;
use parking_lot::RwLock;

use crate::names;

/// One object and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    pub cluster: ClusterName,
    /// Annotation `kcp.io/path`; empty until it is set.
    pub path: String,
    pub name: Arc<str>,
    pub value: T,
}

impl<T> Named<T> {
    /// `path:name`, as messages and aliases have it.
    pub fn qualified(&self) -> String {
        format!("{}:{}", self.path, self.name)
    }
}

/// An index of one kind, fed by an informer observer.
pub struct ByPath<T> {
    read: fn(&Object) -> T,
    /// By storage segment (an identity, or `customresources`): a tenant's own export of a group
    /// of kcp's is another kind.
    tables: RwLock<HashMap<Arc<str>, Table<T>>>,
}

struct Table<T> {
    by_key: HashMap<(ClusterName, Arc<str>), Arc<Named<T>>>,
    /// `<path>:<name>`.
    by_path: HashMap<String, Arc<Named<T>>>,
}

impl<T> ByPath<T> {
    pub fn new(read: fn(&Object) -> T) -> Self {
        Self { read, tables: RwLock::default() }
    }

    /// Takes in an object of the table with this segment; `None` is a delete.
    pub fn apply(&self, segment: &Arc<str>, key: &ObjectKey, entry: Option<&Entry>) {
        let named = entry.map(|e| {
            let object = e.object();
            Arc::new(Named {
                cluster: key.cluster.clone(),
                path: object.annotation(names::PATH).unwrap_or_default().to_owned(),
                name: key.name.clone(),
                value: (self.read)(&object),
            })
        });
        let tables = &mut *self.tables.write();
        let new = || Table { by_key: HashMap::new(), by_path: HashMap::new() };
        let table = tables.entry(segment.clone()).or_insert_with(new);
        let at = (key.cluster.clone(), key.name.clone());
        if let Some(old) = table.by_key.remove(&at)
            && let Some(found) = table.by_path.get(&old.qualified())
            && Arc::ptr_eq(found, &old)
        {
            table.by_path.remove(&old.qualified());
        }
        if let Some(named) = named {
            if !named.path.is_empty() {
                table.by_path.insert(named.qualified(), named.clone());
            }
            table.by_key.insert(at, named);
        }
        if table.by_key.is_empty() {
            tables.remove(segment);
        }
    }

    /// The object by path or cluster name.
    pub fn get(&self, segment: &str, path: &str, name: &str) -> Option<Arc<Named<T>>> {
        let tables = self.tables.read();
        let table = tables.get(segment)?;
        if let Some(named) = table.by_path.get(&format!("{path}:{name}")) {
            return Some(named.clone());
        }
        let cluster = ClusterName::parse(path).ok()?;
        table.by_key.get(&(cluster, name.into())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, key};
    use serde_json::json;

    fn put(index: &ByPath<i64>, segment: &str, at: &str, name: &str, path: &str, generation: i64) {
        let key = key(at, "", name);
        let object = json!({"metadata": {"name": name, "generation": generation, "annotations": {names::PATH: path}}});
        index.apply(&segment.into(), &key, Some(&entry(&key, object)));
    }

    #[test]
    fn found_both_ways() {
        let index = ByPath::new(|o| o.generation());
        put(&index, "id", "c1", "t", "root:a", 1);
        put(&index, "other", "c2", "t", "root:a", 9);
        let get = |path| index.get("id", path, "t").map(|n| n.value);
        assert_eq!(
            (get("c1"), get("root:a"), get("root:b"), get("c2")),
            (Some(1), Some(1), None, None)
        );
        put(&index, "id", "c1", "t", "root:b", 2);
        assert_eq!((get("c1"), get("root:a"), get("root:b")), (Some(2), None, Some(2)));
        index.apply(&"id".into(), &key("c1", "", "t"), None);
        assert_eq!((get("c1"), get("root:b")), (None, None));
    }
}
