//! Strategic merge patch (`apimachinery/pkg/util/strategicpatch`), applied on the server's side.
//!
//! A message descriptor, or the shape of a custom object, says which lists merge and by which key.
//! Where Go would stop at data that no struct describes (the values of a map, raw JSON), objects
//! merge and lists are replaced.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Error, Patched, decode_object};
use crate::proto::{Field, Kind, Label, Message};
use crate::{Object, Value, go, json};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";

const BAD_ORDER: &str = "invalid patch format of setElementOrder list";
const BAD_PRIMITIVE_LIST: &str = "invalid patch format of primitive list";
const BAD_RETAIN_KEYS: &str = "invalid patch format of retainKeys";

/// How the lists in a part of a custom object merge: what its schema tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Of a list: its items merge by this member, or by value when it is empty.
    pub merge_key: Option<Box<str>>,
    /// The members of an object, or of each item of a list, that have lists in them.
    pub members: BTreeMap<Box<str>, Shape>,
    /// Every other member.
    pub others: Option<Box<Shape>>,
}

impl Shape {
    /// There is no list to merge in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Applies a strategic merge patch to an object that `message` describes.
pub fn strategic_merge_patch(
    object: Object,
    body: &[u8],
    message: &'static Message,
) -> Result<Patched, Error> {
    apply(object, body, Schema::Message(message))
}

/// Applies a strategic merge patch to a custom object, whose metadata `meta` describes.
pub fn strategic_merge_custom(
    object: Object,
    body: &[u8],
    meta: &'static Message,
    shape: &Shape,
) -> Result<Patched, Error> {
    apply(object, body, Schema::Custom(meta, shape))
}

fn apply(object: Object, body: &[u8], schema: Schema<'_>) -> Result<Patched, Error> {
    let patch = decode_object(body)?;
    let object = merge_map(object, patch.object, schema)?;
    Ok(Patched { object, strict: patch.strict })
}

fn malformed(message: impl Into<String>) -> Error {
    Error::Malformed(message.into())
}

/// What describes a value.
#[derive(Clone, Copy)]
enum Schema<'a> {
    Message(&'static Message),
    /// A custom object: its metadata, and the rest.
    Custom(&'static Message, &'a Shape),
    Shape(&'a Shape),
    /// A map: every member is of this kind.
    MapOf(Kind),
    /// Nothing does.
    Opaque,
}

/// A member's description and how it merges.
struct Lookup<'a> {
    schema: Schema<'a>,
    merge_key: &'a str,
    is_merged: bool,
    is_replaced: bool,
}

impl<'a> Schema<'a> {
    fn of(kind: Kind) -> Self {
        if let Kind::Message(message) = kind { Self::Message(message) } else { Self::Opaque }
    }

    fn lookup(self, key: &str) -> Result<Lookup<'a>, Error> {
        let plain = |schema| Lookup { schema, merge_key: "", is_merged: false, is_replaced: false };
        let message = match self {
            Self::Message(message) => message,
            Self::MapOf(kind) => return Ok(plain(Self::of(kind))),
            Self::Custom(meta, _) if key == "metadata" => return Ok(plain(Self::Message(meta))),
            Self::Custom(_, shape) | Self::Shape(shape) => return Ok(shape.lookup(key)),
            Self::Opaque => return Ok(plain(Self::Opaque)),
        };
        let field = find_field(message, key).ok_or_else(|| {
            malformed(format!(
                "unable to find api field in struct {} for the json field {}",
                message.name,
                go::quote(key)
            ))
        })?;
        let has = |strategy: &str| field.patch_strategy.split(',').any(|s| s == strategy);
        Ok(Lookup {
            schema: if field.label == Label::Map {
                Self::MapOf(field.kind)
            } else {
                Self::of(field.kind)
            },
            merge_key: field.merge_key,
            is_merged: has("merge"),
            is_replaced: has("replace"),
        })
    }
}

impl Shape {
    fn lookup(&self, key: &str) -> Lookup<'_> {
        let shape = self.members.get(key).or(self.others.as_deref());
        let merge_key = shape.and_then(|s| s.merge_key.as_deref());
        Lookup {
            schema: shape.map_or(Schema::Opaque, Schema::Shape),
            merge_key: merge_key.unwrap_or(""),
            is_merged: merge_key.is_some(),
            is_replaced: false,
        }
    }
}

