//! The paths of a resource with their operations.

use fp_base::Gv;
use fp_object::{Object, Value};
use serde_json::json;

use super::{META_V1, Source, component_name, path_of, reference};
use crate::{ResourceInfo, VersionInfo};

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

const LIST_OPTIONS: [(&str, &str); 11] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE_OPTIONS: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const DELETE_OPTIONS: [(&str, &str); 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
/// Resources of the core group whose delete answers with the object, not with a Status.
const RETURNS_DELETED: [&str; 2] = ["resourcequotas", "serviceaccounts"];
const JSON_AND_YAML: [&str; 2] = ["application/json", "application/yaml"];
pub(super) const WITH_PROTOBUF: [&str; 3] =
    ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const WATCHED: [&str; 5] = [
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

/// Adds the paths of one version of a resource.
pub fn insert(gv: &Gv, info: &ResourceInfo, version: &VersionInfo, into: &mut Object) {
    let builtin = matches!(version.openapi, Source::Builtin(_));
    let (kind, list) = match version.openapi {
        Source::Builtin(name) => (name.to_owned(), format!("{name}List")),
        _ => (
            component_name(&gv.group, &version.name, &info.kind),
            component_name(&gv.group, &version.name, &info.list_kind),
        ),
    };
    let writer = Writer { gv, info, builtin, kind, list };
    let root = format!("/{}", path_of(gv));
    let resource = &info.gr.resource;
    let collection = if info.namespaced() {
        format!("{root}/namespaces/{{namespace}}/{resource}")
    } else {
        format!("{root}/{resource}")
    };
    if info.namespaced() && writer.has("list") {
        let all = format!("{root}/{resource}");
        add(&all, vec![("get", writer.list("ForAllNamespaces"))], into);
    }
    writer.collection(&collection, into);
    writer.item(&collection, into);
    writer.subresources(&collection, version, into);
    if builtin && writer.has("watch") {
        writer.watches(&root, &collection, into);
    }
}

/// Adds the resource list of a built-in group-version.
pub fn insert_root(gv: &Gv, into: &mut Object) {
    let path = path_of(gv);
    let name = format!("{META_V1}.APIResourceList");
    let get = json!({
        "operationId": format!("get{}APIResources", camel(gv)),
        "responses": {"200": content(&WITH_PROTOBUF, &name), "401": {}},
        "tags": [tag(gv)],
    });
    into.insert(format!("/{path}/"), json!({"get": get}));
}

struct Writer<'a> {
    gv: &'a Gv,
    info: &'a ResourceInfo,
    builtin: bool,
    kind: String,
    list: String,
}

/// One operation, its parameters apart: those that all of a path share stand beside them.
struct Operation {
    body: Value,
    params: Vec<Value>,
}

/// What distinguishes an operation.
struct Shape<'a> {
    verb: &'a str,
    action: &'a str,
    /// What follows the verb and the group-version in the id.
    name: String,
    options: &'a [(&'a str, &'a str)],
    request: Option<(Value, bool)>,
    answers: &'a [&'a str],
    answer: &'a str,
    media: &'a [&'a str],
}

