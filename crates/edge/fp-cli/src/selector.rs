//! Label selectors as typed (`a=b,c in (x,y),!d`), turned into the LabelSelector of an object.
//!
//! Source of the grammar: apimachinery `pkg/labels` and `ParseToLabelSelector`.

use serde_json::{Map, Value, json};

/// Why a text is no selector.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("unable to parse requirement: {0:?}")]
    Requirement(String),
    #[error("{0:?} isn't supported in label selectors")]
    Operator(&'static str),
}

/// Parses a selector.
pub fn parse(text: &str) -> Result<Value, Error> {
    let mut labels = Map::new();
    let mut expressions = Vec::new();
    for requirement in split(text).into_iter().map(str::trim).filter(|r| !r.is_empty()) {
        let bad = || Error::Requirement(requirement.to_owned());
        let word = |w: &str| Some(w.trim().to_owned()).filter(|w| is_word(w)).ok_or_else(bad);
        if let Some(operator) = ["<", ">"].iter().find(|o| requirement.contains(**o)) {
            return Err(Error::Operator(operator));
        } else if let Some(key) = requirement.strip_prefix('!') {
            expressions.push(json!({ "key": word(key)?, "operator": "DoesNotExist" }));
        } else if let Some((key, value)) = requirement.split_once("!=") {
            expressions.push(json!({ "key": word(key)?, "operator": "NotIn", "values": [value_of(value, bad)?] }));
        } else if let Some((key, value)) =
            requirement.split_once("==").or_else(|| requirement.split_once('='))
        {
            labels.insert(word(key)?, value_of(value, bad)?.into());
        } else if let Some(head) = requirement.strip_suffix(')') {
            let (head, values) = head.split_once('(').ok_or_else(bad)?;
            let (key, operator) = match head.split_whitespace().collect::<Vec<_>>()[..] {
                [key, "in"] => (key, "In"),
                [key, "notin"] => (key, "NotIn"),
                _ => return Err(bad()),
            };
            let values =
                values.split(',').map(|v| value_of(v, bad)).collect::<Result<Vec<_>, _>>()?;
            expressions.push(json!({ "key": word(key)?, "operator": operator, "values": values }));
        } else {
            expressions.push(json!({ "key": word(requirement)?, "operator": "Exists" }));
        }
    }
    let mut selector = Map::new();
    if !labels.is_empty() {
        selector.insert("matchLabels".to_owned(), Value::Object(labels));
    }
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), Value::Array(expressions));
    }
    Ok(Value::Object(selector))
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    })
    .collect()
}

fn value_of(text: &str, bad: impl Fn() -> Error) -> Result<String, Error> {
    let value = text.trim();
    if value.is_empty() || is_word(value) { Ok(value.to_owned()) } else { Err(bad()) }
}

/// The letters of label keys and values. The server checks the rest.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        for (text, expected) in [
            ("", "{}"),
            ("a=b, c == d", r#"{"matchLabels":{"a":"b","c":"d"}}"#),
            ("a=", r#"{"matchLabels":{"a":""}}"#),
            (
                "x/y in (u, v),!z",
                r#"{"matchExpressions":[{"key":"x/y","operator":"In","values":["u","v"]},{"key":"z","operator":"DoesNotExist"}]}"#,
            ),
            (
                "a notin (b)",
                r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}"#,
            ),
            ("a!=b", r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}"#),
            ("a", r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#),
            ("a b", "unable to parse requirement: \"a b\""),
            ("a in b", "unable to parse requirement: \"a in b\""),
            ("=b", "unable to parse requirement: \"=b\""),
            ("a>1", "\">\" isn't supported in label selectors"),
        ] {
            let shown = parse(text).map_or_else(|e| e.to_string(), |v| v.to_string());
            assert_eq!(shown, expected, "{text:?}");
        }
    }
}
