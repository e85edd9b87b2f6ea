//! YAML bodies as Kubernetes reads them: YAML 1.1 scalars by the rules of go-yaml v2 (`sigs.k8s.io/yaml`),
//! then JSON.
//!
//! Built from parser events on an explicit stack. What aliases copy is counted before it is copied, so
//! that an alias bomb costs nothing. Unlike Kubernetes, which drops what follows the first document
//! unread, a second document is an error.

mod encode;
mod resolve;

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

pub use encode::to_string;

use crate::json::{self, Decoded};
use crate::{Object, Value, go};

/// How many nodes anchors and aliases of one body may copy.
const COPIED_NODES_MAX: usize = 20_000;
/// How many bytes of text they may copy.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Why a body is no YAML object. All of them are the client's fault: 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("yaml: line {line}: {message}")]
    Syntax { line: usize, message: String },
    #[error("yaml: {0}")]
    Value(String),
    #[error("yaml: document contains excessive aliasing")]
    Aliases,
    #[error("yaml: more than one document")]
    Documents,
    #[error("json: unsupported value: {0}")]
    NotFinite(&'static str),
    #[error(transparent)]
    Json(#[from] json::Error),
}

/// Decodes a body that must be a map. A key that comes twice is reported with its line; the last wins.
pub fn decode(body: &[u8]) -> Result<Decoded, Error> {
    let (value, strict) = decode_value(body)?;
    match value {
        Value::Object(object) => Ok(Decoded { object, strict }),
        other => Err(json::Error::NotObject(json::type_name(&other)).into()),
    }
}

/// Decodes any YAML; an empty body is null.
pub fn decode_value(body: &[u8]) -> Result<(Value, Vec<String>), Error> {
    let text = std::str::from_utf8(body).map_err(|_| Error::Value("invalid UTF-8".into()))?;
    let mut options = Options::default();
    options.emit_comments = false;
    options.bom_inside_document_as_content = true;
    options.block_scalar_eof_without_line_feed = true;
    options.flow_nesting_limit = json::MAX_DEPTH + 1;
    options.block_nesting_limit = json::MAX_DEPTH + 1;
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) =
            event.map_err(|e| Error::Syntax { line: e.marker().line(), message: e.info() })?;
        builder.take(event, span)?;
    }
    let mut strict = Vec::new();
    if !builder.duplicates.is_empty() {
        strict.push(format!("yaml: unmarshal errors:\n{}", builder.duplicates.join("\n")));
    }
    Ok((builder.root.unwrap_or(Value::Null), strict))
}

/// How much a node holds.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Size {
    fn of_scalar(text: &str) -> Self {
        Self { nodes: 1, bytes: text.len(), depth: 0 }
    }

    fn add(&mut self, child: Self) {
        self.nodes += child.nodes;
        self.bytes += child.bytes;
        self.depth = self.depth.max(child.depth + 1);
    }
}

enum Container {
    List(Vec<Value>),
    /// The members, and the key whose value comes next.
    Map(Object, Option<Key>),
}

enum Key {
    Text {
        text: String,
        shown: String,
    },
    /// `<<`: the value's members come into this map.
    Merge,
}

