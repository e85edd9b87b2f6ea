//! `apis.kcp.io` between v1alpha1 and v1alpha2: APIExport and APIBinding.
//!
//! Rules: kcp `sdk/apis/apis/v1alpha2/types_{apiexport,apibinding}_conversion.go`. What a version
//! cannot say travels in annotations and comes back when the object is converted back.

use fp_object::meta::Meta;
use fp_object::{Object, Value};
use fp_schema::resource::Convert;
use serde_json::json;

/// In v1alpha1: resources that are not stored as CRDs.
pub const RESOURCE_SCHEMAS: &str = "apis.v1alpha2.kcp.io/resource-schemas";
/// In v1alpha1: an export's claims with verbs.
pub const PERMISSION_CLAIMS: &str = "apis.v1alpha2.kcp.io/permission-claims";
/// In v1alpha2: claims with `all` and `resourceSelector`.
pub const PERMISSION_CLAIMS_ALPHA1: &str = "apis.v1alpha2.kcp.io/v1alpha1-permission-claims";
/// In v1alpha1: a binding's claims with verbs and selectors.
pub const ACCEPTABLE_CLAIMS: &str = "apis.v1alpha2.kcp.io/acceptable-permission-claims";
const STATUS_EXPORT_CLAIMS: &str = "apis.v1alpha2.kcp.io/status-export-permission-claims";
const STATUS_APPLIED_CLAIMS: &str = "apis.v1alpha2.kcp.io/status-applied-permission-claims";
const STATUS_EXPORT_CLAIMS_ALPHA1: &str =
    "apis.v1alpha2.kcp.io/v1alpha1-status-export-permission-claims";
const STATUS_APPLIED_CLAIMS_ALPHA1: &str =
    "apis.v1alpha2.kcp.io/v1alpha1-status-applied-permission-claims";

/// The conversion of a resource of `apis.kcp.io`; the others have one version.
pub fn of(resource: &str) -> Option<Convert> {
    match resource {
        "apiexports" => Some(export),
        "apibindings" => Some(binding),
        _ => None,
    }
}

fn export(object: &mut Object, from: &str, to: &str) -> Result<(), String> {
    match (from, to) {
        ("v1alpha1", "v1alpha2") => export_up(object)?,
        ("v1alpha2", "v1alpha1") => export_down(object)?,
        _ => {}
    }
    finish(object, to);
    Ok(())
}

fn binding(object: &mut Object, from: &str, to: &str) -> Result<(), String> {
    match (from, to) {
        ("v1alpha1", "v1alpha2") => binding_up(object)?,
        ("v1alpha2", "v1alpha1") => binding_down(object)?,
        _ => {}
    }
    finish(object, to);
    Ok(())
}

fn finish(object: &mut Object, to: &str) {
    object.insert("apiVersion".into(), format!("apis.kcp.io/{to}").into());
    if object
        .at(&["metadata", "annotations"])
        .and_then(Value::as_object)
        .is_some_and(Object::is_empty)
    {
        object.remove_at(&["metadata", "annotations"]);
    }
}

fn export_down(object: &mut Object) -> Result<(), String> {
    let stored = take_list(object, &["spec", "resources"]);
    let (crds, others): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .flatten()
        .partition(|r| r["storage"].get("crd").is_some_and(|c| !c.is_null()));
    carry(object, RESOURCE_SCHEMAS, &others);
    if !crds.is_empty() {
        let names: Value = crds.into_iter().map(|mut r| r["schema"].take()).collect();
        object.map_mut(&["spec"]).insert("latestResourceSchemas".into(), names);
    }
    let Some(claims) = take_list(object, &["spec", "permissionClaims"]) else { return Ok(()) };
    carry(object, PERMISSION_CLAIMS, &kept(&claims, has_verbs));
    let mut claims: Vec<Value> = claims.iter().map(|c| plain(c, &[])).collect();
    restore(object, PERMISSION_CLAIMS_ALPHA1, &mut claims, &["all", "resourceSelector"])?;
    put_list(object, &["spec"], "permissionClaims", claims);
    Ok(())
}

