//! JSON as Kubernetes reads and writes it (`sigs.k8s.io/json`).
//!
//! Reading keeps an explicit stack, so that depth costs no thread stack, and collects duplicate keys
//! (the last one wins). Messages are those of Go's scanner, which clients see.
//! Stricter than Go on purpose: invalid UTF-8 and lone surrogates are errors (Go stores U+FFFD).

mod encode;
mod splice;

use serde_json::Number;

pub use encode::{length, to_go_string, to_go_vec, to_string, to_vec};
pub use splice::{Scanned, metadata_slice, scan_meta, with_server_fields};

use crate::{Object, Value, go};

/// The deepest body taken. Go takes 10,000 levels; here what walks a value recurses (drop, clone,
/// compare, encode, validate), and a thread's stack must hold all of it: [`STACK_BYTES`].
pub const MAX_DEPTH: usize = 2_500;
/// The stack of a thread that handles values. The deepest walk that was measured took 2 KiB a level in
/// a debug build, 5 MiB of this. Only pages that are touched cost memory.
pub const STACK_BYTES: usize = 32 << 20;
/// As many duplicate keys are reported as in `sigs.k8s.io/json`.
const MAX_STRICT_ERRORS: usize = 100;
/// How many duplicates are looked at for a report; each costs a path as long as it is deep.
const MAX_DUPLICATES: usize = 10 * MAX_STRICT_ERRORS;
/// The most memory that a body's values may take, as [`OBJECT_BYTES`] and [`VALUE_BYTES`] estimate.
pub const MAX_BYTES: usize = 40 << 20;
/// An object that is not empty: its map has room for eleven members from the first on.
pub const OBJECT_BYTES: usize = 640;
pub const VALUE_BYTES: usize = 32;

/// Why bytes are no JSON object. All of them are the client's fault: 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Go's message: `invalid character 'x' looking for beginning of value`.
    #[error("{0}")]
    Syntax(String),
    /// Deeper than [`MAX_DEPTH`].
    #[error("exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
    /// So many values that they would take more than [`MAX_BYTES`].
    #[error("exceeded the memory of a body, {MAX_BYTES} bytes")]
    TooManyValues,
    /// A number that no float holds.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Number(String),
    #[error("json: cannot unmarshal {0} into Go value of type map[string]interface {{}}")]
    NotObject(&'static str),
}

/// A decoded object, with what `fieldValidation` may complain of.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub object: Object,
    /// `duplicate field "spec.x"`, in order of appearance, each once.
    pub strict: Vec<String>,
}

/// Decodes a body that must be an object.
pub fn decode(body: &[u8]) -> Result<Decoded, Error> {
    let (value, strict) = decode_value(body)?;
    match value {
        Value::Object(object) => Ok(Decoded { object, strict }),
        other => Err(Error::NotObject(type_name(&other))),
    }
}

/// Decodes an object that is stored already, however many values it has.
pub fn decode_stored(body: &[u8]) -> Result<Object, Error> {
    match parse(body, usize::MAX)?.0 {
        Value::Object(object) => Ok(object),
        other => Err(Error::NotObject(type_name(&other))),
    }
}

/// Decodes any JSON value, with the same reports.
pub fn decode_value(body: &[u8]) -> Result<(Value, Vec<String>), Error> {
    parse(body, MAX_BYTES)
}

fn parse(body: &[u8], bytes_max: usize) -> Result<(Value, Vec<String>), Error> {
    let text = std::str::from_utf8(body)
        .map_err(|e| Error::Syntax(format!("invalid UTF-8 at offset {}", e.valid_up_to())))?;
    let parser = Parser {
        text,
        bytes: body,
        at: 0,
        stack: Vec::new(),
        strict: Vec::new(),
        n_duplicates: 0,
        n_bytes: 0,
        bytes_max,
    };
    parser.run()
}

/// The message of `fieldValidation=Strict`: `strict decoding error: a, b`.
pub fn strict_message(errors: &[String]) -> String {
    format!("strict decoding error: {}", errors.join(", "))
}