struct Frame {
    container: Container,
    anchor: usize,
    line: usize,
    size: Size,
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    root: Option<Value>,
    n_documents: usize,
    anchors: HashMap<usize, (Value, Size)>,
    copied: Size,
    /// As JSON's parser estimates it; copies have a limit of their own.
    n_bytes: usize,
    duplicates: Vec<String>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Error> {
        let line = span.start.line();
        match event {
            Event::DocumentStart(..) => self.n_documents += 1,
            Event::Scalar(text, style, anchor, tag) => {
                return self.scalar(&text, style, anchor, tag.as_deref(), line);
            }
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id) else {
                    return Err(Error::Value("anchor contains itself".into()));
                };
                let size = *size;
                charge(&mut self.copied, size)?;
                if self.stack.len() + size.depth > json::MAX_DEPTH {
                    return Err(json::Error::TooDeep.into());
                }
                let value = value.clone();
                return self.value(value, size, line);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Container::List(Vec::new()), anchor, line)?
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(Container::Map(Object::new(), None), anchor, line)?
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let frame = self.stack.pop().expect("the parser pairs starts and ends");
                let value = match frame.container {
                    Container::List(items) => Value::Array(items),
                    Container::Map(map, _) => Value::Object(map),
                };
                self.anchor(frame.anchor, &value, frame.size)?;
                return self.value(value, frame.size, frame.line);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, container: Container, anchor: usize, line: usize) -> Result<(), Error> {
        if self.stack.len() >= json::MAX_DEPTH {
            return Err(json::Error::TooDeep.into());
        }
        if let Some(Frame { container: Container::Map(_, None), .. }) = self.stack.last() {
            return Err(Error::Value("invalid map key: not a scalar".into()));
        }
        if matches!(container, Container::Map(..)) {
            self.charge(json::OBJECT_BYTES)?;
        }
        self.stack.push(Frame {
            container,
            anchor,
            line,
            size: Size { nodes: 1, ..Size::default() },
        });
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.n_bytes += bytes;
        if self.n_bytes <= json::MAX_BYTES {
            Ok(())
        } else {
            Err(json::Error::TooManyValues.into())
        }
    }

    /// Keeps a copy of an anchored node.
    fn anchor(&mut self, anchor: usize, value: &Value, size: Size) -> Result<(), Error> {
        if anchor != 0 {
            charge(&mut self.copied, size)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<(), Error> {
        let is_plain = style == ScalarStyle::Plain;
        let is_key =
            matches!(self.stack.last(), Some(Frame { container: Container::Map(_, None), .. }));
        let size = Size::of_scalar(text);
        if is_key && text == "<<" && is_plain && tag.is_none() {
            return self.key(Key::Merge);
        }
        let value = resolve::scalar(text, is_plain, tag)?;
        self.anchor(anchor, &value, size)?;
        self.value(value, size, line)
    }

    fn key(&mut self, key: Key) -> Result<(), Error> {
        if let Some(Frame { container: Container::Map(_, slot), .. }) = self.stack.last_mut() {
            *slot = Some(key);
        }
        Ok(())
    }

    /// A whole node: the root, a list's item, a map's key or a map's value.
    fn value(&mut self, value: Value, size: Size, line: usize) -> Result<(), Error> {
        self.charge(json::VALUE_BYTES)?;
        let Some(frame) = self.stack.last_mut() else {
            if self.n_documents > 1 {
                // An empty document after a last `---` is none.
                return if value.is_null() { Ok(()) } else { Err(Error::Documents) };
            }
            self.root = Some(value);
            return Ok(());
        };
        frame.size.add(size);
        match &mut frame.container {
            Container::List(items) => items.push(value),
            Container::Map(map, key) => match key.take() {
                None => {
                    let key = key_of(&value)?;
                    return self.key(key);
                }
                Some(Key::Merge) => merge(map, value, line, &mut self.duplicates)?,
                Some(Key::Text { text, shown }) => {
                    if map.insert(text, value).is_some() {
                        duplicate(&mut self.duplicates, &shown, line);
                    }
                }
            },
        }
        Ok(())
    }
}

fn charge(copied: &mut Size, size: Size) -> Result<(), Error> {
    copied.nodes += size.nodes;
    copied.bytes += size.bytes;
    if copied.nodes > COPIED_NODES_MAX || copied.bytes > COPIED_BYTES_MAX {
        Err(Error::Aliases)
    } else {
        Ok(())
    }
}

fn duplicate(out: &mut Vec<String>, shown: &str, line: usize) {
    /// As many as JSON reports.
    const DUPLICATES_MAX: usize = 100;
    if out.len() < DUPLICATES_MAX {
        out.push(format!("  line {line}: key {shown} already set in map"));
    }
}

/// `<<`: a map, or a list of maps of which the first is the strongest. Unlike YAML says, go-yaml v2
/// lets the merge win over what stands before it.
fn merge(
    map: &mut Object,
    value: Value,
    line: usize,
    duplicates: &mut Vec<String>,
) -> Result<(), Error> {
    let maps = match value {
        Value::Object(one) => vec![Value::Object(one)],
        Value::Array(many) => many,
        _ => Vec::new(),
    };
    if maps.is_empty() || !maps.iter().all(Value::is_object) {
        return Err(Error::Value("map merge requires map or sequence of maps as the value".into()));
    }
    for one in maps.into_iter().rev() {
        let Value::Object(one) = one else { continue };
        for (key, value) in one {
            let shown = go::quote(&key);
            if map.insert(key, value).is_some() {
                duplicate(duplicates, &shown, line);
            }
        }
    }
    Ok(())
}

/// A map's key as text: numbers and booleans become their JSON.
fn key_of(value: &Value) -> Result<Key, Error> {
    let (text, shown) = match value {
        Value::String(text) => (text.clone(), go::quote(text)),
        Value::Bool(_) | Value::Number(_) => (json::to_string(value), json::to_string(value)),
        other => {
            return Err(Error::Value(format!(
                "unsupported map key of type: {}",
                json::type_name(other)
            )));
        }
    };
    Ok(Key::Text { text, shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        match decode_value(text.as_bytes()) {
            Ok((value, strict)) => [vec![json::to_string(&value)], strict].concat().join(" "),
            Err(e) => e.to_string(),
        }
    }

    /// Results of `sigs.k8s.io/yaml`; syntax errors have our parser's words.
    #[test]
    fn reads_as_kubernetes() {
        for (text, want) in [
            ("a: |\n  foo", r#"{"a":"foo"}"#),
            (
                "a: yes\nb: 'yes'\nc: on\nd: y\ne: No\nf: null\ng: ~\nh:\ni: Off",
                r#"{"a":true,"b":"yes","c":true,"d":true,"e":false,"f":null,"g":null,"h":null,"i":false}"#,
            ),
            ("a: 2001-01-01\nb: 12:30\nc: 1:2", r#"{"a":"2001-01-01","b":"12:30","c":"1:2"}"#),
            (
                "y: 1\n1: x\n1.5: z\ntrue: q",
                "{\"1\":\"x\",\"1.5\":\"z\",\"true\":\"q\"} yaml: unmarshal errors:\n  line 4: key true already set in map",
            ),
            (
                "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\nf: {<<: [*x, {c: 9, z: 1}]}",
                "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"b\":3,\"c\":2},\"f\":{\"b\":1,\"c\":2,\"z\":1}} yaml: unmarshal errors:\n  line 2: key \"b\" already set in map\n  line 3: key \"c\" already set in map",
            ),
            ("[a, b]", r#"["a","b"]"#),
            ("foo", r#""foo""#),
            ("", "null"),
            ("# c", "null"),
            ("a: |+\n  x\n\n\nb: >-\n  p\n  q\n", r#"{"a":"x\n\n\n","b":"p q"}"#),
            ("{a: 1, b: [x, y,], c: {}}", r#"{"a":1,"b":["x",true],"c":{}}"#),
            (
                "a: 1\na: 2",
                "{\"a\":2} yaml: unmarshal errors:\n  line 2: key \"a\" already set in map",
            ),
            ("'<<': 1", r#"{"<<":1}"#),
            ("a: &x [1]\nb: *x\nc: &y t\nd: *y", r#"{"a":[1],"b":[1],"c":"t","d":"t"}"#),
            ("{\"a\": \"\\u00e9\", \"b\": [1.5, null]}", r#"{"a":"é","b":[1.5,null]}"#),
            ("---\na: 1\n---\n", r#"{"a":1}"#),
            ("a: 1\n---\nb: 2", "yaml: more than one document"),
            ("~: 1", "yaml: unsupported map key of type: null"),
            ("? [a]\n: b", "yaml: invalid map key: not a scalar"),
            ("a: .nan", "json: unsupported value: NaN"),
            ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ] {
            assert_eq!(show(text), want, "{text}");
        }
        for broken in ["a: b: c", "a: *x", "a: 'x", "a: [1", "a: &x [*x]", "}"] {
            assert!(decode(broken.as_bytes()).is_err(), "{broken}");
        }
        assert!(decode(b"a: \xff").is_err());
        assert!(decode(b"[1]").is_err());
    }

    #[test]
    fn bombs_are_refused_at_once() {
        let mut bomb = String::from("a0: &a0 [lol, lol, lol]\n");
        for level in 1..10 {
            let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert_eq!(decode(bomb.as_bytes()), Err(Error::Aliases));
        let wide = format!("a: &a {}\nb: [{}]", "x".repeat(100_000), vec!["*a"; 100].join(", "));
        assert_eq!(decode(wide.as_bytes()), Err(Error::Aliases));
        for deep in ["[".repeat(10_001), "- ".repeat(10_001), "{a: ".repeat(10_001)] {
            assert!(decode(deep.as_bytes()).is_err());
        }
        let half = json::MAX_DEPTH * 3 / 5;
        let nested = format!(
            "a: &a {}1{}\nb: {}*a{}",
            "[".repeat(half),
            "]".repeat(half),
            "[".repeat(half),
            "]".repeat(half)
        );
        assert_eq!(decode(nested.as_bytes()), Err(json::Error::TooDeep.into()));
    }
}
