//! `kubectl ws [use] <path>`: checks that a workspace can be entered and points the kubeconfig to it.
//!
//! The kubeconfig's `workspace.kcp.io/current` context is where one is, `workspace.kcp.io/previous` where one was;
//! what goes into them is decided by [`plan_switch`] and [`plan_swap`], which touch nothing.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context as _, bail};
use fp_base::ClusterPath;
use serde::Deserialize;

use crate::Streams;
use crate::client::{Client, Resource};
use crate::kubeconfig::{Edit, Entry, Kubeconfig, Section};
use crate::path::{self, Destination, Resolved, WorkspaceUrl};
use crate::session::{self, List, Session, TypeReference};

const CURRENT: &str = "workspace.kcp.io/current";
const PREVIOUS: &str = "workspace.kcp.io/previous";

const LEGACY_NOTE: &str = "Note: Using 'root:' to define an absolute path is no longer supported. Instead, use \
    ':root' to specify an absolute path.";
const HOME_NOTE: &str = "Note: 'kubectl ws' now matches 'cd' semantics: go to home workspace. 'kubectl ws -' to go \
    back. 'kubectl ws .' to print current workspace.";

const API_BINDINGS: Resource = Resource("apis.kcp.io", "v1alpha2", "apibindings");

/// Enters the workspace of a typed path, empty for the home workspace.
pub fn run(
    session: &Session<'_>,
    typed: &str,
    short: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let wanted = path::interpret(typed, session::home_dir().as_deref());
    if wanted.legacy_absolute && !short {
        writeln!(streams.err, "{LEGACY_NOTE}")?;
    }
    let context = current_context(&session.config)?;
    let name = match wanted.destination {
        Destination::Current => return print_current(streams.out, &session.server, short, None),
        Destination::Previous => {
            let (edit, server) = plan_swap(&session.config, &context)?;
            session.config.commit(&edit)?;
            report_claims(&session.client, &server, streams)?;
            return print_current(streams.out, &server, short, None);
        }
        Destination::Root => {
            let url = session.current()?;
            let root = url.at(path::root_of(url.path()));
            return switch(session, &context, &root, None, short, streams);
        }
        Destination::Home(below) => format!(":{}{below}", home_path(&session.client)?),
        Destination::Path(name) => name,
    };
    let url = session.current()?;
    let resolved = path::resolve(&name, url.path())?;
    let kind = check_access(&session.client, &resolved)?;
    switch(session, &context, &url.at(resolved.path), kind.as_ref(), short, streams)?;
    if typed.is_empty() && !short {
        writeln!(streams.err, "{HOME_NOTE}")?;
    }
    Ok(())
}

/// Prints where a server URL points to.
pub fn print_current(
    out: &mut dyn Write,
    server: &str,
    short: bool,
    kind: Option<&TypeReference>,
) -> anyhow::Result<()> {
    match (WorkspaceUrl::parse(server), kind) {
        (None, _) if short => {}
        (None, _) => writeln!(out, "Current workspace is the URL {server:?}.")?,
        (Some(url), _) if short => writeln!(out, "{}", url.path())?,
        (Some(url), None) => writeln!(out, "Current workspace is '{}'.", url.path())?,
        (Some(url), Some(kind)) => {
            writeln!(out, "Current workspace is '{}' (type {}).", url.path(), kind.shown())?
        }
    }
    Ok(())
}

fn current_context(config: &Kubeconfig) -> anyhow::Result<Entry> {
    let name = config.current_context();
    config
        .entry(Section::Contexts, &name)
        .with_context(|| format!("current {name:?} context not found"))
}

