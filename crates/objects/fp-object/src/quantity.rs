//! `resource.Quantity`: exact decimal amounts with SI, binary or exponent suffixes.
//!
//! Like Go's, a quantity that was written in canonical form (or near it: `+2`, `1.`, `1.1e1`) is
//! printed as it was written.

use std::cmp::Ordering;
use std::fmt;

use crate::Value;

/// Fewer digits than this and Go keeps the text (`maxInt64Factors`).
const FAST_DIGITS: usize = 18;
/// No part smaller than a nano is kept: it is rounded away from zero.
const MIN_EXPONENT: i32 = -9;

/// Why text is no quantity, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An amount. Equal and ordered by value, not by text; printed in canonical form.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Decimal,
    notation: Notation,
    /// What it was written as, where Go would keep it.
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `1e3`
    Exponent,
    /// `1Ki`
    Binary,
    /// `1k`
    Decimal,
}

impl Quantity {
    /// Reads text such as `100m`, `1.5Gi`, `1e3`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Format);
        }
        let parts = Parts::split(text)?;
        let (binary_exponent, exponent, notation) =
            read_suffix(parts.suffix).ok_or(Error::Suffix)?;
        let digits = [parts.whole, parts.fraction].concat();
        let n_fraction = i32::try_from(parts.fraction.len()).map_err(|_| Error::Format)?;
        let exponent = exponent.checked_sub(n_fraction).ok_or(Error::Suffix)?;
        let mut amount = Decimal::new(parts.is_negative, &digits, exponent);
        for _ in 0..binary_exponent / 10 {
            amount.multiply(1024);
        }
        if keeps_text(&parts, &digits, notation, exponent, binary_exponent) {
            return Ok(Self { amount, notation, text: Some(text.to_owned()) });
        }
        amount.round_up();
        if notation == Notation::Binary {
            amount.cap();
        }
        Ok(Self { amount, notation, text: None })
    }

    /// Reads a JSON value: text, or a number by its digits.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(_) => Self::parse(&crate::json::to_string(value)),
            _ => Err(Error::Format),
        }
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match (self.amount.digits.is_empty(), self.amount.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Whether it has no fractional part.
    pub fn is_integer(&self) -> bool {
        self.amount.exponent >= 0
    }
}

