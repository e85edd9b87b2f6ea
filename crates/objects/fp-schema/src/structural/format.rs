//! String and number formats that schemas may name, with the rules of kube-openapi's `strfmt`.
//! A format that is not listed is ignored, as in Kubernetes (`apiserver/validation/formats.go`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use super::Types;

/// A format that is enforced for its type.
#[derive(Clone, Debug)]
pub struct Format {
    /// As the schema writes it: `date-time`.
    pub name: Box<str>,
    holds: Option<fn(&str) -> bool>,
}

impl Format {
    /// `None`: the format is not enforced on these types.
    pub fn parse(name: &str, types: Types) -> Option<Self> {
        let holds = if types.is_empty() || types == Types::STRING {
            Some(string_format(&name.replace('-', ""))?)
        } else {
            let known = (types == Types::INTEGER && matches!(name, "int32" | "int64"))
                || (types == Types::NUMBER && matches!(name, "float" | "double"));
            if !known {
                return None;
            }
            None
        };
        Some(Self { name: name.into(), holds })
    }

    pub fn holds(&self, text: &str) -> bool {
        self.holds.is_none_or(|f| f(text))
    }
}

fn string_format(name: &str) -> Option<fn(&str) -> bool> {
    let holds: fn(&str) -> bool = match name {
        "bsonobjectid" => |t| t.len() == 24 && t.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_request_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => is_ipv4,
        "ipv6" => |t| t.contains(':') && !t.contains('%') && t.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |t| is_uuid(t, None),
        "uuid3" => |t| is_uuid(t, Some('3')),
        "uuid4" => |t| is_uuid(t, Some('4')),
        "uuid5" => |t| is_uuid(t, Some('5')),
        "isbn" => |t| is_isbn10(t) || is_isbn13(t),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |t| t.len() == 11 && matches(&SSN, t),
        "hexcolor" => |t| matches(&HEX_COLOR, t),
        "rgbcolor" => |t| matches(&RGB_COLOR, t),
        "byte" => is_base64,
        "password" => |_| true,
        "date" => is_date,
        "duration" => is_duration,
        "datetime" => is_date_time,
        "k8sshortname" => |t| t.len() <= 63 && matches(&SHORT_NAME, t),
        "k8slongname" => |t| t.len() <= 253 && matches(&LONG_NAME, t),
        _ => return None,
    };
    Some(holds)
}

type Lazy = LazyLock<Regex>;

fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern")
}

fn matches(pattern: &Lazy, text: &str) -> bool {
    pattern.is_match(text)
}

static HOSTNAME: Lazy = LazyLock::new(|| {
    fixed(concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)",
        r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}",
        r"([a-zA-Z\p{L}]){2,63})$"
    ))
});
static SSN: Lazy = LazyLock::new(|| fixed(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HEX_COLOR: Lazy = LazyLock::new(|| fixed(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: Lazy = LazyLock::new(|| {
    let part = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    fixed(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static CREDIT_CARD: Lazy = LazyLock::new(|| {
    fixed(concat!(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}",
        r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
});
static SHORT_NAME: Lazy = LazyLock::new(|| fixed(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static LONG_NAME: Lazy =
    LazyLock::new(|| fixed(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));
static TIME_OF_DAY: Lazy = LazyLock::new(|| {
    fixed(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
});
/// `time.ParseDuration`.
static GO_DURATION: Lazy = LazyLock::new(|| {
    fixed(r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h))+)$")
});
static DURATION_PART: Lazy = LazyLock::new(|| fixed(r"([0-9]+)[\t\n\f\r ]*([A-Za-z\u{b5}]+)"));

/// Go's `url.ParseRequestURI`: an absolute URI or an absolute path.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let (scheme, rest) = match text.find(':') {
        Some(at) if at > 0 && text.as_bytes()[0].is_ascii_alphabetic() => {
            let ok = text[..at].bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
            if ok { (Some(&text[..at]), &text[at + 1..]) } else { (None, text) }
        }
        Some(0) => return false,
        _ => (None, text),
    };
    if scheme.is_none() && !rest.starts_with('/') {
        return false;
    }
    let path_end = rest.find('?').unwrap_or(rest.len());
    if let Some(authority) = rest.strip_prefix("//") {
        let authority = &authority[..authority.find(['/', '?']).unwrap_or(authority.len())];
        if !is_authority(authority) {
            return false;
        }
    }
    has_valid_escapes(&rest[..path_end])
}

fn is_authority(authority: &str) -> bool {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((_, "")) => return true,
            Some((_, after)) => after.strip_prefix(':'),
            None => return false,
        },
        None => host.split_once(':').map(|(_, port)| port).or(Some("")),
    };
    let plain = !host.bytes().any(|b| b" <>\"{}|\\^`".contains(&b));
    plain && port.is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
}

fn has_valid_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, b)| **b == b'%').all(|(at, _)| {
        bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Go's `mail.ParseAddress` without comments and routes: `a@b`, `<a@b>`, `Name <a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(inside) => match inside.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |t: &str| {
        !t.is_empty()
            && t.chars().all(|c| {
                c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
            })
    };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']'));
    let domain_ok = match literal {
        Some(ip) => ip.parse::<IpAddr>().is_ok(),
        None => domain.split('.').all(atom),
    };
    (quoted || local.split('.').all(atom)) && domain_ok
}

fn is_hostname(text: &str) -> bool {
    matches(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// Leading zeros are tolerated, as by Go before 1.17 (`ParseIPSloppy`).
fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    if parts.next().is_some() { None } else { Some(octets.into()) }
}

fn is_ipv4(text: &str) -> bool {
    // An IPv6 address that ends in dotted form passes, as in Go.
    text.contains('.') && (parse_ipv4(text).is_some() || text.parse::<Ipv6Addr>().is_ok())
}

fn is_cidr(text: &str) -> bool {
    let Some((ip, bits)) = text.split_once('/') else { return false };
    let max = if parse_ipv4(ip).is_some() {
        32
    } else if ip.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= max)
}

/// Go's `net.ParseMAC`: 6, 8 or 20 bytes in colons or dashes, or in dotted groups of four digits.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize| {
        let mut n = 0;
        let ok = text.split(separator).all(|part| {
            n += digits / 2;
            part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit())
        });
        ok && matches!(n, 6 | 8 | 20)
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    // Eight, four, four, four and twelve digits, each dash optional.
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (i, n) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(part) = rest.get(..n) else { return false };
        if !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        digits.push_str(part);
        rest = &rest[n..];
    }
    let at = |i: usize| digits.as_bytes()[i] as char;
    let variant_ok = !matches!(version, Some('4' | '5')) || "89abAB".contains(at(16));
    rest.is_empty() && version.is_none_or(|v| at(12) == v) && variant_ok
}

