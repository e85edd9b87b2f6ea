//! What the rules of several kinds share: metadata, members kept from the old object, small readers.

use fp_object::field::{FieldError, Path};
use fp_object::meta::Meta;
use fp_object::names::NameFn;
use fp_object::{Object, Value, object_meta};
use fp_schema::Sub;

/// Metadata of an object of the kind, as `ValidateObjectMeta` has it.
pub fn meta(object: &Object, namespaced: bool, name: NameFn) -> Vec<FieldError> {
    object_meta::validate(object, namespaced, name, Path::Root.child("metadata"))
}

/// Metadata against the stored object, as `ValidateObjectMetaUpdate` has it.
pub fn meta_update(object: &Object, old: &Object) -> Vec<FieldError> {
    object_meta::validate_update(object, old, Path::Root.child("metadata"))
}

pub fn change_nothing(_object: &mut Object) {}

pub fn keep_nothing(_object: &mut Object, _old: &Object, _sub: Sub) {}

pub fn meta_update_only(object: &Object, old: &Object, _sub: Sub) -> Vec<FieldError> {
    meta_update(object, old)
}

pub fn no_field_value(_object: &Object, _label: &str) -> String {
    String::new()
}

/// Gives the member back the value that it has in `old`.
pub fn keep(object: &mut Object, old: &Object, member: &str) {
    match old.get(member) {
        Some(value) => drop(object.insert(member.to_owned(), value.clone())),
        None => drop(object.remove(member)),
    }
}

/// A higher generation when the member differs from the stored one.
pub fn bump_generation(object: &mut Object, old: &Object, member: &str) {
    if object.get(member) != old.get(member) {
        object.set_meta("generation", old.generation() + 1);
    }
}

/// The text at a path, empty when there is none.
pub fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.text(path).unwrap_or("")
}

/// The list at a path, empty when there is none.
pub fn list<'a>(object: &'a Object, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of the map at a path.
pub fn entries<'a>(
    object: &'a Object,
    path: &[&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    object.at(path).and_then(Value::as_object).into_iter().flatten()
}

/// The object inside `map` at `key`, when it is one.
pub fn object_mut<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    map.get_mut(key)?.as_object_mut()
}

/// The objects in the list at `key`.
pub fn objects_mut<'a>(map: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = map.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a member that is absent or an empty text.
pub fn set_default(map: &mut Object, key: &str, value: impl Into<Value>) {
    let is_set = map.get(key).is_some_and(|v| !v.is_null() && v.as_str() != Some(""));
    if !is_set {
        map.insert(key.to_owned(), value.into());
    }
}

/// The number of bytes that base64 text stands for.
pub fn base64_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