fn export_up(object: &mut Object) -> Result<(), String> {
    let mut resources = Vec::new();
    let names = take_list(object, &["spec", "latestResourceSchemas"]);
    let had_names = names.is_some();
    for name in names.into_iter().flatten() {
        resources.push(resource_of(name.as_str().unwrap_or_default())?);
    }
    let others = taken(object, RESOURCE_SCHEMAS, "schemas")?.unwrap_or_default();
    if had_names || !others.is_empty() {
        resources.extend(others);
        put_list(object, &["spec"], "resources", resources);
    }
    let Some(claims) = take_list(object, &["spec", "permissionClaims"]) else {
        taken(object, PERMISSION_CLAIMS, "claims")?;
        return Ok(());
    };
    carry(object, PERMISSION_CLAIMS_ALPHA1, &claims);
    let mut claims: Vec<Value> = claims.iter().map(|c| plain(c, &[])).collect();
    restore(object, PERMISSION_CLAIMS, &mut claims, &["verbs", "defaultSelector"])?;
    claims.iter_mut().for_each(default_verbs);
    put_list(object, &["spec"], "permissionClaims", claims);
    Ok(())
}

fn binding_down(object: &mut Object) -> Result<(), String> {
    if let Some(claims) = take_list(object, &["spec", "permissionClaims"]) {
        carry(object, ACCEPTABLE_CLAIMS, &kept(&claims, has_verbs_or_selector));
        let mut claims: Vec<Value> = claims.iter().map(|c| with_all(c, &["state"])).collect();
        restore(object, PERMISSION_CLAIMS_ALPHA1, &mut claims, &["all", "resourceSelector"])?;
        put_list(object, &["spec"], "permissionClaims", claims);
    }
    if let Some(claims) = take_list(object, &["status", "exportPermissionClaims"]) {
        carry(object, STATUS_EXPORT_CLAIMS, &kept(&claims, has_verbs));
        let mut claims: Vec<Value> = claims.iter().map(|c| plain(c, &[])).collect();
        restore(object, STATUS_EXPORT_CLAIMS_ALPHA1, &mut claims, &["all", "resourceSelector"])?;
        put_list(object, &["status"], "exportPermissionClaims", claims);
    }
    if let Some(claims) = take_list(object, &["status", "appliedPermissionClaims"]) {
        carry(object, STATUS_APPLIED_CLAIMS, &kept(&claims, has_verbs_or_selector));
        let mut claims: Vec<Value> = claims.iter().map(|c| with_all(c, &[])).collect();
        restore(object, STATUS_APPLIED_CLAIMS_ALPHA1, &mut claims, &["all", "resourceSelector"])?;
        put_list(object, &["status"], "appliedPermissionClaims", claims);
    }
    Ok(())
}

fn binding_up(object: &mut Object) -> Result<(), String> {
    let names_objects = |c: &Value| c["resourceSelector"].as_array().is_some_and(|l| !l.is_empty());
    if let Some(claims) = take_list(object, &["spec", "permissionClaims"]) {
        carry(object, PERMISSION_CLAIMS_ALPHA1, &kept(&claims, names_objects));
        let mut claims: Vec<Value> = claims.iter().map(|c| with_selector(c, &["state"])).collect();
        restore(object, ACCEPTABLE_CLAIMS, &mut claims, &["verbs", "selector"])?;
        claims.iter_mut().for_each(default_verbs);
        put_list(object, &["spec"], "permissionClaims", claims);
    }
    if let Some(claims) = take_list(object, &["status", "exportPermissionClaims"]) {
        carry(object, STATUS_EXPORT_CLAIMS_ALPHA1, &claims);
        let mut claims: Vec<Value> = claims.iter().map(|c| plain(c, &[])).collect();
        restore(object, STATUS_EXPORT_CLAIMS, &mut claims, &["verbs"])?;
        claims.iter_mut().for_each(default_verbs);
        put_list(object, &["status"], "exportPermissionClaims", claims);
    }
    if let Some(claims) = take_list(object, &["status", "appliedPermissionClaims"]) {
        carry(object, STATUS_APPLIED_CLAIMS_ALPHA1, &kept(&claims, names_objects));
        let mut claims: Vec<Value> = claims.iter().map(|c| with_selector(c, &[])).collect();
        restore(object, STATUS_APPLIED_CLAIMS, &mut claims, &["verbs", "selector"])?;
        claims.iter_mut().for_each(default_verbs);
        put_list(object, &["status"], "appliedPermissionClaims", claims);
    }
    Ok(())
}

