//! Writing YAML: block style, keys sorted, every text quoted that any YAML reader could take for
//! something else.

use super::resolve;
use crate::{Value, json};

/// How much longer than JSON a document may be before it is written as JSON, which is YAML too: in
/// block style every line of a deep value carries its indentation.
const BLOCK_FACTOR_MAX: usize = 4;
const BLOCK_BYTES_FREE: usize = 1 << 20;

/// A value as a YAML document, with a newline at its end.
pub fn to_string(value: &Value) -> String {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        let max = json::length(value) * BLOCK_FACTOR_MAX + BLOCK_BYTES_FREE;
        let mut writer = Writer { out: String::new(), max };
        writer.block(value, 0);
        if !writer.is_full() {
            return writer.out;
        }
    }
    let mut out = flow(value);
    out.push('\n');
    out
}

struct Writer {
    out: String,
    /// Nothing is added to a document that is longer.
    max: usize,
}

impl Writer {
    fn is_full(&self) -> bool {
        self.out.len() > self.max
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// A map or a list that is not empty, its lines indented; the first line's indentation is
    /// written by the caller.
    fn block(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) => {
                for (at, (key, value)) in map.iter().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    self.pad(if at == 0 { 0 } else { indent });
                    self.out.push_str(&text(key));
                    self.out.push(':');
                    self.member(value, indent);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    self.pad(if at == 0 { 0 } else { indent });
                    self.out.push('-');
                    self.item(item, indent + 2);
                }
            }
            _ => {}
        }
    }

    /// A member's value, after its colon.
    fn member(&mut self, value: &Value, indent: usize) {
        // Lists stand at their key's indentation, as kubectl prints them.
        let inner = match value {
            Value::Object(inner) if !inner.is_empty() => indent + 2,
            Value::Array(inner) if !inner.is_empty() => indent,
            _ => return self.scalar(value, indent + 2),
        };
        self.out.push('\n');
        self.pad(inner);
        self.block(value, inner);
    }

    /// A list's item, after its dash.
    fn item(&mut self, item: &Value, indent: usize) {
        let is_block = match item {
            Value::Object(inner) => !inner.is_empty(),
            Value::Array(inner) => !inner.is_empty(),
            _ => false,
        };
        if !is_block {
            return self.scalar(item, indent);
        }
        self.out.push(' ');
        self.block(item, indent);
    }

    /// A scalar or an empty container after its `:` or `-`, with the end of its line.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) if is_literal(text) => {
                let keep = if text.ends_with("\n\n") {
                    "+"
                } else if text.ends_with('\n') {
                    ""
                } else {
                    "-"
                };
                self.out.push_str(&format!(" |{keep}\n"));
                for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                    if self.is_full() {
                        return;
                    }
                    if !line.is_empty() {
                        self.pad(indent);
                        self.out.push_str(line);
                    }
                    self.out.push('\n');
                }
            }
            _ => {
                self.out.push(' ');
                self.out.push_str(&flow(value));
                self.out.push('\n');
            }
        }
    }
}

/// Text of several lines that a literal block holds as it is.
fn is_literal(text: &str) -> bool {
    let is_safe =
        |c: char| c == '\n' || c == '\t' || (' '..='~').contains(&c) || crate::go::is_print(c);
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.trim_matches('\n').is_empty()
        && text.chars().all(is_safe)
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        other => json::to_string(other),
    }
}

/// Plain where that is safe, else quoted as JSON, which YAML's double quotes include.
fn text(text: &str) -> String {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_-./:+=@".contains(&b);
    let starts_ok =
        text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'/');
    let inner_ok =
        text.bytes().all(|b| is_word(b) || b == b' ' || b == b',' || b == b'(' || b == b')')
            && !text.ends_with([' ', ':'])
            && !text.contains(": ");
    // A digit in front may be a date, a time, a base 60 number or an octal to other readers.
    let looks_like_number = text.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && (text.contains(':')
            || !text.bytes().any(|b| b.is_ascii_alphabetic() && !b"eExXoObB".contains(&b)));
    if starts_ok && inner_ok && !looks_like_number && !resolve::is_ambiguous(text) {
        text.to_owned()
    } else {
        json::to_string(&text)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml;

    /// Every line of a deep value carries its indentation: this one's would make 200 MiB.
    #[test]
    fn indentation_does_not_multiply() {
        let many = json!(vec![0; 100_000]);
        let deep = (0..1000).fold(many, |value, _| json!([value]));
        let lines = json!("line\n".repeat(100_000));
        let text = (0..1000).fold(lines, |value, _| json!([value]));
        for value in [deep, text] {
            let written = to_string(&value);
            assert_eq!(written, format!("{}\n", json::to_string(&value)));
            assert_eq!(yaml::decode_value(written.as_bytes()).expect("JSON is YAML").0, value);
        }
    }

    #[test]
    fn writes_blocks() {
        let value = json!({
            "kind": "ConfigMap", "data": {"yes": "no", "1": "0777", "script": "a\n  b\n\nc\n", "end": "a\nb", "q": "a: b", "url": "https://h:1/x", "time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "v": "v1.2"},
            "list": [{"a": 1, "b": [true, null]}, [], {}, [[1], "x y"], "- x"], "empty": "", "num": 1.5,
        });
        expect![[r#"
            data:
              "1": "0777"
              date: "2026-01-02"
              end: |-
                a
                b
              q: "a: b"
              script: |
                a
                  b

                c
              time: "2026-01-02T03:04:05Z"
              url: https://h:1/x
              v: v1.2
              "yes": "no"
            empty: ""
            kind: ConfigMap
            list:
            - a: 1
              b:
              - true
              - null
            - []
            - {}
            - - - 1
              - x y
            - "- x"
            num: 1.5
        "#]]
        .assert_eq(&to_string(&value));
    }

    proptest! {
        #[test]
        fn reads_back(value in value()) {
            let text = to_string(&value);
            prop_assert_eq!(yaml::decode_value(text.as_bytes()).map(|(v, _)| v), Ok(value), "{}", text);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~\n\té]{0,6}",
            "(yes|no|on|y|null|~|0x1|1_0|1e3|-1|\\.5|2001-01-01|<<|a: b|# x|a #b|---|\\?|\\*a|&a|!t|%|@|`|\\||>|a\n\n|\n|a\n b\n|\u{85}|\u{feff})",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            Just(json!(1.5)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 20, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }
}
