//! create, update, patch, delete.

use expect_test::expect;

use crate::check;

#[tokio::test]
async fn configmap_from_create_to_delete() {
    check(
        r#"
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a","uid":"x","annotations":{"kcp.io/cluster":"other","gate":""}},"data":{"k":"v"}}
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a"}}
        GET /api/v1/namespaces/default/configmaps/a
        PUT /api/v1/namespaces/default/configmaps/a {"metadata":{"name":"a"},"data":{"k":"w"}}
        PUT /api/v1/namespaces/default/configmaps/a {"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"x"}}
        PATCH /api/v1/namespaces/default/configmaps/a merge {"data":{"n":"1"}}
        PATCH /api/v1/namespaces/default/configmaps/a merge {"data":{"n":"1"}}
        PATCH /api/v1/namespaces/default/configmaps/a json-patch [{"op":"remove","path":"/data/n"}]
        PATCH /api/v1/namespaces/default/configmaps/a strategic {"data":{"k":null}}
        PATCH /api/v1/namespaces/default/configmaps/a merge {"metadata":{"resourceVersion":"1"},"data":{"n":"1"}}
        DELETE /api/v1/namespaces/default/configmaps/a {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"1"}}
        DELETE /api/v1/namespaces/default/configmaps/a?dryRun=All
        DELETE /api/v1/namespaces/default/configmaps/a
        DELETE /api/v1/namespaces/default/configmaps/a
        "#,
        expect![[r#"
            201 {"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"annotations":{"gate":"passed","kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
            409 AlreadyExists configmaps "a" already exists
            200 {"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"annotations":{"gate":"passed","kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
            200 {"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"2","uid":"U"}}
            409 Conflict Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
            200 {"apiVersion":"v1","data":{"k":"w","n":"1"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"3","uid":"U"}}
            200 {"apiVersion":"v1","data":{"k":"w","n":"1"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"3","uid":"U"}}
            200 {"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"4","uid":"U"}}
            200 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"5","uid":"U"}}
            409 Conflict Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
            409 Conflict Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (5). The object might have been modified
            200 {"apiVersion":"v1","details":{"kind":"configmaps","name":"a","uid":"U"},"kind":"Status","metadata":{},"status":"Success"}
            200 {"apiVersion":"v1","details":{"kind":"configmaps","name":"a","uid":"U"},"kind":"Status","metadata":{},"status":"Success"}
            404 NotFound configmaps "a" not found"#]],
    )
    .await;
}

#[tokio::test]
async fn generated_names_and_dry_run() {
    check(
        r#"
        POST /api/v1/namespaces/default/configmaps {"metadata":{"generateName":"a-"}}
        POST /api/v1/namespaces/default/configmaps?dryRun=All {"metadata":{"name":"b"}}
        GET /api/v1/namespaces/default/configmaps/b
        POST /api/v1/namespaces/default/configmaps {"metadata":{}}
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"b","resourceVersion":"5"}}
        "#,
        expect![[r#"
            201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generateName":"a-","name":"a-<5>","namespace":"default","resourceVersion":"1","uid":"U"}}
            201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"T","name":"b","namespace":"default","uid":"U"}}
            404 NotFound configmaps "b" not found
            422 Invalid ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
            400 BadRequest resourceVersion should not be set on objects to be created"#]],
    )
    .await;
}

#[tokio::test]
async fn fields_that_a_kind_does_not_know() {
    check(
        r#"
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a"},"shade":1,"data":{"k":"v","k":"w"}}
        POST /api/v1/namespaces/default/configmaps?fieldValidation=Strict {"metadata":{"name":"b"},"shade":1}
        POST /api/v1/namespaces/default/configmaps?fieldValidation=Ignore {"metadata":{"name":"c"},"shade":1}
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"d"},"data":{"k":1}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","shade":1},"spec":{"shade":1}}
        POST /apis/example.com/v1/namespaces/default/lamps?fieldValidation=Strict {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"b"},"spec":{"shade":1}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a?fieldValidation=Strict merge {"spec":{"shade":1}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"b"},"spec":{"shade":1,"color":"blue"}}
        "#,
        expect![[r#"
            201 (warning: duplicate field "data.k") (warning: unknown field "shade") {"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
            400 BadRequest ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "shade"
            201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"c","namespace":"default","resourceVersion":"2","uid":"U"}}
            400 BadRequest ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string
            201 (warning: unknown field "metadata.shade") (warning: unknown field "spec.shade") {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":1,"name":"a","namespace":"default","resourceVersion":"3","uid":"U"},"spec":{"bulbs":1}}
            400 BadRequest Lamp in version "v1" cannot be handled as a Lamp: strict decoding error: unknown field "spec.shade"
            422 Invalid  "" is invalid: patch: Invalid value: "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Lamp\",\"metadata\":{\"annotations\":{\"kcp.io/cluster\":\"root\"},
            422 (warning: unknown field "spec.shade") Invalid Lamp.example.com "b" is invalid: spec.color: Unsupported value: "blue": supported values: "red", "green""#]],
    )
    .await;
}

#[tokio::test]
async fn custom_resource_status_scale_and_generation() {
    check(
        r#"
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"},"spec":{"color":"red"},"status":{"lit":9}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a/status merge {"spec":{"color":"green"},"status":{"lit":1}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"spec":{"color":"green"},"status":{"lit":2}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"metadata":{"labels":{"x":"y"}}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"spec":{"color":"blue"}}
        GET /apis/example.com/v1/namespaces/default/lamps/a/scale
        PATCH /apis/example.com/v1/namespaces/default/lamps/a/scale merge {"spec":{"replicas":3}}
        PUT /apis/example.com/v1/namespaces/default/lamps/a/scale {"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":-1}}
        GET /apis/example.com/v1beta1/namespaces/default/lamps/a
        PUT /apis/example.com/v1/namespaces/default/lamps/a {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"}}
        PUT /apis/example.com/v1/namespaces/default/lamps/b {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"b","resourceVersion":"1"}}
        "#,
        expect![[r#"
            201 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":1,"name":"a","namespace":"default","resourceVersion":"1","uid":"U"},"spec":{"bulbs":1,"color":"red"}}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":1,"name":"a","namespace":"default","resourceVersion":"2","uid":"U"},"spec":{"bulbs":1,"color":"red"},"status":{"lit":1}}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":2,"name":"a","namespace":"default","resourceVersion":"3","uid":"U"},"spec":{"bulbs":1,"color":"green"},"status":{"lit":1}}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":2,"labels":{"x":"y"},"name":"a","namespace":"default","resourceVersion":"4","uid":"U"},"spec":{"bulbs":1,"color":"green"},"status":{"lit":1}}
            422 Invalid Lamp.example.com "a" is invalid: spec.color: Unsupported value: "blue": supported values: "red", "green"
            200 {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"4","uid":"U"},"spec":{"replicas":1},"status":{"replicas":1}}
            200 {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"creationTimestamp":"T","name":"a","namespace":"default","resourceVersion":"5","uid":"U"},"spec":{"replicas":3},"status":{"replicas":1}}
            422 Invalid Lamp.example.com "a" is invalid: [spec.bulbs: Invalid value: -1: spec.bulbs in body should be greater than or equal to 0, .spec.bulbs: Invalid value: -1: should be a non-negative integer]
            200 (warning: example.com/v1beta1 Lamp is deprecated; use example.com/v1 Lamp) {"apiVersion":"example.com/v1beta1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":3,"labels":{"x":"y"},"name":"a","namespace":"default","resourceVersion":"5","uid":"U"},"spec":{"color":"green"}}
            422 Invalid lamps.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update
            404 NotFound lamps.example.com "b" not found"#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_refused_is_not_warned_of() {
    check(
        r#"
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","finalizers":["odd"]},"spec":{"color":"blue"}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","finalizers":["odd"]}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"metadata":{"finalizers":["odd","odd.too"]},"spec":{"color":"blue"}}
        POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions {"metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Odd","names":{"plural":"lamps","kind":"Lamp"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"x":{"type":"string","format":"odd"}}}}}]}}
        "#,
        expect![[r#"
            422 Invalid Lamp.example.com "a" is invalid: spec.color: Unsupported value: "blue": supported values: "red", "green"
            201 (warning: metadata.finalizers: "odd": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers) {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","finalizers":["odd"],"generation":1,"name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
            422 Invalid Lamp.example.com "a" is invalid: spec.color: Unsupported value: "blue": supported values: "red", "green"
            422 Invalid CustomResourceDefinition.apiextensions.k8s.io "lamps.example.com" is invalid: spec.scope: Unsupported value: "Odd": supported values: "Cluster", "Namespaced""#]],
    )
    .await;
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    check(
        r#"
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","finalizers":["example.com/x"]}}
        DELETE /apis/example.com/v1/namespaces/default/lamps/a
        DELETE /apis/example.com/v1/namespaces/default/lamps/a
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"metadata":{"finalizers":["example.com/x","example.com/y"]}}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a merge {"metadata":{"finalizers":null}}
        GET /apis/example.com/v1/namespaces/default/lamps/a
        "#,
        expect![[r#"
            201 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","finalizers":["example.com/x"],"generation":1,"name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionGracePeriodSeconds":0,"deletionTimestamp":"T","finalizers":["example.com/x"],"generation":2,"name":"a","namespace":"default","resourceVersion":"2","uid":"U"}}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionGracePeriodSeconds":0,"deletionTimestamp":"T","finalizers":["example.com/x"],"generation":2,"name":"a","namespace":"default","resourceVersion":"2","uid":"U"}}
            422 Invalid Lamp.example.com "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/y"}
            200 {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionGracePeriodSeconds":0,"deletionTimestamp":"T","generation":2,"name":"a","namespace":"default","resourceVersion":"2","uid":"U"}}
            404 NotFound lamps.example.com "a" not found"#]],
    )
    .await;
}

