//! How Go prints: `%q` of a string and `%v` or JSON of a float. Messages and stored bytes depend on it.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// Go's `strconv.IsPrint` beyond ASCII: letters, marks, numbers, punctuation, symbols.
static PRINTABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").expect("a fixed pattern"));

/// `strconv.Quote`: the `%q` of a string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_quoted(&mut out, c);
    }
    out.push('"');
    out
}

fn push_quoted(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        ' '..='~' => out.push(c),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", c as u32).expect("a String takes all"),
        _ if is_print(c) => out.push(c),
        _ if (c as u32) < 0x10000 => {
            write!(out, "\\u{:04x}", c as u32).expect("a String takes all")
        }
        _ => write!(out, "\\U{:08x}", c as u32).expect("a String takes all"),
    }
}

/// `unicode.IsPrint`.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        (' '..='~').contains(&c)
    } else {
        PRINTABLE.is_match(c.encode_utf8(&mut [0; 4]))
    }
}

/// A byte as Go's JSON scanner names it: `'x'`, `'\n'`, `'"'`.
pub fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".into(),
        b'"' => "'\"'".into(),
        _ => {
            let mut out = String::from("'");
            push_quoted(&mut out, byte as char);
            out.push('\'');
            out
        }
    }
}

/// A finite float as `encoding/json` writes it: `1`, `0.000001`, `1e-7`, `1e+21`.
pub fn json_float(value: f64) -> String {
    float(value, -6..21, 1)
}

/// A finite float as `%v` prints it: `1`, `0.0001`, `1e-05`, `1e+06`.
pub fn display_float(value: f64) -> String {
    // The shortest form counts as six digits of precision: `strconv/ftoa.go`.
    float(value, -4..6, 2)
}

/// Shortest digits, plain where the exponent lies in `plain`, else scientific with a negative
/// exponent padded to `pad` digits. Digits beyond the shortest are zeros, as in Go.
fn float(value: f64, plain: std::ops::Range<i32>, pad: usize) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if !plain.contains(&exponent) {
        let (sign, pad) = if exponent < 0 { ('-', pad) } else { ('+', 2) };
        return format!("{mantissa}e{sign}{:0>pad$}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits:0<whole$}");
    }
    let (whole, rest) = digits.split_at(whole);
    format!("{sign}{whole}.{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go() {
        for (text, want) in [
            ("a b", r#""a b""#),
            ("a\"\\", r#""a\"\\""#),
            ("\x00\x07\x08\x0c\n\r\t\x0b\x1f\x7f", r#""\x00\a\b\f\n\r\t\v\x1f\x7f""#),
            ("é\u{301}日", "\"é\u{301}日\""),
            ("\u{a0}\u{200b}\u{feff}", r#""\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), want);
        }
        assert_eq!(quote_byte(b'"'), "'\"'");
        assert_eq!(quote_byte(0), r"'\x00'");
    }

    #[test]
    fn prints_floats_as_go() {
        for (value, json, display) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (1.5, "1.5", "1.5"),
            (0.00001, "0.00001", "1e-05"),
            (1e-7, "1e-7", "1e-07"),
            (123456.5, "123456.5", "123456.5"),
            (1234567.0, "1234567", "1.234567e+06"),
            (0.0001, "0.0001", "0.0001"),
            (1e20, "100000000000000000000", "1e+20"),
            (1e21, "1e+21", "1e+21"),
            (-1.25e100, "-1.25e+100", "-1.25e+100"),
            (9223372036854775808_i128 as f64, "9223372036854776000", "9.223372036854776e+18"),
        ] {
            assert_eq!(
                (json_float(value).as_str(), display_float(value).as_str()),
                (json, display),
                "{value}"
            );
        }
    }
}
