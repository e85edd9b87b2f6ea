//! The checks of numbers: bounds, multiples, and the range of their type and format.

use fp_object::Value;
use fp_object::field::{Bad, ErrorType, Path};
use fp_object::go::display_float;

use super::{Found, Raw, shown};
use crate::structural::{Bound, Node, Types};

/// A number as Kubernetes' decoder makes it: an int64, or else a float.
#[derive(Clone, Copy)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub fn of(value: &Value) -> Option<Self> {
        match value.as_i64() {
            Some(n) => Some(Self::Int(n)),
            None => value.as_f64().map(Self::Float),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(f) => f,
        }
    }
}

impl Found {
    pub fn number(&mut self, number: Number, node: &Node, path: &Path<'_>) {
        let range = Range::of(node);
        self.in_range(&range, number, "Checked", path);
        let Some(checks) = &node.checks else { return };
        if let Some(factor) = checks.multiple_of {
            let fits = self.in_range(&range, Number::Float(factor), "MultipleOf", path);
            self.multiple_of(number, factor, fits, path);
        }
        if let Some(Bound { value, exclusive }) = checks.minimum {
            let fits = self.in_range(&range, Number::Float(value), "Minimum boundary", path);
            let words = if exclusive { "greater than" } else { "greater than or equal to" };
            self.bound(number, value, fits, words, path, |order| {
                order.is_gt() || (!exclusive && order.is_eq())
            });
        }
        if let Some(Bound { value, exclusive }) = checks.maximum {
            let fits = self.in_range(&range, Number::Float(value), "Maximum boundary", path);
            let words = if exclusive { "less than" } else { "less than or equal to" };
            self.bound(number, value, fits, words, path, |order| {
                order.is_lt() || (!exclusive && order.is_eq())
            });
        }
    }

    /// Compares as integers when the value is one, as Kubernetes does: the bound is then cut.
    fn bound(
        &mut self,
        number: Number,
        bound: f64,
        native: bool,
        words: &str,
        path: &Path<'_>,
        holds: impl Fn(std::cmp::Ordering) -> bool,
    ) {
        let (order, shown) = match number {
            Number::Int(n) if native => (Some(n.cmp(&(bound as i64))), (bound as i64).to_string()),
            other => (other.as_f64().partial_cmp(&bound), display_float(bound)),
        };
        if !order.is_some_and(holds) {
            let bad = if native { number_value(number) } else { number.as_f64().into() };
            self.fail(
                ErrorType::Invalid,
                path,
                Bad::Value(bad),
                &format!("should be {words} {shown}"),
            );
        }
    }

    fn multiple_of(&mut self, number: Number, factor: f64, native: bool, path: &Path<'_>) {
        let (positive, holds, text) = match number {
            Number::Int(n) if native => {
                let factor = factor as i64;
                (factor > 0, factor > 0 && n % factor == 0, factor.to_string())
            }
            other => {
                let value = other.as_f64();
                let quotient = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
                (factor > 0.0, is_json_integer(quotient), display_float(factor))
            }
        };
        if !positive {
            let name = shown(path);
            let message = format!("factor MultipleOf declared for {name} must be positive: {text}");
            let bad = Bad::Text(text);
            self.add(Raw {
                kind: ErrorType::Invalid,
                name: Some(name),
                bad,
                detail: message.clone(),
                message,
            });
        } else if !holds {
            let bad = if native { number_value(number) } else { number.as_f64().into() };
            self.fail(
                ErrorType::Invalid,
                path,
                Bad::Value(bad),
                &format!("should be a multiple of {text}"),
            );
        }
    }

    fn in_range(&mut self, range: &Range, number: Number, what: &str, path: &Path<'_>) -> bool {
        let fits = range.fits(number);
        if !fits {
            let format = match range.format {
                "" => " (default format)".to_owned(),
                name => format!(" with format {name}"),
            };
            self.plain(format!(
                "{what} value must be of type {}{format} in {}",
                range.kind,
                shown(path)
            ));
        }
        fits
    }
}

/// What a number must fit into by its type and format.
struct Range {
    kind: &'static str,
    format: &'static str,
}

impl Range {
    fn of(node: &Node) -> Self {
        let format = node.format.as_ref().map_or("", |f| &*f.name);
        let known =
            |names: [&'static str; 2]| names.into_iter().find(|n| *n == format).unwrap_or("");
        match node.types {
            Types::INTEGER => Self { kind: "integer", format: known(["int32", "int64"]) },
            Types::NUMBER => Self { kind: "number", format: known(["float", "double"]) },
            _ => Self { kind: "", format: "" },
        }
    }

    fn fits(&self, number: Number) -> bool {
        // Two to the power of 63: the first float beyond an int64.
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        let whole =
            |f: f64| (f.fract() == 0.0 && (-BEYOND..BEYOND).contains(&f)).then_some(f as i64);
        let integer = match number {
            Number::Int(n) => Some(n),
            Number::Float(f) => whole(f),
        };
        match (self.kind, self.format) {
            ("integer", "int32") => integer.is_some_and(|n| i32::try_from(n).is_ok()),
            ("integer", _) => integer.is_some(),
            ("number", "float") => (number.as_f64() as f32).is_finite(),
            _ => true,
        }
    }
}

fn number_value(number: Number) -> Value {
    match number {
        Number::Int(n) => n.into(),
        Number::Float(f) => f.into(),
    }
}

/// Equal, numbers by value.
pub fn same(a: &Value, b: &Value) -> bool {
    match (Number::of(a), Number::of(b)) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => a == b,
        (Some(a), Some(b)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// go-openapi's `IsFloat64AJSONInteger`: whole within JavaScript's safe range.
pub fn is_json_integer(f: f64) -> bool {
    const MAX: f64 = ((1_i64 << 53) - 1) as f64;
    const EPSILON: f64 = 1e-9;
    if !f.is_finite() || f.abs() > MAX {
        return false;
    }
    let rounded = f.round();
    f == rounded || (rounded != 0.0 && (f - rounded).abs() < EPSILON * rounded.abs())
}
