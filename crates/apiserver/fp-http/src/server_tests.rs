//! Requests through the whole server, without sockets, over a real store in memory.

use std::net::SocketAddr;

use async_trait::async_trait;
use expect_test::{Expect, expect};
use fp_auth::authenticate::{Chain, HashedTokens, hash_token};
use fp_auth::union::{AllowGroups, AllowPaths, Union};
use fp_auth::{Authorizer, Rules, Verdict};
use fp_base::{ClusterPath, Gr};
use fp_informer::Informer;
use fp_keyspace::Layout;
use fp_net::ClientCert;
use fp_registry::StoreBackend;
use fp_schema::{Origin, ResourceInfo, Segment};
use fp_store::MemoryStore;
use fp_verbs::{Directory, Located, Resolved, Resolver};
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};

use super::*;

/// `root`, `root:acme` (cluster `acme1`) and the inactive `root:asleep` (cluster `asleep1`).
struct Paths {
    gone: watch::Receiver<bool>,
}

impl Directory for Paths {
    fn locate(&self, path: &ClusterPath) -> Located {
        let cluster = |name: &str| Located::Cluster {
            name: ClusterName::parse(name).unwrap(),
            inactive: name == "asleep1",
        };
        match path.as_str() {
            "root:acme" => cluster("acme1"),
            "root:asleep" => cluster("asleep1"),
            "root:away" => Located::Unavailable,
            "root:mounted" => Located::Mount("https://127.0.0.1:1".into()),
            name if path.as_name().is_some() => cluster(name),
            _ => Located::Unknown,
        }
    }

    fn ends(&self, _: &ClusterScope, _: &Gr) -> Option<watch::Receiver<bool>> {
        Some(self.gone.clone())
    }
}

/// `alice` may do all in `acme1`; `bob` may read workspaces in `root`; `kim` may impersonate
/// anyone in `acme1`; `carol` may nothing.
struct Grants;

#[async_trait]
impl Authorizer for Grants {
    async fn authorize(&self, asked: &Attributes<'_>) -> Verdict {
        let cluster = asked.cluster.and_then(|c| c.one()).map_or("", |c| c.as_str());
        let allowed = match asked.user.name.as_str() {
            "alice" => cluster == "acme1" || cluster == "asleep1",
            "bob" => cluster == "root" && asked.verb == "get" && asked.resource == "workspaces",
            "kim" => cluster == "acme1" && asked.verb == "impersonate",
            "robot" => cluster == "acme1",
            _ => false,
        };
        if allowed {
            Verdict::allow("access granted")
        } else {
            Verdict::no_opinion("access denied")
        }
    }

    async fn rules(&self, _user: &User, _cluster: &ClusterScope, _namespace: &str) -> Rules {
        Rules::default()
    }
}

struct Served(Vec<Arc<ResourceInfo>>);

impl Resolver for Served {
    fn resolve(
        &self,
        _scope: &ClusterScope,
        group: &str,
        resource: &str,
        _identity: Option<&str>,
        _partial: bool,
    ) -> Resolved {
        let fits = |i: &&Arc<ResourceInfo>| &*i.gr.group == group && &*i.gr.resource == resource;
        self.0.iter().find(fits).map_or(Resolved::Unknown, |i| Resolved::Found(i.clone()))
    }

    fn list(&self, _scope: &ClusterScope) -> Vec<Arc<ResourceInfo>> {
        self.0.clone()
    }

    fn fingerprint(&self, _scope: &ClusterScope) -> u64 {
        1
    }
}

fn lamps() -> Arc<ResourceInfo> {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.home.example.dev", "uid": "u1"},
        "spec": {
            "group": "home.example.dev", "scope": "Cluster",
            "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp",
                "listKind": "LampList", "shortNames": ["lp"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                "additionalPrinterColumns":
                    [{"name": "Watts", "type": "integer", "jsonPath": ".spec.watts"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object",
                        "properties": {"watts": {"type": "integer"}, "n": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}},
            }],
        },
    });
    let Value::Object(crd) = crd else { unreachable!("an object was written just above") };
    let origin = Origin::Crd { name: "lamps.home.example.dev".into(), uid: "u1".into() };
    let none = |_: &str| None;
    Arc::new(fp_schema::from_crd(&crd, Segment::CustomResources, origin, &none).unwrap())
}

struct World {
    server: Arc<Server>,
    gone: watch::Sender<bool>,
}

