//! Objects as a `Table` (`meta.k8s.io/v1`): what `kubectl get` prints
//! (`registry/customresource/tableconvertor/tableconvertor.go`).

use fp_object::jsonpath::{self, JsonPath};
use fp_object::meta::Meta;
use fp_object::{Object, Value, time};
use serde_json::json;

use crate::resource::Cell;
use crate::{Column, VersionInfo, docs};

/// A moment, for the age of things.
pub type Now = ::time::OffsetDateTime;

/// What a row carries beside its cells (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    None,
    /// `PartialObjectMetadata`.
    Metadata,
    Object,
}

/// How a table is written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub include: Include,
    /// Names the columns: not in a watch after its first table.
    pub columns: bool,
    /// `meta.k8s.io/v1` or its beta.
    pub api_version: &'static str,
}

/// A version's columns with their paths compiled, for all rows of an answer.
pub struct Printer<'a> {
    columns: &'a [Column],
    /// Beside `columns`; `None` for a built-in's function, or a path that does not compile.
    paths: Vec<Option<CellPath>>,
    /// Custom resources have a first column, `Name`, that their CRD does not list.
    named: bool,
}

impl<'a> Printer<'a> {
    pub fn new(version: &'a VersionInfo) -> Self {
        let path = |column: &Column| match &column.cell {
            Cell::JsonPath(text) => CellPath::compile(text),
            Cell::Fn(_) => None,
        };
        Self {
            columns: &version.columns,
            paths: version.columns.iter().map(path).collect(),
            named: version.schema.is_some(),
        }
    }

    /// `columnDefinitions`.
    pub fn definitions(&self) -> Value {
        let name =
            self.named.then(|| definition("Name", "string", "name", docs::metadata("name"), 0));
        let own = self
            .columns
            .iter()
            .map(|c| definition(&c.name, &c.kind, &c.format, &c.description, c.priority));
        name.into_iter().chain(own).collect()
    }

    /// The cells of one row.
    pub fn cells(&self, object: &Object, now: Now) -> Value {
        let name = self.named.then(|| Value::from(object.name()));
        let own =
            self.columns.iter().zip(&self.paths).map(|(column, path)| match (&column.cell, path) {
                (Cell::Fn(cell), _) => cell(object),
                (_, Some(path)) => path.first(object, |value| cell(&column.kind, value, now)),
                (_, None) => Value::Null,
            });
        name.into_iter().chain(own).collect()
    }

