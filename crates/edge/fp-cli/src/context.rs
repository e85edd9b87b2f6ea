//! `kubectl ws create-context [name]`: gives the current workspace a kubeconfig context of its own.

use anyhow::{Context as _, bail};

use crate::Streams;
use crate::kubeconfig::{Edit, Kubeconfig, Section};
use crate::path::WorkspaceUrl;

/// The context to create.
pub struct Wanted<'a> {
    /// Empty for the path of the current workspace.
    pub name: &'a str,
    /// Replace a context that exists.
    pub overwrite: bool,
    /// Do not switch to the new context.
    pub keep_current: bool,
    /// Server URL, if not that of the current context.
    pub server: Option<&'a str>,
}

/// Creates or replaces the context.
pub fn run(
    config: &Kubeconfig,
    wanted: &Wanted<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let (edit, message) = plan(config, wanted)?;
    config.commit(&edit)?;
    writeln!(streams.out, "{message}")?;
    Ok(())
}

fn plan(config: &Kubeconfig, wanted: &Wanted<'_>) -> anyhow::Result<(Edit, String)> {
    let current_name = config.current_context();
    let context = config
        .entry(Section::Contexts, &current_name)
        .with_context(|| format!("current context {current_name:?} is not found in kubeconfig"))?;
    let cluster_name = context.text("cluster");
    let cluster = config
        .entry(Section::Clusters, &cluster_name)
        .with_context(|| format!("current cluster {cluster_name:?} is not found in kubeconfig"))?;
    let server = cluster.text("server");
    let url = WorkspaceUrl::parse(&server)
        .with_context(|| format!("current URL {server:?} does not point to a workspace"))?;

    let name = if wanted.name.is_empty() { url.path().as_str() } else { wanted.name };
    let existed = config.entry(Section::Contexts, name).is_some();
    if existed && !wanted.overwrite {
        bail!("context {name:?} already exists in kubeconfig, use --overwrite to update it");
    }
    let cluster = wanted
        .server
        .filter(|s| !s.is_empty())
        .map_or(cluster.clone(), |s| cluster.with("server", s));
    let edit = Edit {
        entries: vec![
            (Section::Clusters, name.to_owned(), cluster),
            (Section::Contexts, name.to_owned(), context.with("cluster", name)),
        ],
        current_context: (!wanted.keep_current).then(|| name.to_owned()),
    };
    let verb = if existed { "Updated" } else { "Created" };
    let switched =
        if wanted.keep_current || current_name == name { "" } else { " and switched to it" };
    Ok((edit, format!("{verb} context {name:?}{switched}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const CONFIG: &str = r#"
current-context: here
clusters:
- {name: c, cluster: {server: "https://h/clusters/root:a", certificate-authority-data: Q0E=}}
- {name: plain, cluster: {server: "https://h"}}
contexts:
- {name: here, context: {cluster: c, user: me, namespace: n}}
users: []
"#;

    fn check(
        name: &str,
        overwrite: bool,
        keep_current: bool,
        server: Option<&str>,
        expected: Expect,
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config");
        std::fs::write(&file, CONFIG).expect("a file");
        let config = Kubeconfig::load(file.to_str(), None, None).expect("a kubeconfig");
        let shown = match plan(&config, &Wanted { name, overwrite, keep_current, server }) {
            Err(error) => format!("Error: {error}\n"),
            Ok((edit, message)) => {
                let lines = edit.entries.iter().map(|(section, name, entry)| {
                    format!(
                        "{section:?} {name}: {}\n",
                        serde_json::Value::Object(entry.fields.clone())
                    )
                });
                format!(
                    "{}current: {:?}\n{message}\n",
                    lines.collect::<String>(),
                    edit.current_context
                )
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn contexts() {
        check(
            "",
            false,
            false,
            None,
            expect![[r#"
                Clusters root:a: {"certificate-authority-data":"Q0E=","server":"https://h/clusters/root:a"}
                Contexts root:a: {"cluster":"root:a","namespace":false,"user":"me"}
                current: Some("root:a")
                Created context "root:a" and switched to it.
            "#]],
        );
        check(
            "x",
            false,
            true,
            Some("https://h/clusters/root:a:x"),
            expect![[r#"
                Clusters x: {"certificate-authority-data":"Q0E=","server":"https://h/clusters/root:a:x"}
                Contexts x: {"cluster":"x","namespace":false,"user":"me"}
                current: None
                Created context "x".
            "#]],
        );
        check(
            "here",
            false,
            false,
            None,
            expect![[r#"
            Error: context "here" already exists in kubeconfig, use --overwrite to update it
        "#]],
        );
        check(
            "here",
            true,
            false,
            None,
            expect![[r#"
                Clusters here: {"certificate-authority-data":"Q0E=","server":"https://h/clusters/root:a"}
                Contexts here: {"cluster":"here","namespace":false,"user":"me"}
                current: Some("here")
                Updated context "here".
            "#]],
        );
    }
}
