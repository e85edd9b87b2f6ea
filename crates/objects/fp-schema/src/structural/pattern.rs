//! Go's regular expressions (RE2 syntax, package `regexp/syntax`) on top of the `regex` crate: the
//! same language, refused where Go refuses.
//!
//! What differs is rewritten: `\d \w \s \b` are ASCII in Go, `[` `&&` `--` are plain inside a Go
//! class, `{` is plain when it opens no repetition, `\Q..\E` quotes. Go knows neither look-around
//! nor back-references, nor a repetition beyond [`MAX_REPEAT`], nested ones multiplied.

use regex::{Regex, RegexBuilder};

/// Go's limit of a repetition, and of the product of nested ones.
const MAX_REPEAT: u32 = 1000;
/// Memory that a compiled pattern may take, in bytes.
const SIZE_LIMIT_BYTES: usize = 4 << 20;
/// How deep groups may nest (Go's `maxHeight`).
const MAX_GROUPS: u32 = 250;

/// Compiles a Go pattern; the error reads like Go's.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let rewritten =
        Rewriter::new(pattern).run().map_err(|why| format!("error parsing regexp: {why}"))?;
    RegexBuilder::new(&rewritten)
        .size_limit(SIZE_LIMIT_BYTES)
        .nest_limit(MAX_GROUPS)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "error parsing regexp: expression too large".to_owned()
            }
            regex::Error::Syntax(text) => {
                let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("error parsing regexp: {why}: `{pattern}`")
            }
            other => format!("error parsing regexp: {other}: `{pattern}`"),
        })
}

struct Rewriter<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// For each open group, the largest product of repetitions inside it so far.
    groups: Vec<u32>,
    /// The product inside the atom that was read last: what a repetition after it multiplies.
    atom: u32,
    /// The last token was a repetition: another one may not follow.
    repeated: bool,
}