    /// One row: cells, and what `options` wants of the object.
    pub fn row(&self, object: &Object, options: Options, now: Now) -> Value {
        let shown = match options.include {
            Include::None => Value::Null,
            Include::Object => Value::Object(object.clone()),
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": options.api_version,
                "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
            }),
        };
        json!({"cells": self.cells(object, now), "object": shown})
    }

    /// A whole table; `metadata` is the list's own.
    pub fn table<'o>(
        &self,
        objects: impl IntoIterator<Item = &'o Object>,
        metadata: Object,
        options: Options,
        now: Now,
    ) -> Value {
        let rows: Vec<Value> = objects.into_iter().map(|o| self.row(o, options, now)).collect();
        json!({
            "kind": "Table", "apiVersion": options.api_version, "metadata": metadata,
            "columnDefinitions": if options.columns { self.definitions() } else { Value::Null },
            "rows": rows,
        })
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

/// A column's path: plain member names first, walked without a copy of the object, then the rest.
struct CellPath {
    members: Vec<String>,
    rest: Option<JsonPath>,
}

impl CellPath {
    fn compile(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut members = Vec::new();
        while let Some(after) = rest.strip_prefix('.') {
            let len = after
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
                .unwrap_or(after.len());
            let plain = len > 0 && matches!(after[len..].chars().next(), None | Some('.' | '['));
            if !plain {
                break;
            }
            members.push(after[..len].to_owned());
            rest = &after[len..];
        }
        // A path must compile as a whole for its column to have cells.
        JsonPath::compile(text).ok()?;
        let rest = if rest.is_empty() { None } else { Some(JsonPath::compile(rest).ok()?) };
        Some(Self { members, rest })
    }

    /// Shows the first value, or null without one.
    fn first(&self, object: &Object, show: impl Fn(&Value) -> Value) -> Value {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        let whole;
        let start = if members.is_empty() {
            whole = Value::Object(object.clone());
            Some(&whole)
        } else {
            object.at(&members)
        };
        let found = match (start, &self.rest) {
            (Some(value), Some(rest)) => rest.first(value),
            (value, _) => value,
        };
        found.map_or(Value::Null, show)
    }
}

/// A value as its column's type shows it; null when it is of another type.
fn cell(kind: &str, value: &Value, now: Now) -> Value {
    match kind {
        "string" => jsonpath::print(value).into(),
        "integer" => match value.as_i64() {
            Some(n) => n.into(),
            None => value.as_f64().map_or(Value::Null, |f| (f as i64).into()),
        },
        "number" if value.is_number() => value.clone(),
        "boolean" if value.is_boolean() => value.clone(),
        "date" => value.as_str().map_or(Value::Null, |text| age(text, now).into()),
        _ => Value::Null,
    }
}

/// The age of a time in words: `5d`, `<unknown>` without one, `<invalid>` if it is none.
pub fn age(text: &str, now: Now) -> String {
    if text.is_empty() || text == "null" {
        return "<unknown>".into();
    }
    time::parse(text).map_or_else(|| "<invalid>".into(), |at| time::human_duration(now - at))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{Origin, Segment, from_crd};

    const OPTIONS: Options =
        Options { include: Include::Metadata, columns: true, api_version: "meta.k8s.io/v1" };

    fn object(value: Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    fn table(columns: Value, objects: Value, options: Options) -> Value {
        let crd = object(json!({"spec": {
            "group": "a.dev", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns}],
        }}));
        let info =
            from_crd(&crd, Segment::CustomResources, Origin::System { name: "x".into() }, &|_| {
                None
            });
        let info = info.expect("a good CRD");
        let objects: Vec<Object> =
            objects.as_array().expect("a list").iter().cloned().map(object).collect();
        let now = time::parse("2024-01-03T00:00:00Z").expect("a time");
        Printer::new(&info.versions[0]).table(
            &objects,
            object(json!({"resourceVersion": "7"})),
            options,
            now,
        )
    }

    #[test]
    fn cells_by_type() {
        let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
        let columns = json!([
            column("S", "string", ".spec.s"),
            column("I", "integer", ".spec.i"),
            column("N", "number", ".spec.n"),
            column("B", "boolean", ".spec.b"),
            column("D", "date", ".metadata.creationTimestamp"),
            column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            column("Bad", "string", ".spec["),
        ]);
        let ready = json!([{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]);
        let objects = json!([
            {"metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"}, "spec": {"s": "x", "i": 3, "n": 1.5, "b": true}, "status": {"conditions": ready}},
            {"metadata": {"name": "b", "creationTimestamp": "x"}, "spec": {"s": {"a": 1}, "i": 2.5, "n": "x", "b": "x"}},
            {"metadata": {"name": "c"}, "spec": {"s": null, "i": "1"}},
        ]);
        let table = table(columns, objects, OPTIONS);
        let rows: Vec<String> = table["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|r| r["cells"].to_string())
            .collect();
        expect![[r#"
            ["a","x",3,1.5,true,"2d","True",null]
            ["b","{\"a\":1}",2,null,null,"<invalid>",null,null]
            ["c","<no value>",null,null,null,null,null,null]"#]]
        .assert_eq(&rows.join("\n"));
    }

    #[test]
    fn the_whole_of_it() {
        let objects = json!([{"kind": "A", "metadata": {"name": "a"}}]);
        let mut whole = table(json!([]), objects.clone(), OPTIONS);
        for (column, field) in ["name", "creationTimestamp"].into_iter().enumerate() {
            let described = whole["columnDefinitions"][column]["description"].take();
            assert_eq!(described, docs::metadata(field));
        }
        expect![[r#"{"apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"description":null,"format":"name","name":"Name","priority":0,"type":"string"},{"description":null,"format":"","name":"Age","priority":0,"type":"date"}],"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"cells":["a",null],"object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}}]}"#]].assert_eq(&whole.to_string());
        let bare = Options { include: Include::None, columns: false, ..OPTIONS };
        expect![[r#"{"apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"cells":["a",null],"object":null}]}"#]]
            .assert_eq(&table(json!([]), objects, bare).to_string());
    }
}
