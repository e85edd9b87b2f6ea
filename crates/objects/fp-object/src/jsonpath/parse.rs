//! Text to steps.

use super::{Comparison, Error, Filter, Slice, Step};
use crate::{Value, go};

/// How deep filters and unions may stand within each other.
const NESTING_MAX: usize = 8;

pub(super) fn steps(text: &str) -> Result<Vec<Step>, Error> {
    action(text, 0).map_err(Error)
}

fn action(text: &str, nesting: usize) -> Result<Vec<Step>, String> {
    if nesting > NESTING_MAX {
        return Err("path is nested too deep".into());
    }
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = if let Some(inside) = rest.strip_prefix("[?(") {
            filter(inside, nesting, &mut out)?
        } else if let Some(after) = rest.strip_prefix("..") {
            if out.last() == Some(&Step::Descend) {
                return Err("invalid multiple recursive descent".into());
            }
            out.push(Step::Descend);
            if after.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                field(after, &mut out)
            } else {
                after
            }
        } else {
            match c {
                ' ' | '@' | '$' => &rest[1..],
                '\r' | '\n' => return Err("unclosed action".into()),
                '[' => bracket(&rest[1..], nesting, &mut out)?,
                '"' | '\'' => quoted(rest, c, &mut out)?,
                '.' => field(&rest[1..], &mut out),
                '+' | '-' => number(rest, &mut out)?,
                _ if c.is_numeric() => number(rest, &mut out)?,
                _ if c == '_' || c.is_alphabetic() => identifier(rest, &mut out)?,
                _ => {
                    return Err(format!(
                        "unrecognized character in action: U+{:04X} '{c}'",
                        c as u32
                    ));
                }
            }
        };
    }
    Ok(out)
}

fn is_terminator(c: char) -> bool {
    " \t\r\n.,[]$@{}".contains(c)
}

/// A field's name after its dot; a backslash takes the next character as it is. `.` alone is the value itself.
fn field<'a>(text: &'a str, out: &mut Vec<Step>) -> &'a str {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c).filter(|c| *c != '\\')),
            _ if is_terminator(c) => {
                end = at;
                break;
            }
            _ => name.push(c),
        }
    }
    match name.as_str() {
        "" => {}
        "*" => out.push(Step::Wildcard),
        _ => out.push(Step::Field(name)),
    }
    &text[end..]
}

fn identifier<'a>(text: &'a str, out: &mut Vec<Step>) -> Result<&'a str, String> {
    let end = text.find(is_terminator).unwrap_or(text.len());
    match &text[..end] {
        "true" => out.push(Step::Literal(true.into())),
        "false" => out.push(Step::Literal(false.into())),
        name => return Err(format!("unrecognized identifier {name}")),
    }
    Ok(&text[end..])
}

fn number<'a>(text: &'a str, out: &mut Vec<Step>) -> Result<&'a str, String> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = body.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(body.len());
    let end = text.len() - body.len() + digits;
    let number = &text[..end];
    let value = match number.parse::<i64>() {
        Ok(int) => Some(Value::from(int)),
        Err(_) => number.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
    };
    out.push(Step::Literal(value.ok_or_else(|| format!("cannot parse number {number}"))?));
    Ok(&text[end..])
}

/// A text in quotes, from its opening one.
fn quoted<'a>(text: &'a str, quote: char, out: &mut Vec<Step>) -> Result<&'a str, String> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => break,
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(c @ ('\\' | '"' | '\'')) => value.push(c),
                _ => {
                    return Err(format!("unquote string {} error invalid syntax", go::quote(text)));
                }
            },
            _ if c == quote => {
                out.push(Step::Literal(value.into()));
                return Ok(&text[at + 1..]);
            }
            _ => value.push(c),
        }
    }
    Err("unterminated quoted string".into())
}

/// What stands in brackets: `*`, an index, a slice, a key in quotes, or several of them.
fn bracket<'a>(text: &'a str, nesting: usize, out: &mut Vec<Step>) -> Result<&'a str, String> {
    let end = text
        .find([']', '\n'])
        .filter(|at| text.as_bytes()[*at] == b']')
        .ok_or("unterminated array")?;
    let (inside, rest) = (&text[..end], &text[end + 1..]);
    if inside.contains(',') {
        let items = inside
            .split(',')
            .map(|item| action(&format!("[{}]", item.trim_matches(' ')), nesting + 1));
        out.push(Step::Union(items.collect::<Result<_, _>>()?));
    } else if let Some(key) =
        inside.strip_prefix('\'').and_then(|k| k.strip_suffix('\'')).filter(|k| !k.contains('\''))
    {
        out.extend(action(&format!(".{key}"), nesting + 1)?);
    } else {
        out.push(Step::Slice(slice(if inside == "*" { ":" } else { inside })?));
    }
    Ok(rest)
}

fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: Option<&&str>| match part {
        None | Some(&"") => Ok(None),
        Some(part) if part.starts_with('+') => Err(invalid()),
        Some(part) => part.parse::<i64>().map(Some).map_err(|_| invalid()),
    };
    if parts.len() > 3 {
        return Err(invalid());
    }
    let (from, to, step) = (number(parts.first())?, number(parts.get(1))?, number(parts.get(2))?);
    Ok(Slice { from, to, is_single: parts.len() == 1, step })
}

/// A filter, from past its `[?(`; the text after its `)]` is returned.
fn filter<'a>(text: &'a str, nesting: usize, out: &mut Vec<Step>) -> Result<&'a str, String> {
    let mut quote = None;
    let mut previous = ' ';
    let mut end = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\n', _) => break,
            ('"' | '\'', None) => quote = Some(c),
            ('"' | '\'', Some(open)) if c == open && previous != '\\' => quote = None,
            (')', None) => {
                end = Some(at);
                break;
            }
            _ => {}
        }
        previous = c;
    }
    let end = end.ok_or("unterminated filter")?;
    let rest = text[end + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
    let inside = &text[..end];
    let is_operator = |c: char| "!<>=".contains(c);
    let split = inside.find(is_operator).filter(|at| *at > 0).map(|at| {
        let (left, tail) = inside.split_at(at);
        let len = tail.find(|c: char| !is_operator(c)).unwrap_or(tail.len());
        (left, &tail[..len], &tail[len..])
    });
    let filter = match split {
        Some((left, operator, right)) if !right.is_empty() => {
            let comparison = match operator {
                "<" => Comparison::Less,
                "<=" => Comparison::LessEqual,
                "==" => Comparison::Equal,
                "!=" => Comparison::NotEqual,
                ">=" => Comparison::GreaterEqual,
                ">" => Comparison::Greater,
                _ => return Err(format!("unrecognized filter operator {operator}")),
            };
            Filter {
                left: action(left, nesting + 1)?,
                comparison: Some((comparison, action(right, nesting + 1)?)),
            }
        }
        _ => Filter { left: action(inside, nesting + 1)?, comparison: None },
    };
    out.push(Step::Filter(filter));
    Ok(rest)
}