/// How many levels of containers a value has; walks without recursion.
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut stack = vec![(value, 1)];
    while let Some((value, level)) = stack.pop() {
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|v| (v, level + 1))),
            Value::Object(map) => stack.extend(map.values().map(|v| (v, level + 1))),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Go's word for a JSON type in its messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A container that is not closed yet.
enum Frame {
    /// The members so far and the key whose value comes next.
    Object(Object, String),
    Array(Vec<Value>),
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Frame>,
    strict: Vec<String>,
    n_duplicates: usize,
    /// An estimate of what the values take.
    n_bytes: usize,
    bytes_max: usize,
}

impl Parser<'_> {
    fn run(mut self) -> Result<(Value, Vec<String>), Error> {
        loop {
            let Some(mut value) = self.open()? else { continue };
            // A whole value: give it to its container, and close every container that ends here.
            loop {
                let Some(frame) = self.stack.last_mut() else {
                    return self.end().map(|()| (value, self.strict));
                };
                match frame {
                    Frame::Array(items) => items.push(value),
                    Frame::Object(map, key) => {
                        let key = std::mem::take(key);
                        let path_key = map.contains_key(&key).then(|| key.clone());
                        map.insert(key, value);
                        if let Some(key) = path_key {
                            self.duplicate(&key);
                        }
                    }
                }
                match self.close()? {
                    Some(closed) => value = closed,
                    None => break,
                }
            }
        }
    }

    /// Reads a scalar or an empty container; for another container pushes its frame and returns None.
    fn open(&mut self) -> Result<Option<Value>, Error> {
        const CONTEXT: &str = "looking for beginning of value";
        self.charge(VALUE_BYTES)?;
        let value = match self.peek()? {
            open @ (b'{' | b'[') => {
                if self.stack.len() >= MAX_DEPTH {
                    return Err(Error::TooDeep);
                }
                self.at += 1;
                match (open, self.peek()?) {
                    (b'{', b'}') => Value::Object(Object::new()),
                    (b'{', _) => {
                        self.charge(OBJECT_BYTES)?;
                        let key = self.key()?;
                        self.stack.push(Frame::Object(Object::new(), key));
                        return Ok(None);
                    }
                    (_, b']') => Value::Array(Vec::new()),
                    (_, _) => {
                        self.stack.push(Frame::Array(Vec::new()));
                        return Ok(None);
                    }
                }
            }
            b'"' => return self.string().map(|s| Some(Value::String(s))),
            b'-' | b'0'..=b'9' => return self.number().map(Some),
            b't' => return self.literal("true", Value::Bool(true)).map(Some),
            b'f' => return self.literal("false", Value::Bool(false)).map(Some),
            b'n' => return self.literal("null", Value::Null).map(Some),
            _ => return Err(self.unexpected(CONTEXT)),
        };
        self.at += 1;
        Ok(Some(value))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.n_bytes += bytes;
        if self.n_bytes <= self.bytes_max { Ok(()) } else { Err(Error::TooManyValues) }
    }

    /// After a member: a comma (and the next key) or the end of the container, which is returned.
    fn close(&mut self) -> Result<Option<Value>, Error> {
        let byte = self.peek()?;
        match (self.stack.last(), byte) {
            (Some(Frame::Array(_)), b',') => {
                self.at += 1;
                Ok(None)
            }
            (Some(Frame::Object(..)), b',') => {
                self.at += 1;
                self.peek()?;
                let next = self.key()?;
                if let Some(Frame::Object(_, key)) = self.stack.last_mut() {
                    *key = next;
                }
                Ok(None)
            }
            (Some(Frame::Array(_)), b']') | (Some(Frame::Object(..)), b'}') => {
                self.at += 1;
                Ok(self.stack.pop().map(|frame| match frame {
                    Frame::Array(items) => Value::Array(items),
                    Frame::Object(map, _) => Value::Object(map),
                }))
            }
            (Some(Frame::Array(_)), _) => Err(self.unexpected("after array element")),
            _ => Err(self.unexpected("after object key:value pair")),
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.skip_space();
        if self.at < self.bytes.len() {
            Err(self.unexpected("after top-level value"))
        } else {
            Ok(())
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<String, Error> {
        if self.bytes[self.at] != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let key = self.string()?;
        if self.peek()? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(key)
    }

    fn literal(&mut self, word: &'static str, value: Value) -> Result<Value, Error> {
        for expected in word.bytes() {
            match self.bytes.get(self.at) {
                None => return Err(end_of_input()),
                Some(byte) if *byte == expected => self.at += 1,
                Some(_) => {
                    return Err(self.unexpected(&format!(
                        "in literal {word} (expecting {})",
                        go::quote_byte(expected)
                    )));
                }
            }
        }
        Ok(value)
    }

    /// A number with Go's scanner states; integers that fit are i64, all else is a float.
    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        if self.byte()? == b'0' {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        let mut is_float = false;
        if self.bytes.get(self.at) == Some(&b'.') {
            is_float = true;
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            is_float = true;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = &self.text[start..self.at];
        if !is_float && let Ok(int) = text.parse::<i64>() {
            return Ok(int.into());
        }
        let float = text.parse().ok().and_then(Number::from_f64);
        float.map(Value::Number).ok_or_else(|| Error::Number(text.chars().take(64).collect()))
    }

    fn digits(&mut self, context: &str) -> Result<(), Error> {
        if !self.byte()?.is_ascii_digit() {
            return Err(self.unexpected(context));
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    /// A string, from its opening quote to past its closing one.
    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let len = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if let Some(control) = rest[..len].iter().position(|b| *b < 0x20) {
                self.at += control;
                return Err(self.unexpected("in string literal"));
            }
            let chunk = &self.text[self.at..self.at + len];
            self.at += len;
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    if out.is_empty() {
                        return Ok(chunk.to_owned());
                    }
                    out.push_str(chunk);
                    return Ok(out);
                }
                _ => {
                    out.push_str(chunk);
                    self.at += 1;
                    out.push(self.escape()?);
                }
            }
        }
    }

    /// The character of an escape, from past its backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let c = match self.byte()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Result<char, Error> {
        let offset = self.at - 1;
        let lone =
            || Error::Syntax(format!("invalid surrogate pair in string escape at offset {offset}"));
        let first = self.hex4()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(lone);
        }
        if first >= 0xdc00 || self.byte()? != b'\\' {
            return Err(lone());
        }
        self.at += 1;
        if self.byte()? != b'u' {
            return Err(lone());
        }
        let second = self.hex4()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(lone());
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(lone)
    }

    /// Four hex digits, from the `u` before them.
    fn hex4(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            self.at += 1;
            let digit = (self.byte()? as char).to_digit(16);
            code = code * 16
                + digit.ok_or_else(|| self.unexpected("in \\u hexadecimal character escape"))?;
        }
        self.at += 1;
        Ok(code)
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Result<u8, Error> {
        self.skip_space();
        self.byte()
    }

    fn byte(&self) -> Result<u8, Error> {
        self.bytes.get(self.at).copied().ok_or_else(end_of_input)
    }

    fn unexpected(&self, context: &str) -> Error {
        match self.bytes.get(self.at) {
            Some(byte) => {
                Error::Syntax(format!("invalid character {} {context}", go::quote_byte(*byte)))
            }
            None => end_of_input(),
        }
    }

    /// Notes that `key` of the innermost object came again.
    fn duplicate(&mut self, key: &str) {
        self.n_duplicates += 1;
        if self.n_duplicates > MAX_DUPLICATES || self.strict.len() >= MAX_STRICT_ERRORS {
            return;
        }
        let mut path = String::new();
        for frame in &self.stack[..self.stack.len() - 1] {
            match frame {
                Frame::Object(_, key) if path.is_empty() => path.push_str(key),
                Frame::Object(_, key) => path.extend([".", key]),
                Frame::Array(items) => path.push_str(&format!("[{}]", items.len())),
            }
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        let message = format!("duplicate field {}", go::quote(&path));
        if !self.strict.contains(&message) {
            self.strict.push(message);
        }
    }
}