#[tokio::test]
async fn namespaces_terminate() {
    check(
        r#"
        POST /api/v1/namespaces {"metadata":{"name":"a"}}
        DELETE /api/v1/namespaces/a
        DELETE /api/v1/namespaces/a
        PUT /api/v1/namespaces/a/finalize {"metadata":{"name":"a"},"spec":{"finalizers":[]}}
        GET /api/v1/namespaces/a
        "#,
        expect![[r#"
            201 {"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"1","uid":"U"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}
            200 {"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionTimestamp":"T","labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"2","uid":"U"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Terminating"}}
            200 {"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionTimestamp":"T","labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"2","uid":"U"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Terminating"}}
            200 {"apiVersion":"v1","kind":"Namespace","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionTimestamp":"T","labels":{"kubernetes.io/metadata.name":"a"},"name":"a","resourceVersion":"2","uid":"U"},"spec":{},"status":{"phase":"Terminating"}}
            404 NotFound namespaces "a" not found"#]],
    )
    .await;
}

#[tokio::test]
async fn definitions_wait_for_their_objects() {
    let crd = crate::server::LAMPS.replace('\n', " ");
    check(
        &format!(
            r#"
            POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All {crd}
            POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions {{"metadata":{{"name":"lamps.example.com"}},"spec":{{"group":"example.com","scope":"Cluster","names":{{"plural":"lamps","kind":"Lamp"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"x":{{"type":"string","format":"odd"}}}}}}}}}}]}}}}
            DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.example.com
            PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/lamps.example.com merge {{"spec":{{"conversion":{{"strategy":"Webhook"}}}}}}
            "#
        ),
        expect![[r#"
            201 {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"creationTimestamp":"T","generation":1,"name":"lamps.example.com","uid":"U"},"spec":{"conversion":{"strategy":"None"},"group":"example.com","names":{"kind":"Lamp","listKind":"LampList","plural":"lamps","singular":"lamp"},"scope":"Namespaced","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"bulbs":{"default":1,"minimum":0,"type":"integer"},"color":{"enum":["red","green"],"type":"string"}},"type":"object"},"status":{"properties":{"lit":{"type":"integer"}},"type":"object"}},"type":"object"}},"selectableFields":[{"jsonPath":".spec.color"}],"served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.bulbs","statusReplicasPath":".status.lit"},"status":{}}},{"deprecated":true,"name":"v1beta1","schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"color":{"type":"string"}},"type":"object"}},"type":"object"}},"served":true,"storage":false},{"name":"v1alpha1","schema":{"openAPIV3Schema":{"type":"object"}},"served":false,"storage":false}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}
            201 (warning: unrecognized format "odd") {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","generation":1,"name":"lamps.example.com","resourceVersion":"1","uid":"U"},"spec":{"conversion":{"strategy":"None"},"group":"example.com","names":{"kind":"Lamp","listKind":"LampList","plural":"lamps","singular":"lamp"},"scope":"Cluster","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"x":{"format":"odd","type":"string"}},"type":"object"}},"served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}
            200 {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","deletionTimestamp":"T","finalizers":["customresourcecleanup.apiextensions.k8s.io"],"generation":1,"name":"lamps.example.com","resourceVersion":"2","uid":"U"},"spec":{"conversion":{"strategy":"None"},"group":"example.com","names":{"kind":"Lamp","listKind":"LampList","plural":"lamps","singular":"lamp"},"scope":"Cluster","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"x":{"format":"odd","type":"string"}},"type":"object"}},"served":true,"storage":true}]},"status":{"acceptedNames":{"kind":"","plural":""},"conditions":[{"lastTransitionTime":"T","message":"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon","reason":"InstanceDeletionPending","status":"True","type":"Terminating"}],"storedVersions":["v1"]}}
            501 NotImplemented conversion webhooks is not served by this version of Ferroplane"#]],
    )
    .await;
}