/// The field of a JSON name, embedded messages included.
fn find_field(message: &'static Message, key: &str) -> Option<&'static Field> {
    message.fields.iter().find_map(|field| match field.kind {
        Kind::Message(inner) if field.json.is_empty() => find_field(inner, key),
        _ => (field.json == key).then_some(field),
    })
}

fn merge_map(mut original: Object, mut patch: Object, schema: Schema<'_>) -> Result<Object, Error> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(clean_map(patch)),
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_patch_type(&directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, schema)?;
    for (key, value) in patch {
        let (key, is_delete_list) = match directive_key(&key, DELETE_PREFIX, BAD_PRIMITIVE_LIST)? {
            Some(list) => (list.to_owned(), true),
            None => (key, false),
        };
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let Some(slot) = original.get_mut(&key) else {
            if !is_delete_list && let Some(value) = clean(value) {
                original.insert(key, value);
            }
            continue;
        };
        match (std::mem::take(slot), value) {
            (Value::Object(old), Value::Object(patch)) => {
                let lookup = schema.lookup(&key)?;
                *slot = Value::Object(if lookup.is_replaced {
                    clean_map(patch)
                } else {
                    merge_map(old, patch, lookup.schema)?
                });
            }
            (Value::Array(old), Value::Array(patch)) => {
                *slot =
                    Value::Array(merge_list(old, patch, &schema.lookup(&key)?, is_delete_list)?);
            }
            (old, _) if is_delete_list => *slot = old,
            (_, value) => match clean(value) {
                Some(value) => *slot = value,
                None => drop(original.remove(&key)),
            },
        }
    }
    Ok(original)
}

fn unknown_patch_type(directive: &Value, map: &Object) -> Error {
    let directive = directive.as_str().map_or_else(|| json::to_string(directive), str::to_owned);
    malformed(format!("unknown patch type: {directive} in map: {}", json::to_string(map)))
}

/// The list that `<prefix>/<list>` speaks of; None for another key.
fn directive_key<'a>(key: &'a str, prefix: &str, error: &str) -> Result<Option<&'a str>, Error> {
    match key.strip_prefix(prefix) {
        None => Ok(None),
        Some(rest) => rest.strip_prefix('/').map(Some).ok_or_else(|| malformed(error)),
    }
}

