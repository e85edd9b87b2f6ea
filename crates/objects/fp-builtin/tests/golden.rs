//! The built-in objects that a Go kcp answered: each is what our table makes of it. They lie beside
//! the repository, in `../shared/golden`; without them the test says so and passes.

use std::path::Path;

use fp_object::{Object, Value, proto};
use fp_schema::ResourceInfo;

const CLUSTERS: [&str; 7] = [
    "root",
    "root_acme",
    "root_acme_team-a",
    "system_admin",
    "system_bound-crds",
    "system_shard",
    "system_system-crds",
];

fn objects(cluster: &str) -> Option<Vec<Object>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/golden");
    let text = std::fs::read_to_string(folder.join(format!("objects-{cluster}.json"))).ok()?;
    Some(serde_json::from_str(&text).expect("a list of objects"))
}

fn info_of(object: &Object) -> Option<&'static ResourceInfo> {
    let group = object["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group);
    let mut all = fp_builtin::resources().iter();
    all.find(|i| &*i.gr.group == group && object["kind"] == *i.kind).map(|i| &**i)
}

/// The data of Secrets is replaced by a word there, which is no base64.
fn is_redacted(object: &Object) -> bool {
    object["kind"] == "Secret"
}

#[test]
fn objects_of_go_kcp_are_what_the_table_makes_of_them() {
    let mut n_objects = 0;
    for cluster in CLUSTERS {
        let Some(objects) = objects(cluster) else {
            eprintln!("skipped: ../shared/golden is not here");
            return;
        };
        for object in objects.iter().filter(|o| !is_redacted(o)) {
            if let Some(info) = info_of(object) {
                check(info, object);
                n_objects += 1;
            }
        }
    }
    assert!(n_objects > 200, "{n_objects}");
}

fn check(info: &ResourceInfo, object: &Object) {
    let show = |o: &Object| serde_json::to_string_pretty(o).expect("JSON");
    let message = info.proto.expect("every built-in has a message");
    let strategy = info.strategy.expect("every built-in has a strategy");

    let mut unknown = Vec::new();
    let mut same = proto::conform(message, object, &mut unknown).expect("a Go object conforms");
    (strategy.default)(&mut same);
    assert_eq!((show(&same), unknown), (show(object), vec![]));

    let wire = proto::encode(message, object).expect("a Go object encodes");
    let mut decoded = proto::decode(message, &wire).expect("what was encoded decodes");
    for key in ["kind", "apiVersion"] {
        decoded.insert(key.into(), object[key].clone());
    }
    assert_eq!(show(&decoded), show(object));

    // kcp's own CRDs have CEL rules, which are unknown to the table alone.
    let is_cel =
        |e: &fp_object::field::FieldError| e.detail.starts_with("CEL rules are not served");
    let errors: Vec<String> = (strategy.validate)(object)
        .iter()
        .filter(|e| !is_cel(e))
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{}", object["metadata"]["name"]);

    if object["kind"] == "CustomResourceDefinition" {
        let stored = fp_builtin::crd::encode_stored(object).expect("a Go CRD can be stored");
        assert_eq!(
            show(&fp_builtin::crd::decode_stored(&stored).expect("stored bytes")),
            show(object)
        );
        let first: Value = serde_json::from_slice(&stored).expect("JSON");
        assert_eq!(first["apiVersion"], "apiextensions.k8s.io/v1beta1");
    }
}