impl Writer<'_> {
    fn has(&self, verb: &str) -> bool {
        self.info.verbs.contains(&verb)
    }

    /// Whether a delete answers with the object (`ReturnDeletedObject`).
    fn returns_deleted(&self) -> bool {
        self.builtin
            && self.gv.group.is_empty()
            && RETURNS_DELETED.contains(&&*self.info.gr.resource)
    }

    /// `NamespacedLamp`, or with a list between.
    fn noun(&self) -> String {
        let namespaced = if self.info.namespaced() { "Namespaced" } else { "" };
        format!("{namespaced}{}", self.info.kind)
    }

    fn media(&self) -> &'static [&'static str] {
        if self.builtin { &WITH_PROTOBUF } else { &JSON_AND_YAML }
    }

    fn body(&self, component: &str, required: bool) -> Option<(Value, bool)> {
        let media: &[&str] = if self.builtin { &["*/*"] } else { &JSON_AND_YAML };
        Some((content(media, component), required))
    }

    fn operation(&self, shape: Shape<'_>) -> Operation {
        let gvk = json!({"group": self.gv.group.to_string(), "kind": &*self.info.kind, "version": self.gv.version.to_string()});
        let mut responses = Object::new();
        for code in shape.answers {
            responses.insert((*code).to_owned(), content(shape.media, shape.answer));
        }
        responses.insert("401".into(), json!({}));
        let mut body = json!({
            "operationId": format!("{}{}{}", shape.verb, camel(self.gv), shape.name),
            "responses": responses,
            "tags": [tag(self.gv)],
            "x-kubernetes-action": shape.action,
            "x-kubernetes-group-version-kind": gvk,
        });
        if let Some((mut request, required)) = shape.request {
            if required {
                request["required"] = true.into();
            }
            body["requestBody"] = request;
        }
        let params = shape.options.iter().map(|(name, kind)| query(name, kind)).collect();
        Operation { body, params }
    }

    fn list(&self, suffix: &str) -> Operation {
        let namespaced = if suffix.is_empty() { self.noun() } else { self.info.kind.to_string() };
        self.operation(Shape {
            verb: "list",
            action: "list",
            name: format!("{namespaced}{suffix}"),
            options: &LIST_OPTIONS,
            request: None,
            answers: &["200"],
            answer: &self.list,
            media: if self.builtin { &WATCHED } else { &JSON_AND_YAML },
        })
    }

    fn collection(&self, path: &str, into: &mut Object) {
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(("get", self.list("")));
        }
        if self.has("create") {
            operations.push(("post", self.create(self.noun(), &self.kind)));
        }
        if self.has("deletecollection") {
            // A CRD's takes no body and, by an accident of Kubernetes, the options of a watch.
            let mut options: Vec<_> = LIST_OPTIONS.to_vec();
            if self.builtin {
                options.retain(|(name, _)| !matches!(*name, "allowWatchBookmarks" | "watch"));
                options.extend(DELETE_OPTIONS);
            }
            let request = if self.builtin {
                self.body(&format!("{META_V1}.DeleteOptions"), false)
            } else {
                None
            };
            operations.push((
                "delete",
                self.operation(Shape {
                    verb: "delete",
                    action: "deletecollection",
                    name: format!("Collection{}", self.noun()),
                    options: &options,
                    request,
                    answers: &["200"],
                    answer: STATUS,
                    media: self.media(),
                }),
            ));
        }
        add(path, operations, into);
    }

    fn create(&self, name: String, component: &str) -> Operation {
        self.operation(Shape {
            verb: "create",
            action: "post",
            name,
            options: &WRITE_OPTIONS,
            request: self.body(component, true),
            answers: &["200", "201", "202"],
            answer: component,
            media: self.media(),
        })
    }

    fn item(&self, collection: &str, into: &mut Object) {
        let mut operations =
            self.part("", &self.kind, ["get", "update", "patch"].map(|v| self.has(v)));
        if self.has("delete") {
            operations.push((
                "delete",
                self.operation(Shape {
                    verb: "delete",
                    action: "delete",
                    name: self.noun(),
                    options: &DELETE_OPTIONS,
                    request: self.body(&format!("{META_V1}.DeleteOptions"), false),
                    answers: &["200", "202"],
                    answer: if self.returns_deleted() { &self.kind } else { STATUS },
                    media: self.media(),
                }),
            ));
        }
        add(&format!("{collection}/{{name}}"), operations, into);
    }

    /// Get, put and patch of an object or a subresource of it, those that are allowed.
    fn part(
        &self,
        suffix: &str,
        component: &str,
        allowed: [bool; 3],
    ) -> Vec<(&'static str, Operation)> {
        let name = || format!("{}{suffix}", self.noun());
        let mut out = Vec::new();
        if allowed[0] {
            out.push((
                "get",
                self.operation(Shape {
                    verb: "read",
                    action: "get",
                    name: name(),
                    options: if self.builtin { &[] } else { &[("resourceVersion", "string")] },
                    request: None,
                    answers: &["200"],
                    answer: component,
                    media: self.media(),
                }),
            ));
        }
        if allowed[1] {
            out.push((
                "put",
                self.operation(Shape {
                    verb: "replace",
                    action: "put",
                    name: name(),
                    options: &WRITE_OPTIONS,
                    request: self.body(component, true),
                    answers: &["200", "201"],
                    answer: component,
                    media: self.media(),
                }),
            ));
        }
        if allowed[2] {
            let mut media = PATCHES.to_vec();
            let mut options = WRITE_OPTIONS.to_vec();
            options.push(("force", "boolean"));
            if self.builtin {
                media.push("application/strategic-merge-patch+json");
            }
            out.push((
                "patch",
                self.operation(Shape {
                    verb: "patch",
                    action: "patch",
                    name: name(),
                    options: &options,
                    request: Some((content(&media, &format!("{META_V1}.Patch")), true)),
                    answers: if self.builtin { &["200", "201"] } else { &["200"] },
                    answer: component,
                    media: self.media(),
                }),
            ));
        }
        out
    }

    fn subresources(&self, collection: &str, version: &VersionInfo, into: &mut Object) {
        let item = format!("{collection}/{{name}}");
        if version.status {
            add(&format!("{item}/status"), self.part("Status", &self.kind, [true; 3]), into);
        }
        if version.scale.is_some() {
            add(&format!("{item}/scale"), self.part("Scale", SCALE, [true; 3]), into);
        }
        for sub in self.info.strategy.map_or(&[][..], |s| s.subresources) {
            let operations = match *sub {
                "token" => {
                    let name = format!("{}Token", self.noun());
                    let mut create = self.create(name, "io.k8s.api.authentication.v1.TokenRequest");
                    create.body["x-kubernetes-group-version-kind"] = json!({"group": "authentication.k8s.io", "kind": "TokenRequest", "version": "v1"});
                    vec![("post", create)]
                }
                "finalize" => self.part("Finalize", &self.kind, [false, true, false]),
                "approval" => self.part("Approval", &self.kind, [true; 3]),
                _ => continue,
            };
            add(&format!("{item}/{sub}"), operations, into);
        }
    }

    /// The deprecated paths of watches, which only built-ins have.
    fn watches(&self, root: &str, collection: &str, into: &mut Object) {
        let event = format!("{META_V1}.WatchEvent");
        let watch = |action: &str, name: String| {
            self.operation(Shape {
                verb: "watch",
                action,
                name,
                options: &LIST_OPTIONS,
                request: None,
                answers: &["200"],
                answer: &event,
                media: &WATCHED,
            })
        };
        let below = |path: &str| path.replacen(root, &format!("{root}/watch"), 1);
        if self.info.namespaced() {
            let name = format!("{}ListForAllNamespaces", self.info.kind);
            let path = format!("{root}/watch/{}", self.info.gr.resource);
            add(&path, vec![("get", watch("watchlist", name))], into);
        }
        let list = vec![("get", watch("watchlist", format!("{}List", self.noun())))];
        add(&below(collection), list, into);
        let one = vec![("get", watch("watch", self.noun()))];
        add(&below(&format!("{collection}/{{name}}")), one, into);
    }
}

