//! The structural schema: what a CRD version's `openAPIV3Schema` says, compiled once into a compact
//! tree and shared by content.
//!
//! Invariants: a tree is at most [`MAX_DEPTH`] deep and holds at most [`MAX_NODES`] nodes, so that
//! every recursion over it is bounded; a rule of the schema is enforced, never skipped: a rule whose
//! function is not known lets no value pass that is new.
//! Deliberately absent: validation ratcheting, and the rules' language (CEL).

mod compile;
pub(crate) mod embedded;
pub(crate) mod format;
mod lists;
pub mod pattern;
pub(crate) mod prune;
mod rules;
mod shape;
mod validate;

use regex::Regex;

use fp_object::field::{FieldError, Path};
use fp_object::{Object, Value};

pub(crate) use compile::{UNSUPPORTED, each_child, is_set, size};
use format::Format;
pub(crate) use validate::validate_at as value_errors;

/// How deep a schema may nest.
pub const MAX_DEPTH: usize = 200;
/// How many schemas, properties and their like included, one version may hold.
pub const MAX_NODES: usize = 20_000;

/// A rule of a schema (`x-kubernetes-validations`) as a function: the value and, on update, the
/// old one; true when it holds.
pub type RuleFn = fn(&Value, Option<&Value>) -> bool;

/// The function of a rule by its text.
pub type Rules<'a> = &'a dyn Fn(&str) -> Option<RuleFn>;

/// Why a schema does not compile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub FieldError);

/// A compiled schema. At the root, `apiVersion`, `kind` and `metadata` are always known.
#[derive(Debug, Default)]
pub struct Structural {
    root: Node,
    /// Some node has a rule.
    has_rules: bool,
}

impl Structural {
    /// Compiles an `openAPIV3Schema`. A rule that `rules` does not know may stand in a CRD that
    /// another server has stored: its objects are read, and written as far as the values under the
    /// rule stay as they are.
    pub fn compile(schema: &Value, rules: Rules<'_>) -> Result<Self, Error> {
        compile::compile(schema, rules)
    }

    /// The schema of a version without one: everything is kept as it is.
    pub fn preserving() -> Self {
        Self { root: Node { preserve_unknown: true, ..Node::default() }, has_rules: false }
    }

    /// How its lists merge under a strategic merge patch.
    pub fn shape(&self) -> fp_object::patch::Shape {
        shape::shape(&self.root)
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// Whether some part has a rule.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// What follows the decoding of a body: checks and prunes `metadata` of the root and of embedded
    /// resources, removes fields that the schema does not know and nulls that it does not allow.
    /// Returns the dotted paths of the unknown fields, sorted in each group, when `report` is set.
    ///
    /// An error is Go's message about malformed metadata, which Kubernetes answers with 400; with
    /// `drop_invalid` such fields are removed instead, as for stored objects.
    pub fn decode(
        &self,
        object: &mut Object,
        report: bool,
        drop_invalid: bool,
    ) -> Result<Vec<String>, String> {
        let mut unknown = embedded::coerce_root(object, report, drop_invalid)?;
        unknown.extend(self.prune(object, report));
        prune::nulls(object, &self.root);
        let within = embedded::coerce(object, &self.root, report, drop_invalid);
        unknown.extend(within.map_err(|e| e.to_string())?);
        Ok(unknown)
    }

    /// Removes what the schema does not know. Returns the dotted paths that were removed when
    /// `report` is set.
    pub fn prune(&self, object: &mut Object, report: bool) -> Vec<String> {
        prune::prune(object, &self.root, report)
    }

    /// Whether an object without this member gets one.
    pub fn defaults_member(&self, name: &str) -> bool {
        self.root.property(name).is_some_and(|node| node.default.is_some())
    }

    /// Removes nulls that are neither allowed nor defaulted, then fills in defaults.
    pub fn default(&self, object: &mut Object) {
        prune::nulls(object, &self.root);
        prune::default(object, &self.root);
    }

    /// Checks the object with Kubernetes' messages; `old` is given on update, for transition rules.
    pub fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let mut errors = validate::validate(object, &self.root);
        embedded::validate(object, &self.root, &Path::Root, &mut errors);
        lists::validate_object(object, &self.root, &Path::Root, &mut errors);
        if self.has_rules {
            rules::validate(object, old, &self.root, &mut errors);
        }
        errors
    }

