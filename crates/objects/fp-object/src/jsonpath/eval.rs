//! Steps over values.

use std::cmp::Ordering;

use super::{Comparison, Filter, Slice, Step};
use crate::Value;

/// How many values one step may yield: `..` twice can name each value many times over.
const RESULTS_MAX: usize = 10_000;

/// Takes each step in turn. None is what Go calls an error.
pub(super) fn steps<'a>(mut values: Vec<&'a Value>, steps: &'a [Step]) -> Option<Vec<&'a Value>> {
    for step in steps {
        values = take(&values, step)?;
        if values.len() > RESULTS_MAX {
            return None;
        }
    }
    Some(values)
}

fn take<'a>(values: &[&'a Value], step: &'a Step) -> Option<Vec<&'a Value>> {
    let mut out = Vec::new();
    match step {
        Step::Field(name) => out.extend(values.iter().filter_map(|v| v.get(name))),
        Step::Wildcard => values.iter().for_each(|v| out.extend(children(v))),
        Step::Descend => {
            for value in values {
                descend(value, &mut out)?;
            }
        }
        Step::Slice(slice) => {
            for value in values.iter().filter(|v| !v.is_null()) {
                out.extend(slice.of(value.as_array()?)?);
            }
        }
        Step::Union(items) => {
            for item in items {
                out.extend(steps(values.to_vec(), item)?);
            }
        }
        Step::Filter(filter) => {
            for value in values {
                for item in value.as_array()? {
                    if filter.passes(item)? {
                        out.push(item);
                    }
                }
            }
        }
        Step::Literal(value) => out.extend(values.iter().map(|_| value)),
    }
    Some(out)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// A value and all containers below it, each before its own.
fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>) -> Option<()> {
    let children = children(value);
    if children.is_empty() {
        return Some(());
    }
    out.push(value);
    if out.len() > RESULTS_MAX {
        return None;
    }
    children.into_iter().try_for_each(|child| descend(child, out))
}

impl Slice {
    fn of<'a>(&self, items: &'a [Value]) -> Option<Vec<&'a Value>> {
        let len = i64::try_from(items.len()).ok()?;
        let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
        let from = from_end(self.from.unwrap_or(0));
        let to =
            if self.is_single { from.checked_add(1)? } else { from_end(self.to.unwrap_or(len)) };
        if from == to {
            return Some(Vec::new());
        }
        if from < 0 || from >= len || to > len || to < from {
            return None;
        }
        let step = usize::try_from(self.step.unwrap_or(1)).ok().filter(|s| *s > 0)?;
        let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
        Some(items[range].iter().step_by(step).collect())
    }
}

impl Filter {
    fn passes(&self, item: &Value) -> Option<bool> {
        let lefts = steps(vec![item], &self.left);
        let Some((comparison, right)) = &self.comparison else {
            return Some(lefts.is_some_and(|l| !l.is_empty()));
        };
        match (lefts?.as_slice(), steps(vec![item], right)?.as_slice()) {
            ([], _) | (_, []) => Some(false),
            ([left], [right]) => compare(left, right, *comparison),
            _ => None,
        }
    }
}

/// Compares values of one type; None where Go cannot.
fn compare(left: &Value, right: &Value, comparison: Comparison) -> Option<bool> {
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => {
            match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64()?.partial_cmp(&b.as_f64()?)?,
            }
        }
        (Value::Bool(a), Value::Bool(b))
            if matches!(comparison, Comparison::Equal | Comparison::NotEqual) =>
        {
            a.cmp(b)
        }
        _ => return None,
    };
    Some(match comparison {
        Comparison::Less => order == Ordering::Less,
        Comparison::LessEqual => order != Ordering::Greater,
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::GreaterEqual => order != Ordering::Less,
        Comparison::Greater => order == Ordering::Greater,
    })
}
