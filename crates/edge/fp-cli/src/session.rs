//! What every command works with: the kubeconfig, the server URL that counts, and a client; and the fields of
//! Workspace objects that the plugins read.

use std::env;
use std::path::Path;

use fp_base::ClusterPath;
use serde::Deserialize;

use crate::client::{Client, Resource};
use crate::connect;
use crate::flags::Flags;
use crate::kubeconfig::Kubeconfig;
use crate::path::{self, WorkspaceUrl};

pub const WORKSPACES: Resource = Resource("tenancy.kcp.io", "v1alpha1", "workspaces");

/// One call's view of the world.
pub struct Session<'a> {
    pub flags: &'a Flags,
    pub config: Kubeconfig,
    pub client: Client,
    /// The server URL of the kubeconfig and flags, moved by `--workspace`.
    pub server: String,
}

impl Session<'_> {
    /// The current workspace, or the error that the server URL points to none.
    pub fn current(&self) -> anyhow::Result<WorkspaceUrl> {
        WorkspaceUrl::parse(&self.server).ok_or_else(|| {
            anyhow::anyhow!("current URL {:?} does not point to a workspace", self.server)
        })
    }
}

/// Loads the kubeconfig that flags and environment name.
pub fn load(flags: &Flags) -> anyhow::Result<Kubeconfig> {
    let home = home_dir();
    let home = home.as_deref().map(Path::new);
    Ok(Kubeconfig::load(flags.text("kubeconfig"), env::var_os("KUBECONFIG").as_deref(), home)?)
}

/// Loads the kubeconfig and prepares a client; asks nothing yet.
pub fn open(flags: &Flags) -> anyhow::Result<Session<'_>> {
    let config = load(flags)?;
    let connection = connect::resolve(&config, flags)?;
    let server = match flags.text("workspace") {
        None => connection.server.clone(),
        Some(workspace) => override_workspace(&connection.server, workspace)?,
    };
    Ok(Session { flags, config, client: Client::new(&connection)?, server })
}

pub fn home_dir() -> Option<String> {
    env::var("HOME").ok().filter(|h| !h.is_empty())
}

/// Moves a server URL to the workspace of `--workspace`.
fn override_workspace(server: &str, workspace: &str) -> anyhow::Result<String> {
    let url = WorkspaceUrl::parse(server)
        .ok_or_else(|| anyhow::anyhow!("current URL {server:?} does not point to a workspace"))?;
    match path::resolve(workspace, url.path()) {
        Ok(resolved) => Ok(url.at(resolved.path).to_string()),
        Err(path::Error::AboveRoot) => anyhow::bail!("cannot go above the root workspace"),
        Err(error) => Err(error.into()),
    }
}

/// A Workspace, as far as the plugins read it.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Spec,
    #[serde(default)]
    pub status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Spec {
    #[serde(rename = "type")]
    pub kind: Option<TypeReference>,
    #[serde(rename = "URL")]
    pub url: String,
    pub mount: Option<serde::de::IgnoredAny>,
}

/// The type of a workspace: where it is defined, and its name there.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct TypeReference {
    pub path: String,
    pub name: String,
}

impl TypeReference {
    /// `path:name`, or the name alone.
    pub fn shown(&self) -> String {
        if self.path.is_empty() {
            self.name.clone()
        } else {
            format!("{}:{}", self.path, self.name)
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub phase: String,
}

impl Workspace {
    pub fn is_ready(&self) -> bool {
        self.status.phase == "Ready"
    }

    pub fn type_shown(&self) -> String {
        self.spec.kind.as_ref().map(TypeReference::shown).unwrap_or_default()
    }
}

/// A list, as far as the plugins read it.
#[derive(Debug, Deserialize)]
pub struct List<T> {
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
}

/// The workspace below a parent.
pub fn get_workspace(
    client: &Client,
    parent: &ClusterPath,
    name: &str,
) -> Result<Workspace, crate::client::Error> {
    client.get(parent, WORKSPACES, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_flag() {
        for (server, workspace, expected) in [
            ("https://h/clusters/root:other", ":root:my-ws", "https://h/clusters/root:my-ws"),
            ("https://h/clusters/root", "my-ws", "https://h/clusters/root:my-ws"),
            ("https://h/clusters/root:a:b", "..", "https://h/clusters/root:a"),
            ("https://h/p/clusters/root:a", ":root:b", "https://h/p/clusters/root:b"),
            ("https://h/x", "a", "current URL \"https://h/x\" does not point to a workspace"),
            ("https://h/clusters/root", "..:..", "cannot go above the root workspace"),
            ("https://h/clusters/root", ":root:..", "invalid workspace path: :root:.."),
        ] {
            let shown = override_workspace(server, workspace).unwrap_or_else(|e| e.to_string());
            assert_eq!(shown, expected, "-w {workspace} at {server}");
        }
    }
}