impl<'a> Rewriter<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            whole: pattern,
            rest: pattern,
            out: String::new(),
            groups: vec![1],
            atom: 1,
            repeated: false,
        }
    }

    fn run(mut self) -> Result<String, String> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '*' | '+' | '?' => {
                    self.take(1);
                    self.repeat(&c.to_string(), 1)?;
                }
                '{' => self.braces()?,
                _ => {
                    self.take(c.len_utf8());
                    self.atom = 1;
                    self.repeated = false;
                    self.out.push(c);
                }
            }
        }
        if self.groups.len() > 1 {
            Err(format!("missing closing ): `{}`", self.whole))
        } else {
            Ok(self.out)
        }
    }

    fn take(&mut self, n: usize) -> &'a str {
        let (head, tail) = self.rest.split_at(n);
        self.rest = tail;
        head
    }

    fn open(&mut self) -> Result<(), String> {
        let after = &self.rest[1..];
        if let Some(flags) = after.strip_prefix('?') {
            let named = named_head(after);
            if let Some(head) = named {
                self.check_name(head)?;
            }
            let end = flags.find([':', ')']);
            let plain = end.is_some_and(|end| flags[..end].chars().all(|c| "imsU-".contains(c)));
            if named.is_none() && !plain {
                let shown = self.rest.get(..3).unwrap_or("(?");
                return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
            }
            if plain {
                let end = end.expect("plain flags have an end");
                let flags_only = flags.as_bytes()[end] == b')';
                let head = self.take(end + 3);
                self.out.push_str(head);
                if !flags_only {
                    self.groups.push(1);
                }
                self.atom = 1;
                self.repeated = true;
                return Ok(());
            }
        }
        self.take(1);
        self.out.push('(');
        if named_head(self.rest).is_some() {
            let end = self.rest.find('>').map_or(self.rest.len(), |at| at + 1);
            let head = self.take(end);
            self.out.push_str(head);
        }
        self.groups.push(1);
        self.repeated = false;
        Ok(())
    }

    /// A named group's name is of letters, digits and underscores.
    fn check_name(&self, head: &str) -> Result<(), String> {
        let name = &self.rest[1 + head.len()..];
        let end = name.find('>');
        let is_word =
            |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if end.is_some_and(|end| is_word(&name[..end])) {
            return Ok(());
        }
        let shown = end.map_or(self.rest, |end| &self.rest[..1 + head.len() + end + 1]);
        Err(format!("invalid named capture: `{shown}`"))
    }

    fn close(&mut self) -> Result<(), String> {
        if self.groups.len() < 2 {
            return Err(format!("unexpected ): `{}`", self.whole));
        }
        self.take(1);
        self.out.push(')');
        self.atom = self.groups.pop().expect("counted just above");
        self.note(self.atom);
        self.repeated = false;
        Ok(())
    }

    fn note(&mut self, product: u32) {
        let top = self.groups.last_mut().expect("the outermost group stays");
        *top = (*top).max(product);
    }

    fn repeat(&mut self, operator: &str, times: u32) -> Result<(), String> {
        if self.repeated {
            return Err(format!("invalid nested repetition operator: `{operator}`"));
        }
        let product = self.atom.saturating_mul(times.max(1));
        if times > MAX_REPEAT || product > MAX_REPEAT {
            return Err(format!("invalid repeat count: `{operator}`"));
        }
        self.note(product);
        self.out.push_str(operator);
        if self.rest.starts_with('?') {
            self.take(1);
            self.out.push('?');
        }
        self.atom = product;
        self.repeated = true;
        Ok(())
    }

    /// `{n}`, `{n,}`, `{n,m}`, or else a plain brace.
    fn braces(&mut self) -> Result<(), String> {
        let counts = self.rest.find('}').and_then(|end| {
            let inside = &self.rest[1..end];
            let (low, high) = inside.split_once(',').unwrap_or((inside, inside));
            let number = |t: &str| {
                (!t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()))
                    .then(|| t.parse::<u32>().unwrap_or(u32::MAX))
            };
            let low = number(low)?;
            Some((end + 1, low, if high.is_empty() { low } else { number(high)? }))
        });
        let Some((len, low, high)) = counts else {
            self.take(1);
            self.out.push_str("\\{");
            self.atom = 1;
            self.repeated = false;
            return Ok(());
        };
        let operator = self.take(len).to_owned();
        if low > high {
            return Err(format!("invalid repeat count: `{operator}`"));
        }
        self.repeat(&operator, high)
    }

    fn escape(&mut self) -> Result<(), String> {
        self.atom = 1;
        self.repeated = false;
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let end = quoted.find("\\E").unwrap_or(quoted.len());
            self.out.push_str(&regex::escape(&quoted[..end]));
            self.rest = quoted[end..].strip_prefix("\\E").unwrap_or("");
            return Ok(());
        }
        let Some(c) = self.rest[1..].chars().next() else {
            return Err("trailing backslash at end of expression".to_owned());
        };
        match c {
            'b' => self.out.push_str("(?-u:\\b)"),
            'B' => self.out.push_str("\\B"),
            'A' | 'z' => {
                self.out.push('\\');
                self.out.push(c);
            }
            _ => {
                let text = self.class_escape()?;
                let bare = matches!(c, 'd' | 'w' | 's' | 'D' | 'W' | 'S');
                self.out.push_str(&if bare { format!("[{text}]") } else { text });
                return Ok(());
            }
        }
        self.take(2);
        Ok(())
    }

    /// An escape that may also stand in a class; takes it and gives it in Rust's syntax.
    fn class_escape(&mut self) -> Result<String, String> {
        let c = self.rest[1..].chars().next().ok_or("trailing backslash at end of expression")?;
        let text = match c {
            'd' => "0-9".to_owned(),
            'D' => "[^0-9]".to_owned(),
            'w' => "0-9A-Za-z_".to_owned(),
            'W' => "[^0-9A-Za-z_]".to_owned(),
            's' => "\\t\\n\\f\\r ".to_owned(),
            'S' => "[^\\t\\n\\f\\r ]".to_owned(),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => format!("\\{c}"),
            'p' | 'P' | 'x' => return Ok(self.long_escape(c)),
            '0' => "\\x00".to_owned(),
            _ if c.is_ascii_punctuation() => regex::escape(c.encode_utf8(&mut [0; 4])),
            _ => return Err(format!("invalid escape sequence: `\\{c}`")),
        };
        self.take(1 + c.len_utf8());
        Ok(text)
    }

    /// `\p{..}`, `\pL`, `\x{..}`, `\xff`: alike in both syntaxes.
    fn long_escape(&mut self, c: char) -> String {
        let after = &self.rest[2..];
        let len = match (c, after.starts_with('{')) {
            (_, true) => after.find('}').map_or(after.len(), |at| at + 1),
            ('x', false) => after.char_indices().nth(2).map_or(after.len(), |(at, _)| at),
            _ => after.chars().next().map_or(0, char::len_utf8),
        };
        self.take(2 + len).to_owned()
    }

    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let missing = || format!("missing closing ]: `{whole}`");
        self.take(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.take(1);
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.rest.chars().next() else { return Err(missing()) };
            match c {
                ']' if !first => break,
                '[' if self.rest.starts_with("[:") && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").expect("found just above") + 2;
                    let posix = self.take(end);
                    self.out.push_str(posix);
                }
                // A dash between two items is a range; elsewhere it is plain.
                '-' if !first && !self.rest[1..].starts_with(']') && self.range_may_start() => {
                    self.take(1);
                    if self.rest.is_empty() {
                        return Err(missing());
                    }
                    self.out.push('-');
                    let end = self.class_item()?;
                    self.out.push_str(&end);
                }
                _ => {
                    let item = self.class_item()?;
                    self.out.push_str(&item);
                }
            }
            first = false;
        }
        self.take(1);
        self.out.push(']');
        self.atom = 1;
        self.repeated = false;
        Ok(())
    }

    /// Whether what stands before a dash is a single character, so that the dash makes a range. A
    /// range or a class cannot start another one.
    fn range_may_start(&self) -> bool {
        let inside = &self.out[self.out.rfind('[').map_or(0, |at| at + 1)..];
        let before: Vec<char> = inside.chars().rev().take(3).collect();
        let ends_range = before.len() == 3 && before[1] == '-' && before[2] != '\\';
        let class = self.out.ends_with(']') && !self.out.ends_with("\\]");
        !ends_range && !class && !inside.is_empty() && inside != "^"
    }

    fn class_item(&mut self) -> Result<String, String> {
        match self.rest.chars().next() {
            Some('\\') => self.class_escape(),
            Some(c) => {
                self.take(c.len_utf8());
                Ok(regex::escape(c.encode_utf8(&mut [0; 4])))
            }
            None => Err(format!("missing closing ]: `{}`", self.whole)),
        }
    }
}