/// Whether Go prints these very characters again (the fast path of `ParseQuantity`).
fn keeps_text(
    parts: &Parts<'_>,
    digits: &str,
    notation: Notation,
    exponent: i32,
    binary_exponent: u32,
) -> bool {
    match notation {
        Notation::Binary => {
            let used = parts.whole.len() + (binary_exponent * 3 / 10) as usize + 1;
            let is_odd_enough = digits.parse::<u64>().is_ok_and(|d| d & 7 != 0);
            parts.fraction.is_empty() && used <= 15 && is_odd_enough
        }
        _ => {
            digits.len() <= FAST_DIGITS
                && exponent >= MIN_EXPONENT
                && exponent % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
    }
}

/// The pieces of the text; `whole` has no leading zeros but is never empty.
struct Parts<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, Error> {
        let (is_negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let digits_of = |text: &'a str| {
            let len = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
            text.split_at(len)
        };
        let (whole, rest) = digits_of(rest.trim_start_matches('0'));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits_of(rest),
            None => ("", rest),
        };
        let letters =
            suffix.bytes().position(|b| !b"eEinumkKMGTP".contains(&b)).unwrap_or(suffix.len());
        let exponent = &suffix[letters..];
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if !exponent.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::Format);
        }
        Ok(Self {
            is_negative,
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }
}

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The power of two, the power of ten, and the notation.
fn read_suffix(suffix: &str) -> Option<(u32, i32, Notation)> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Some((0, *exponent, Notation::Decimal));
    }
    if let Some(at) = BINARY_SUFFIXES.iter().position(|s| *s == suffix) {
        return Some((10 * (at as u32 + 1), 0, Notation::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((0, exponent, Notation::Exponent))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        let sign = if self.amount.is_negative { "-" } else { "" };
        if self.notation == Notation::Binary
            && let Some(mut value) = self.amount.as_u64().filter(|v| *v >= 1024)
        {
            let mut suffix = "";
            for next in BINARY_SUFFIXES {
                if value % 1024 != 0 {
                    break;
                }
                value /= 1024;
                suffix = next;
            }
            return write!(f, "{sign}{value}{suffix}");
        }
        if self.amount.digits.is_empty() {
            return f.write_str("0");
        }
        let spare = self.amount.exponent.rem_euclid(3);
        let exponent = self.amount.exponent - spare;
        f.write_str(sign)?;
        for digit in &self.amount.digits {
            write!(f, "{digit}")?;
        }
        f.write_str(&"0".repeat(spare as usize))?;
        let suffix = DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent);
        match (self.notation, suffix) {
            (_, Some(("", _))) => Ok(()),
            (Notation::Exponent, _) | (_, None) => write!(f, "e{exponent}"),
            (_, Some((suffix, _))) => f.write_str(suffix),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.signum().cmp(&other.signum());
        by_sign.then_with(|| {
            let by_size = self.amount.cmp_size(&other.amount);
            if self.amount.is_negative { by_size.reverse() } else { by_size }
        })
    }
}

/// `digits * 10^exponent`. The digits have no zeros at either end; none at all is zero.
#[derive(Clone, Debug)]
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    fn new(is_negative: bool, digits: &str, exponent: i32) -> Self {
        let mut out =
            Self { is_negative, digits: digits.bytes().map(|b| b - b'0').collect(), exponent };
        out.normalize();
        out
    }

    fn normalize(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent = self.exponent.saturating_add(1);
        }
        let zeros = self.digits.iter().take_while(|d| **d == 0).count();
        self.digits.drain(..zeros);
        if self.digits.is_empty() {
            (self.is_negative, self.exponent) = (false, 0);
        }
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let product = u32::from(*digit) * factor + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        let mut head = Vec::new();
        while carry > 0 {
            head.push((carry % 10) as u8);
            carry /= 10;
        }
        self.digits.splice(0..0, head.into_iter().rev());
        self.normalize();
    }

    /// Rounds what is smaller than a nano away from zero.
    fn round_up(&mut self) {
        if self.digits.is_empty() || self.exponent >= MIN_EXPONENT {
            return;
        }
        // The digits end in no zero, so there is something to round.
        let n_cut = MIN_EXPONENT.abs_diff(self.exponent) as usize;
        self.digits.truncate(self.digits.len().saturating_sub(n_cut));
        self.exponent = MIN_EXPONENT;
        let mut at = self.digits.len();
        loop {
            if at == 0 {
                self.digits.insert(0, 1);
                break;
            }
            at -= 1;
            if self.digits[at] < 9 {
                self.digits[at] += 1;
                break;
            }
            self.digits[at] = 0;
        }
        self.normalize();
    }

    /// A binary amount is at most the greatest int64.
    fn cap(&mut self) {
        let max = Self::new(self.is_negative, "9223372036854775807", 0);
        if self.cmp_size(&max) == Ordering::Greater {
            *self = max;
        }
    }

    /// Its size as a whole number, where it is one that fits.
    fn as_u64(&self) -> Option<u64> {
        let exponent = u32::try_from(self.exponent).ok()?;
        let digits = self
            .digits
            .iter()
            .try_fold(0_u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(*d)))?;
        digits.checked_mul(10_u64.checked_pow(exponent)?)
    }

    /// Compares without the signs.
    fn cmp_size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => {}
            (a, b) => return b.cmp(&a),
        }
        let magnitude = |d: &Self| i64::from(d.exponent) + d.digits.len() as i64;
        magnitude(self).cmp(&magnitude(other)).then_with(|| self.digits.cmp(&other.digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go's `ParseQuantity` and `MarshalJSON` make of them.
    #[test]
    fn canonical_as_go() {
        let format = Error::Format.to_string();
        let suffix = Error::Suffix.to_string();
        for (text, want) in [
            ("0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1023", "1023"),
            ("1023Ki", "1023Ki"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("1E", "1E"),
            ("10E", "10E"),
            ("1e100", "10e99"),
            ("1.1e1", "1.1e1"),
            ("123456789", "123456789"),
            ("1000k", "1M"),
            ("1024k", "1024k"),
            ("0.1m", "100u"),
            ("0.1n", "1n"),
            ("-1", "-1"),
            ("-1.5", "-1500m"),
            ("+2", "+2"),
            ("1.", "1."),
            (".5", "500m"),
            ("1.5Ki", "1536"),
            ("3.3Ki", "3379200m"),
            ("1Ei", "1Ei"),
            ("8Ei", "9223372036854775807"),
            ("100Ei", "9223372036854775807"),
            ("9999999999999999999", "9999999999999999999"),
            ("99999999999999999999999", "99999999999999999999999"),
            ("1e-9", "1e-9"),
            ("1e-10", "1e-9"),
            ("1000000", "1M"),
            ("0Ki", "0"),
            ("0.000000001Ki", "1024n"),
            ("12345678901234567890m", "12345678901234567890m"),
            ("1E22", "10e21"),
            ("0.00", "0"),
            ("-2048Ki", "-2Mi"),
            ("", &format),
            ("a", &format),
            ("  1 ", &format),
            ("1 Gi", &format),
            ("1KI", &format),
            ("1.2.3", &format),
            ("1e1.5", &format),
            ("1ki", &suffix),
            ("--1", &suffix),
            ("1e", &suffix),
        ] {
            let got = Quantity::parse(text).map_or_else(|e| e.to_string(), |q| q.to_string());
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn ordered_by_value() {
        for (a, b, want) in [
            ("1", "1000m", Ordering::Equal),
            ("1Gi", "1024Mi", Ordering::Equal),
            ("1Gi", "1G", Ordering::Greater),
            ("0.1", "100m", Ordering::Equal),
            ("-1", "1", Ordering::Less),
            ("-2", "-1", Ordering::Less),
            ("0", "1n", Ordering::Less),
            ("0", "0Ki", Ordering::Equal),
            ("1e100", "9E", Ordering::Greater),
            ("99", "100", Ordering::Less),
        ] {
            let parse = |t| Quantity::parse(t).expect("a quantity");
            assert_eq!(parse(a).cmp(&parse(b)), want, "{a} {b}");
        }
        assert!(Quantity::parse("1Gi").expect("a quantity").is_integer());
        assert!(!Quantity::parse("1500m").expect("a quantity").is_integer());
        assert_eq!(
            Quantity::from_json(&serde_json::json!(1.5)).expect("a quantity").to_string(),
            "1500m"
        );
    }
}
