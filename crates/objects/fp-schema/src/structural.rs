//! The structural schema: what a CRD's `openAPIV3Schema` says, compiled once.

use fp_object::{Object, Value};

/// A rule of a schema (`x-kubernetes-validations`) as a function: the value and, on update, the
/// old one; true when it holds.
pub type RuleFn = fn(&Value, Option<&Value>) -> bool;

/// A compiled schema. `metadata` of the root object is not its business.
pub struct Structural {}

impl Structural {
    /// Removes what the schema does not know. Returns the dotted paths that were removed when
    /// `report` is set.
    pub fn prune(&self, _object: &mut Object, _report: bool) -> Vec<String> {
        todo!()
    }

    /// Fills in defaults.
    pub fn default(&self, _object: &mut Object) {
        todo!()
    }

    /// Checks the object with Kubernetes' messages; `old` is given on update (ratcheting comes later).
    pub fn validate(&self, _object: &Object, _old: Option<&Object>) -> Vec<fp_object::field::FieldError> {
        todo!()
    }
}