/// `$retainKeys`: drops the members of the original that it does not name.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), Error> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| malformed(BAD_RETAIN_KEYS))?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive = |key: &str| key.starts_with(DELETE_PREFIX) || key.starts_with(ORDER_PREFIX);
    if patch.iter().any(|(k, v)| !v.is_null() && !is_directive(k) && !keys.contains(k.as_str())) {
        return Err(malformed(BAD_RETAIN_KEYS));
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// `$setElementOrder/<list>`: merges the list that it speaks of, then orders it. Takes both from the patch.
fn merge_ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    schema: Schema<'_>,
) -> Result<(), Error> {
    let directives: Vec<String> =
        patch.keys().filter(|k| k.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let order = array(patch.remove(&directive).unwrap_or(Value::Null))?;
        let Some(key) = directive_key(&directive, ORDER_PREFIX, BAD_ORDER)? else { continue };
        let lookup = schema.lookup(key)?;
        let patch_list = patch.remove(key).map(array).transpose()?;
        check_order(patch_list.as_deref().unwrap_or_default(), &order, lookup.merge_key)?;
        let old_list = original.remove(key).map(array).transpose()?;
        let Ids(old_order) = Ids::of(old_list.as_deref().unwrap_or_default(), lookup.merge_key)?;
        let merged = match (old_list, patch_list) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(patch)) => patch.into_iter().filter_map(clean).collect(),
            (Some(old), Some(patch)) => merge_list(old, patch, &lookup, false)?,
        };
        let order = Ids::of(&order, lookup.merge_key)?;
        let ordered = order_list(merged, &order, &Ids(old_order), lookup.merge_key)?;
        original.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// The patch's items must stand in `$setElementOrder`, in its order; items to delete do not count.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut order_ids = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id = id(item, merge_key)?;
        let mut found = false;
        for candidate in order_ids.by_ref() {
            if self::id(candidate, merge_key)? == id {
                found = true;
                break;
            }
        }
        if !found {
            let (patch, order) = (json::to_string(&patch), json::to_string(&order));
            return Err(malformed(format!(
                "The order in patch list:\n{patch}\n doesn't match {ORDER_PREFIX} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

fn merge_list(
    old: Vec<Value>,
    patch: Vec<Value>,
    lookup: &Lookup<'_>,
    is_delete_list: bool,
) -> Result<Vec<Value>, Error> {
    if !lookup.is_merged && !is_delete_list {
        return Ok(patch.into_iter().filter_map(clean).collect());
    }
    if old.is_empty() && patch.is_empty() {
        return Ok(old);
    }
    let merge_key = lookup.merge_key;
    if !all_maps(&old, &patch)? {
        if is_delete_list {
            let gone: HashSet<String> = patch.iter().map(json::to_string).collect();
            return Ok(old.into_iter().filter(|v| !gone.contains(&json::to_string(v))).collect());
        }
        let mut seen = HashSet::new();
        let (old_ids, patch_ids) = (Ids::of(&old, "")?, Ids::of(&patch, "")?);
        let both = old.into_iter().chain(patch);
        let merged = both.filter(|v| seen.insert(json::to_string(v))).collect();
        return order_list(merged, &patch_ids, &old_ids, "");
    }
    if merge_key.is_empty() {
        return Err(malformed("cannot merge lists without merge key for struct"));
    }
    let (mut merged, patch) = take_directives(old, patch, merge_key)?;
    let (old_ids, patch_ids) = (Ids::of(&merged, merge_key)?, Ids::of(&patch, merge_key)?);
    let mut places = old_ids.0.clone();
    for item in patch {
        match places.get(&id(&item, merge_key)?) {
            Some(at) => {
                let (Value::Object(old), Value::Object(patch)) =
                    (std::mem::take(&mut merged[*at]), item)
                else {
                    return Err(malformed("expected a map"));
                };
                merged[*at] = Value::Object(merge_map(old, patch, lookup.schema)?);
            }
            None => {
                places.insert(id(&item, merge_key)?, merged.len());
                merged.extend(clean(item));
            }
        }
    }
    order_list(merged, &patch_ids, &old_ids, merge_key)
}

/// Carries out the `$patch` of a list's items: deletes what they name, or with `replace` all of the
/// old list. Returns the old items left and the patch's plain items.
fn take_directives(
    mut old: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut gone = HashSet::new();
    let mut is_replaced = false;
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(d)) if d == "delete" => drop(gone.insert(id(&item, merge_key)?)),
            Some(Value::String(d)) if d == "replace" => is_replaced = true,
            Some(Value::String(d)) if d == "merge" => {
                return Err(malformed("merging lists cannot yet be specified in the patch"));
            }
            Some(other) => {
                return Err(unknown_patch_type(other, item.as_object().unwrap_or(&Object::new())));
            }
        }
    }
    if is_replaced {
        // The patch's items become the list, and merge with nothing.
        return Ok((plain, Vec::new()));
    }
    if !gone.is_empty() {
        let is_gone =
            |item: &Value| item.get(merge_key).is_some_and(|v| gone.contains(&json::to_string(v)));
        old.retain(|item| !is_gone(item));
    }
    Ok((old, plain))
}

/// Whether the items are maps; mixed lists and lists of lists are refused.
fn all_maps(old: &[Value], patch: &[Value]) -> Result<bool, Error> {
    let mut kinds = old.iter().chain(patch).map(json::type_name);
    let first = kinds.next().unwrap_or("null");
    if first == "array" {
        return Err(Error::Rejected("lists of lists are not supported".into()));
    }
    if kinds.any(|k| k != first) {
        let lists = json::to_string(&[old, patch]);
        return Err(malformed(format!("list element types are not identical: {lists}")));
    }
    Ok(first == "object")
}

/// Items' identities (the merge key's value, or the whole scalar) and where each stands first.
struct Ids(HashMap<String, usize>);

impl Ids {
    fn of(items: &[Value], merge_key: &str) -> Result<Self, Error> {
        let mut out = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            out.entry(id(item, merge_key)?).or_insert(at);
        }
        Ok(Self(out))
    }
}

fn id(item: &Value, merge_key: &str) -> Result<String, Error> {
    if merge_key.is_empty() {
        return Ok(json::to_string(item));
    }
    let value = item.get(merge_key).map(json::to_string);
    value.ok_or_else(|| {
        malformed(format!(
            "map: {} does not contain declared merge key: {merge_key}",
            json::to_string(item)
        ))
    })
}