fn book_digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\x0c' | '\r')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = book_digits(text);
    let bytes = text.as_bytes();
    if bytes.len() != 10 || !bytes[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match bytes[9] {
        b'X' => 10,
        b if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let sum: u32 = bytes[..9].iter().zip(1..).map(|(b, i)| i * u32::from(b - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = book_digits(text);
    let bytes = text.as_bytes();
    if bytes.len() != 13 || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = bytes[..12]
        .iter()
        .zip([1, 3].into_iter().cycle())
        .map(|(b, f)| f * u32::from(b - b'0'))
        .sum();
    u32::from(bytes[12] - b'0') == (10 - sum % 10) % 10
}

/// Luhn's check over the digits.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !matches(&CREDIT_CARD, &digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let n = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
            if n >= 10 { n % 10 + 1 } else { n }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return false;
    }
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    padding <= 2
        && bytes[..bytes.len() - padding]
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let part = text.get(range)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    if !is_date(date) {
        return false;
    }
    let Some(found) = TIME_OF_DAY.captures(time) else { return false };
    found[1] <= *"23" && found[2] <= *"59" && found[3] <= *"59"
}

/// Go's `time.ParseDuration`, or numbers with units as Scala writes them: `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "\u{b5}s", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    if matches(&GO_DURATION, text) {
        return true;
    }
    let mut ok = false;
    for part in DURATION_PART.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        ok |= UNITS.iter().any(|names| {
            let (last, others) = names.split_last().expect("every unit has a name");
            unit.starts_with(last) || others.contains(&&*unit)
        });
    }
    ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        // Format, texts that hold, texts that do not.
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "date-time",
                &["2024-02-29T10:00:00Z", "2024-01-01t00:00:00.5+01:00"],
                &["2023-02-29T10:00:00Z", "2024-01-01 10:00:00Z", "2024-01-01T24:00:00Z"],
            ),
            ("date", &["2024-12-31"], &["2024-13-01", "24-1-1", ""]),
            ("email", &["a@b", "Joe <a.b@c.d>"], &["a", "a@", "@b"]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0", "::1", "256.0.0.1"]),
            ("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "g::"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]),
            ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00:5e", "xx"]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &["123"],
            ),
            (
                "uuid4",
                &["123e4567-e89b-42d3-a456-426614174000"],
                &["123e4567-e89b-12d3-a456-426614174000"],
            ),
            (
                "uri",
                &["https://x.y/z?a=b", "/a/b", "mailto:a@b", "http://[::1]:80/"],
                &["a/b", "", "http://x:y/", "/%zz"],
            ),
            ("hostname", &["a.example.com", "localhost"], &["a..b", "-"]),
            ("byte", &["aGVsbG8="], &["a", "", "a==="]),
            ("duration", &["1h30m", "2 days", "0", "-1.5s"], &["1", "x", ""]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("creditcard", &["4220 8554 2622 2389"], &["4220855426213389"]),
            ("ssn", &["111-11-1111"], &["111111111"]),
            ("hexcolor", &["#fff", "AABBCC"], &["#ff"]),
            ("rgbcolor", &["rgb(0,  31, 255)"], &["rgb(1,349,275)"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
            ("k8s-short-name", &["a-b"], &["A", "a.b"]),
            ("k8s-long-name", &["a.b-c"], &["a..b"]),
        ];
        for (name, good, bad) in cases {
            let format = Format::parse(name, Types::STRING).expect("a known format");
            for text in *good {
                assert!(format.holds(text), "{name} takes {text:?}");
            }
            for text in *bad {
                assert!(!format.holds(text), "{name} refuses {text:?}");
            }
        }
        assert!(Format::parse("int32", Types::STRING).is_none());
        assert!(Format::parse("date", Types::OBJECT).is_none());
        assert!(Format::parse("int32", Types::INTEGER).is_some());
    }
}
