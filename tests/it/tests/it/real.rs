//! Real CRDs and objects of public projects get the answers that a Go kcp gave them.
//!
//! The inputs and the recorded answers lie beside the repository, in `../shared/real`; without them
//! the test says so and passes. A CRD with CEL rules (but kcp's own) or a conversion webhook must be
//! refused with an answer that names the missing part; all others are replayed, and their objects.
//! Where the record applies (server-side), this replay creates.

mod normal;
mod patch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use it::{Answer, Server};
use serde_json::{Value, json};

const YAML: &str = "application/yaml";
const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[test]
fn real_input_is_answered_as_go_kcp_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real");
    if !folder.is_dir() {
        println!("skipped: there is no folder ../shared/real");
        return;
    }
    let text = std::fs::read(folder.join("answers.json")).expect("read the answers");
    let entries: Vec<Value> = serde_json::from_slice(&text).expect("parse the answers");
    let server = Server::start();
    server.workspace("real");
    let mut replay = Replay::new(&server, folder, &entries);
    for entry in &entries {
        replay.one(entry);
    }
    let Replay { n_established: crds, n_same: same, refused, differences, .. } = replay;
    let n_refused = refused.len();
    println!("{crds} CRDs served, {n_refused} refused as not built, {same} answers as recorded");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(crds >= 20 && same > 300, "too little was replayed");
}

struct Replay<'a> {
    server: &'a Server,
    token: String,
    folder: PathBuf,
    /// Samples as JSON, for variants.
    samples: HashMap<&'a str, &'a Value>,
    /// What a CRD file is stored as once it is established.
    established: HashMap<&'a str, &'a Value>,
    /// The answers of the `create` entries, for `apply` entries of the same file.
    creates: HashMap<&'a str, &'a Value>,
    /// CRD files that are refused, since they need what is not built.
    refused: HashSet<&'a str>,
    /// `<group>/<version>/<resource>` that established CRDs serve.
    served: HashSet<String>,
    n_established: usize,
    n_same: usize,
    differences: Vec<String>,
}

/// The file that an entry is about.
fn file(entry: &Value) -> &str {
    let name = ["crd", "sample", "variant"].iter().find_map(|key| entry[*key].as_str());
    name.expect("an entry names a file")
}

/// Whether a CRD is refused for what is not built: unknown CEL rules, conversion webhooks.
fn names_missing_part(got: &Value) -> bool {
    let message = got["message"].as_str().unwrap_or("");
    match got["status"].as_u64() {
        Some(422) => message.contains("CEL rules are not served"),
        Some(501) => message.contains("conversion webhooks"),
        _ => false,
    }
}

/// `<group>/<version>/<resource>` of a custom resource's URL.
fn resource(path: &str) -> Option<String> {
    let path = path.split('?').next()?.strip_prefix("/apis/")?;
    let parts: Vec<&str> = path.split('/').collect();
    let at = if parts.get(2) == Some(&"namespaces") { 4 } else { 2 };
    Some(format!("{}/{}/{}", parts.first()?, parts.get(1)?, parts.get(at)?))
}