/// Orders a merged list: items of `order` by it, the others as they stood; an item that only the
/// server has comes before the first item that stood behind it.
fn order_list(
    merged: Vec<Value>,
    order: &Ids,
    old: &Ids,
    merge_key: &str,
) -> Result<Vec<Value>, Error> {
    let mut ordered = Vec::new();
    let mut server_only = Vec::new();
    for item in merged {
        let id = id(&item, merge_key)?;
        let old_at = old.0.get(&id).copied();
        match order.0.get(&id) {
            Some(at) => ordered.push((*at, old_at, item)),
            None => server_only.push((old_at, item)),
        }
    }
    ordered.sort_by_key(|(at, _, _)| *at);
    server_only.sort_by_key(|(old_at, _)| old_at.unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(ordered.len() + server_only.len());
    let mut server_only = server_only.into_iter().peekable();
    for (_, right_at, right) in ordered {
        let stood_before = |(left_at, _): &(Option<usize>, Value)| {
            left_at.zip(right_at).is_some_and(|(l, r)| l < r)
        };
        while let Some((_, left)) = server_only.next_if(stood_before) {
            out.push(left);
        }
        out.push(right);
    }
    out.extend(server_only.map(|(_, item)| item));
    Ok(out)
}

/// A patch's value where the original has none: without nulls and directives; None for a value that
/// is itself a directive.
fn clean(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(clean_map(map))),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(clean).collect())),
        scalar => Some(scalar),
    }
}

fn clean_map(map: Object) -> Object {
    let is_directive =
        |k: &str| k == RETAIN_KEYS || k.starts_with(DELETE_PREFIX) || k.starts_with(ORDER_PREFIX);
    map.into_iter()
        .filter(|(k, v)| !v.is_null() && !is_directive(k))
        .filter_map(|(k, v)| Some((k, clean(v)?)))
        .collect()
}

