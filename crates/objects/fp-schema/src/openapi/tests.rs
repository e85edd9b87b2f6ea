//! Documents of a small CRD, in full where that is short.

use expect_test::expect;

use super::*;
use crate::{Origin, Segment, from_crd};

fn lamps() -> ResourceInfo {
    let crd = json!({"spec": {
        "group": "home.example.dev", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp", "listKind": "LampList"},
        "versions": [{
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "description": "What is wanted.", "properties": {
                "color": {"type": "string"},
                "port": {"x-kubernetes-int-or-string": true},
                "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }}}}},
        }],
    }});
    let crd = crd.as_object().expect("an object");
    from_crd(crd, Segment::CustomResources, Origin::System { name: "x".into() }, &|_| None)
        .expect("a good CRD")
}

fn document_of(info: &ResourceInfo) -> Value {
    let component = |name: &str| {
        let short = name.rsplit('.').next()?;
        match short {
            "ObjectMeta" => {
                Some(json!({"properties": {"t": {"$ref": format!("{PREFIX}{META_V1}.Time")}}}))
            }
            "Time" => Some(json!({"type": "string"})),
            _ => None,
        }
    };
    document(&Gv::new("home.example.dev", "v1"), &[info], &component)
}

#[test]
fn components() {
    let document = document_of(&lamps());
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let lines: Vec<String> =
        schemas.iter().map(|(name, schema)| format!("{name} {schema}\n")).collect();
    expect![[r##"
        dev.example.home.v1.Lamp {"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},"spec":{"description":"What is wanted.","properties":{"color":{"type":"string"},"pod":{"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}},"required":["kind","apiVersion"],"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"port":{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}},"type":"object"}},"type":"object","x-kubernetes-group-version-kind":[{"group":"home.example.dev","kind":"Lamp","version":"v1"}],"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]}
        dev.example.home.v1.LampList {"properties":{"apiVersion":{"type":"string"},"items":{"items":{"$ref":"#/components/schemas/dev.example.home.v1.Lamp"},"type":"array"},"kind":{"type":"string"},"metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}]}},"required":["items"],"type":"object","x-kubernetes-group-version-kind":[{"group":"home.example.dev","kind":"LampList","version":"v1"}]}
        io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta {"properties":{"t":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}}}
        io.k8s.apimachinery.pkg.apis.meta.v1.Time {"type":"string"}
    "##]]
    .assert_eq(&lines.concat());
}

#[test]
fn operations() {
    let document = document_of(&lamps());
    let mut lines = String::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let names = |list: &Value| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .map(|p| p["name"].as_str().unwrap_or("").to_owned())
                .collect()
        };
        lines.push_str(&format!("{path} {}\n", names(&item["parameters"]).join(",")));
        for (verb, operation) in
            item.as_object().expect("an item").iter().filter(|(k, _)| *k != "parameters")
        {
            let own = names(&operation["parameters"]).join(",");
            lines.push_str(&format!(
                "  {verb} {} {own}\n",
                operation["operationId"].as_str().unwrap_or("")
            ));
        }
    }
    expect![[r#"
        /apis/home.example.dev/v1/lamps allowWatchBookmarks,continue,fieldSelector,labelSelector,limit,pretty,resourceVersion,resourceVersionMatch,sendInitialEvents,shardSelector,timeoutSeconds,watch
          get listHomeExampleDevV1LampForAllNamespaces 
        /apis/home.example.dev/v1/namespaces/{namespace}/lamps namespace,pretty
          delete deleteHomeExampleDevV1CollectionNamespacedLamp allowWatchBookmarks,continue,fieldSelector,labelSelector,limit,resourceVersion,resourceVersionMatch,sendInitialEvents,shardSelector,timeoutSeconds,watch
          get listHomeExampleDevV1NamespacedLamp allowWatchBookmarks,continue,fieldSelector,labelSelector,limit,resourceVersion,resourceVersionMatch,sendInitialEvents,shardSelector,timeoutSeconds,watch
          post createHomeExampleDevV1NamespacedLamp dryRun,fieldManager,fieldValidation
        /apis/home.example.dev/v1/namespaces/{namespace}/lamps/{name} name,namespace,pretty
          delete deleteHomeExampleDevV1NamespacedLamp dryRun,gracePeriodSeconds,ignoreStoreReadErrorWithClusterBreakingPotential,orphanDependents,propagationPolicy
          get readHomeExampleDevV1NamespacedLamp resourceVersion
          patch patchHomeExampleDevV1NamespacedLamp dryRun,fieldManager,fieldValidation,force
          put replaceHomeExampleDevV1NamespacedLamp dryRun,fieldManager,fieldValidation
        /apis/home.example.dev/v1/namespaces/{namespace}/lamps/{name}/scale name,namespace,pretty
          get readHomeExampleDevV1NamespacedLampScale resourceVersion
          patch patchHomeExampleDevV1NamespacedLampScale dryRun,fieldManager,fieldValidation,force
          put replaceHomeExampleDevV1NamespacedLampScale dryRun,fieldManager,fieldValidation
        /apis/home.example.dev/v1/namespaces/{namespace}/lamps/{name}/status name,namespace,pretty
          get readHomeExampleDevV1NamespacedLampStatus resourceVersion
          patch patchHomeExampleDevV1NamespacedLampStatus dryRun,fieldManager,fieldValidation,force
          put replaceHomeExampleDevV1NamespacedLampStatus dryRun,fieldManager,fieldValidation
    "#]]
    .assert_eq(&lines);
}

#[test]
fn the_index() {
    expect![[r#"{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=A"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=B"}}}"#]]
        .assert_eq(&index([("api/v1", "A"), ("apis/apps/v1", "B")]).to_string());
    assert_eq!(hash(b"x").len(), 128);
    assert_eq!(component_name("", "v1", "Pod"), "io.k8s.api.core.v1.Pod");
}

#[test]
fn discovery_is_documented() {
    let group = |name: &str| Listing::Group(name.to_owned());
    let mut out = String::new();
    for listing in [
        Listing::CoreVersions,
        Listing::Groups,
        group("rbac.authorization.k8s.io"),
        group("events.k8s.io"),
        Listing::Version,
    ] {
        let document = listing.document(&|_| None);
        let (path, item) =
            document["paths"].as_object().expect("paths").iter().next().expect("one");
        let get = &item["get"];
        let content = get["responses"]["200"]["content"].as_object().expect("media types");
        let answer = content["application/json"]["schema"]["$ref"].as_str().expect("a reference");
        let answer = answer.rsplit('.').next().unwrap_or("");
        let (id, tag, n_media) = (&get["operationId"], &get["tags"][0], content.len());
        out.push_str(&format!("{} {path} {id} {tag} {answer} in {n_media}\n", listing.path()));
    }
    expect![[r#"
        api /api/ "getCoreAPIVersions" "core" APIVersions in 3
        apis /apis/ "getAPIVersions" "apis" APIGroupList in 3
        apis/rbac.authorization.k8s.io /apis/rbac.authorization.k8s.io/ "getRbacAuthorizationAPIGroup" "rbacAuthorization" APIGroup in 3
        apis/events.k8s.io /apis/events.k8s.io/ "getEventsAPIGroup" "events" APIGroup in 3
        version /version/ "getCodeVersion" "version" Info in 1
    "#]]
    .assert_eq(&out);
}
