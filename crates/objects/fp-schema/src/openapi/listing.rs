//! The documents of what is no resource: the lists of groups and versions, and the server's version
//! (apiserver `endpoints/discovery/{root,group,legacy}.go`, `server/routes/version.go`).

use fp_object::{Object, Value};
use serde_json::json;

use super::paths::{WITH_PROTOBUF, content, group_words, lower_first};
use super::{META_V1, add_components};

const JSON: [&str; 1] = ["application/json"];
const VERSION: &str = "io.k8s.apimachinery.pkg.version.Info";

/// What a document without resources is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// `/api/`
    CoreVersions,
    /// `/apis/`
    Groups,
    /// `/apis/<group>/`
    Group(String),
    /// `/version/`
    Version,
}

impl Listing {
    /// Its path below `/openapi/v3/`, and with slashes around it the one that it documents.
    pub fn path(&self) -> String {
        match self {
            Self::CoreVersions => "api".to_owned(),
            Self::Groups => "apis".to_owned(),
            Self::Group(group) => format!("apis/{group}"),
            Self::Version => "version".to_owned(),
        }
    }

    /// `component` gives the schema of a built-in component by its name.
    pub fn document(&self, component: &dyn Fn(&str) -> Option<Value>) -> Value {
        let listed = |kind: &str| content(&WITH_PROTOBUF, &format!("{META_V1}.{kind}"));
        let (id, tag, answer) = match self {
            Self::CoreVersions => ("CoreAPIVersions".into(), "core".into(), listed("APIVersions")),
            Self::Groups => ("APIVersions".into(), "apis".into(), listed("APIGroupList")),
            Self::Group(group) => {
                let words = group_words(group);
                (format!("{words}APIGroup"), lower_first(&words), listed("APIGroup"))
            }
            Self::Version => ("CodeVersion".into(), "version".into(), content(&JSON, VERSION)),
        };
        let mut paths = Object::new();
        let responses = json!({"200": answer, "401": {}});
        let get = json!({
            "operationId": format!("get{id}"), "responses": responses, "tags": [tag as String],
        });
        paths.insert(format!("/{}/", self.path()), json!({"get": get}));
        let mut schemas = Object::new();
        add_components(&paths, &mut schemas, component);
        json!({
            "openapi": "3.0.0", "info": super::builtin_info(), "paths": paths,
            "components": {"schemas": schemas},
        })
    }
}