async fn world() -> World {
    let infos = vec![lamps()];
    let store = MemoryStore::new();
    let layout = Layout::new("/registry", infos.clone());
    let backend = StoreBackend::new(store, Arc::new(Informer::new()), layout);
    let pump = backend.load().await.unwrap();
    tokio::spawn(pump.run());
    let (gone, goes) = watch::channel(false);
    let health = ["/healthz", "/livez", "/readyz"].map(str::to_owned).into();
    let authorizer = Union(vec![
        Arc::new(AllowGroups(vec!["system:masters".into()])),
        Arc::new(AllowPaths(health)),
        Arc::new(Grants),
    ]);
    let user = |name: &str, groups: &[&str]| {
        (hash_token(&format!("{name}-token")), User::new(name, groups))
    };
    let tokens = HashedTokens(vec![
        user("admin", &["system:masters", "system:authenticated"]),
        user("alice", &["system:authenticated"]),
        user("bob", &["system:authenticated"]),
        user("carol", &["system:authenticated"]),
        user("kim", &["system:authenticated", "system:kcp:admin"]),
    ]);
    let server = Server::new(Config {
        surface: Surface {
            directory: Arc::new(Paths { gone: goes }),
            resolver: Arc::new(Served(infos)),
            authorizer: Arc::new(authorizer),
            admission: fp_admission::Chain(vec![]),
            backend: Arc::new(backend),
        },
        authenticator: Arc::new(Chain { authenticators: vec![Arc::new(tokens)], anonymous: true }),
        health: Health::new(),
        version: json!({"major": "1", "minor": "36"}),
        openid: Some(OpenId { configuration: json!({"issuer": "i"}), keys: json!({"keys": []}) }),
        started: "2026-01-02T03:04:05Z".into(),
        external_address: "127.0.0.1:6443".into(),
    });
    World { server, gone }
}

fn peer(cert: ClientCert) -> Arc<Peer> {
    Arc::new(Peer::new(SocketAddr::from(([127, 0, 0, 1], 1)), cert))
}

/// One request: `METHOD target`, then a line per header, then an empty line and the body.
/// `as: alice` stands for her token.
fn parse(text: &str) -> Request<Full<Bytes>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request = match name {
            "as" => request.header("authorization", format!("Bearer {value}-token")),
            name => request.header(name, value),
        };
    }
    request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap()
}

struct Got {
    code: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{:?}", self.body))
    }

    /// The code, and of a Status the reason and message.
    fn brief(&self) -> String {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(v) if v["kind"] == "Status" && v["status"] == "Failure" => {
                assert_eq!(v["code"], self.code);
                let text = |key: &str| v[key].as_str().unwrap_or("").to_owned();
                format!("{} [{}] {}", self.code, text("reason"), text("message"))
            }
            Ok(v) if v["kind"].is_string() => {
                format!("{} {}", self.code, v["kind"].as_str().unwrap())
            }
            _ => format!("{} {}", self.code, String::from_utf8_lossy(&self.body)),
        }
    }
}

impl World {
    async fn send(&self, text: &str) -> Got {
        self.send_as(text, peer(ClientCert::None)).await
    }

    async fn send_as(&self, text: &str, peer: Arc<Peer>) -> Got {
        let response = self.server.clone().handle(parse(text), peer).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Got { code: head.status.as_u16(), headers: head.headers, body }
    }

    async fn check(&self, text: &str, want: Expect) {
        want.assert_eq(&self.send(text).await.brief());
    }

    async fn create(&self, name: &str, watts: u32) -> Got {
        let body = json!({"apiVersion": "home.example.dev/v1", "kind": "Lamp",
            "metadata": {"name": name}, "spec": {"watts": watts}});
        let head = format!("POST {LAMPS}\nas: alice\ncontent-type: application/json");
        self.send(&format!("{head}\n\n{body}")).await
    }
}

const LAMPS: &str = "/clusters/root:acme/apis/home.example.dev/v1/lamps";

#[tokio::test]
async fn only_health_answers_strangers() {
    let world = world().await;
    let open =
        ["/healthz", "/livez", "/readyz", "/clusters/root/healthz", "/clusters/root:nosuch/livez"];
    for path in open {
        let got = world.send(&format!("GET {path}")).await;
        assert_eq!((got.code, &*got.body), (200, &b"ok"[..]), "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/apis/home.example.dev",
        "/apis/home.example.dev/v1",
        "/version",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/version",
        "/readyz/ping",
        "/healthz/ping",
        "/services/apiexport/root/x/clusters/*/api",
        "/api/v1/secrets",
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/debug/pprof",
        "/logs",
        "/metricsx",
        "/clusters",
        "/clusters/root",
        "/clusters/root/api",
        "/clusters/root/version",
        "/clusters/*/api/v1/secrets",
        "/clusters/root:acme/openapi/v3",
        LAMPS,
        "/clusters/root:acme/apis/home.example.dev/v1/lamps/x/status",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let got = world.send(&format!("{method} {path}")).await;
            assert!(matches!(got.code, 403 | 405 | 415), "{method} {path}: {}", got.brief());
            assert!(!got.headers.contains_key("location"), "{path}");
        }
        let got = world.send(&format!("GET {path}\nauthorization: Bearer wrong")).await;
        assert_eq!(got.brief(), "401 [Unauthorized] Unauthorized", "{path}");
    }
}

