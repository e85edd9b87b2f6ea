//! JSON as Go's `encoding/json` prints it: sorted keys, no blanks, `<`, `>`, `&`, U+2028 and
//! U+2029 escaped.

use std::io;

use fp_object::Object;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// An object as Go prints it, without the closing newline.
pub fn to_vec(object: &Object) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    object
        .serialize(&mut Serializer::with_formatter(&mut out, Go(CompactFormatter)))
        .expect("a JSON object prints into memory");
    out
}

/// Appends a string with its quotes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    text.serialize(&mut Serializer::with_formatter(out, Go(CompactFormatter)))
        .expect("a string prints into memory");
}

struct Go(CompactFormatter);

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let c = rest[at..].chars().next().expect("find returns where a char begins");
            out.write_all(&rest.as_bytes()[..at])?;
            write!(out, "\\u{:04x}", c as u32)?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_string_fragment(out, rest)
    }
}