/// Adds a path: parameters that all its operations share are written once.
fn add(path: &str, mut operations: Vec<(&'static str, Operation)>, into: &mut Object) {
    if operations.is_empty() {
        return;
    }
    let mut common = vec![query("pretty", "string")];
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            common.push(json!({
                "in": "path", "name": name, "required": true, "schema": {"type": "string", "uniqueItems": true},
            }));
        }
    }
    let shared: Vec<Value> = operations[0]
        .1
        .params
        .iter()
        .filter(|p| operations.iter().all(|(_, o)| o.params.contains(p)))
        .cloned()
        .collect();
    let mut item = Object::new();
    for (verb, operation) in &mut operations {
        let mut own: Vec<Value> =
            operation.params.drain(..).filter(|p| !shared.contains(p)).collect();
        let mut body = operation.body.take();
        if !own.is_empty() {
            sort(&mut own);
            body["parameters"] = own.into();
        }
        item.insert((*verb).to_owned(), body);
    }
    common.extend(shared);
    sort(&mut common);
    item.insert("parameters".into(), common.into());
    into.insert(path.to_owned(), Value::Object(item));
}

fn sort(params: &mut [Value]) {
    params.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
}

fn query(name: &str, kind: &str) -> Value {
    json!({"in": "query", "name": name, "schema": {"type": kind, "uniqueItems": true}})
}

pub(super) fn content(media: &[&str], component: &str) -> Value {
    let schema = json!({"schema": reference(component)});
    let map: Object = media.iter().map(|m| ((*m).to_owned(), schema.clone())).collect();
    json!({"content": map})
}

/// A group without `.k8s.io`, in camel case: `RbacAuthorization`.
pub(super) fn group_words(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    group.split(|c: char| !c.is_ascii_alphanumeric()).map(title).collect()
}

fn camel(gv: &Gv) -> String {
    format!("{}{}", group_words(&gv.group), title(&gv.version))
}

fn tag(gv: &Gv) -> String {
    format!("{}_{}", lower_first(&group_words(&gv.group)), gv.version)
}

pub(super) fn lower_first(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.map(String::from).unwrap_or_default() + chars.as_str()
}

fn title(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.map(String::from).unwrap_or_default() + chars.as_str()
}