#[tokio::test]
async fn a_target_that_is_not_canonical_is_refused_never_redirected() {
    let world = world().await;
    for target in [
        "/clusters/root%2Fapi/v1/configmaps",
        "/clusters/root/%2e%2e/api",
        "/clusters/root/../api",
        "/clusters/root//api",
        "//api",
        "/clusters/root/./api",
        "/clusters/root/a%5Cb",
        "/clusters/root/a%00",
        "/clusters/root/a%252f",
        "/clusters/root/a%zz",
    ] {
        let got = world.send(&format!("GET {target}\nas: admin")).await;
        assert_eq!(
            (got.code, got.json()["reason"].as_str()),
            (400, Some("BadRequest")),
            "{target}"
        );
        assert!(!got.headers.contains_key("location"), "{target}");
    }
    // An encoded colon is the same path.
    world.create("desk", 40).await;
    let plain = world.send(&format!("GET {LAMPS}/desk\nas: alice")).await;
    let encoded = LAMPS.replace("root:acme", "root%3Aacme");
    let encoded = world.send(&format!("GET {encoded}/desk\nas: alice")).await;
    assert_eq!((plain.code, &plain.body), (200, &encoded.body));
}

#[tokio::test]
async fn who_may_not_know_a_workspace_gets_the_same_bytes() {
    let world = world().await;
    let below = [
        "/apis/home.example.dev/v1/lamps",
        "/apis/home.example.dev/v1/lamps/x",
        "/api",
        "/version",
        "/",
        "/readyz/ping",
    ];
    for path in below {
        for (user, method) in [("carol", "GET"), ("kim", "GET"), ("carol", "DELETE")] {
            let ask = async |cluster: &str| {
                let got =
                    world.send(&format!("{method} /clusters/{cluster}{path}\nas: {user}")).await;
                (got.code, got.body)
            };
            // A cluster that is there, and may not be entered.
            let there = ask("root").await;
            assert_eq!(there.0, 403);
            for absent in [
                "root:nosuch",
                "nosuch",
                "ROOT",
                "root:",
                ":x",
                "root:acme:deeper",
                "a:b",
                "root:away",
                "root:mounted",
                "x",
            ] {
                assert_eq!(ask(absent).await, there, "{user} {method} {absent}{path}");
            }
        }
    }
}

