//! Names, label keys and values, with Kubernetes' messages (`apimachinery/pkg/util/validation` and
//! `pkg/api/validate/content`: the one speaks of characters, the other of bytes), and generated names.

use crate::go;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The longest label of a DNS name, in bytes.
pub const LABEL_MAX: usize = 63;
/// The longest DNS subdomain, in bytes.
pub const SUBDOMAIN_MAX: usize = 253;
/// `generateName` is cut so that the name with its suffix keeps within a label.
const GENERATED_SUFFIX: usize = 5;
/// The longest field manager, in bytes.
const FIELD_MANAGER_MAX: usize = 128;

/// Checks a name, or with `true` a prefix to which a suffix will be added. Empty means valid.
pub type NameFn = fn(&str, bool) -> Vec<String>;

/// `NameIsDNSSubdomain`.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_subdomain(&masked(name, prefix))
}

/// `NameIsDNSLabel`, the rule for namespaces.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_label(&masked(name, prefix))
}

/// `NameIsDNS1035Label`.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&masked(name, prefix))
}

/// `IsValidPathSegmentName`: what any name in a URL or a storage key must keep to (RBAC names have no other rule).
pub fn name_is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|s| name.contains(**s))
        .map(|s| format!("may not contain '{s}'"))
        .collect()
}

/// A trailing dash is allowed in a prefix. Kubernetes drops the character before the dash too.
fn masked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    match name.strip_suffix('-') {
        Some(rest) if prefix && !rest.is_empty() => {
            let mut chars = rest.chars();
            chars.next_back();
            format!("{}a", chars.as_str()).into()
        }
        _ => name.into(),
    }
}

/// RFC 1123 label.
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut out = too_long_characters(value, LABEL_MAX);
    if !is_label(value) {
        if is_subdomain(value) {
            out.push("must not contain dots".into());
        } else {
            out.push(regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    out
}

/// RFC 1123 subdomain.
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut out = too_long_characters(value, SUBDOMAIN_MAX);
    out.extend(subdomain_shape(value));
    out
}

fn subdomain_shape(value: &str) -> Option<String> {
    (!is_subdomain(value)).then(|| {
        regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN,
            &["example.com"],
        )
    })
}

/// `*.` before an RFC 1123 subdomain.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut out = too_long_characters(value, SUBDOMAIN_MAX);
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        out.push(regex_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{DNS1123_SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    out
}

/// RFC 1035 label: what a Service or a CRD's plural is called.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut out = too_long_characters(value, LABEL_MAX);
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        out.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    out
}

/// A label key, annotation key (in lower case), finalizer or condition type: `[prefix/]name`.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    const SHAPE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let shape = |lead: &str| {
        format!("{lead} {}", regex_error(SHAPE, LABEL_KEY, &["MyName", "my.name", "123-abc"]))
    };
    let mut out = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".into());
            } else {
                let messages = too_long_bytes(prefix, SUBDOMAIN_MAX)
                    .into_iter()
                    .chain(subdomain_shape(prefix));
                out.extend(messages.map(|m| format!("prefix part {m}")));
            }
            name
        }
        _ => {
            let shape = shape("a valid label key");
            return vec![format!(
                "{shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".into());
    }
    out.extend(too_long_bytes(name, LABEL_MAX).map(|m| format!("name part {m}")));
    if !is_label_text(name) {
        out.push(shape("name part"));
    }
    out
}

/// A label value.
pub fn is_label_value(value: &str) -> Vec<String> {
    let mut out: Vec<String> = too_long_bytes(value, LABEL_MAX).into_iter().collect();
    if !value.is_empty() && !is_label_text(value) {
        out.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({LABEL_KEY})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    out
}

/// A key of a ConfigMap or Secret.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut out = too_long_characters(value, SUBDOMAIN_MAX);
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    {
        out.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." => out.push("must not be '.'".into()),
        ".." => out.push("must not be '..'".into()),
        _ if value.starts_with("..") => out.push("must not start with '..'".into()),
        _ => {}
    }
    out
}

/// A port's name: at most 15 of `[-a-z0-9]`, a letter among them.
pub fn is_port_name(value: &str) -> Vec<String> {
    const PORT_NAME_MAX: usize = 15;
    let mut out = too_long_characters(value, PORT_NAME_MAX);
    if value.is_empty() || !value.bytes().all(is_label_byte) {
        out.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".into());
    }
    if value.contains("--") {
        out.push("must not contain consecutive hyphens".into());
    }
    if value.starts_with('-') || value.ends_with('-') {
        out.push("must not begin or end with a hyphen".into());
    }
    out
}

/// A port's number.
pub fn is_port_number(value: i64) -> Vec<String> {
    if (1..=65535).contains(&value) {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".into()]
    }
}

/// The messages for a field manager's name (`ValidateFieldManager`): its length, then each character that
/// cannot be printed.
pub fn field_manager_errors(
    manager: &str,
    path: impl std::fmt::Display,
) -> Vec<crate::field::FieldError> {
    use crate::field::FieldError;
    let mut out = Vec::new();
    if manager.len() > FIELD_MANAGER_MAX {
        out.push(FieldError::too_long(&path, FIELD_MANAGER_MAX));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| !go::is_print(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
        out.push(FieldError::invalid(&path, manager, detail));
    }
    out
}

/// A name from `generateName`: cut, with five random characters that form no words.
pub fn generate(base: &str) -> String {
    let cut = base.floor_char_boundary(LABEL_MAX - GENERATED_SUFFIX);
    format!("{}{}", &base[..cut], random_suffix(GENERATED_SUFFIX))
}

/// Random characters of apimachinery's alphabet (no vowels, no look-alike digits).
pub fn random_suffix(len: usize) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut out = String::with_capacity(len);
    while out.len() < len {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).expect("the system has random numbers");
        let picked = random.iter().filter_map(|b| ALPHABET.get(usize::from(b & 31)));
        out.extend(picked.take(len - out.len()).map(|b| *b as char));
    }
    out
}