/// `prefix.resource.group` of a schema's name; group `core` is the core group.
fn resource_of(schema: &str) -> Result<Value, String> {
    let mut parts = schema.splitn(3, '.').skip(1);
    let (Some(resource), Some(group)) = (parts.next(), parts.next()) else {
        return Err(format!(
            "invalid schema {schema:?}: must have at least 3 dot-separated segments"
        ));
    };
    let group = if group == "core" { "" } else { group };
    Ok(json!({"group": group, "name": resource, "schema": schema, "storage": {"crd": {}}}))
}

/// The members that both versions have.
fn plain(claim: &Value, more: &[&str]) -> Value {
    let members = ["group", "resource", "identityHash"].into_iter().chain(more.iter().copied());
    members.filter_map(|m| Some((m.to_owned(), claim.get(m)?.clone()))).collect::<Object>().into()
}

/// v1alpha1's `all` of a selector.
fn with_all(claim: &Value, more: &[&str]) -> Value {
    let mut out = plain(claim, more);
    if claim["selector"]["matchAll"] == true {
        out["all"] = true.into();
    }
    out
}

/// v1alpha2's selector: whatever v1alpha1 said, it always meant everything.
fn with_selector(claim: &Value, more: &[&str]) -> Value {
    let mut out = plain(claim, more);
    out["selector"] = json!({"matchAll": true});
    out
}

fn default_verbs(claim: &mut Value) {
    if claim["verbs"].as_array().is_none_or(Vec::is_empty) {
        claim["verbs"] = json!(["*"]);
    }
}

fn has_verbs(claim: &Value) -> bool {
    claim["verbs"] != json!(["*"])
}

fn has_verbs_or_selector(claim: &Value) -> bool {
    has_verbs(claim) || claim["selector"]["matchAll"] != true
}

fn kept(claims: &[Value], wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    claims.iter().filter(|c| wanted(c)).cloned().collect()
}

/// Keeps in an annotation what the version cannot say.
fn carry(object: &mut Object, annotation: &str, list: &[Value]) {
    if !list.is_empty() {
        let text = serde_json::to_string(list).expect("JSON values print");
        object.set_annotation(annotation, &text);
    }
}

/// Takes an annotation and reads it; `what` it holds is named in the error.
fn taken(object: &mut Object, annotation: &str, what: &str) -> Result<Option<Vec<Value>>, String> {
    let Some(text) = object.remove_at(&["metadata", "annotations", annotation]) else {
        return Ok(None);
    };
    let text = text.as_str().unwrap_or_default();
    serde_json::from_str(text)
        .map(Some)
        .map_err(|e| format!("failed to decode {what} from JSON: {e}"))
}

/// Gives `members` back to the claims that an annotation knows, and takes the annotation away.
fn restore(
    object: &mut Object,
    annotation: &str,
    claims: &mut [Value],
    members: &[&str],
) -> Result<(), String> {
    for known in taken(object, annotation, "claims")?.unwrap_or_default() {
        for claim in claims.iter_mut().filter(|c| same_resource(c, &known)) {
            for member in members {
                match (claim.as_object_mut(), known.get(member)) {
                    (Some(claim), Some(value)) => claim.insert((*member).into(), value.clone()),
                    (Some(claim), None) => claim.remove(*member),
                    (None, _) => None,
                };
            }
        }
    }
    Ok(())
}

/// Group, resource and identity are equal; absent is empty.
pub fn same_resource(a: &Value, b: &Value) -> bool {
    let text =
        |v: &'_ Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    ["group", "resource", "identityHash"].iter().all(|key| text(a, key) == text(b, key))
}

