//! Kubeconfigs: merged, changed, written.

use super::*;
use expect_test::{Expect, expect};
use std::ffi::OsString;

const FIRST: &str = r#"
clusters:
- name: c
  cluster: {server: "https://first", x-unknown: [1, {a: "y"}]}
  x-item: kept
contexts:
- name: one
  context: {cluster: c, user: u}
x-top: kept
"#;
const SECOND: &str = r#"
current-context: two
clusters:
- {name: c, cluster: {server: "https://second"}}
- {name: d, cluster: {server: "https://d", certificate-authority: ca.pem}}
contexts:
- {name: two, context: {cluster: d, user: u}}
users:
- {name: u, user: {token: "123", note: "on"}}
"#;

struct Files {
    _dir: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

/// Writes the texts into files of folders of their own; `None` is a file that does not exist.
fn files(texts: &[Option<&str>]) -> Files {
    let dir = tempfile::tempdir().expect("a folder");
    let paths =
        (0..texts.len()).map(|i| dir.path().join(format!("{i}/config"))).collect::<Vec<_>>();
    for (path, text) in paths.iter().zip(texts) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        if let Some(text) = text {
            fs::write(path, text).expect("a file");
        }
    }
    Files { _dir: dir, paths }
}

impl Files {
    fn variable(&self) -> OsString {
        std::env::join_paths(&self.paths).expect("paths without colons")
    }

    fn load(&self) -> Kubeconfig {
        Kubeconfig::load(None, Some(&self.variable()), None).expect("kubeconfigs")
    }

    fn shown(&self) -> String {
        let dir = self._dir.path().to_str().expect("UTF-8");
        let file = |(i, path): (usize, &PathBuf)| match fs::read_to_string(path) {
            Ok(text) => format!("# {i}\n{}", text.replace(dir, "DIR")),
            Err(_) => format!("# {i} absent\n"),
        };
        self.paths.iter().enumerate().map(file).collect()
    }
}

#[test]
fn the_first_file_wins() {
    let files = files(&[None, Some(FIRST), Some(""), Some(SECOND)]);
    let config = files.load();
    assert_eq!(config.current_context(), "two");
    let cluster = |name: &str| config.entry(Section::Clusters, name).map(|c| c.text("server"));
    assert_eq!(cluster("c").as_deref(), Some("https://first"));
    assert_eq!(cluster("d").as_deref(), Some("https://d"));
    assert_eq!(cluster("e"), None);
    let ca = config.entry(Section::Clusters, "d").and_then(|d| d.path("certificate-authority"));
    assert_eq!(ca, Some(files.paths[3].with_file_name("ca.pem")));
}

#[test]
fn which_files_are_read() {
    let files = files(&[Some(FIRST), None]);
    let [first, absent] = [&files.paths[0], &files.paths[1]];
    let home = first.parent().expect("a folder").join("home");
    fs::create_dir_all(home.join(".kube")).expect("a folder");
    fs::write(home.join(".kube/config"), SECOND).expect("a file");
    let variable = first.as_os_str();
    let load = |explicit: Option<&PathBuf>, variable: Option<&OsStr>| {
        let explicit = explicit.map(|p| p.to_str().expect("UTF-8"));
        Kubeconfig::load(explicit, variable, Some(&home))
            .map(|c| c.entry(Section::Contexts, "one").is_some())
    };
    assert!(matches!(load(Some(first), None), Ok(true)));
    assert!(matches!(load(None, Some(variable)), Ok(true)));
    assert!(matches!(load(None, Some(OsStr::new(""))), Ok(false)), "an empty variable is none");
    assert!(matches!(load(Some(absent), Some(variable)), Err(Error::Missing(_))));
    assert!(matches!(load(None, Some(absent.as_os_str())), Ok(false)));
}

#[test]
fn what_is_not_a_kubeconfig() {
    for text in ["[1]", "clusters: 3", "contexts: [a]", "a: [", "a: 1\na: 2"] {
        let files = files(&[Some(text)]);
        let error = Kubeconfig::load(None, Some(&files.variable()), None).expect_err(text);
        assert!(error.to_string().starts_with("error loading config file "), "{error}");
    }
}

fn check(texts: &[Option<&str>], edit: impl Fn(&Kubeconfig) -> Edit, expected: Expect) {
    let files = files(texts);
    let config = files.load();
    config.commit(&edit(&config)).expect("an edit");
    expected.assert_eq(&files.shown());
    for path in files.paths.iter().filter(|p| p.exists()) {
        let names = fs::read_dir(path.parent().expect("a folder")).expect("a folder").count();
        assert_eq!(names, 1, "no lock and no temporary file is left");
    }
}

