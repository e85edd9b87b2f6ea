//! Reading and writing `metadata` of a dynamic object.

use crate::{Object, Value};

/// Accessors over an [`Object`]; a missing or mistyped member reads as absent.
pub trait Meta {
    fn text(&self, path: &[&str]) -> Option<&str>;
    fn at(&self, path: &[&str]) -> Option<&Value>;
    /// The map at `path`, made when it is absent or of another type.
    fn map_mut(&mut self, path: &[&str]) -> &mut Object;
    fn remove_at(&mut self, path: &[&str]) -> Option<Value>;

    fn name(&self) -> &str {
        self.text(&["metadata", "name"]).unwrap_or("")
    }
    fn namespace(&self) -> &str {
        self.text(&["metadata", "namespace"]).unwrap_or("")
    }
    fn uid(&self) -> &str {
        self.text(&["metadata", "uid"]).unwrap_or("")
    }
    fn resource_version(&self) -> &str {
        self.text(&["metadata", "resourceVersion"]).unwrap_or("")
    }
    fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0)
    }
    fn api_version(&self) -> &str {
        self.text(&["apiVersion"]).unwrap_or("")
    }
    fn kind(&self) -> &str {
        self.text(&["kind"]).unwrap_or("")
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "labels", key])
    }
    fn annotation(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "annotations", key])
    }
    fn is_deleting(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some_and(|v| !v.is_null())
    }
    fn finalizers(&self) -> Vec<&str> {
        let list = self.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        list.map(|l| l.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }
    fn set_meta(&mut self, key: &str, value: impl Into<Value>)
    where
        Self: Sized,
    {
        self.map_mut(&["metadata"]).insert(key.into(), value.into());
    }
    fn set_label(&mut self, key: &str, value: &str) {
        self.map_mut(&["metadata", "labels"]).insert(key.into(), value.into());
    }
    fn set_annotation(&mut self, key: &str, value: &str) {
        self.map_mut(&["metadata", "annotations"]).insert(key.into(), value.into());
    }
}

impl Meta for Object {
    fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.get(*first)?;
        for key in rest {
            value = value.as_object()?.get(*key)?;
        }
        Some(value)
    }

    fn map_mut(&mut self, path: &[&str]) -> &mut Object {
        let mut map = self;
        for key in path {
            let slot = map.entry(*key).or_insert_with(|| Value::Object(Object::new()));
            if !slot.is_object() {
                *slot = Value::Object(Object::new());
            }
            map = slot.as_object_mut().expect("made an object just above");
        }
        map
    }

    fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        let (last, up) = path.split_last()?;
        let mut map = self;
        for key in up {
            map = map.get_mut(*key)?.as_object_mut()?;
        }
        map.remove(*last)
    }
}