#[tokio::test]
async fn yaml_and_protobuf_bodies() {
    let server = crate::server::Server::start().await;
    let target = "/api/v1/namespaces/default/configmaps";
    let yaml = server
        .ask(&format!("POST {target} yaml"), "metadata:\n  name: yaml\ndata:\n  k: v\n")
        .await;
    let message = &fp_builtin::tables::core::CONFIG_MAP;
    let object = fp_object::json::decode(br#"{"metadata":{"name":"p"},"data":{"k":"v"}}"#)
        .expect("JSON")
        .object;
    let raw = fp_object::proto::encode(message, &object).expect("a ConfigMap");
    let body = fp_object::proto::wrap("v1", "ConfigMap", &raw);
    let proto = crate::server::show(server.send(&format!("POST {target} proto"), body).await);
    let broken = crate::server::show(
        server.send(&format!("POST {target} proto"), &b"k8s\0\x0a\xff"[..]).await,
    );
    expect![[r#"
        201 {"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"yaml","namespace":"default","resourceVersion":"1","uid":"U"}}
        201 {"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"p","namespace":"default","resourceVersion":"2","uid":"U"}}
        400 BadRequest the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873000aff)"#]].assert_eq(&[yaml, proto, broken].join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_patch_is_lost_among_many() {
    let server = std::sync::Arc::new(crate::server::Server::start().await);
    let target = "/api/v1/namespaces/default/configmaps";
    server.ask(&format!("POST {target}"), r#"{"metadata":{"name":"a"}}"#).await;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let server = server.clone();
            tokio::spawn(async move {
                for n in 0..5 {
                    let body = format!(r#"{{"data":{{"k{writer}-{n}":"v"}}}}"#);
                    let answer = server.ask(&format!("PATCH {target}/a merge"), &body).await;
                    assert!(answer.starts_with("200"), "{answer}");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    let answer = server.ask(&format!("GET {target}/a"), "").await;
    assert_eq!(answer.matches(r#":"v""#).count(), 20, "{answer}");
}