/// How a named group begins after its parenthesis.
fn named_head(rest: &str) -> Option<&'static str> {
    ["?P<", "?<"].into_iter().find(|head| rest.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per pattern and text: whether it matches, or why it is refused.
    fn check(pattern: &str, text: &str) -> String {
        match compile(pattern) {
            Ok(regex) => regex.is_match(text).to_string(),
            Err(why) => why,
        }
    }

    #[test]
    fn speaks_go() {
        let cases = [
            (r"^\d+$", "12", "true"),
            (r"^\d+$", "\u{0663}", "false"),
            (r"^[\w.-]+$", "a-b.c_d", "true"),
            (r"^[\w.-]+$", "\u{e9}", "false"),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", "true"),
            (r"^{[a-z]}$", "{b}", "true"),
            (r"^[[a]+$", "[a", "true"),
            (r"^[a&&b]$", "&", "true"),
            (r"^[+--]$", ",", "true"),
            (r"^[a-z-9]+$", "b-9", "true"),
            (r"^[]a]$", "]", "true"),
            (r"^[^]a]$", "b", "true"),
            (r"^[A-Za-z0-9_\-./]+$", "a/b-c", "true"),
            (r"^\Qa.b\E$", "a.b", "true"),
            (r"^\Qa.b\E$", "axb", "false"),
            (r"^a\/b$", "a/b", "true"),
            (r"^\<$", "<", "true"),
            (r"^(?i)ab$", "AB", "true"),
            (r"^(?:a|b)+?$", "ab", "true"),
            (r"^[[:alpha:]]+$", "ab", "true"),
            (r"^\p{Lu}\pL$", "Ab", "true"),
            (r"^(?P<x>a)(?<y>b)$", "ab", "true"),
            (r"^a{2,3}$", "aaa", "true"),
            (r"^[0-9A-Fa-f]{8}-[0-9a-f]{4}$", "0123abcd-0123", "true"),
        ];
        for (pattern, text, want) in cases {
            assert_eq!(check(pattern, text), want, "{pattern} on {text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        let cases = [
            (r"(a{1000}){1000}", "error parsing regexp: invalid repeat count: `{1000}`"),
            (r"a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
            (r"(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
            (r"(?!a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"),
            (r"(?<!a)", "error parsing regexp: invalid named capture: `(?<!a)`"),
            (r"\C", r"error parsing regexp: invalid escape sequence: `\C`"),
            (r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`"),
            (r"a**", "error parsing regexp: invalid nested repetition operator: `*`"),
            (r"(a", "error parsing regexp: missing closing ): `(a`"),
            (r"a)", "error parsing regexp: unexpected ): `a)`"),
            (r"[a", "error parsing regexp: missing closing ]: `[a`"),
        ];
        for (pattern, want) in cases {
            assert_eq!(check(pattern, ""), want, "{pattern}");
        }
    }
}