/// The path of the user's home workspace, which servers with home workspaces show as `~` in root.
fn home_path(client: &Client) -> anyhow::Result<ClusterPath> {
    let root = ClusterPath::parse("root").expect("a valid path");
    match session::get_workspace(client, &root, "~") {
        Ok(home) => match WorkspaceUrl::parse(&home.spec.url) {
            Some(url) => Ok(url.path().clone()),
            None => bail!("invalid home workspace URL {:?}", home.spec.url),
        },
        Err(error @ crate::client::Error::Status { .. }) => {
            bail!("no home workspace to go to: {error}")
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the workspace can be entered, and its type if the parent tells. Discovery decides: someone without
/// access to the parent may still have access to the workspace.
fn check_access(client: &Client, wanted: &Resolved) -> anyhow::Result<Option<TypeReference>> {
    let denied = match client.discover(&wanted.path, "/apis") {
        Ok(0) => client.discover(&wanted.path, "/api").unwrap_or(0) == 0,
        Ok(_) => false,
        Err(error) if error.is_forbidden() => true,
        Err(error) => return Err(error.into()),
    };
    let mut kind = None;
    let mut not_found = false;
    if wanted.path.as_str() == "root" {
        kind = Some(TypeReference { path: String::new(), name: "root".to_owned() });
    } else if let Some((parent, name)) = path::split(&wanted.path).filter(|_| !wanted.had_dots) {
        // With dots in the path the Go plugin finds no type either, and scripts may compare.
        match session::get_workspace(client, &parent, name) {
            Ok(workspace) => kind = workspace.spec.kind,
            Err(error) => not_found = error.is_not_found(),
        }
    }
    match (denied, not_found) {
        (true, true) => bail!("workspace {:?} not found", wanted.spelled),
        (true, false) => bail!("access to workspace {:?} denied", wanted.spelled),
        (false, _) => Ok(kind),
    }
}

fn switch(
    session: &Session<'_>,
    context: &Entry,
    to: &WorkspaceUrl,
    kind: Option<&TypeReference>,
    short: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let server = to.to_string();
    session.config.commit(&plan_switch(&session.config, context, &server)?)?;
    report_claims(&session.client, &server, streams)?;
    print_current(streams.out, &server, short, kind)
}

/// The edit that points the current context to another server URL and keeps the old one as the previous context.
fn plan_switch(config: &Kubeconfig, context: &Entry, server: &str) -> anyhow::Result<Edit> {
    let old_cluster = cluster_of(config, context)?;
    let mut edit = Edit { current_context: Some(CURRENT.to_owned()), ..Edit::default() };
    let mut put = |section, name: &str, entry| edit.entries.push((section, name.to_owned(), entry));
    put(Section::Clusters, CURRENT, old_cluster.with("server", server));
    put(Section::Contexts, CURRENT, context.with("cluster", CURRENT));
    if context.text("cluster") == CURRENT {
        put(Section::Clusters, PREVIOUS, old_cluster);
        put(Section::Contexts, PREVIOUS, context.with("cluster", PREVIOUS));
    } else {
        put(Section::Contexts, PREVIOUS, context.clone());
    }
    Ok(edit)
}

/// The edit that exchanges the current and the previous context, and the server URL that is current then.
fn plan_swap(config: &Kubeconfig, context: &Entry) -> anyhow::Result<(Edit, String)> {
    let previous = config
        .entry(Section::Contexts, PREVIOUS)
        .context("no previous workspace found in kubeconfig")?;
    let mut edit = Edit { current_context: Some(CURRENT.to_owned()), ..Edit::default() };
    let mut put = |section, name: &str, entry| edit.entries.push((section, name.to_owned(), entry));
    let new_cluster = cluster_of(config, &previous)?;
    let server = new_cluster.text("server");
    if context.text("cluster") == CURRENT {
        put(Section::Clusters, PREVIOUS, cluster_of(config, context)?);
        put(Section::Contexts, PREVIOUS, context.with("cluster", PREVIOUS));
    } else {
        put(Section::Contexts, PREVIOUS, context.clone());
    }
    if previous.text("cluster") == PREVIOUS {
        put(Section::Clusters, CURRENT, new_cluster);
        put(Section::Contexts, CURRENT, previous.with("cluster", CURRENT));
    } else {
        put(Section::Contexts, CURRENT, previous);
    }
    Ok((edit, server))
}

fn cluster_of(config: &Kubeconfig, context: &Entry) -> anyhow::Result<Entry> {
    let name = context.text("cluster");
    config
        .entry(Section::Clusters, &name)
        .with_context(|| format!("cluster {name:?} not found in kubeconfig"))
}

#[derive(Deserialize)]
struct Binding {
    metadata: session::Metadata,
    #[serde(default)]
    spec: BindingSpec,
    #[serde(default)]
    status: BindingStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingSpec {
    permission_claims: Vec<Claim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingStatus {
    export_permission_claims: Vec<Claim>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    group: String,
    resource: String,
    identity_hash: String,
    verbs: BTreeSet<String>,
    state: String,
}

impl Claim {
    fn shown(&self) -> String {
        let Claim { group, resource, identity_hash, .. } = self;
        match (group.is_empty(), identity_hash.is_empty()) {
            (true, _) => resource.clone(),
            (false, true) => format!("{resource}.{group}"),
            (false, false) => format!("{resource}.{group}:{identity_hash}"),
        }
    }
}

/// Warns of permission claims that nobody answered. Trouble in finding out is no reason not to enter.
fn report_claims(client: &Client, server: &str, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let Some(url) = WorkspaceUrl::parse(server) else {
        let reason = format!("current cluster URL {server} is not pointing to a workspace");
        return Ok(writeln!(streams.err, "error checking APIBindings: {reason}")?);
    };
    match client.get::<List<Binding>>(url.path(), API_BINDINGS, "") {
        Ok(bindings) => streams.err.write_all(claim_warnings(&bindings.items).as_bytes())?,
        Err(error) if error.is_not_found() => {}
        Err(error) => writeln!(streams.err, "error checking APIBindings: {error}")?,
    }
    Ok(())
}

fn claim_warnings(bindings: &[Binding]) -> String {
    let mut out = String::new();
    for binding in bindings {
        let name = &binding.metadata.name;
        for exported in &binding.status.export_permission_claims {
            let same = |c: &&Claim| {
                c.group == exported.group
                    && c.resource == exported.resource
                    && c.identity_hash == exported.identity_hash
            };
            let specified = binding.spec.permission_claims.iter().rfind(same);
            let claim = exported.shown();
            if specified.is_none() {
                out.push_str(&format!(
                    "Warning: claim for {claim} exported but not specified on APIBinding {name}\n\
                     Add this claim to the APIBinding's Spec.\n"
                ));
            }
            if !specified.is_some_and(|c| c.state == "Accepted" || c.state == "Rejected") {
                out.push_str(&format!(
                    "Warning: claim for {claim} specified on APIBinding {name} but not accepted or rejected.\n"
                ));
            }
            if specified.is_none_or(|c| c.verbs != exported.verbs) {
                let list = |verbs: Option<&BTreeSet<String>>| {
                    verbs
                        .map(|v| v.iter().map(String::as_str).collect::<Vec<_>>().join(","))
                        .unwrap_or_default()
                };
                let (has, expected) =
                    (list(specified.map(|c| &c.verbs)), list(specified.map(|_| &exported.verbs)));
                out.push_str(&format!(
                    "Warning: allowed verbs ({has}) on claim for {claim} on APIBinding {name} do not match \
                     expected verbs ({expected}).\n"
                ));
            }
        }
    }
    out
}

#[cfg(test)]
#[path = "enter_tests.rs"]
mod tests;
