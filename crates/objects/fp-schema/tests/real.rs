//! Replays what a Go kcp answered to real CRDs and objects, as far as schemas decide it. The answers
//! lie beside the repository, in `../shared/real`; without them the test says so and passes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use fp_object::meta::Meta;
use fp_object::{Object, Value, patch, yaml};
use fp_schema::structural::RuleFn;
use fp_schema::{Origin, ResourceInfo, Segment, crd};

fn folder() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/real");
    path.is_dir().then_some(path)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read(path).expect("a listed file is there");
    yaml::decode_value(&text).expect("the file is YAML").0
}

fn object(value: Value) -> Object {
    value.as_object().expect("the file holds an object").clone()
}

/// CEL is not under test: every rule holds.
fn any_rule(_: &str) -> Option<RuleFn> {
    Some(|_, _| true)
}

/// The CRD with what a create fills in, and the errors of its validation.
fn admit(mut crd: Object) -> (Object, Vec<String>) {
    let names = crd.map_mut(&["spec", "names"]);
    if let Some(kind) = names.text(&["kind"]).map(str::to_owned) {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten();
    let stored: Vec<Value> =
        versions.filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect();
    crd.map_mut(&["status"]).insert("storedVersions".into(), stored.into());
    let errors = crd::validate(&crd, &any_rule).iter().map(ToString::to_string).collect();
    (crd, errors)
}

/// The definition, by the URL that serves it.
fn definitions(root: &Path) -> HashMap<String, (ResourceInfo, usize)> {
    let mut out = HashMap::new();
    for project in std::fs::read_dir(root).expect("a folder").flatten() {
        let Ok(files) = std::fs::read_dir(project.path().join("crds")) else { continue };
        for file in files.flatten().filter(|f| !f.file_name().to_string_lossy().starts_with("bad-"))
        {
            let mut crd = object(read(&file.path()));
            crd["spec"]["conversion"] = Value::Null;
            let (crd, errors) = admit(crd);
            assert_eq!(errors, Vec::<String>::new(), "{:?}", file.file_name());
            let origin = Origin::System { name: "x".into() };
            let make =
                || fp_schema::from_crd(&crd, Segment::CustomResources, origin.clone(), &any_rule);
            let count = make().expect("a served CRD").versions.len();
            for index in 0..count {
                let info = make().expect("a served CRD");
                let version = &info.versions[index].name;
                let url = format!("{}/{version}/{}", info.gr.group, info.gr.resource);
                out.insert(url, (info, index));
            }
        }
    }
    out
}

/// `group/version/resource` of `POST /apis/group/version[/namespaces/x]/resource?...`.
fn target(request: &str) -> Option<String> {
    let path = request.strip_prefix("POST /apis/")?.split('?').next()?;
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [group, version, resource] | [group, version, "namespaces", _, resource] => {
            Some(format!("{group}/{version}/{resource}"))
        }
        _ => None,
    }
}

/// What ours answers to a body: the message of a 400, or the causes of a 422 by field and text.
fn answer(info: &ResourceInfo, version: usize, strict: bool, mut body: Object) -> Vec<String> {
    let schema = info.versions[version].schema.as_ref().expect("a CRD has a schema");
    let unknown = match schema.decode(&mut body, true, false) {
        Ok(unknown) => unknown,
        Err(error) => return vec![error],
    };
    if strict && !unknown.is_empty() {
        return unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    }
    schema.default(&mut body);
    if info.versions[version].status {
        body.remove("status");
    }
    let errors = schema.validate(&body, None);
    errors
        .iter()
        .map(ToString::to_string)
        .filter(|line| !line.contains("some validation rules"))
        .collect()
}

/// What Go kcp answered, in the same form; causes that are not the schema's own are left out.
fn wanted(entry: &Value) -> Option<Vec<String>> {
    let message = entry["message"].as_str().unwrap_or("");
    match entry["status"].as_u64()? {
        201 => Some(Vec::new()),
        400 => {
            let (_, why) = message.split_once("cannot be handled as a ")?;
            let (_, why) = why.split_once(": ")?;
            match why.strip_prefix("strict decoding error: ") {
                Some(list) => Some(list.split(", ").map(str::to_owned).collect()),
                None => Some(vec![why.to_owned()]),
            }
        }
        422 => {
            let causes = entry["causes"].as_array()?.iter();
            let shown = causes.map(|c| (c[0].as_str().unwrap_or(""), c[2].as_str().unwrap_or("")));
            let own = shown.filter(|(field, text)| {
                !field.starts_with("metadata")
                    && !field.starts_with('.')
                    && *field != "kind"
                    && is_schemas_own(text)
            });
            Some(own.map(|(field, text)| format!("{field}: {text}")).collect())
        }
        _ => None,
    }
}

/// Whether the text is not a CEL rule's.
fn is_schemas_own(text: &str) -> bool {
    const WORDS: [&str; 6] = [
        " in body ",
        " value must be of type ",
        " must validate ",
        " must not validate ",
        "must have at most",
        "may not be more than",
    ];
    ["Unsupported value", "Duplicate value"].iter().any(|w| text.starts_with(w))
        || text == "Required value"
        || WORDS.iter().any(|w| text.contains(w))
}

