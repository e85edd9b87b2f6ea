//! `kubectl ws tree`: the workspaces below the current one, drawn as a tree.
//!
//! Reading ([`read`]) and drawing ([`draw`], [`align`]) are apart; drawing is pure.

use anyhow::{Context as _, ensure};
use fp_base::ClusterPath;
use serde::Deserialize;

use crate::Streams;
use crate::client::{Client, Error, Resource};
use crate::path::WorkspaceUrl;
use crate::session::{List, Session, Status, WORKSPACES, Workspace};

const LOGICAL_CLUSTERS: Resource = Resource("core.kcp.io", "v1alpha1", "logicalclusters");

/// Deeper than any path that a server accepts; a server that sends us in circles ends here.
const DEPTH_MAX: usize = 128;
/// Blanks between the columns of `--wide`.
const COLUMN_GAP: usize = 2;

/// A workspace to draw; columns of its label are separated by tabs.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    label: String,
    children: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Style {
    full: bool,
    wide: bool,
}

/// Prints the tree of the current workspace.
pub fn run(session: &Session<'_>, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let style = Style { full: session.flags.on("full"), wide: session.flags.on("wide") };
    let Some(url) = WorkspaceUrl::parse(&session.server) else {
        let server = &session.server;
        return Ok(writeln!(
            streams.out,
            "current context URL {server:?} does not point directly to a kcp workspace"
        )?);
    };
    let path = url.path();
    let name = match style.full {
        true => path.as_str(),
        false => path.as_str().rsplit(':').next().unwrap_or(path.as_str()),
    };
    let root =
        read(&session.client, path, name, label(&session.client, path, name, "", style), style, 0)?;
    let drawn = draw(&root);
    if style.wide {
        streams.out.write_all(align(&drawn).as_bytes())?;
    } else {
        writeln!(streams.out, "{drawn}")?;
    }
    Ok(())
}

/// Reads a workspace's children and theirs. Workspaces being deleted are left out: they may refuse to be read.
fn read(
    client: &Client,
    path: &ClusterPath,
    name: &str,
    label_text: String,
    style: Style,
    depth: usize,
) -> anyhow::Result<Node> {
    ensure!(depth < DEPTH_MAX, "workspace {path} is nested deeper than {DEPTH_MAX} levels");
    let list: List<Workspace> = match client.get(path, WORKSPACES, "") {
        Err(error) if error.is_not_found() => List { items: vec![] },
        answer => answer?,
    };
    let mut children = Vec::with_capacity(list.items.len());
    for workspace in list.items.iter().filter(|w| w.metadata.deletion_timestamp.is_none()) {
        let own = &workspace.metadata.name;
        let child_name = if style.full { format!("{name}:{own}") } else { own.clone() };
        if workspace.spec.mount.is_some() {
            // A mount's content is another server's; its URL may lead back to here.
            children.push(Node { label: format!("{child_name} [m]"), children: vec![] });
            continue;
        }
        let url = &workspace.spec.url;
        let child = WorkspaceUrl::parse(url).with_context(|| {
            format!("current config context URL {url:?} does not point to workspace")
        })?;
        let child_label = label(client, child.path(), &child_name, &workspace.status.phase, style);
        children.push(read(client, child.path(), &child_name, child_label, style, depth + 1)?);
    }
    Ok(Node { label: label_text, children })
}

fn label(
    client: &Client,
    path: &ClusterPath,
    name: &str,
    workspace_phase: &str,
    style: Style,
) -> String {
    #[derive(Deserialize)]
    struct LogicalCluster {
        #[serde(default)]
        status: Status,
    }
    if !style.wide {
        return name.to_owned();
    }
    let found: Result<LogicalCluster, Error> = client.get(path, LOGICAL_CLUSTERS, "cluster");
    let cluster_phase = found.ok().map(|c| c.status.phase).filter(|p| !p.is_empty());
    let workspace_phase = if workspace_phase.is_empty() { "-" } else { workspace_phase };
    format!("{name}\tws={workspace_phase}\tlc={}", cluster_phase.as_deref().unwrap_or("Unknown"))
}

/// Draws a tree below a line with a dot.
fn draw(root: &Node) -> String {
    let mut out = ".\n".to_owned();
    draw_below(&mut out, "", std::slice::from_ref(root));
    out
}

fn draw_below(out: &mut String, indent: &str, nodes: &[Node]) {
    for (i, node) in nodes.iter().enumerate() {
        let last = i + 1 == nodes.len();
        out.push_str(&format!("{indent}{} {}\n", if last { "└──" } else { "├──" }, node.label));
        let below = format!("{indent}{}", if last { "    " } else { "│   " });
        draw_below(out, &below, &node.children);
    }
}

/// Turns tabs into aligned columns. As in Go's text/tabwriter a column ends at a line that does not have it.
fn align(text: &str) -> String {
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let mut out = String::with_capacity(text.len() * 2);
    let mut start = 0;
    while start < rows.len() {
        let n_columns = rows[start].len();
        let end = rows[start..]
            .iter()
            .position(|r| r.len() != n_columns)
            .map_or(rows.len(), |n| start + n);
        let widths: Vec<usize> = (0..n_columns)
            .map(|c| {
                rows[start..end].iter().map(|r| r[c].chars().count()).max().unwrap_or(0)
                    + COLUMN_GAP
            })
            .collect();
        for row in &rows[start..end] {
            for (cell, width) in row.iter().zip(&widths).take(n_columns - 1) {
                out.push_str(&format!("{cell:<width$}"));
            }
            out.push_str(row[n_columns - 1]);
            out.push('\n');
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn node<const N: usize>(label: &str, children: [Node; N]) -> Node {
        Node { label: label.to_owned(), children: children.into() }
    }

    #[test]
    fn trees() {
        let tree = node(
            "root",
            [
                node("acme", [node("team-a", [node("deep", [])]), node("m [m]", [])]),
                node("beta", [node("x", [])]),
            ],
        );
        expect![[r#"
            .
            └── root
                ├── acme
                │   ├── team-a
                │   │   └── deep
                │   └── m [m]
                └── beta
                    └── x
        "#]]
        .assert_eq(&draw(&tree));
    }

    #[test]
    fn wide_columns() {
        let tree = node(
            "root\tws=-\tlc=Ready",
            [
                node("acme\tws=Ready\tlc=Ready", [node("team-a\tws=Initializing\tlc=Unknown", [])]),
                node("m [m]", []),
                node("beta\tws=Ready\tlc=Ready", []),
            ],
        );
        expect![[r#"
            .
            └── root            ws=-             lc=Ready
                ├── acme        ws=Ready         lc=Ready
                │   └── team-a  ws=Initializing  lc=Unknown
                ├── m [m]
                └── beta  ws=Ready  lc=Ready
        "#]]
        .assert_eq(&align(&draw(&tree)));
    }
}
