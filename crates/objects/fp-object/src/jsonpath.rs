//! Kubernetes' JSONPath (`client-go/util/jsonpath`), the part that columns and selectable fields use:
//! one expression without braces, `.spec.x`, `.a\.b`, `['a.b']`, `[0]`, `[*]`, `[1:3]`, `['a','b']`,
//! `..x`, `[?(@.type=="Ready")].status`. A missing key has no result; what Go calls an error has none either.

mod eval;
mod parse;

use crate::field::{FieldError, Path};
use crate::{Value, go, json};

/// A compiled path. Compile once, evaluate often.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    /// `..`
    Descend,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter(Filter),
    /// A constant, on a filter's right side.
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    /// `[n]`: one item.
    is_single: bool,
    step: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Option<(Comparison, Vec<Step>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    GreaterEqual,
    Greater,
}

impl JsonPath {
    /// Compiles an expression as a CRD has it, without `{}`. A leading `$` is allowed.
    pub fn compile(text: &str) -> Result<Self, Error> {
        parse::steps(text).map(|steps| Self { steps })
    }

    /// The values that the path leads to, in order.
    pub fn eval<'a>(&'a self, value: &'a Value) -> Vec<&'a Value> {
        eval::steps(vec![value], &self.steps).unwrap_or_default()
    }

    /// The first of them: what a column shows.
    pub fn first<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
        self.eval(value).into_iter().next()
    }
}

/// A value as `PrintResults` prints it in a column of type `string`.
pub fn print(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".into(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => go::display_float(float),
            _ => number.to_string(),
        },
        other => json::to_go_string(other),
    }
}

/// What CRD validation asks of a path to one field (`validateSimpleJSONPath`).
pub fn validate_simple(text: &str, path: Path<'_>) -> Vec<FieldError> {
    let detail = match text.as_bytes().first() {
        None => "must not be empty",
        Some(b'.') => return Vec::new(),
        Some(_) => "must be a simple json path starting with .",
    };
    vec![FieldError::invalid(path, text, detail)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_values() {
        let object = json!({
            "spec": {"replicas": 3, "a.b": "dot", "list": [10, 20, 30], "none": null, "f": 1.5},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Synced", "status": "False", "n": 2, "reason": "x)y"},
            ]},
        });
        for (path, want) in [
            (".spec.replicas", "3"),
            ("$.spec.replicas", "3"),
            (".spec.missing.deeper", ""),
            (r".spec.a\.b", "dot"),
            (".spec['a.b']", ""),
            (r".spec['a\.b']", "dot"),
            (".spec.list[0]", "10"),
            (".spec.list[-1]", "30"),
            (".spec.list[3]", ""),
            (".spec.list[]", "10"),
            (".spec.list[*]", "10 20 30"),
            (".spec.list[1:]", "20 30"),
            (".spec.list[:2]", "10 20"),
            (".spec.list[0:3:2]", "10 30"),
            (".spec.list[0,2]", "10 30"),
            (".spec['replicas','f']", "3 1.5"),
            (".spec.none", "<no value>"),
            (".spec.none.x", ""),
            (".spec.list.x", ""),
            (".spec.replicas[0]", ""),
            (".status.conditions[?(@.type==\"Ready\")].status", "True"),
            (".status.conditions[?(@.type=='Synced')].status", "False"),
            (".status.conditions[?(@.type!='Synced')].status", "True"),
            (".status.conditions[?(@.n>1)].type", "Synced"),
            (".status.conditions[?(@.n<=1)].type", "Ready"),
            (".status.conditions[?(@.n==1.0)].type", ""),
            (".status.conditions[?(@.reason)].type", "Synced"),
            (".status.conditions[?(@.reason==\"x)y\")].type", "Synced"),
            (".status.conditions[?(@.type==\"None\")].status", ""),
            (".status.conditions[*].type", "Ready Synced"),
            (".status..type", "Ready Synced"),
            (".spec.*", "dot 1.5 [10,20,30] <no value> 3"),
            (".", "{\"spec\":"),
        ] {
            let compiled = JsonPath::compile(path).expect(path);
            let got: Vec<String> = compiled.eval(&object).into_iter().map(print).collect();
            let got = got.join(" ");
            assert!(if path == "." { got.starts_with(want) } else { got == want }, "{path}: {got}");
        }
    }

    #[test]
    fn refuses() {
        for (path, want) in [
            (".a[", "unterminated array"),
            (".a[x]", "invalid array index x"),
            (".a[?(@.b", "unterminated filter"),
            (".a[?(@.b)", "unclosed array expect ]"),
            (".a[?(@.b=~1)]", "unrecognized filter operator ="),
            (".a[?(@.b=<1)]", "unrecognized filter operator =<"),
            (".a....b", "invalid multiple recursive descent"),
            (".a}", "unrecognized character in action: U+007D '}'"),
            ("foo", "unrecognized identifier foo"),
            ("!", "unrecognized character in action: U+0021 '!'"),
            (".a\n", "unclosed action"),
        ] {
            assert_eq!(JsonPath::compile(path).map_err(|e| e.0), Err(want.to_owned()), "{path}");
        }
        let errors =
            |t: &str| crate::field::aggregate(&validate_simple(t, Path::Root.child("jsonPath")));
        assert_eq!(errors(".a"), "");
        assert_eq!(errors(""), r#"jsonPath: Invalid value: "": must not be empty"#);
        assert_eq!(
            errors("a"),
            r#"jsonPath: Invalid value: "a": must be a simple json path starting with ."#
        );
    }

    #[test]
    fn results_are_bounded() {
        let mut value = json!({});
        for _ in 0..100 {
            value = json!({"a": value, "b": [1, 2]});
        }
        let path = JsonPath::compile("..a..a..a..a").expect("compiles");
        assert!(path.eval(&value).is_empty());
    }
}
