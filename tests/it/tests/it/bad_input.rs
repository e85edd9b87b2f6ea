//! Hostile input gets its answer, at a bounded cost, and the server goes on.
//!
//! The project keeps a numbered list of hostile inputs; a test's name carries the row that it
//! covers. Rows 12 and 13 (CEL) and CBOR wait for the parts that they are about.

mod bodies;
mod crds;
mod depth;
mod framing;
mod h2;
mod identity;
mod names;
mod options;
mod patches;
mod routes;
mod urls;

use it::raw::Cost;
use it::{Answer, Server};
use serde_json::{Value, json};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

const CONFIG_MAPS: &str = "/clusters/root/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/clusters/root/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The objects of [`Rig::widgets`].
const WIDGETS: &str = "/clusters/root/apis/example.dev/v1/namespaces/default/widgets";

/// A bar of memory for one hostile request, in MiB.
const PEAK_MIB: u64 = 16;

/// A server, and whoever asks it.
struct Rig {
    server: Server,
    /// `kcp-admin`: may do everything in workspaces, nothing that only `system:masters` may.
    admin: String,
    /// `shard-admin`, of `system:masters`.
    master: String,
}

impl Rig {
    fn start() -> Self {
        Self::of(Server::start())
    }

    fn of(server: Server) -> Self {
        let (admin, master) = (server.token("kcp-admin"), server.token("shard-admin"));
        Self { server, admin, master }
    }

    /// A request as `kcp-admin`.
    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.server.send(method, target, Some(&self.admin), headers, body)
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], b"")
    }

    /// A body of some media type.
    fn put(&self, method: &str, target: &str, media: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask(method, target, &[("Content-Type", media)], body.as_ref())
    }

    fn post(&self, target: &str, object: &Value) -> Answer {
        self.put("POST", target, JSON, object.to_string())
    }

    /// The answer is `want` (`code [reason]`), and the server still answers.
    fn check(&self, what: &str, answer: &Answer, want: &str) {
        let text = answer.text();
        assert_eq!(answer.verdict(), want, "{what}: {}", text.get(..500).unwrap_or(&text));
        self.server.assert_alive(what);
    }

    /// The same, and what the request cost.
    fn checked_cost(&self, what: &str, want: &str, ask: impl FnOnce() -> Answer) -> Cost {
        let (answer, cost) = self.server.cost(ask);
        self.check(what, &answer, want);
        cost
    }

    /// Makes a CRD whose `spec` is of this schema, and waits until it is served.
    fn widgets(&self, spec: Value) {
        let root = json!({"type": "object", "properties": {"spec": spec}});
        let made = self.post(CRDS, &crd("widgets", &root));
        assert_eq!(made.code, 201, "{}", made.text());
        self.server.until("the CRD is served", || (self.get(WIDGETS).code == 200).then_some(()));
    }
}

/// A namespaced CRD of group `example.dev`.
fn crd(plural: &str, schema: &Value) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), plural[1..].trim_end_matches('s'));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.dev")},
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'),
                      "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Widget",
           "metadata": {"name": name}, "spec": spec})
}