fn array(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(malformed(format!(
            "expected a []interface {{}}, but received a {}",
            json::type_name(&other)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn field(
        json: &'static str,
        kind: Kind,
        label: Label,
        strategy: &'static str,
        key: &'static str,
    ) -> Field {
        Field {
            tag: 1,
            position: 1,
            json,
            kind,
            label,
            omit_empty: true,
            merge_key: key,
            patch_strategy: strategy,
        }
    }

    static ITEM: Message = Message {
        name: "test.Item",
        type_meta: false,
        fields: &[
            field("name", Kind::String, Label::Plain, "", ""),
            field("value", Kind::String, Label::Plain, "", ""),
            field("ports", Kind::Message(&PORT), Label::Repeated, "merge", "port"),
            field("env", Kind::String, Label::Map, "", ""),
        ],
    };
    static PORT: Message = Message {
        name: "test.Port",
        type_meta: false,
        fields: &[field("port", Kind::Int32, Label::Plain, "", "")],
    };
    static INLINE: Message = Message {
        name: "test.Inline",
        type_meta: false,
        fields: &[field("inner", Kind::Message(&ITEM), Label::Pointer, "", "")],
    };
    static SPEC: Message = Message {
        name: "test.Spec",
        type_meta: false,
        fields: &[
            field("items", Kind::Message(&ITEM), Label::Repeated, "merge,retainKeys", "name"),
            field("tags", Kind::String, Label::Repeated, "merge", ""),
            field("atomic", Kind::Message(&ITEM), Label::Repeated, "", ""),
            field("labels", Kind::String, Label::Map, "", ""),
            field("byName", Kind::Message(&ITEM), Label::Map, "", ""),
            field("whole", Kind::Message(&ITEM), Label::Plain, "replace", ""),
            field("item", Kind::Message(&ITEM), Label::Plain, "retainKeys", ""),
            field("", Kind::Message(&INLINE), Label::Plain, "", ""),
            field("raw", Kind::RawExtension, Label::Plain, "", ""),
        ],
    };

    #[test]
    fn a_custom_object_merges_by_its_shape() {
        let list = |key: &str| Shape { merge_key: Some(key.into()), ..Shape::default() };
        let object = |members: Vec<(&str, Shape)>| Shape {
            members: members.into_iter().map(|(name, shape)| (name.into(), shape)).collect(),
            ..Shape::default()
        };
        let containers =
            Shape { members: BTreeMap::from([("env".into(), list("name"))]), ..list("name") };
        let by_name = Shape { others: Some(Box::new(list(""))), ..Shape::default() };
        let shape =
            object(vec![("spec", object(vec![("containers", containers), ("byName", by_name)]))]);
        let check = |before: &str, patch: &str, want: &str| {
            let decoded = json::decode(before.as_bytes()).expect("an object").object;
            let patched = strategic_merge_custom(decoded, patch.as_bytes(), &SPEC, &shape);
            let got = patched.map_or_else(|e| e.to_string(), |p| json::to_string(&p.object));
            assert_eq!(got, want, "{before} + {patch}");
        };
        let before = r#"{"spec":{"containers":[{"env":[{"name":"x"}],"name":"a","image":"1"},{"name":"b"}],"byName":{"k":["p"]},"args":["q"]}}"#;
        check(
            before,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a","image":"2","env":[{"name":"y"}]}]}}"#,
            r#"{"spec":{"args":["q"],"byName":{"k":["p"]},"containers":[{"name":"b"},{"env":[{"name":"y"},{"name":"x"}],"image":"2","name":"a"}]}}"#,
        );
        check(
            before,
            r#"{"spec":{"containers":[{"$patch":"delete","name":"a"}],"byName":{"k":["r"]},"args":["s"]}}"#,
            r#"{"spec":{"args":["s"],"byName":{"k":["r","p"]},"containers":[{"name":"b"}]}}"#,
        );
        // Metadata merges as the built-in message says.
        check(
            r#"{"metadata":{"tags":["a"],"atomic":[{"name":"x"}]}}"#,
            r#"{"metadata":{"tags":["b"],"atomic":[]}}"#,
            r#"{"metadata":{"atomic":[],"tags":["b","a"]}}"#,
        );
    }

    fn check(object: &str, patch: &str, want: &str) {
        let decoded = json::decode(object.as_bytes()).expect("an object").object;
        let got = match strategic_merge_patch(decoded, patch.as_bytes(), &SPEC) {
            Ok(p) => json::to_string(&p.object),
            Err(e) => e.to_string(),
        };
        assert_eq!(got, want, "{object} + {patch}");
    }

    #[test]
    fn merges_maps() {
        check(
            r#"{"labels":{"a":"1","b":"2"}}"#,
            r#"{"labels":{"a":null,"c":"3"}}"#,
            r#"{"labels":{"b":"2","c":"3"}}"#,
        );
        check("{}", r#"{"labels":{"a":null,"c":"3"}}"#, r#"{"labels":{"c":"3"}}"#);
        check(
            r#"{"item":{"name":"a","value":"b"}}"#,
            r#"{"item":{"$patch":"replace","value":"c"}}"#,
            r#"{"item":{"value":"c"}}"#,
        );
        check(r#"{"item":{"name":"a"}}"#, r#"{"item":{"$patch":"delete"}}"#, r#"{"item":{}}"#);
        check("{}", r#"{"item":{"$patch":"delete"}}"#, "{}");
        check(
            r#"{"whole":{"name":"a","value":"b"}}"#,
            r#"{"whole":{"value":"c"}}"#,
            r#"{"whole":{"value":"c"}}"#,
        );
        check(
            r#"{"item":{"name":"a","value":"b"}}"#,
            r#"{"item":{"$retainKeys":["value"],"value":"c"}}"#,
            r#"{"item":{"value":"c"}}"#,
        );
        check(
            r#"{"byName":{"x":{"name":"a","value":"b"}}}"#,
            r#"{"byName":{"x":{"value":"c"}}}"#,
            r#"{"byName":{"x":{"name":"a","value":"c"}}}"#,
        );
        check(
            r#"{"inner":{"ports":[{"port":1}]}}"#,
            r#"{"inner":{"ports":[{"port":2}]}}"#,
            r#"{"inner":{"ports":[{"port":2},{"port":1}]}}"#,
        );
        check(
            r#"{"raw":{"a":{"b":1},"l":[1]}}"#,
            r#"{"raw":{"a":{"c":2},"l":[2]}}"#,
            r#"{"raw":{"a":{"b":1,"c":2},"l":[2]}}"#,
        );
        check(r#"{"item":{}}"#, r#"{"item":"x"}"#, r#"{"item":"x"}"#);
    }

    #[test]
    fn merges_lists() {
        let items = r#"{"items":[{"name":"a","value":"1"},{"name":"b","value":"2"},{"name":"c"}]}"#;
        check(
            items,
            r#"{"items":[{"name":"b","value":"9"}]}"#,
            r#"{"items":[{"name":"a","value":"1"},{"name":"b","value":"9"},{"name":"c"}]}"#,
        );
        check(
            items,
            r#"{"items":[{"name":"z","value":null}]}"#,
            r#"{"items":[{"name":"z"},{"name":"a","value":"1"},{"name":"b","value":"2"},{"name":"c"}]}"#,
        );
        check(
            items,
            r#"{"items":[{"name":"b","$patch":"delete"}]}"#,
            r#"{"items":[{"name":"a","value":"1"},{"name":"c"}]}"#,
        );
        check(
            items,
            r#"{"items":[{"$patch":"replace"},{"name":"z"}]}"#,
            r#"{"items":[{"name":"z"}]}"#,
        );
        check(
            items,
            r#"{"$setElementOrder/items":[{"name":"c"},{"name":"n"},{"name":"a"}],"items":[{"name":"n"},{"name":"b","$patch":"delete"}]}"#,
            r#"{"items":[{"name":"c"},{"name":"n"},{"name":"a","value":"1"}]}"#,
        );
        check(
            items,
            r#"{"$setElementOrder/items":[{"name":"c"},{"name":"a"}]}"#,
            r#"{"items":[{"name":"b","value":"2"},{"name":"c"},{"name":"a","value":"1"}]}"#,
        );
        check(
            "{}",
            r#"{"$setElementOrder/items":[{"name":"a"}],"items":[{"name":"a"}]}"#,
            r#"{"items":[{"name":"a"}]}"#,
        );
        check(
            r#"{"items":[{"name":"a","ports":[{"port":1}]}]}"#,
            r#"{"items":[{"name":"a","ports":[{"port":2},{"port":1,"$patch":"delete"}]}]}"#,
            r#"{"items":[{"name":"a","ports":[{"port":2}]}]}"#,
        );
        check(
            r#"{"atomic":[{"name":"a"}]}"#,
            r#"{"atomic":[{"name":"b"}]}"#,
            r#"{"atomic":[{"name":"b"}]}"#,
        );
        check(r#"{"tags":["a","b"]}"#, r#"{"tags":["c","b"]}"#, r#"{"tags":["c","a","b"]}"#);
        check(
            r#"{"tags":["a","b"]}"#,
            r#"{"$deleteFromPrimitiveList/tags":["a"],"tags":["c"]}"#,
            r#"{"tags":["c","b"]}"#,
        );
        check(
            r#"{"tags":["a","b"]}"#,
            r#"{"$setElementOrder/tags":["b","a"],"tags":["b"]}"#,
            r#"{"tags":["b","a"]}"#,
        );
        check("{}", r#"{"$deleteFromPrimitiveList/tags":["a"]}"#, "{}");
    }

    #[test]
    fn refuses() {
        check(
            "{}",
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        );
        check("{}", r#"{"$patch":"x","a":1}"#, r#"unknown patch type: x in map: {"a":1}"#);
        check("{}", r#"{"$retainKeys":"x"}"#, BAD_RETAIN_KEYS);
        check("{}", r#"{"$retainKeys":["b"],"a":1}"#, BAD_RETAIN_KEYS);
        check(
            "{}",
            r#"{"$setElementOrder/items":"x"}"#,
            "expected a []interface {}, but received a string",
        );
        check("{}", r#"{"$setElementOrder":[]}"#, BAD_ORDER);
        check("{}", r#"{"$deleteFromPrimitiveList":[]}"#, BAD_PRIMITIVE_LIST);
        check(
            r#"{"items":[{"name":"a"}]}"#,
            r#"{"items":[{"value":"x"}]}"#,
            r#"map: {"value":"x"} does not contain declared merge key: name"#,
        );
        check(
            r#"{"tags":["a"]}"#,
            r#"{"tags":[["a"]]}"#,
            r#"list element types are not identical: [["a"],[["a"]]]"#,
        );
        check(r#"{"tags":[["a"]]}"#, r#"{"tags":[["a"]]}"#, "lists of lists are not supported");
        check(
            r#"{"nope":{}}"#,
            r#"{"nope":{}}"#,
            r#"unable to find api field in struct test.Spec for the json field "nope""#,
        );
        check(
            "{}",
            r#"{"$setElementOrder/tags":["b","a"],"tags":["a","b"]}"#,
            "The order in patch list:\n[\"a\",\"b\"]\n doesn't match $setElementOrder list:\n[\"b\",\"a\"]\n",
        );
    }
}
