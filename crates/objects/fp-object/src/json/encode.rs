//! Writing JSON: compact, keys sorted, floats as Go prints them.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::go;

/// Compact JSON for the wire.
pub fn to_vec(value: &impl Serialize) -> Vec<u8> {
    write(value, false)
}

/// Compact JSON as `encoding/json` writes it: `<`, `>`, `&`, U+2028 and U+2029 escaped. What is
/// stored; kcp's stored JSON ends with a newline, which the caller adds.
pub fn to_go_vec(value: &impl Serialize) -> Vec<u8> {
    write(value, true)
}

/// [`to_vec`] as text.
pub fn to_string(value: &impl Serialize) -> String {
    String::from_utf8(to_vec(value)).expect("JSON is written as UTF-8")
}

/// [`to_go_vec`] as text.
pub fn to_go_string(value: &impl Serialize) -> String {
    String::from_utf8(to_go_vec(value)).expect("JSON is written as UTF-8")
}

/// How many bytes [`to_vec`] makes.
pub fn length(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    write_to(&mut count, value, false);
    count.0
}

fn write(value: &impl Serialize, html: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write_to(&mut out, value, html);
    out
}

fn write_to(out: impl io::Write, value: &impl Serialize, html: bool) {
    let mut serializer = Serializer::with_formatter(out, GoFormatter { html });
    value.serialize(&mut serializer).expect("the writer takes all, and keys are text");
}

struct GoFormatter {
    html: bool,
}

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(go::json_float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // U+2028 and U+2029 are e2 80 a8 and e2 80 a9.
        let special = |b: u8| matches!(b, b'<' | b'>' | b'&' | 0xe2);
        if !self.html || !fragment.bytes().any(special) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut from = 0;
        for (at, c) in fragment.char_indices() {
            let escape: &[u8] = match c {
                '<' => b"\\u003c",
                '>' => b"\\u003e",
                '&' => b"\\u0026",
                '\u{2028}' => b"\\u2028",
                '\u{2029}' => b"\\u2029",
                _ => continue,
            };
            writer.write_all(&fragment.as_bytes()[from..at])?;
            writer.write_all(escape)?;
            from = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_as_go() {
        let value = json!({"b": "<a>&\u{2028}é€\u{7f}\u{1}\u{8}\n\"", "a": [1.0, 1e21, -5, null]});
        assert_eq!(
            to_go_string(&value),
            r#"{"a":[1,1e+21,-5,null],"b":"\u003ca\u003e\u0026\u2028é€"#.to_owned()
                + "\x7f"
                + r#"\u0001\b\n\""}"#
        );
        assert!(to_string(&value).contains("<a>&\u{2028}"));
    }
}