/// `name (e.g. 'a', or 'b', regex used for validation is '...')`.
fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn too_long_characters(value: &str, max: usize) -> Vec<String> {
    (value.len() > max)
        .then(|| format!("must be no more than {max} characters"))
        .into_iter()
        .collect()
}

fn too_long_bytes(value: &str, max: usize) -> Option<String> {
    (value.len() > max).then(|| format!("must be no more than {max} bytes"))
}

fn is_label_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'
}

fn is_label(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(is_label_byte)
        && !value.starts_with('-')
        && !value.ends_with('-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

/// `LABEL_KEY`.
fn is_label_text(value: &str) -> bool {
    let ends_ok = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    ends_ok(value.bytes().next())
        && ends_ok(value.bytes().last())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(rule: fn(&str) -> Vec<String>, names: &[&str], want: Expect) {
        let lines: Vec<String> =
            names.iter().map(|n| format!("{n:?}: {}\n", rule(n).join("; "))).collect();
        want.assert_eq(&lines.concat());
    }

    #[test]
    fn dns_names() {
        let long = "a".repeat(64);
        let names = ["a", "a-1", "a.b", "", "A", "-a", "a-", "a..b", "1a", "é", &long];
        check(
            is_dns1123_label,
            &names,
            expect![[r#"
            "a": 
            "a-1": 
            "a.b": must not contain dots
            "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "a-": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "a..b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "1a": 
            "é": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters
        "#]],
        );
        check(
            is_dns1123_subdomain,
            &["a.b", "a..b", ".a", "A.b", &"a.".repeat(130)],
            expect![[r#"
                "a.b": 
                "a..b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                ".a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                "A.b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.": must be no more than 253 characters; a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "#]],
        );
        check(
            is_dns1035_label,
            &["a1", "1a", "a.b"],
            expect![[r#"
            "a1": 
            "1a": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            "a.b": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        "#]],
        );
        check(
            is_wildcard_dns1123_subdomain,
            &["*.a.b", "*", "a"],
            expect![[r#"
            "*.a.b": 
            "*": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "a": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "#]],
        );
    }

    #[test]
    fn labels() {
        let long = "a".repeat(64);
        check(
            is_qualified_name,
            &[
                "a",
                "A_b.c",
                "a.b/c",
                "",
                "/",
                "a/",
                "/a",
                "a/b/c",
                "A/b",
                "a b",
                "-a",
                &long,
                &format!("{}/a", "a".repeat(254)),
            ],
            expect![[r#"
                "a": 
                "A_b.c": 
                "a.b/c": 
                "": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "/": prefix part must be non-empty; name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "a/": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "/a": prefix part must be non-empty
                "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
                "A/b": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": name part must be no more than 63 bytes
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/a": prefix part must be no more than 253 bytes
            "#]],
        );
        check(
            is_label_value,
            &["", "A.b_c-1", "-a", "a b", &long],
            expect![[r#"
            "": 
            "A.b_c-1": 
            "-a": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 bytes
        "#]],
        );
    }

    #[test]
    fn other_names() {
        check(
            is_config_map_key,
            &["a.B_c-1", ".", "..", "..a", "", "a/b"],
            expect![[r#"
            "a.B_c-1": 
            ".": must not be '.'
            "..": must not be '..'
            "..a": must not start with '..'
            "": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
        "#]],
        );
        check(
            is_port_name,
            &["http", "", "1", "a--b", "-a", "abcdefghijklmnop", "A"],
            expect![[r#"
                "http": 
                "": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z)
                "1": must contain at least one letter (a-z)
                "a--b": must not contain consecutive hyphens
                "-a": must not begin or end with a hyphen
                "abcdefghijklmnop": must be no more than 15 characters
                "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z)
            "#]],
        );
        check(
            |n| name_is_path_segment(n, false),
            &["a", ".", "..", "a/b%c", ""],
            expect![[r#"
            "a": 
            ".": may not be '.'
            "..": may not be '..'
            "a/b%c": may not contain '/'; may not contain '%'
            "": 
        "#]],
        );
        check(
            |n| name_is_dns_subdomain(n, true),
            &["a-", "-", "a.-", "a", "-a-"],
            expect![[r#"
            "a-": 
            "-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "a.-": 
            "a": 
            "-a-": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "#]],
        );
    }

    #[test]
    fn generated_names() {
        let name = generate("web-");
        assert!(
            name.starts_with("web-") && name.len() == 9 && is_dns1123_label(&name).is_empty(),
            "{name}"
        );
        assert_eq!(generate(&"a".repeat(80)).len(), 63);
        assert_eq!(generate(&"é".repeat(80)).len(), 58 + 5);
        assert_ne!(random_suffix(20), random_suffix(20));
    }

    #[test]
    fn field_managers() {
        let show = |m: &str| crate::field::aggregate(&field_manager_errors(m, "fieldManager"));
        assert_eq!(show("kubectl é"), "");
        assert_eq!(
            show("a\x07"),
            r#"fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)"#
        );
        assert_eq!(
            show(&"a".repeat(129)),
            "fieldManager: Too long: may not be more than 128 bytes"
        );
    }
}
