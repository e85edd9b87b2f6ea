//! What Kubernetes says of its own fields. The texts are part of its answers, and are not ours: they
//! come from the dependency that ships them.

use std::collections::HashMap;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

static METADATA: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let schema = ObjectMeta::json_schema(&mut SchemaGenerator::default());
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields
        .filter_map(|(name, field)| Some((name.clone(), field["description"].as_str()?.into())))
        .collect()
});

/// The description of a field of `metadata`, empty for one that there is not.
pub fn metadata(field: &str) -> &'static str {
    METADATA.get(field).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_described() {
        for field in ["name", "creationTimestamp"] {
            assert!(super::metadata(field).len() > 40, "{field}");
        }
        assert_eq!(super::metadata("shade"), "");
    }
}