#[tokio::test]
async fn who_may_see_the_parent_gets_the_truth() {
    let world = world().await;
    for user in ["admin", "bob"] {
        let check = async |cluster: &str, want: &str| {
            let got =
                world.send(&format!("GET /clusters/{cluster}/api/v1/configmaps\nas: {user}")).await;
            assert_eq!(got.brief(), want);
        };
        check("root:nosuch", "404 [NotFound] workspaces.tenancy.kcp.io \"root:nosuch\" not found")
            .await;
        check("root:a:b", "404 [NotFound] workspaces.tenancy.kcp.io \"root:a:b\" not found").await;
        check("root:away", "503 [ServiceUnavailable] Not available.").await;
        check("ROOT", "400 [BadRequest] invalid cluster: \"ROOT\" does not match the regex").await;
        check("root:", "400 [BadRequest] invalid cluster: \"root:\" does not match the regex")
            .await;
    }
    // bob may not see what is below root:acme.
    world
        .check(
            "GET /clusters/root:acme:deeper/api/v1/configmaps\nas: bob",
            expect![[r#"403 [Forbidden] configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" at the cluster scope: access denied"#]],
        )
        .await;
    world
        .check(
            "GET /clusters/root/clusters/root/api\nas: admin",
            expect!["404 [NotFound] the server could not find the requested resource"],
        )
        .await;
}

#[tokio::test]
async fn an_inactive_cluster_says_so_to_its_users() {
    let world = world().await;
    let refused = expect![[
        r#"403 [Forbidden] logicalclusters.core.kcp.io "asleep1" is forbidden: logical cluster is marked inactive"#
    ]];
    world
        .check("GET /clusters/root:asleep/apis/home.example.dev/v1/lamps\nas: alice", refused)
        .await;
    world
        .check(
            "GET /clusters/root:asleep/apis/home.example.dev/v1/lamps\nas: carol",
            expect![[r#"403 [Forbidden] lamps.home.example.dev is forbidden: User "carol" cannot list resource "lamps" in API group "home.example.dev" at the cluster scope: access denied"#]],
        )
        .await;
    let got = world.send("GET /clusters/root:asleep/version\nas: alice").await;
    assert_eq!(got.code, 403);
}

#[tokio::test]
async fn identity_headers_of_a_client_mean_nothing() {
    let world = world().await;
    for header in [
        "X-Remote-User: admin\nX-Remote-Group: system:masters",
        "x-remote-group: system:masters\nx-remote-uid: 1",
        "X_Remote_User: admin\nX-Remote-Extra-Scopes: *",
        "Connection: X-Remote-User, close\nX-Remote-User: admin",
    ] {
        let got = world.send(&format!("GET {LAMPS}\nas: carol\n{header}")).await;
        assert!(got.body.windows(5).any(|w| w == b"carol"), "{header}");
        assert_eq!(got.code, 403, "{header}");
        let got = world.send(&format!("GET {LAMPS}\n{header}")).await;
        assert!(got.brief().contains("system:anonymous"), "{header}");
    }
}

#[tokio::test]
async fn impersonation() {
    let world = world().await;
    let check = async |user: &str, headers: &str, want: Expect| {
        want.assert_eq(&world.send(&format!("GET {LAMPS}\nas: {user}\n{headers}")).await.brief());
    };
    let not_allowed =
        || expect!["403 [Forbidden] forbidden: impersonation is not allowed for the requestor"];
    check("admin", "impersonate-user: alice", expect!["200 LampList"]).await;
    check("kim", "impersonate-user: robot", expect!["200 LampList"]).await;
    check("kim", "impersonate-user: carol", expect![[r#"403 [Forbidden] lamps.home.example.dev is forbidden: User "carol" cannot list resource "lamps" in API group "home.example.dev" at the cluster scope: access denied"#]]).await;
    check("carol", "impersonate-user: alice", expect![[r#"403 [Forbidden] users "alice" is forbidden: User "carol" cannot impersonate resource "users" in API group "" at the cluster scope: access denied"#]]).await;
    check("carol", "impersonate-user: system:serviceaccount:ns1:robot", expect![[r#"403 [Forbidden] serviceaccounts "robot" is forbidden: User "carol" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns1": access denied"#]]).await;
    check(
        "kim",
        "impersonate-group: x",
        expect!["400 [BadRequest] requested groups, uid or extra without impersonating a user"],
    )
    .await;
    for headers in [
        "impersonate-user: x\nimpersonate-group: system:masters",
        "impersonate-user: x\nImpersonate-Group: system:kcp:logical-cluster-admin",
        "impersonate-user: x\nimpersonate-group: ok\nimpersonate-group: system:nodes",
        "impersonate-user: system:apiserver",
        "impersonate-user: apis.kcp.io:binding:x",
        "impersonate-user: x\nimpersonate-extra-authorization.kcp.io%2fwarrant: {}",
        "impersonate-user: x\nimpersonate-extra-AUTHORIZATION.KCP.IO%2Fwarrant: {}",
        "impersonate-user: x\nimpersonate-extra-authorization.%4BCP.io%2fwarrant: {}",
    ] {
        check("kim", headers, not_allowed()).await;
    }
    // A member may keep its own group, and service accounts' groups are no secret.
    for headers in [
        "impersonate-user: robot\nimpersonate-group: system:kcp:admin",
        "impersonate-user: robot\nimpersonate-group: system:serviceaccounts:ns1",
        "impersonate-user: robot\nimpersonate-group: system:authenticated",
        "impersonate-user: robot\nimpersonate-uid: 7\nimpersonate-extra-team: a",
    ] {
        check("kim", headers, expect!["200 LampList"]).await;
    }
}

#[tokio::test]
async fn certificates_beside_tokens() {
    let world = world().await;
    let refused = || peer(ClientCert::Refused("unknown CA".into()));
    let got = world.send_as(&format!("GET {LAMPS}\nas: alice"), refused()).await;
    assert_eq!(got.code, 200, "a stranger's certificate beside a good token");
    let got = world.send_as("GET /healthz", refused()).await;
    assert_eq!(got.code, 401, "nobody is anonymous who presents a bad certificate");
}

#[tokio::test]
async fn bodies_are_limited() {
    let world = world().await;
    let send = async |size_hint: bool, len: usize| {
        let head = parse(&format!("POST {LAMPS}\nas: alice\ncontent-type: application/json"));
        let (head, _) = head.into_parts();
        let response = if size_hint {
            let body = Full::new(Bytes::from(vec![b' '; len]));
            world
                .server
                .clone()
                .handle(Request::from_parts(head, body), peer(ClientCert::None))
                .await
        } else {
            // Chunked: no length is told before.
            let chunk = Bytes::from(vec![b' '; 64 << 10]);
            let frames = (0..len / chunk.len())
                .map(move |_| Ok::<_, std::io::Error>(http_body::Frame::data(chunk.clone())));
            let body = StreamBody::new(futures_util::stream::iter(frames));
            world
                .server
                .clone()
                .handle(Request::from_parts(head, body), peer(ClientCert::None))
                .await
        };
        response.status().as_u16()
    };
    assert_eq!(send(true, 3 << 20).await, 400, "white space is no JSON");
    assert_eq!(send(true, (3 << 20) + 1).await, 413);
    assert_eq!(send(false, 2 << 20).await, 400);
    assert_eq!(send(false, 4 << 20).await, 413);
    assert_eq!(send(false, 64 << 30).await, 413, "an endless body");
}

#[tokio::test]
async fn a_stalled_body_is_a_timeout() {
    let mut world = world().await;
    let server = Arc::get_mut(&mut world.server).expect("nobody else holds it yet");
    server.deadline = Duration::from_millis(20);
    let (head, _) =
        parse(&format!("POST {LAMPS}\nas: alice\ncontent-type: application/json")).into_parts();
    let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>();
    let request = Request::from_parts(head, StreamBody::new(never));
    let response = world.server.clone().handle(request, peer(ClientCert::None)).await;
    assert_eq!(response.status().as_u16(), 504);
}

#[tokio::test]
async fn media_types() {
    let world = world().await;
    world.create("desk", 40).await;
    let check = async |request: &str, want: Expect| world.check(request, want).await;
    check(&format!("GET {LAMPS}\nas: alice\naccept: image/png"), expect!["406 [NotAcceptable] only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"]).await;
    check(&format!("GET {LAMPS}\nas: carol\naccept: image/png"), expect![[r#"403 [Forbidden] lamps.home.example.dev is forbidden: User "carol" cannot list resource "lamps" in API group "home.example.dev" at the cluster scope: access denied"#]]).await;
    check(
        &format!(
            "GET {LAMPS}\nas: alice\naccept: application/vnd.kubernetes.protobuf, application/json"
        ),
        expect!["200 LampList"],
    )
    .await;
    check(&format!("GET {LAMPS}/desk\nas: alice\naccept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), expect!["200 PartialObjectMetadata"]).await;
    check(&format!("GET {LAMPS}\nas: alice\naccept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"), expect!["200 PartialObjectMetadataList"]).await;
    check(&format!("POST {LAMPS}\nas: alice\ncontent-type: text/xml\n\n<a/>"), expect!["415 [UnsupportedMediaType] the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"]).await;
    let got = world
        .send(&format!(
            "POST {LAMPS}\nas: alice\ncontent-type: application/vnd.kubernetes.protobuf\n\nk8s"
        ))
        .await;
    assert_eq!(got.code, 415, "protobuf of a custom resource: {}", got.brief());
    let got = world.send(&format!("PATCH {LAMPS}/desk\nas: alice\ncontent-type: application/strategic-merge-patch+json\n\n{{}}")).await;
    assert_eq!(got.code, 415, "strategic merge patch of a custom resource: {}", got.brief());
    let got = world.send(&format!("POST {LAMPS}\nas: alice\ncontent-type: application/json\ncontent-encoding: gzip\n\n\x1f")).await;
    assert_eq!(got.code, 400, "compressed bodies are not inflated");
    let got = world
        .send(&format!("GET {LAMPS}\nas: alice\naccept: application/vnd.kubernetes.protobuf"))
        .await;
    assert_eq!(got.code, 406);
    assert_eq!(&got.body[..4], b"k8s\0", "who takes only protobuf gets errors in it");
}

#[tokio::test]
async fn lists_join_stored_bytes() {
    let world = world().await;
    world.create("desk", 40).await;
    world.create("wall", 60).await;
    let got = world.send(&format!("GET {LAMPS}\nas: alice")).await;
    let list = got.json();
    assert!(got.body.starts_with(b"{\"kind\":\"LampList\",\"apiVersion\":\"home.example.dev/v1\",\"metadata\":{\"resourceVersion\":\""));
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["desk", "wall"]);
    assert_eq!(list["items"][0]["kind"], "Lamp");
    let one = world.send(&format!("GET {LAMPS}/wall\nas: alice")).await.json();
    assert_eq!(one, list["items"][1]);
    assert_eq!(got.headers["cache-control"], "no-cache, private");
    assert_eq!(got.headers["content-type"], "application/json");
}

#[tokio::test]
async fn large_lists_are_compressed_when_that_is_asked_for() {
    let world = world().await;
    for n in 0..600 {
        assert_eq!(world.create(&format!("lamp-{n}"), n).await.code, 201);
    }
    let plain = world.send(&format!("GET {LAMPS}\nas: alice")).await;
    let packed = world.send(&format!("GET {LAMPS}\nas: alice\naccept-encoding: gzip")).await;
    assert!(!plain.headers.contains_key("content-encoding"));
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let mut inflated = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed.body), &mut inflated)
        .unwrap();
    assert_eq!(inflated, plain.body);
    let small = world.send(&format!("GET {LAMPS}/lamp-1\nas: alice\naccept-encoding: gzip")).await;
    assert!(!small.headers.contains_key("content-encoding"));
}

/// Reads frames of a watch until `n` events have come.
async fn events(body: &mut Body, n: usize) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    while out.len() < n {
        let Some(frame) = body.frame().await else { break };
        let data = frame.unwrap().into_data().unwrap();
        out.extend(
            data.split(|b| *b == b'\n')
                .filter(|l| !l.is_empty())
                .map(|l| serde_json::from_slice(l).unwrap()),
        );
    }
    out
}

fn line(event: &Value) -> String {
    let object = &event["object"];
    let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    format!(
        "{} {} {}",
        text(&event["type"]),
        text(&object["kind"]),
        text(&object["metadata"]["name"])
    )
}

#[tokio::test]
async fn a_watch_streams_until_the_server_leaves() {
    let world = world().await;
    world.create("desk", 40).await;
    let target = format!("GET {LAMPS}?watch=1&allowWatchBookmarks=true\nas: alice");
    let response = world.server.clone().handle(parse(&target), peer(ClientCert::None)).await;
    assert_eq!(response.status().as_u16(), 200);
    let mut body = response.into_body();
    let mut got = events(&mut body, 2).await;
    world.create("wall", 60).await;
    got.extend(events(&mut body, 1).await);
    let before = world.server.metrics().render();
    assert!(before.contains("apiserver_longrunning_requests 1\n"));
    world.server.end_watches();
    got.extend(events(&mut body, usize::MAX).await);
    let lines: Vec<String> = got.iter().map(line).collect();
    assert_eq!(lines, ["ADDED Lamp desk", "BOOKMARK Lamp -", "ADDED Lamp wall", "BOOKMARK Lamp -"]);
    let metadata = |n: usize| &got[n]["object"]["metadata"];
    assert_eq!(metadata(1)["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(metadata(3)["resourceVersion"], metadata(2)["resourceVersion"]);
    drop(body);
    assert!(world.server.metrics().render().contains("apiserver_longrunning_requests 0\n"));
    let ready = world.send("GET /readyz").await;
    assert!(ready.code == 500 && ready.body.starts_with(b"[+]ping ok\n[-]shutdown failed"));
    assert_eq!(world.send("GET /livez").await.code, 200);
}

#[tokio::test]
async fn a_watch_ends_with_its_cluster() {
    let world = world().await;
    let target = format!("GET {LAMPS}?watch=1\nas: alice");
    let response = world.server.clone().handle(parse(&target), peer(ClientCert::None)).await;
    world.gone.send_replace(true);
    assert_eq!(events(&mut response.into_body(), usize::MAX).await.len(), 0);
}

#[tokio::test]
async fn metadata_and_tables_in_a_watch() {
    let world = world().await;
    world.create("desk", 40).await;
    let open = async |shape: &str| {
        let accept = format!("application/json;as={shape};g=meta.k8s.io;v=v1");
        let target = format!("GET {LAMPS}?watch=1\nas: alice\naccept: {accept}");
        let response = world.server.clone().handle(parse(&target), peer(ClientCert::None)).await;
        assert_eq!(response.status().as_u16(), 200);
        response.into_body()
    };
    let got = events(&mut open("PartialObjectMetadata").await, 1).await;
    assert_eq!(line(&got[0]), "ADDED PartialObjectMetadata desk");
    let mut body = open("Table").await;
    let got = events(&mut body, 1).await;
    assert_eq!(got[0]["object"]["kind"], "Table");
    assert_eq!(got[0]["object"]["rows"][0]["cells"], json!(["desk", 40]));
    assert_eq!(got[0]["object"]["columnDefinitions"][1]["name"], "Watts");
    world.create("wall", 60).await;
    let got = events(&mut body, 1).await;
    assert_eq!(got[0]["object"]["columnDefinitions"], Value::Null);
}

#[tokio::test]
async fn tables() {
    let world = world().await;
    world.create("desk", 40).await;
    let ask = async |query: &str| {
        let target = format!(
            "GET {LAMPS}{query}\nas: alice\naccept: application/json;as=Table;g=meta.k8s.io;v=v1"
        );
        world.send(&target).await.json()
    };
    let table = ask("").await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "desk");
    assert_eq!(ask("?includeObject=Object").await["rows"][0]["object"]["spec"]["watts"], 40);
    assert_eq!(ask("?includeObject=None").await["rows"][0]["object"], Value::Null);
    assert_eq!(ask("/desk").await["rows"].as_array().unwrap().len(), 1);
    assert_eq!(ask("?includeObject=Half").await["code"], 400);
}

#[tokio::test]
async fn discovery_documents() {
    let world = world().await;
    let get =
        async |path: &str| world.send(&format!("GET /clusters/root:acme{path}\nas: alice")).await;
    expect![[r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"home.example.dev","versions":[{"groupVersion":"home.example.dev/v1","version":"v1"}],"preferredVersion":{"groupVersion":"home.example.dev/v1","version":"v1"}}]}"#]]
        .assert_eq(&String::from_utf8_lossy(&get("/apis").await.body));
    expect![[r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"home.example.dev/v1","resources":[{"name":"lamps","singularName":"lamp","namespaced":false,"kind":"Lamp","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["lp"],"categories":["all"],"storageVersionHash":"EzHRtMe4H2k="},{"name":"lamps/status","singularName":"","namespaced":false,"kind":"Lamp","verbs":["get","patch","update"]},{"name":"lamps/scale","singularName":"","namespaced":false,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}]}"#]]
        .assert_eq(&String::from_utf8_lossy(&get("/apis/home.example.dev/v1").await.body));
    assert_eq!(get("/apis/home.example.dev").await.json()["kind"], "APIGroup");
    assert_eq!(get("/apis/nosuch").await.code, 404);
    assert_eq!(get("/apis/home.example.dev/v9").await.code, 404);
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let ask = format!("GET /clusters/root:acme/apis\nas: alice\naccept: {v2},application/json");
    let got = world.send(&ask).await;
    assert_eq!(got.headers["content-type"], v2);
    assert_eq!(
        got.json()["items"][0]["versions"][0]["resources"][0]["subresources"][1]["subresource"],
        "scale"
    );
    let etag = got.headers["etag"].to_str().unwrap();
    let again = world.send(&format!("{ask}\nif-none-match: {etag}")).await;
    assert_eq!((again.code, again.body.len()), (304, 0));
}

/// What kubectl prints of a refused discovery is the body, when that is text; else `unknown`.
#[tokio::test]
async fn refused_discovery_speaks_to_kubectl() {
    let world = world().await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for path in ["/api", "/apis"] {
        let head = format!("GET /clusters/root:acme{path}\nas: carol\naccept: {aggregated}");
        let got = world.send(&head).await;
        assert_eq!(got.headers["content-type"], "text/plain; charset=utf-8");
        let why =
            format!("403 forbidden: User \"carol\" cannot get path \"{path}\": access denied");
        assert_eq!(got.brief(), why);
        let plain = world.send(&format!("GET /clusters/root:acme{path}\nas: carol")).await;
        assert_eq!(plain.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn a_refusal_brings_its_warnings() {
    let world = world().await;
    let head = format!("POST {LAMPS}\nas: alice\ncontent-type: application/json");
    let body = json!({"apiVersion": "home.example.dev/v1", "kind": "Lamp",
        "metadata": {"name": "B"}, "spec": {"watts": 40}, "shade": "round"});
    let got = world.send(&format!("{head}\n\n{body}")).await;
    assert_eq!(
        (got.code, &got.headers["warning"]),
        (422, &"299 - \"unknown field \\\"shade\\\"\"".parse().unwrap())
    );
}

#[tokio::test]
async fn openapi_documents() {
    let world = world().await;
    let get =
        async |path: &str| world.send(&format!("GET /clusters/root:acme{path}\nas: alice")).await;
    let index = get("/openapi/v3").await.json();
    let documents: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
    assert_eq!(documents, ["api", "apis", "apis/home.example.dev/v1", "version"]);
    let url = index["paths"]["apis/home.example.dev/v1"]["serverRelativeURL"].as_str().unwrap();
    let got = get(url).await;
    assert_eq!(got.headers["cache-control"], "private, immutable, max-age=31536000");
    let lamp = &got.json()["components"]["schemas"]["dev.example.home.v1.Lamp"];
    assert_eq!(lamp["properties"]["spec"]["properties"]["watts"]["type"], "integer");
    // A URL with an old hash gets the document as it is now, and no leave to keep it.
    let old = get("/openapi/v3/apis/home.example.dev/v1?hash=00").await;
    assert_eq!((old.code, &old.body), (200, &got.body));
    assert_eq!(old.headers["cache-control"], "no-cache, private");
    let etag = got.headers["etag"].to_str().unwrap();
    let request = format!("GET /clusters/root:acme{url}\nas: alice\nif-none-match: {etag}");
    assert_eq!(world.send(&request).await.code, 304);
    assert_eq!(get("/openapi/v3/apis/nosuch/v1").await.code, 404);
}

#[tokio::test]
async fn people_get_indented_json() {
    let world = world().await;
    world.create("desk", 40).await;
    let get = async |query: &str, header: &str| {
        let got = world.send(&format!("GET {LAMPS}/desk{query}\nas: alice\n{header}")).await;
        got.body.starts_with(b"{\n  \"")
    };
    assert!(get("", "user-agent: curl/8").await);
    assert!(get("?pretty=true", "user-agent: kubectl").await);
    assert!(!get("?pretty=false", "user-agent: curl/8").await);
    assert!(!get("", "user-agent: kubectl").await);
}

#[tokio::test]
async fn other_paths() {
    let world = world().await;
    let check = async |request: &str, want: Expect| world.check(request, want).await;
    check("GET /version\nas: admin", expect![[r#"200 {"major":"1","minor":"36"}"#]]).await;
    check(
        "GET /clusters/root:acme/version\nas: alice",
        expect![[r#"200 {"major":"1","minor":"36"}"#]],
    )
    .await;
    check(
        "GET /clusters/root/metrics\nas: admin",
        expect!["501 [NotImplemented] shard-level endpoint not available at workspace scope"],
    )
    .await;
    check("GET /services/apiexport/a/b/clusters/*/api\nas: alice", expect!["501 [NotImplemented] The virtual workspace API under /services/ is not served by this version of Ferroplane"]).await;
    check("GET /openapi/v2\nas: admin", expect!["501 [NotImplemented] OpenAPI v2 is not served by this version of Ferroplane; kubectl asks for it when the server has no such kind"]).await;
    check(
        "GET /nosuch\nas: admin",
        expect!["404 [NotFound] the server could not find the requested resource"],
    )
    .await;
    check(
        "POST /version\nas: admin",
        expect![
            "405 [MethodNotAllowed] the server does not allow this method on the requested resource"
        ],
    )
    .await;
    check("GET /readyz/ping\nas: admin", expect!["200 ok"]).await;
    check(
        "GET /readyz/nosuch\nas: admin",
        expect!["404 [NotFound] the server could not find the requested resource"],
    )
    .await;
    let metrics = world.send("GET /metrics\nas: admin").await;
    assert!(metrics.code == 200 && metrics.body.starts_with(b"# HELP apiserver_request_total"));
    let index = world.send("GET /clusters/root:acme/\nas: alice").await.json();
    let paths: Vec<&str> =
        index["paths"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let has = |path| paths.contains(&path);
    assert!(["/api", "/apis", "/readyz/ping", "/version"].into_iter().all(has));
    assert!(!has("/apis/home.example.dev"), "definitions are not in the index");
    let got = world.send("GET /healthz").await;
    assert!(got.headers.contains_key("audit-id"));
    let got = world.send("GET /healthz\naudit-id: mine").await;
    assert_eq!(got.headers["audit-id"], "mine");
}

#[tokio::test]
async fn documents_and_status_pages() {
    let world = world().await;
    let check = async |request: &str, want: Expect| world.check(request, want).await;
    // As kubectl asks: it reads no Status there.
    let v2 = world
        .send("GET /openapi/v2\nas: admin\naccept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
        .await;
    assert_eq!(v2.headers["content-type"], "text/plain; charset=utf-8");
    assert!(v2.code == 501 && v2.body.starts_with(b"OpenAPI v2"));
    for (path, want) in [
        ("/.well-known/openid-configuration", r#""application/json" {"issuer":"i"}"#),
        ("/openid/v1/jwks", r#""application/jwk-set+json" {"keys":[]}"#),
    ] {
        let got = world.send(&format!("GET /clusters/root:acme{path}\nas: alice")).await;
        assert_eq!(got.headers["cache-control"], "public, max-age=3600");
        let media = &got.headers["content-type"];
        assert_eq!(format!("{media:?} {}", got.json()), want);
    }
    check("GET /statusz\nas: admin\naccept: application/json", expect!["406 [NotAcceptable] only text/plain, or JSON as Statusz of config.k8s.io/v1beta1, is served here"]).await;
    let statusz = world.send("GET /statusz\nas: admin").await;
    assert!(statusz.code == 200 && statusz.body.starts_with(b"\nferroplane statusz\n"));
    world.send("GET /livez").await;
    let slis = world.send("GET /metrics/slis\nas: admin").await;
    assert!(
        String::from_utf8_lossy(&slis.body)
            .contains("kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1\n")
    );
}

/// Panics at the first question.
struct Broken;

#[async_trait]
impl Authenticator for Broken {
    async fn authenticate(
        &self,
        _credentials: &fp_auth::Credentials<'_>,
    ) -> Result<Option<User>, fp_auth::Invalid> {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let world = world().await;
    let surface = world.server.surface.clone();
    let server = Server::new(Config {
        surface,
        authenticator: Arc::new(Broken),
        health: Health::new(),
        version: json!({}),
        openid: Some(OpenId { configuration: json!({"issuer": "i"}), keys: json!({"keys": []}) }),
        started: "2026-01-02T03:04:05Z".into(),
        external_address: String::new(),
    });
    let response = server.clone().handle(parse("GET /healthz"), peer(ClientCert::None)).await;
    assert_eq!(response.status().as_u16(), 500);
    assert!(server.metrics().render().contains("apiserver_panics_total 1\n"));
}