fn take_list(object: &mut Object, path: &[&str]) -> Option<Vec<Value>> {
    match object.remove_at(path)? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

fn put_list(object: &mut Object, at: &[&str], member: &str, list: Vec<Value>) {
    object.map_mut(at).insert(member.into(), list.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    fn converted(convert: Convert, value: &Value, from: &str, to: &str) -> Value {
        let mut object = object(value.clone());
        convert(&mut object, from, to).unwrap();
        Value::Object(object)
    }

    fn round_trip(resource: &str, value: Value, from: &str, to: &str) -> Value {
        let convert = of(resource).unwrap();
        let there = converted(convert, &value, from, to);
        assert_eq!(there["apiVersion"], format!("apis.kcp.io/{to}"));
        let mut back = object(converted(convert, &there, to, from));
        // Going up always leaves v1alpha1's claims behind.
        if let Some(Value::Object(left)) = back.remove_at(&["metadata", "annotations"]) {
            let left: Object =
                left.into_iter().filter(|(k, _)| !k.contains("/v1alpha1-")).collect();
            if !left.is_empty() {
                back.map_mut(&["metadata"]).insert("annotations".into(), left.into());
            }
        }
        assert_eq!(Value::Object(back), value, "through {there}");
        there
    }

    #[test]
    fn exports() {
        let crd = json!({"group": "g.dev", "name": "widgets", "schema": "v1.widgets.g.dev", "storage": {"crd": {}}});
        let far = json!({"group": "g.dev", "name": "far", "schema": "v1.far.g.dev", "storage": {"virtual": {}}});
        let verbs = json!({"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"], "defaultSelector": {"matchAll": true}});
        let there = round_trip(
            "apiexports",
            json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "metadata": {"name": "x"},
                "spec": {"resources": [crd, far], "permissionClaims": [verbs], "maximalPermissionPolicy": {"local": {}}},
                "status": {"identityHash": "h"},
            }),
            "v1alpha2",
            "v1alpha1",
        );
        assert_eq!(there["spec"]["latestResourceSchemas"], json!(["v1.widgets.g.dev"]));
        assert_eq!(
            there["spec"]["permissionClaims"],
            json!([{"group": "", "resource": "secrets", "identityHash": ""}])
        );
        let there = round_trip(
            "apiexports",
            json!({
                "apiVersion": "apis.kcp.io/v1alpha1", "metadata": {"name": "x", "annotations": {"a": "b"}},
                "spec": {
                    "latestResourceSchemas": ["v1.pods.core"],
                    "permissionClaims": [{"group": "", "resource": "configmaps", "resourceSelector": [{"name": "n"}]}],
                },
            }),
            "v1alpha1",
            "v1alpha2",
        );
        assert_eq!(
            there["spec"]["resources"],
            json!([{"group": "", "name": "pods", "schema": "v1.pods.core", "storage": {"crd": {}}}])
        );
        assert_eq!(there["spec"]["permissionClaims"][0]["verbs"], json!(["*"]));
    }

    #[test]
    fn bindings() {
        let claim = |state: Option<&str>| {
            let mut claim = json!({
                "group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"],
                "selector": {"matchLabels": {"a": "b"}},
            });
            if let Some(state) = state {
                claim["state"] = state.into();
            }
            claim
        };
        round_trip(
            "apibindings",
            json!({
                "apiVersion": "apis.kcp.io/v1alpha2", "metadata": {"name": "x"},
                "spec": {"permissionClaims": [claim(Some("Accepted"))], "reference": {"export": {"name": "e"}}},
                "status": {
                    "appliedPermissionClaims": [claim(None)],
                    "exportPermissionClaims": [{"resource": "secrets", "verbs": ["list"]}],
                },
            }),
            "v1alpha2",
            "v1alpha1",
        );
        let there = round_trip(
            "apibindings",
            json!({
                "apiVersion": "apis.kcp.io/v1alpha1", "metadata": {"name": "x"},
                "spec": {"permissionClaims": [
                    {"resource": "secrets", "resourceSelector": [{"name": "n"}], "state": "Rejected"},
                    {"resource": "configmaps", "all": true, "state": "Accepted"},
                ]},
            }),
            "v1alpha1",
            "v1alpha2",
        );
        for claim in there["spec"]["permissionClaims"].as_array().unwrap() {
            assert_eq!(
                (&claim["verbs"], &claim["selector"]),
                (&json!(["*"]), &json!({"matchAll": true}))
            );
        }
    }

    #[test]
    fn refusals() {
        let mut bad = object(json!({"spec": {"latestResourceSchemas": ["v1.pods"]}}));
        assert_eq!(
            export(&mut bad, "v1alpha1", "v1alpha2").unwrap_err(),
            "invalid schema \"v1.pods\": must have at least 3 dot-separated segments"
        );
        let mut bad =
            object(json!({"metadata": {"annotations": {RESOURCE_SCHEMAS: "{"}}, "spec": {}}));
        assert!(
            export(&mut bad, "v1alpha1", "v1alpha2")
                .unwrap_err()
                .starts_with("failed to decode schemas")
        );
    }
}
