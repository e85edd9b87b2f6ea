//! get and list.

use expect_test::expect;
use fp_verbs::request::Response;

use crate::server::{Server, show};
use crate::{check, check_on};

const THREE: &str = r#"
    POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a","labels":{"x":"1"}}}
    POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"b","labels":{"x":"2"}}}
    POST /clusters/other/api/v1/namespaces/default/configmaps {"metadata":{"name":"c"}}
"#;

#[tokio::test]
async fn lists_select() {
    let script = format!(
        "{THREE}
        GET /api/v1/namespaces/default/configmaps
        GET /clusters/*/api/v1/configmaps
        GET /api/v1/configmaps?labelSelector=x%3D1
        GET /api/v1/configmaps?fieldSelector=metadata.name%3Db
        GET /api/v1/configmaps?fieldSelector=metadata.namespace%3Delse
        GET /api/v1/configmaps?fieldSelector=data.k%3Db
        GET /api/v1/configmaps?labelSelector=x%3D%3D%3D
        GET /apis/example.com/v1/lamps?fieldSelector=spec.other%3Dred
        GET /api/v1/namespaces/default/configmaps?resourceVersion=2&resourceVersionMatch=Exact
        GET /api/v1/namespaces/default/configmaps?resourceVersion=999999
        "
    );
    check(&script, expect![[r#"
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"1"},"name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"2"},"name":"b","namespace":"default","resourceVersion":"2","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"other"},"creationTimestamp":"T","name":"c","namespace":"default","resourceVersion":"3","uid":"U"}}
        200 [default/a@1 default/b@2] rv=3
        200 [default/c@3 default/a@1 default/b@2] rv=3
        200 [default/a@1] rv=3
        200 [default/b@2] rv=3
        200 [] rv=3
        400 BadRequest "data.k" is not a known field selector: only "metadata.name", "metadata.namespace"
        400 BadRequest unable to parse requirement: found '=', expected: identifier
        400 BadRequest field label not supported: spec.other
        200 [default/a@1 default/b@2] rv=2
        504 Timeout Timeout: Too large resource version: 999999, current: 3"#]]).await;
}

#[tokio::test]
async fn pages() {
    let server = Server::start().await;
    check_on(&server, THREE, expect![[r#"
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"1"},"name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"2"},"name":"b","namespace":"default","resourceVersion":"2","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"other"},"creationTimestamp":"T","name":"c","namespace":"default","resourceVersion":"3","uid":"U"}}"#]]).await;
    let first = server.send("GET /api/v1/namespaces/default/configmaps?limit=1", "").await;
    let Ok(Response::List { meta, .. }) = &first.result else { panic!("no list") };
    let token = meta.continue_token.clone().expect("there is more");
    let rest = format!("GET /api/v1/namespaces/default/configmaps?limit=1&continue={token}");
    let other = format!(
        "GET /clusters/other/api/v1/namespaces/default/configmaps?limit=1&continue={token}"
    );
    let all = format!("GET /api/v1/configmaps?continue={token}&resourceVersion=1");
    let mut lines = vec![show(first), server.ask(&rest, "").await];
    server.ask("DELETE /api/v1/namespaces/default/configmaps/b", "").await;
    server.ask("GET /api/v1/configmaps", "").await;
    // The page is of the list's revision, whatever came since.
    lines.extend([
        server.ask(&rest, "").await,
        server.ask(&other, "").await,
        server.ask(&all, "").await,
    ]);
    server.store.compact(server.store.head().await.expect("a head")).await.expect("compact");
    let expired = server.send(&rest, "").await;
    let Err(status) = &expired.result else { panic!("not expired: {}", show(expired)) };
    let fresh = status.continue_token.clone().expect("a fresh token");
    lines.push(format!("{} {}", status.code, status.reason.as_str()));
    let again = format!("GET /api/v1/namespaces/default/configmaps?limit=1&continue={fresh}");
    lines.push(server.ask(&again, "").await);
    expect![[r#"
        200 [default/a@1] rv=3 more remaining=1
        200 [default/b@2] rv=3
        200 [default/b@2] rv=3
        400 BadRequest invalid continue token: continue key is not valid: root/default/a
        400 BadRequest specifying resource version is not allowed when using continue
        410 Expired
        200 [] rv=4"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn collections_are_deleted_by_selection() {
    let script = format!(
        "{THREE}
        DELETE /api/v1/namespaces/default/configmaps?labelSelector=x%3D1
        GET /clusters/*/api/v1/configmaps
        DELETE /api/v1/namespaces
        DELETE /clusters/*/api/v1/configmaps
        "
    );
    check(&script, expect![[r#"
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"1"},"name":"a","namespace":"default","resourceVersion":"1","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","labels":{"x":"2"},"name":"b","namespace":"default","resourceVersion":"2","uid":"U"}}
        201 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kcp.io/cluster":"other"},"creationTimestamp":"T","name":"c","namespace":"default","resourceVersion":"3","uid":"U"}}
        200 [default/a@1] rv=3
        200 [default/c@3 default/b@2] rv=4
        405 MethodNotAllowed deletecollection is not supported on resources of kind "namespaces"
        405 MethodNotAllowed deletecollection is not supported on resources of kind "configmaps" in the `*` logical cluster"#]]).await;
}

#[tokio::test]
async fn reviews() {
    check(
        r#"
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {"spec":{"resourceAttributes":{"verb":"create","resource":"configmaps"}}}
        POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":"bob","resourceAttributes":{"verb":"create","resource":"configmaps"}}}
        POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{}}
        POST /apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews {"spec":{"user":"bob","resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"default"}}}
        POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews {"spec":{"namespace":"default"}}
        POST /apis/authentication.k8s.io/v1/selfsubjectreviews {}
        POST /apis/authentication.k8s.io/v1/tokenreviews {"spec":{"token":"x"}}
        POST /api/v1/namespaces/default/serviceaccounts/x/token {}
        "#,
        expect![[r#"
            201 {"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","metadata":{},"spec":{"resourceAttributes":{"resource":"configmaps","verb":"create"}},"status":{"allowed":true,"reason":"access granted"}}
            201 {"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"spec":{"resourceAttributes":{"resource":"configmaps","verb":"create"},"user":"bob"},"status":{"allowed":false,"reason":"access denied"}}
            422 Invalid SubjectAccessReview.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]
            201 {"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","metadata":{"namespace":"default"},"spec":{"resourceAttributes":{"namespace":"default","resource":"configmaps","verb":"get"},"user":"bob"},"status":{"allowed":true,"reason":"access granted"}}
            201 {"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","metadata":{},"spec":{},"status":{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["get","list","watch"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]}]}}
            201 {"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{"creationTimestamp":"T"},"status":{"userInfo":{"groups":["system:masters"],"username":"alice"}}}
            501 NotImplemented Token review is not served by this version of Ferroplane
            501 NotImplemented serviceaccounts/token is not served by this version of Ferroplane"#]],
    )
    .await;
}

#[tokio::test]
async fn events_of_both_groups_are_one() {
    check(
        r#"
        POST /apis/events.k8s.io/v1/namespaces/default/events {"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"x.io/c","reportingInstance":"i","action":"Do","reason":"R","type":"Normal","regarding":{"kind":"ConfigMap","namespace":"default","name":"a"},"note":"hi"}
        GET /api/v1/namespaces/default/events/e
        GET /apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Da
        "#,
        expect![[r#"
            201 {"action":"Do","apiVersion":"events.k8s.io/v1","deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null,"deprecatedSource":{},"eventTime":"2026-01-01T00:00:00.000000Z","kind":"Event","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"e","namespace":"default","resourceVersion":"1","uid":"U"},"note":"hi","reason":"R","regarding":{"kind":"ConfigMap","name":"a","namespace":"default"},"reportingController":"x.io/c","reportingInstance":"i","type":"Normal"}
            200 {"action":"Do","apiVersion":"v1","eventTime":"2026-01-01T00:00:00.000000Z","firstTimestamp":null,"involvedObject":{"kind":"ConfigMap","name":"a","namespace":"default"},"kind":"Event","lastTimestamp":null,"message":"hi","metadata":{"annotations":{"kcp.io/cluster":"root"},"creationTimestamp":"T","name":"e","namespace":"default","resourceVersion":"1","uid":"U"},"reason":"R","reportingComponent":"x.io/c","reportingInstance":"i","source":{},"type":"Normal"}
            200 [default/e@1] rv=1"#]],
    )
    .await;
}
