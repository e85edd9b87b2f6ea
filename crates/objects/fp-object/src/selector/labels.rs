//! Label selectors: requirements, compiled to one rule per key, so that ten thousand terms cost an
//! object no more than its own labels.

use std::collections::BTreeMap;
use std::fmt;

use super::{Error, parse};
use crate::field::{self, FieldError, Path};
use crate::meta::Meta;
use crate::object_meta::validate_labels;
use crate::{Object, Value, go, names};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One term of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// All requirements, and'ed. The default selects everything.
#[derive(Clone, Debug, Default)]
pub struct LabelSelector {
    /// An absent `LabelSelector` object selects nothing.
    nothing: bool,
    /// Sorted by key.
    requirements: Vec<Requirement>,
    rules: BTreeMap<String, Rule>,
    /// How many keys of `rules` an object must have.
    n_required: usize,
}

/// What all requirements on one key say together.
#[derive(Clone, Debug, Default)]
struct Rule {
    required: bool,
    banned: bool,
    /// Sorted; the value must be among them.
    allowed: Option<Vec<String>>,
    /// Sorted; the value may not be among them.
    denied: Vec<String>,
    greater_than: Option<i64>,
    less_than: Option<i64>,
}

impl LabelSelector {
    pub fn everything() -> Self {
        Self::default()
    }

    pub fn nothing() -> Self {
        Self { nothing: true, ..Self::default() }
    }

    /// Reads the `labelSelector` of a query: `a=b,c!=d,e in (x,y),f notin (z),g,!h,n>1`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::requirements(text).map(Self::new)
    }

    /// Compiles a `metav1.LabelSelector` object: none (or null) selects nothing, an empty one everything.
    pub fn from_object(selector: Option<&Value>) -> Result<Self, Error> {
        let Some(selector) = selector.and_then(Value::as_object) else {
            return Ok(Self::nothing());
        };
        let mut out = Vec::new();
        for (key, value) in
            selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten()
        {
            let value = value.as_str().unwrap_or("").to_owned();
            out.push(Requirement::new(key, Operator::Equals, vec![value]).map_err(Error)?);
        }
        for expression in expressions(selector) {
            let operator = match expression.text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(Error(format!(
                        "{} is not a valid label selector operator",
                        go::quote(other)
                    )));
                }
            };
            out.push(
                Requirement::new(expression.text("key"), operator, expression.values())
                    .map_err(Error)?,
            );
        }
        Ok(Self::new(out))
    }

    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
        for requirement in &requirements {
            if !rules.contains_key(&requirement.key) {
                rules.insert(requirement.key.clone(), Rule::default());
            }
            rules.get_mut(&requirement.key).expect("inserted just above").add(requirement);
        }
        for rule in rules.values_mut() {
            rule.denied.sort_unstable();
        }
        let n_required = rules.values().filter(|r| r.required).count();
        Self { nothing: false, requirements, rules, n_required }
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Matches labels sorted by key, as the informer keeps them.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.matches_all(labels.iter().map(|(k, v)| (&**k, &**v)))
    }

    /// Matches the labels of an object.
    pub fn matches_object(&self, object: &Object) -> bool {
        let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        self.matches_all(
            labels.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or(""))),
        )
    }

    fn matches_all<'a>(&self, labels: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        if self.nothing || self.requirements.is_empty() {
            return !self.nothing;
        }
        let mut n_found = 0;
        for (key, value) in labels {
            if let Some(rule) = self.rules.get(key) {
                if !rule.allows(value) {
                    return false;
                }
                n_found += usize::from(rule.required);
            }
        }
        n_found == self.n_required
    }

    /// The one value that the first requirement on `key` demands, if it demands one.
    pub fn requires_exact(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|r| r.key == key)?;
        match (requirement.operator, &requirement.values[..]) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Rule {
    fn add(&mut self, requirement: &Requirement) {
        use Operator::*;
        match requirement.operator {
            In | Equals | DoubleEquals => {
                let mut values = requirement.values.clone();
                values.sort_unstable();
                if let Some(before) = &self.allowed {
                    values.retain(|v| before.binary_search(v).is_ok());
                }
                self.allowed = Some(values);
                self.required = true;
            }
            NotIn | NotEquals => self.denied.extend(requirement.values.iter().cloned()),
            Exists => self.required = true,
            DoesNotExist => self.banned = true,
            GreaterThan | LessThan => {
                self.required = true;
                let bound =
                    requirement.values[0].parse().expect("checked when the requirement was made");
                if requirement.operator == GreaterThan {
                    self.greater_than = Some(self.greater_than.map_or(bound, |b| b.max(bound)));
                } else {
                    self.less_than = Some(self.less_than.map_or(bound, |b| b.min(bound)));
                }
            }
        }
    }

    fn allows(&self, value: &str) -> bool {
        let has = |list: &[String]| list.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        if self.banned || self.allowed.as_ref().is_some_and(|l| !has(l)) || has(&self.denied) {
            return false;
        }
        if self.greater_than.is_none() && self.less_than.is_none() {
            return true;
        }
        let number: Option<i64> = value.parse().ok();
        number.is_some_and(|n| {
            self.greater_than.is_none_or(|b| n > b) && self.less_than.is_none_or(|b| n < b)
        })
    }
}

