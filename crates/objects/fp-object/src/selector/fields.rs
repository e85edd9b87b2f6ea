//! Field selectors: `metadata.name=x,status.phase!=Done` (`apimachinery/pkg/fields/selector.go`).
//! Which fields a resource has is the caller's business.

use std::fmt;

use super::Error;

/// One term: the field equals the value, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub field: String,
    pub value: String,
    pub equals: bool,
}

/// All terms, and'ed, in the order of their text. The default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// Reads the `fieldSelector` of a query. In a value `\`, `,` and `=` are escaped by `\`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let terms = parts.into_iter().filter(|p| !p.is_empty()).map(|part| {
            let Some((field, equals, value)) = split_term(part) else {
                return Err(Error(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            Ok(FieldTerm { field: field.into(), value: unescape(value)?, equals })
        });
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }

    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// `value_of` gives a field's value, empty where the object has none.
    pub fn matches<'a>(&self, mut value_of: impl FnMut(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.terms.iter().all(|t| (value_of(&t.field) == t.value) == t.equals)
    }

    /// The value that `field` must have, if a term demands one.
    pub fn requires_exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| t.equals && t.field == field).map(|t| t.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let operator = if term.equals { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Escapes a value for use in a field selector.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut from, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| term[*at..].starts_with("!=") || term[*at..].starts_with('='))?;
    let rest = &term[at..];
    let (equals, len) = if rest.starts_with("!=") {
        (false, 2)
    } else if rest.starts_with("==") {
        (true, 2)
    } else {
        (true, 1)
    };
    Some((&term[..at], equals, &rest[len..]))
}

fn unescape(value: &str) -> Result<String, Error> {
    let invalid = |sequence: String| {
        Error(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(next) => return Err(invalid(format!("\\{next}"))),
                None => return Err(invalid("\\".into())),
            },
            ',' | '=' => {
                // Go prints the rune as a number.
                return Err(Error(format!(
                    "invalid field selector: unescaped character in value: {}",
                    c as u32
                )));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints() {
        for (text, want) in [
            ("", ""),
            ("a=b", "a=b"),
            ("b==c,a!=d,,", "a!=d,b=c"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("a=", "a="),
            ("=x", "=x"),
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            let got = FieldSelector::parse(text).map_or_else(|e| e.to_string(), |s| s.to_string());
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn matches_fields() {
        let selector = FieldSelector::parse("metadata.name=x,status.phase!=Done").expect("parses");
        let object = |name: &'static str, phase: &'static str| {
            move |field: &str| if field == "metadata.name" { name.into() } else { phase.into() }
        };
        assert!(selector.matches(object("x", "")));
        assert!(!selector.matches(object("x", "Done")));
        assert!(!selector.matches(object("y", "")));
        assert_eq!(selector.requires_exact("metadata.name"), Some("x"));
        assert_eq!(selector.requires_exact("status.phase"), None);
    }
}
