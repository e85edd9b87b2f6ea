//! The strategy of CustomResourceDefinitions: fp-builtin's, and a validation that knows the rules
//! of kcp's own schemas. A CRD with another CEL rule is refused.

use std::sync::Arc;

use fp_schema::{ResourceInfo, Strategy, crd};

use crate::rules;

pub(crate) static STRATEGY: Strategy = Strategy {
    validate: |crd| crd::validate(crd, &rules::lookup),
    validate_update: |crd, old, sub| crd::validate_update(crd, old, sub, &rules::lookup),
    ..fp_builtin::crd::STRATEGY
};

/// The built-in resources as kcp serves them, in discovery order.
pub fn builtins() -> Vec<Arc<ResourceInfo>> {
    fp_builtin::resources_with(&STRATEGY)
}

#[cfg(test)]
mod tests {
    use fp_object::Object;

    use super::*;

    #[test]
    fn crds_of_ours_are_good_and_rules_of_others_refused() {
        let infos = builtins();
        let info =
            infos.iter().find(|i| &*i.gr.resource == "customresourcedefinitions").expect("CRDs");
        let strategy = info.strategy.expect("a built-in has a strategy");
        let validate = |rule: &str| -> Vec<String> {
            let crd = serde_json::json!({
                "metadata": {"name": "lamps.home.example.dev"},
                "spec": {
                    "group": "home.example.dev", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}},
                    }}}],
                },
            });
            let mut crd: Object = crd.as_object().cloned().expect("an object");
            (strategy.default)(&mut crd);
            (strategy.prepare_create)(&mut crd);
            (strategy.validate)(&crd).iter().map(ToString::to_string).collect()
        };
        assert!(validate("self == oldSelf").is_empty());
        assert_eq!(
            validate("self != ''"),
            [
                "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: CEL rules are not served by this version of Ferroplane"
            ]
        );
    }
}