impl<'a> Replay<'a> {
    fn new(server: &'a Server, folder: PathBuf, entries: &'a [Value]) -> Self {
        let mut this = Self {
            server,
            token: server.token("kcp-admin"),
            folder,
            samples: HashMap::new(),
            established: HashMap::new(),
            creates: HashMap::new(),
            refused: HashSet::new(),
            served: HashSet::new(),
            n_established: 0,
            n_same: 0,
            differences: Vec::new(),
        };
        for entry in entries {
            let name = file(entry);
            match entry["do"].as_str() {
                Some("established") => {
                    this.established.insert(name, &entry["stored"]);
                }
                Some("create") if entry.get("variant").is_none() => {
                    this.creates.insert(name, entry);
                }
                _ => {}
            }
            if entry.get("json").is_some() {
                this.samples.insert(name, &entry["json"]);
            }
        }
        this
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn one(&mut self, entry: &'a Value) {
        let name = file(entry);
        let (method, path) =
            entry["request"].as_str().and_then(|r| r.split_once(' ')).expect("a request");
        let is_crd = entry.get("crd").is_some() && entry["do"] != "table";
        let served = || resource(path).is_some_and(|r| self.served.contains(&r));
        if self.refused.contains(name) || !is_crd && !served() {
            return;
        }
        let want = self.expected(entry);
        let got = self.run(entry, name, method, path);
        if is_crd && names_missing_part(&got) && self.asks_for_missing_part(entry, name) {
            if entry.get("patch").is_none() {
                self.refused.insert(name);
            }
            return;
        }
        let found = normal::differences(&want, &got);
        self.n_same += usize::from(found.is_empty());
        let title = format!("{name}: {}", short(entry));
        self.differences.extend(found.into_iter().map(|d| format!("{title}: {d}")));
    }

    fn asks_for_missing_part(&self, entry: &Value, name: &str) -> bool {
        let text = match entry.get("patch") {
            Some(patch) => patch.to_string(),
            None => self.text(name),
        };
        ["x-kubernetes-validations", "Webhook"].iter().any(|part| text.contains(part))
    }

    /// What must be answered: what an `apply` made is what a create makes, and what it was refused
    /// for is what the file's create was.
    fn expected(&self, entry: &'a Value) -> Value {
        let name = file(entry);
        let mut want = entry.clone();
        if entry["do"] == "apply" && entry["status"] != 201 {
            want = self.creates[name].clone();
        }
        match want["like"].as_str() {
            Some("create") => want["stored"] = self.creates[name]["stored"].clone(),
            Some("established") => want["stored"] = normal::as_written(self.established[name]),
            _ => {}
        }
        want
    }

    fn run(&mut self, entry: &Value, name: &str, method: &str, path: &str) -> Value {
        match entry["do"].as_str().expect("what to do") {
            "established" => self.await_crd(entry, path),
            "delete" => self.delete(path),
            "table" => {
                let answer = self.get(path, TABLE);
                let mut got = normal::answer(&answer);
                if answer.code == 200 {
                    got["table"] = normal::table(&answer.json());
                }
                got
            }
            "get" => stored(&self.get(path, JSON)),
            "create" | "apply" => self.create(entry, name, path),
            "merge" => {
                stored(&self.send(method, path, MERGE_PATCH, entry["body"].to_string().as_bytes()))
            }
            _ => {
                let answer =
                    self.send(method, path, JSON_PATCH, entry["patch"].to_string().as_bytes());
                if entry.get("crd").is_some() { crd_stored(&answer) } else { stored(&answer) }
            }
        }
    }

    fn create(&mut self, entry: &Value, name: &str, path: &str) -> Value {
        let (object, query) = path.split_once('?').expect("creates have a query");
        // An apply names the object; a create does not.
        let collection = match entry["do"] == "apply" {
            true => object.rsplit_once('/').expect("a name").0,
            false => object,
        };
        let path = format!("{collection}?{query}");
        let answer = match entry.get("variant") {
            Some(_) => {
                let body = patch::apply(self.samples[name], &entry["patch"]);
                self.send("POST", &path, JSON, body.to_string().as_bytes())
            }
            None => self.send("POST", &path, YAML, self.text(name).as_bytes()),
        };
        if entry.get("crd").is_some() {
            return crd_stored(&answer);
        }
        if answer.code != 201 || query.contains("dryRun") {
            return stored(&answer);
        }
        // What is stored is read back.
        let made = answer.json();
        let name = made["metadata"]["name"].as_str().expect("a name");
        let mut got = normal::answer(&answer);
        got["stored"] = normal::object(self.get(&format!("{collection}/{name}"), JSON).json());
        got
    }

    fn await_crd(&mut self, entry: &Value, path: &str) -> Value {
        let answer = self.server.until("a CRD is settled", || {
            let answer = self.get(path, JSON);
            let crd = answer.json();
            let is = |kind: &str, status: &str| {
                let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
                conditions.into_iter().any(|c| c["type"] == kind && c["status"] == status)
            };
            (is("Established", "True") || is("NamesAccepted", "False")).then_some(answer)
        });
        for url in entry["serves"].as_array().expect("what it serves") {
            let url = url.as_str().expect("a URL");
            self.served.extend(resource(url));
            self.server.until(url, || (self.get(url, JSON).code == 200).then_some(()));
        }
        self.n_established += 1;
        let mut got = normal::answer(&answer);
        got["stored"] = normal::crd(answer.json(), normal::Depth::Properties);
        got
    }

    fn delete(&self, path: &str) -> Value {
        let found = self.get(path, JSON);
        if found.code == 200 && found.json()["metadata"]["finalizers"].is_array() {
            let body = json!({"metadata": {"finalizers": null}}).to_string();
            self.send("PATCH", path, MERGE_PATCH, body.as_bytes());
        }
        let answer = self.send("DELETE", path, JSON, b"");
        self.server.until("it is gone", || (self.get(path, JSON).code != 200).then_some(()));
        normal::answer(&answer)
    }

    fn get(&self, path: &str, accept: &str) -> Answer {
        self.request("GET", path, &[("Accept", accept)], b"")
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
        self.request(method, path, &[("Accept", JSON), ("Content-Type", kind)], body)
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let path = format!("/clusters/root:real{path}");
        self.server.request(method, &path, Some(&self.token), headers, body).expect("an answer")
    }
}

/// What an entry does, for a reader.
fn short(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or("");
    format!("{} {} {}", text("do"), text("what"), entry.get("patch").unwrap_or(&Value::Null))
}

fn stored(answer: &Answer) -> Value {
    let mut got = normal::answer(answer);
    if answer.code < 300 {
        got["stored"] = normal::object(answer.json());
    }
    got
}

/// The answer to a write of a CRD; its status depends on how far the controllers are.
fn crd_stored(answer: &Answer) -> Value {
    let mut got = normal::answer(answer);
    if answer.code < 300 {
        let mut crd = normal::crd(answer.json(), normal::Depth::Whole);
        crd.as_object_mut().expect("an object").remove("status");
        got["stored"] = crd;
    }
    got
}