#[test]
fn answers_as_go_kcp() {
    let Some(root) = folder() else {
        eprintln!("skipped: ../shared/real is not here");
        return;
    };
    let answers =
        std::fs::read_to_string(root.join("answers.json")).expect("the answers are there");
    let answers: Vec<Value> = serde_json::from_str(&answers).expect("the answers are JSON");
    let definitions = definitions(&root);
    let (mut same, mut different) = (0, BTreeMap::new());
    for (n, entry) in answers.iter().enumerate().filter(|(_, e)| e["do"] == "create") {
        let Some(file) = entry["sample"].as_str().or(entry["variant"].as_str()) else { continue };
        let Some((info, version)) =
            target(entry["request"].as_str().unwrap_or("")).and_then(|t| definitions.get(&t))
        else {
            continue;
        };
        let Some(mut want) = wanted(entry) else { continue };
        let mut body = object(read(&root.join(file)));
        if let Some(list) = entry.get("patch") {
            let Ok(patched) = patch::json_patch(body, list.to_string().as_bytes()) else {
                continue;
            };
            body = patched.object;
        }
        let strict =
            entry["request"].as_str().is_some_and(|r| r.contains("fieldValidation=Strict"));
        let mut got = answer(info, *version, strict, body);
        want.sort();
        got.sort();
        if want == got {
            same += 1;
        } else {
            different.insert(n, format!("{file}\n  want {want:#?}\n  got  {got:#?}"));
        }
    }
    for (n, text) in &different {
        println!("{n}: {text}");
    }
    assert_eq!(different.len(), 0, "beside {same} that are the same");
}

/// The stored CRD, as the controllers leave it.
fn stored(file: &Path) -> Object {
    let mut crd = object(read(file));
    crd.map_mut(&["metadata"]).insert("resourceVersion".into(), "1".into());
    let (mut crd, _) = admit(crd);
    let decided = crd::names::decide(&crd, &crd::names::Taken::default());
    crd::names::apply(&mut crd, &decided, "2024-01-01T00:00:00Z");
    crd
}

/// As the strategy of an update does.
fn note_storage_version(crd: &mut Object) {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten();
    let storage = versions.filter(|v| v["storage"] == true).map(|v| v["name"].clone()).next();
    let list = crd.map_mut(&["status"]).get_mut("storedVersions").and_then(Value::as_array_mut);
    if let (Some(storage), Some(list)) = (storage, list)
        && !list.contains(&storage)
    {
        list.push(storage);
    }
}

/// Causes that are not ours to give: CEL's, and those of webhooks, which are refused as a whole.
fn is_cel_or_webhook(line: &str) -> bool {
    line.starts_with("spec.conversion")
        || ["rule cost", "compilation failed", "oldSelf", "exceeding cost limit"]
            .iter()
            .any(|w| line.contains(w))
}

#[test]
fn changes_of_crds_are_answered_as_go_kcp() {
    let Some(root) = folder() else {
        eprintln!("skipped: ../shared/real is not here");
        return;
    };
    let answers =
        std::fs::read_to_string(root.join("answers.json")).expect("the answers are there");
    let answers: Vec<Value> = serde_json::from_str(&answers).expect("the answers are JSON");
    let (mut same, mut different) = (0, Vec::new());
    for (n, entry) in answers.iter().enumerate().filter(|(_, e)| e["do"] == "patch") {
        let (Some(file), Some(list)) = (entry["crd"].as_str(), entry.get("patch")) else {
            continue;
        };
        let old = stored(&root.join(file));
        let Ok(patched) = patch::json_patch(old.clone(), list.to_string().as_bytes()) else {
            continue;
        };
        let mut want: Vec<String> = match entry["status"].as_u64() {
            Some(200) => Vec::new(),
            Some(422) => {
                let causes = entry["causes"].as_array().into_iter().flatten();
                causes
                    .map(|c| {
                        format!("{}: {}", c[0].as_str().unwrap_or(""), c[2].as_str().unwrap_or(""))
                    })
                    .collect()
            }
            _ => continue,
        };
        let mut new = patched.object;
        note_storage_version(&mut new);
        let errors = crd::validate_update(&new, &old, fp_schema::Sub::Main, &any_rule);
        let mut got: Vec<String> = errors.iter().map(ToString::to_string).collect();
        for line in want.iter_mut().chain(&mut got) {
            // Long values are cut in the answers.
            if let (Some(from), Some(to)) = (line.find(": Invalid value: ["), line.rfind(": must"))
            {
                line.replace_range(from..to, ": Invalid value: <long dump>");
            }
        }
        // Unknown members of a CRD are its decoder's to find.
        want.retain(|line| !is_cel_or_webhook(line) && !line.starts_with("patch:"));
        got.retain(|line| !is_cel_or_webhook(line));
        want.sort();
        got.sort();
        if want == got {
            same += 1;
        } else {
            different
                .push(format!("{n}: {file} {}\n  want {want:#?}\n  got  {got:#?}", entry["what"]));
        }
    }
    assert!(different.is_empty(), "{same} same\n{}", different.join("\n"));
}
