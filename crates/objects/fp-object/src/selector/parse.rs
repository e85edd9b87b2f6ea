//! The grammar of label selectors in a query string (`apimachinery/pkg/labels/selector.go`).

use std::collections::BTreeSet;

use super::Error;
use super::labels::{Operator, Requirement, check_key};
use crate::field::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    CloseParen,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    OpenParen,
}

/// What follows a key.
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// Requirements in the order of the text.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    Parser { tokens: tokens(text), at: 0 }.parse().map_err(Error)
}

fn tokens(text: &str) -> Vec<(Token, &str)> {
    let bytes = text.as_bytes();
    let is_symbol = |b: u8| b"=!(),><".contains(&b);
    let is_space = |b: u8| b" \t\r\n".contains(&b);
    let mut out = Vec::new();
    let mut at = 0;
    // A NUL ends the text, as in Go's lexer.
    while at < bytes.len() && bytes[at] != 0 {
        if is_space(bytes[at]) {
            at += 1;
            continue;
        }
        let len = if is_symbol(bytes[at]) {
            1 + usize::from(matches!(&bytes[at..], [b'=' | b'!', b'=', ..]))
        } else {
            let rest = &bytes[at..];
            rest.iter().position(|b| is_symbol(*b) || is_space(*b) || *b == 0).unwrap_or(rest.len())
        };
        let literal = &text[at..at + len];
        let token = match literal {
            ")" => Token::CloseParen,
            "," => Token::Comma,
            "!" => Token::Not,
            "==" => Token::DoubleEquals,
            "=" => Token::Equals,
            ">" => Token::Greater,
            "in" => Token::In,
            "<" => Token::Less,
            "!=" => Token::NotEquals,
            "notin" => Token::NotIn,
            "(" => Token::OpenParen,
            _ => Token::Identifier,
        };
        out.push((token, literal));
        at += len;
    }
    out
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut out = Vec::new();
        loop {
            match self.peek() {
                (Token::Identifier | Token::Not, _) => {}
                (Token::End, _) => return Ok(out),
                (_, found) => {
                    return Err(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            out.push(self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?);
            match self.next() {
                (Token::End, _) => return Ok(out),
                (Token::Comma, _) => match self.peek() {
                    (Token::Identifier | Token::Not, _) => {}
                    (_, found) => {
                        return Err(format!("found '{found}', expected: identifier after ','"));
                    }
                },
                (_, found) => {
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let negated = token.0 == Token::Not;
        if negated {
            token = self.next();
        }
        let (Token::Identifier, key) = token else {
            return Err(format!("found '{}', expected: identifier", token.1));
        };
        check_key(key, Path::Root).map_err(|e| e.to_string())?;
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => {
                self.values()?.into_iter().map(str::to_owned).collect()
            }
            _ => vec![self.exact_value()?.to_owned()],
        };
        Requirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let raw = self.tokens.get(self.at).copied().unwrap_or((Token::End, ""));
        self.at += 1;
        Ok(match raw {
            (Token::In, _) => Operator::In,
            (Token::Equals, _) => Operator::Equals,
            (Token::DoubleEquals, _) => Operator::DoubleEquals,
            (Token::Greater, _) => Operator::GreaterThan,
            (Token::Less, _) => Operator::LessThan,
            (Token::NotIn, _) => Operator::NotIn,
            (Token::NotEquals, _) => Operator::NotEquals,
            (_, found) => return Err(format!("found '{found}', expected: {BINARY_OPERATORS}")),
        })
    }

    fn exact_value(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok("");
        }
        match self.next() {
            (Token::Identifier, value) => Ok(value),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// `(x,,y)`: sorted, without doubles; an empty place is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        match self.next() {
            (Token::OpenParen, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, first) => {
                let values = self.identifiers()?;
                match self.next() {
                    (Token::CloseParen, _) => Ok(values),
                    _ => Err(format!("found '{first}', expected: ')'")),
                }
            }
            (Token::CloseParen, _) => {
                self.next();
                Ok(BTreeSet::from([""]))
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut out = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Identifier, value) => {
                    out.insert(value);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::CloseParen, _) => return Ok(out),
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    let next = self.peek().0;
                    if out.is_empty() || matches!(next, Token::CloseParen | Token::Comma) {
                        out.insert("");
                    }
                    if next == Token::CloseParen {
                        return Ok(out);
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
    }

    /// The next token, `in` and `notin` taken as identifiers.
    fn peek(&self) -> (Token, &'a str) {
        match self.tokens.get(self.at).copied() {
            None => (Token::End, ""),
            Some((Token::In | Token::NotIn, literal)) => (Token::Identifier, literal),
            Some(token) => token,
        }
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.peek();
        self.at += 1;
        token
    }
}