impl Requirement {
    /// Checks key, values and their number. The error is Kubernetes' message.
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        use Operator::*;
        let (key_path, values_path) = (Path::Root.child("key"), Path::Root.child("values"));
        let mut errors = Vec::new();
        errors.extend(check_key(key, key_path).err());
        let wrong_count = match operator {
            In | NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Equals | DoubleEquals | NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Exists | DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            GreaterThan | LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(detail) = wrong_count {
            errors.push(FieldError::invalid(values_path, values.clone(), detail));
        }
        if matches!(operator, GreaterThan | LessThan) {
            for (at, value) in values.iter().enumerate().filter(|(_, v)| v.parse::<i64>().is_err())
            {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(values_path.index(at), value.as_str(), detail));
            }
        }
        for (at, value) in values.iter().enumerate() {
            let messages = names::is_label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid(
                    values_path.index(at).key(key),
                    value.as_str(),
                    messages.join("; "),
                ));
            }
        }
        if errors.is_empty() {
            Ok(Self { key: key.into(), operator, values })
        } else {
            Err(field::aggregate(&errors))
        }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn values(&self) -> &[String] {
        &self.values
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

pub(super) fn check_key(key: &str, path: Path<'_>) -> Result<(), FieldError> {
    let messages = names::is_qualified_name(key);
    if messages.is_empty() {
        Ok(())
    } else {
        Err(FieldError::invalid(path, key, messages.join("; ")))
    }
}

/// Validates a `metav1.LabelSelector` object within a spec (`ValidateLabelSelector`).
pub fn validate_label_selector(selector: &Object, path: Path<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        validate_labels(labels, path.child("matchLabels"), &mut out);
    }
    let list_path = path.child("matchExpressions");
    for (at, expression) in expressions(selector).enumerate() {
        let path = list_path.index(at);
        let (operator, values) = (expression.text("operator"), expression.values());
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                out.push(FieldError::required(path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.push(FieldError::forbidden(path.child("values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => out.push(FieldError::invalid(
                path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
        let key = expression.text("key");
        out.extend(
            names::is_qualified_name(key)
                .into_iter()
                .map(|m| FieldError::invalid(path.child("key"), key, m)),
        );
        let values_path = path.child("values");
        for (at, value) in values.iter().enumerate() {
            let errors = names::is_label_value(value).into_iter();
            out.extend(
                errors.map(|m| FieldError::invalid(values_path.index(at), value.as_str(), m)),
            );
        }
    }
    out
}

/// One entry of `matchExpressions`.
struct Expression<'a>(&'a Value);

fn expressions(selector: &Object) -> impl Iterator<Item = Expression<'_>> {
    selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten().map(Expression)
}

impl Expression<'_> {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or("")
    }

    fn values(&self) -> Vec<String> {
        let list = self.0.get("values").and_then(Value::as_array).into_iter().flatten();
        list.map(|v| v.as_str().unwrap_or("").to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        let mut out: Vec<(Box<str>, Box<str>)> = text
            .split_whitespace()
            .filter_map(|t| t.split_once('='))
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        out.sort();
        out
    }

    #[test]
    fn parses_and_prints() {
        let check = |texts: &[&str], want: Expect| {
            let lines = texts.iter().map(|t| match LabelSelector::parse(t) {
                Ok(s) => format!("{t:?} -> {s}\n"),
                Err(e) => format!("{t:?}: {e}\n"),
            });
            want.assert_eq(&lines.collect::<String>());
        };
        check(
            &[
                "",
                "x=a,y=b,z=c",
                " z , !b , a in ( y ,x, ) ",
                "x==a,y!=b",
                "x=",
                "x!=,y",
                "in in (in,notin)",
                "a in ()",
                "a in (,)",
                "a in (b,,c)",
                "n>1,n<5",
                "a notin (x)",
                "a/b=c",
            ],
            expect![[r#"
                "" -> 
                "x=a,y=b,z=c" -> x=a,y=b,z=c
                " z , !b , a in ( y ,x, ) " -> a in (,x,y),!b,z
                "x==a,y!=b" -> x==a,y!=b
                "x=" -> x=
                "x!=,y" -> x!=,y
                "in in (in,notin)" -> in in (in,notin)
                "a in ()" -> a in ()
                "a in (,)" -> a in ()
                "a in (b,,c)" -> a in (,b,c)
                "n>1,n<5" -> n>1,n<5
                "a notin (x)" -> a notin (x)
                "a/b=c" -> a/b=c
            "#]],
        );
        check(
            &[
                "x=a b",
                "x in a",
                "x in (a",
                "x in (a b)",
                "x in (=)",
                "!x=a",
                "=a",
                ",",
                "a,",
                "a,,b",
                "a==!b",
                "a b",
                "!",
                "(a)",
                "x in",
                "a b=c",
                "-=a",
                "a/b/c",
                "x=-",
                "n>x",
                "x=a=b",
                "a in (b),",
                "é",
                "x in (a,",
            ],
            expect![[r#"
                "x=a b": found 'b', expected: ',' or 'end of string'
                "x in a": unable to parse requirement: found 'a' expected: '('
                "x in (a": unable to parse requirement: found '', expected: ',' or ')'
                "x in (a b)": unable to parse requirement: found 'b', expected: ',' or ')'
                "x in (=)": unable to parse requirement: found '=', expected: ',', ')' or identifier
                "!x=a": found '=', expected: ',' or 'end of string'
                "=a": found '=', expected: !, identifier, or 'end of string'
                ",": found ',', expected: !, identifier, or 'end of string'
                "a,": found '', expected: identifier after ','
                "a,,b": found ',', expected: identifier after ','
                "a==!b": unable to parse requirement: found '!', expected: identifier
                "a b": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
                "!": unable to parse requirement: found '', expected: identifier
                "(a)": found '(', expected: !, identifier, or 'end of string'
                "x in": unable to parse requirement: found '' expected: '('
                "a b=c": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt
                "-=a": unable to parse requirement: <nil>: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "a/b/c": unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
                "x=-": unable to parse requirement: values[0][x]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                "n>x": unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer
                "x=a=b": found '=', expected: ',' or 'end of string'
                "a in (b),": found '', expected: identifier after ','
                "é": unable to parse requirement: <nil>: Invalid value: "é": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                "x in (a,": unable to parse requirement: found '', expected: ',', or identifier
            "#]],
        );
    }

    #[test]
    fn matches_as_kubernetes() {
        for (selector, object, want) in [
            ("", "", true),
            ("a", "a=1", true),
            ("a", "b=1", false),
            ("!a", "a=1", false),
            ("!a", "", true),
            ("a=1", "a=1", true),
            ("a=1", "a=2", false),
            ("a=", "a=", true),
            ("a!=1", "", true),
            ("a!=1", "a=1", false),
            ("a in (1,2)", "a=2 b=3", true),
            ("a in (1,2),a!=2", "a=2", false),
            ("a in (1,2),a in (2,3)", "a=2", true),
            ("a in (1,2),a in (2,3)", "a=1", false),
            ("a notin (1,2)", "a=3", true),
            ("a,b,!c", "a=1 b=2", true),
            ("a,b,!c", "a=1 b=2 c=3", false),
            ("n>1,n<5", "n=3", true),
            ("n>1,n<5", "n=5", false),
            ("n>1", "n=x", false),
            ("n>1", "", false),
        ] {
            let parsed = LabelSelector::parse(selector).expect("parses");
            assert_eq!(parsed.matches(&labels(object)), want, "{selector} on {object}");
            let map: Object =
                labels(object).iter().map(|(k, v)| (k.to_string(), Value::from(&**v))).collect();
            let object = Object::from_iter([("metadata".to_owned(), json!({"labels": map}))]);
            assert_eq!(parsed.matches_object(&object), want, "{selector} on an object");
        }
    }

    #[test]
    fn from_objects() {
        let check = |selector: Value, want: &str| {
            let got = match LabelSelector::from_object(Some(&selector)) {
                Ok(s) if s.nothing => "nothing".into(),
                Ok(s) => s.to_string(),
                Err(e) => e.to_string(),
            };
            assert_eq!(got, want);
        };
        check(json!(null), "nothing");
        check(json!({}), "");
        check(
            json!({"matchLabels": {"b": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"}]}),
            "a in (x,y),b=1,!c",
        );
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "x"}]}),
            r#""x" is not a valid label selector operator"#,
        );
        let bad = json!({"matchLabels": {"a b": "-"}, "matchExpressions": [{"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "", "operator": "Gt", "values": ["-"]}]});
        let errors = validate_label_selector(
            bad.as_object().expect("an object"),
            Path::Root.child("spec").child("selector"),
        );
        let lines: String = errors.iter().map(|e| format!("{e}\n")).collect();
        expect![[r#"
            spec.selector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.selector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
            spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
            spec.selector.matchExpressions[2].operator: Invalid value: "Gt": not a valid selector operator
            spec.selector.matchExpressions[2].key: Invalid value: "": name part must be non-empty
            spec.selector.matchExpressions[2].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            spec.selector.matchExpressions[2].values[0]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        "#]].assert_eq(&lines);
    }

    #[test]
    fn exact_values() {
        let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").expect("parses");
        let got: Vec<_> =
            ["a", "b", "c", "d", "e"].iter().map(|k| selector.requires_exact(k)).collect();
        assert_eq!(got, [Some("1"), Some("2"), None, None, None]);
    }

    /// Ten thousand terms are read and matched against a thousand objects within the time of a request.
    #[test]
    fn many_terms_are_cheap() {
        let text: Vec<String> = (0..10_000).map(|i| format!("a!=v{i}")).collect();
        let selector = LabelSelector::parse(&text.join(",")).expect("parses");
        let object = labels("a=x b=y");
        assert!((0..1000).all(|_| selector.matches(&object)));
        assert!(!selector.matches(&labels("a=v77")));
    }
}