#[test]
fn edits_change_what_they_name() {
    let edit = |config: &Kubeconfig| Edit {
        entries: vec![
            (
                Section::Clusters,
                "c".to_owned(),
                config.entry(Section::Clusters, "c").expect("c").with("server", "https://new"),
            ),
            (
                Section::Contexts,
                "new".to_owned(),
                config.entry(Section::Contexts, "two").expect("two"),
            ),
        ],
        current_context: Some("new".to_owned()),
    };
    check(
        &[Some(FIRST), Some(SECOND)],
        edit,
        expect![[r##"
        # 0
        apiVersion: v1
        clusters:
        - cluster:
            server: https://new
            x-unknown:
            - 1
            - a: "y"
          name: c
          x-item: kept
        contexts:
        - context:
            cluster: c
            user: u
          name: one
        current-context: new
        kind: Config
        x-top: kept
        # 1
        apiVersion: v1
        clusters:
        - cluster:
            server: https://second
          name: c
        - cluster:
            certificate-authority: ca.pem
            server: https://d
          name: d
        contexts:
        - context:
            cluster: d
            user: u
          name: two
        - context:
            cluster: d
            user: u
          name: new
        current-context: two
        kind: Config
        users:
        - name: u
          user:
            note: "on"
            token: "123"
    "##]],
    );
}

#[test]
fn a_new_file_is_made_for_its_owner_only() {
    let files = files(&[None]);
    let config = files.load();
    let edit = Edit { entries: vec![], current_context: Some("x".to_owned()) };
    config.commit(&edit).expect("an edit");
    expect![[r#"
        # 0
        apiVersion: v1
        current-context: x
        kind: Config
    "#]]
    .assert_eq(&files.shown());
    let mode = fs::metadata(&files.paths[0]).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn relative_paths_survive_a_move_to_another_file() {
    // The name exists in the first file, so it is replaced there; its new content comes from the second.
    let edit = |config: &Kubeconfig| Edit {
        entries: vec![(
            Section::Clusters,
            "c".to_owned(),
            config.entry(Section::Clusters, "d").expect("d"),
        )],
        current_context: None,
    };
    check(
        &[Some(FIRST), Some(SECOND)],
        edit,
        expect![[r##"
        # 0
        apiVersion: v1
        clusters:
        - cluster:
            certificate-authority: DIR/1/ca.pem
            server: https://d
          name: c
          x-item: kept
        contexts:
        - context:
            cluster: c
            user: u
          name: one
        kind: Config
        x-top: kept
        # 1

        current-context: two
        clusters:
        - {name: c, cluster: {server: "https://second"}}
        - {name: d, cluster: {server: "https://d", certificate-authority: ca.pem}}
        contexts:
        - {name: two, context: {cluster: d, user: u}}
        users:
        - {name: u, user: {token: "123", note: "on"}}
    "##]],
    );
}

#[test]
fn a_link_stays_a_link() {
    let files = files(&[Some(SECOND)]);
    let link = files.paths[0].with_file_name("link");
    std::os::unix::fs::symlink(&files.paths[0], &link).expect("a link");
    let config = Kubeconfig::load(link.to_str(), None, None).expect("a kubeconfig");
    config
        .commit(&Edit { entries: vec![], current_context: Some("x".to_owned()) })
        .expect("an edit");
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert_eq!(files.load().current_context(), "x");
}

#[test]
fn text_that_looks_like_something_else_stays_text() {
    let texts = [
        "123",
        "1e3",
        "0x1",
        "on",
        "y",
        "null",
        "~",
        "true",
        "",
        " a",
        "a: b",
        "#x",
        "2001-01-01",
        "é\n\tz",
        "-",
        "@a",
        "1_000",
        "0o7",
        ".5",
        "=",
        "a'b\"c",
    ];
    let document = json!({ "a": texts, "long": "A".repeat(5000), "words": "word ".repeat(100) });
    let text = yaml::to_string(&document);
    let (back, _) = yaml::decode_value(text.as_bytes()).expect("YAML");
    assert_eq!(back, document);
    for risky in ["123", "1e3", "on", "y", "null", "~", "true"] {
        assert!(
            !text.lines().any(|l| l.trim() == format!("- {risky}")),
            "{risky} is quoted, for readers of YAML 1.1"
        );
    }
    assert!(text.lines().any(|l| l.ends_with(&"A".repeat(5000))), "data is on one line");
}