fn end_of_input() -> Error {
    Error::Syntax("unexpected end of JSON input".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(body: &[u8]) -> String {
        match decode_value(body) {
            Ok((value, strict)) if strict.is_empty() => to_string(&value),
            Ok((value, strict)) => format!("{} {}", to_string(&value), strict_message(&strict)),
            Err(e) => e.to_string(),
        }
    }

    /// Messages compared with `sigs.k8s.io/json`, but for the last block.
    #[test]
    fn decodes_as_kubernetes() {
        for (body, want) in [
            (
                r#" {"b":[1,-0,1.0,1e3,2.5],"a":{"x":"y"}} "#,
                r#"{"a":{"x":"y"},"b":[1,0,1,1000,2.5]}"#,
            ),
            ("[]", "[]"),
            ("{}", "{}"),
            ("[[],{},null,true,false]", "[[],{},null,true,false]"),
            (r#""\u00e9\n\ud83d\ude00\/x""#, r#""é\n😀/x""#),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854776000"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2} strict decoding error: duplicate field "a""#),
            (
                r#"{"s":{"x":[{"y":1,"y":2,"y":3},{"y":1,"y":1}],"x":0}}"#,
                r#"{"s":{"x":0}} strict decoding error: duplicate field "s.x[0].y", duplicate field "s.x[1].y", duplicate field "s.x""#,
            ),
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a"#, "unexpected end of JSON input"),
            ("tru", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{x", "invalid character 'x' looking for beginning of object key string"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("NaN", "invalid character 'N' looking for beginning of value"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"\n\"", r"invalid character '\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (r#""\u00x0""#, r"invalid character 'x' in \u hexadecimal character escape"),
            ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
            // Go stores U+FFFD for these.
            (r#""\ud800""#, "invalid surrogate pair in string escape at offset 1"),
            (r#"{"\udc00":1}"#, "invalid surrogate pair in string escape at offset 2"),
            (r#""\ud800\u0041""#, "invalid surrogate pair in string escape at offset 1"),
        ] {
            assert_eq!(show(body.as_bytes()), want, "{body}");
        }
        assert_eq!(show(b"\"a\xff\""), "invalid UTF-8 at offset 2");
        assert!(
            show("9".repeat(100_000).as_bytes()).starts_with("json: cannot unmarshal number 999")
        );
        assert_eq!(
            decode(b"[1]").unwrap_err().to_string(),
            "json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let many = |value: &str, n| format!("[{}]", vec![value; n].join(","));
        assert!(decode_value(many("{}", 1_000_000).as_bytes()).is_ok());
        assert!(decode_value(many(r#"{"a":1}"#, 55_000).as_bytes()).is_ok());
        let too_many = many(r#"{"a":1}"#, 60_000);
        assert_eq!(decode_value(too_many.as_bytes()), Err(Error::TooManyValues));
        // What is stored is read.
        assert!(decode_stored(format!(r#"{{"a":{too_many}}}"#).as_bytes()).is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        // What recurses over the deepest value fits the stack of a thread that handles values.
        let walks = move || {
            let (deepest, _) = decode_value(nested(MAX_DEPTH).as_bytes()).expect("deep enough");
            assert_eq!(to_string(&deepest.clone()), nested(MAX_DEPTH));
            assert_eq!(depth(&deepest), MAX_DEPTH);
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(walks);
        thread.expect("start a thread").join().expect("it fits");
        assert_eq!(decode_value(nested(MAX_DEPTH + 1).as_bytes()), Err(Error::TooDeep));
        assert_eq!(decode_value("{\"a\":".repeat(1_000_000).as_bytes()), Err(Error::TooDeep));
    }
}
