//! What is not to be had, and the words it is refused with.

use expect_test::expect;

use crate::check;
use crate::server::{Server, show};

#[tokio::test]
async fn urls() {
    check(
        r#"
        GET /api/v1/namespaces/default/nothings
        GET /apis/example.com/v1/away
        GET /apis/example.com/v1alpha1/namespaces/default/lamps
        GET /apis/example.com/v1/namespaces/default/lamps/a/other
        GET /api/v1/namespaces/default/namespaces
        GET /api/v1/configmaps/a
        GET /api/v1/namespaces/default/configmaps/a/status
        POST /api/v1/namespaces/default/configmaps/a {}
        PUT /api/v1/namespaces/default/configmaps {}
        POST /clusters/*/api/v1/namespaces/default/configmaps {}
        GET /clusters/*/api/v1/namespaces/default/configmaps/a
        GET /api/v1/namespaces/default/configmaps/a
        "#,
        expect![[r#"
            404 NotFound the server could not find the requested resource
            503 ServiceUnavailable away.example.com is currently unavailable
            404 NotFound the server could not find the requested resource
            404 NotFound lamps.example.com "a" not found
            404 NotFound the server could not find the requested resource
            404 NotFound the server could not find the requested resource
            404 NotFound the server could not find the requested resource
            405 MethodNotAllowed the server does not allow this method on the requested resource
            405 MethodNotAllowed the server does not allow this method on the requested resource
            405 MethodNotAllowed create is not supported on resources of kind "configmaps" in the `*` logical cluster
            405 MethodNotAllowed get is not supported on resources of kind "configmaps" in the `*` logical cluster
            404 NotFound configmaps "a" not found"#]],
    )
    .await;
}

#[tokio::test]
async fn bodies() {
    check(
        r#"
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a","namespace":"else"}}
        POST /api/v1/namespaces/default/configmaps {"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}
        POST /api/v1/namespaces/default/configmaps {"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}
        POST /api/v1/namespaces/default/configmaps {"metadata":
        POST /api/v1/namespaces/default/configmaps
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"UPPER"}}
        POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a","annotations":{"held":""}}}
        PUT /api/v1/namespaces/default/configmaps/a {"metadata":{"name":"b"}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","metadata":{"name":"a"}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lump","metadata":{"name":"a"}}
        POST /apis/example.com/v1/namespaces/default/lamps {"kind":"Lamp","metadata":{"name":"a"}}
        POST /apis/example.com/v1/namespaces/default/lamps {"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","labels":{"x":1}}}
        POST /apis/example.com/v1/namespaces/default/lamps proto {}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a strategic {}
        PATCH /apis/example.com/v1/namespaces/default/lamps/a?force=true&fieldManager=x apply {}
        POST /api/v1/namespaces/default/resourcequotas {"metadata":{"name":"a"}}
        DELETE /api/v1/namespaces/default/configmaps/a?propagationPolicy=Foreground
        "#,
        expect![[r#"
            400 BadRequest the namespace of the provided object does not match the namespace sent on the request
            400 BadRequest Secret in version "v1" cannot be handled as a ConfigMap: no kind "Secret" is registered for version "v1" here
            400 BadRequest the API version in the data (v2) does not match the expected API version (v1)
            400 BadRequest the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({"metadata":)
            400 BadRequest the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)
            422 Invalid ConfigMap "UPPER" is invalid: metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            403 Forbidden configmaps "a" is forbidden: it is held
            400 BadRequest the name of the object (b) does not match the name on the URL (a)
            400 BadRequest the object provided is unrecognized (must be of type Lamp): Object 'Kind' is missing in '{"apiVersion":"example.com/v1","metadata":{"name":"a"}}' ({"apiVersion":"example.com/v1" ...)
            422 Invalid Lump.example.com "a" is invalid: kind: Invalid value: "Lump": must be Lamp
            400 BadRequest the API version in the data () does not match the expected API version (example.com/v1)
            400 BadRequest Lamp in version "v1" cannot be handled as a Lamp: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string
            415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include: application/json, application/yaml
            415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
            501 NotImplemented server-side apply is not served by this version of Ferroplane
            501 NotImplemented Resource quota is not served by this version of Ferroplane
            501 NotImplemented garbage collection (propagationPolicy Foreground and Orphan) is not served by this version of Ferroplane"#]],
    )
    .await;
}

#[tokio::test]
async fn who_may_not() {
    let server = Server::start().await;
    let line = "POST /apis/example.com/v1/namespaces/default/lamps";
    let refused = show(server.send_as("readers", line, "{}").await);
    let read = show(
        server.send_as("readers", "GET /apis/example.com/v1/namespaces/default/lamps", "").await,
    );
    // Whether a resource exists is not told to who may not ask.
    let unknown = show(
        server.send_as("readers", "POST /apis/example.com/v1/namespaces/default/none", "{}").await,
    );
    expect![[r#"
        403 Forbidden lamps.example.com is forbidden: User "alice" cannot create resource "lamps" in API group "example.com" in the namespace "default": access denied
        200 [] rv=0
        403 Forbidden none.example.com is forbidden: User "alice" cannot create resource "none" in API group "example.com" in the namespace "default": access denied"#]].assert_eq(&[refused, read, unknown].join("\n"));
}
