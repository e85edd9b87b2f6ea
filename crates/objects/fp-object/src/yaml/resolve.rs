//! What a YAML scalar means: the rules of go-yaml v2's `resolve.go`, and what becomes of the result
//! in JSON.

use base64::Engine;
use granit_parser::Tag;
use serde_json::Number;

use super::Error;
use crate::{Value, go};

/// The value of a scalar. Only plain ones without a tag are looked into; a tag must fit.
pub(super) fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>) -> Result<Value, Error> {
    const YAML_PREFIX: &str = "tag:yaml.org,2002:";
    let Some(tag) = tag else {
        return if is_plain { plain(text) } else { Ok(text.into()) };
    };
    let tag = format!("{}{}", tag.handle(), tag.suffix());
    let Some(kind) = tag.strip_prefix(YAML_PREFIX) else { return Ok(text.into()) };
    let resolved = match kind {
        "bool" | "int" | "float" | "null" => plain(text)?,
        "binary" => {
            let compact: String = text.split_ascii_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(compact).ok();
            let decoded = bytes.and_then(|b| String::from_utf8(b).ok());
            return decoded
                .map(Value::from)
                .ok_or_else(|| Error::Value("!!binary value contains invalid base64 data".into()));
        }
        _ => return Ok(text.into()),
    };
    let got = match &resolved {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() || text.contains(['.', 'e', 'E']) => "float",
        Value::Number(_) => "int",
        _ => "str",
    };
    if got == kind || (got, kind) == ("int", "float") {
        Ok(resolved)
    } else {
        Err(Error::Value(format!("cannot decode !!{got} `{text}` as a !!{kind}")))
    }
}

fn plain(text: &str) -> Result<Value, Error> {
    Ok(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            true.into()
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            false.into()
        }
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        ".nan" | ".NaN" | ".NAN" => return Err(Error::NotFinite("NaN")),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Err(Error::NotFinite("+Inf"));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Err(Error::NotFinite("-Inf")),
        _ => number(text).unwrap_or_else(|| text.into()),
    })
}

fn number(text: &str) -> Option<Value> {
    match text.as_bytes().first()? {
        b'.' => is_float(text).then(|| float(text)).flatten(),
        b'0'..=b'9' | b'+' | b'-' => {
            let text = text.replace('_', "");
            integer(&text).or_else(|| is_float(&text).then(|| float(&text)).flatten())
        }
        _ => None,
    }
}

/// `strconv.ParseInt(text, 0, 64)`: decimal, or by prefix binary, octal (`0` alone too) and hexadecimal.
/// What fits no int64 becomes a float on its way through JSON.
fn integer(text: &str) -> Option<Value> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if is_negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Value::from);
    }
    match i64::try_from(magnitude) {
        Ok(int) => Some(int.into()),
        // A sign is not for unsigned numbers: `+9223372036854775808` is a float.
        Err(_) => Number::from_f64(magnitude as f64).map(Value::Number),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
        }
        None => (unsigned, None),
    };
    let is_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    mantissa_ok && exponent.is_none_or(is_digits)
}

/// A float, or the integer that Go's JSON writes for it. One out of range is no number at all.
fn float(text: &str) -> Option<Value> {
    let float: f64 = text.parse().ok().filter(|f: &f64| f.is_finite())?;
    match go::json_float(float).parse::<i64>() {
        Ok(int) => Some(int.into()),
        Err(_) => Number::from_f64(float).map(Value::Number),
    }
}

/// Whether plain text would be read as something else than this text.
pub(super) fn is_ambiguous(text: &str) -> bool {
    !matches!(plain(text), Ok(Value::String(_)))
}

#[cfg(test)]
mod tests {
    use crate::json;
    use crate::yaml::decode_value;

    /// Results of `sigs.k8s.io/yaml`.
    #[test]
    fn scalars() {
        for (text, want) in [
            ("1.0", "1"),
            ("1e3", "1000"),
            ("0777", "511"),
            ("08", "8"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("0b11", "3"),
            ("0b12", r#""0b12""#),
            ("-0b11", "-3"),
            ("-0x10", "-16"),
            ("0o17", "15"),
            ("+5", "5"),
            ("-0", "0"),
            (".5", "0.5"),
            ("1.", "1"),
            ("9223372036854775808", "9223372036854776000"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1e400", r#""1e400""#),
            ("99999999999999999999", "100000000000000000000"),
            ("1.5e-7", "1.5e-7"),
            ("0.1e1", "1"),
            ("1_0.5", "10.5"),
            ("685_230.15", "685230.15"),
            ("1__0", "10"),
            ("+", r#""+""#),
            (".", r#"".""#),
            ("1.2.3", r#""1.2.3""#),
            ("1.5Gi", r#""1.5Gi""#),
            ("-a", r#""-a""#),
            ("0x", r#""0x""#),
            ("+-1", r#""+-1""#),
            ("2001-01-01", r#""2001-01-01""#),
            ("!!str 1", r#""1""#),
            ("!!int '3'", "3"),
            ("!!float 3", "3"),
            ("!!binary aGk=", r#""hi""#),
            ("!foo bar", r#""bar""#),
            ("! 12", r#""12""#),
            ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
            ("!!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
            ("-.inf", "json: unsupported value: -Inf"),
        ] {
            let got = decode_value(text.as_bytes())
                .map_or_else(|e| e.to_string(), |(v, _)| json::to_string(&v));
            assert_eq!(got, want, "{text}");
        }
    }
}