    /// Checks only `status` by its part of the schema, as an update of the subresource does.
    pub fn validate_status(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(status) = object.get("status")
            && let Some(node) = self.root.property("status")
        {
            errors = validate::validate_at("status", status, node);
        }
        embedded::validate(object, &self.root, &Path::Root, &mut errors);
        lists::validate_object(object, &self.root, &Path::Root, &mut errors);
        if self.has_rules {
            rules::validate(object, old, &self.root, &mut errors);
        }
        errors
    }
}

/// JSON types as a set. `x-kubernetes-int-or-string` is both of its types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub const INTEGER: Self = Self(1);
    pub const STRING: Self = Self(2);
    pub const NUMBER: Self = Self(4);
    pub const BOOLEAN: Self = Self(8);
    pub const ARRAY: Self = Self(16);
    pub const OBJECT: Self = Self(32);
    const NAMES: [(Self, &'static str); 6] = [
        (Self::INTEGER, "integer"),
        (Self::STRING, "string"),
        (Self::NUMBER, "number"),
        (Self::BOOLEAN, "boolean"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(t, _)| *t)
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names joined by a comma, as in Kubernetes' messages.
    pub fn names(self) -> String {
        let names = Self::NAMES.iter().filter(|(t, _)| self.has(*t)).map(|(_, n)| *n);
        names.collect::<Vec<_>>().join(",")
    }
}

/// One schema of the tree.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub types: Types,
    pub format: Option<Format>,
    pub nullable: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub list: ListType,
    pub default: Option<Value>,
    pub items: Option<Box<Node>>,
    /// Sorted by name.
    pub properties: Box<[(Box<str>, Node)]>,
    pub additional: Additional,
    pub checks: Option<Box<Checks>>,
    pub rules: Box<[Rule]>,
    /// This node or one below it has a rule.
    pub has_rules: bool,
}

impl Node {
    pub fn property(&self, name: &str) -> Option<&Node> {
        let at = self.properties.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }

    /// The schema of a member: its own or that of `additionalProperties`.
    pub fn member(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional.schema())
    }
}

#[derive(Debug, Default)]
pub(crate) enum Additional {
    /// Not given: unknown members are pruned.
    #[default]
    None,
    /// `true` or `{}`... without a schema of its own.
    Any,
    /// `false`.
    Forbidden,
    Schema(Box<Node>),
}

impl Additional {
    pub fn schema(&self) -> Option<&Node> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Box<[Box<str>]>),
}

/// The value validations, which most nodes lack.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub maximum: Option<Bound>,
    pub minimum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Box<[Box<str>]>,
    pub values: Box<[Value]>,
    pub all_of: Box<[Node]>,
    pub any_of: Box<[Node]>,
    pub one_of: Box<[Node]>,
    pub not: Option<Box<Node>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub value: f64,
    pub exclusive: bool,
}

#[derive(Debug)]
pub(crate) struct Pattern {
    pub text: Box<str>,
    pub regex: Regex,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub text: Box<str>,
    pub message: Box<str>,
    pub reason: Option<Box<str>>,
    /// Relative to the node, without the leading dot.
    pub field_path: Box<str>,
    /// The rule reads `oldSelf`: it holds only between two values.
    pub transition: bool,
    pub optional_old_self: bool,
    /// `None`: not known here.
    pub holds: Option<RuleFn>,
}

#[cfg(test)]
mod tests;
