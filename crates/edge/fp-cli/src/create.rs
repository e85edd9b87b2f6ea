//! `kubectl create workspace <name>`: creates a workspace and waits until it is ready.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use fp_base::ClusterPath;
use serde_json::{Value, json};

use crate::client::Client;
use crate::session::{self, Session, TypeReference, WORKSPACES, Workspace};
use crate::{Streams, context, enter, selector};

const READY_WAIT_MAX: Duration = Duration::from_secs(60);
/// A workspace is ready within milliseconds as a rule, so the first looks are quick.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Creates the workspace `name` as the flags say.
pub fn run(session: &Session<'_>, name: &str, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let flags = session.flags;
    let selector = flags.text("location-selector").map(selector::parse).transpose();
    let selector = selector.map_err(|e| anyhow::anyhow!("invalid location selector: {e}"))?;
    let parent = session.current()?;
    let type_text = flags.text("type");
    let ignore_existing = flags.on("ignore-existing");
    ensure!(
        !ignore_existing || type_text.is_none_or(|t| t == "root" || t.starts_with("root:")),
        "--ignore-existing must not be used with non-absolute type path"
    );
    let wanted_type = type_text.map(read_type);
    let object = workspace_object(name, wanted_type.as_ref(), selector);

    let mut existed = false;
    let mut workspace: Workspace = match session.client.create(parent.path(), WORKSPACES, &object) {
        Err(error) if error.is_already_exists() && ignore_existing => {
            existed = true;
            session::get_workspace(&session.client, parent.path(), name)?
        }
        answer => answer?,
    };
    if let (true, Some(wanted)) = (existed, &wanted_type) {
        check_type(name, wanted, workspace.spec.kind.as_ref())?;
    }
    let title = format!("Workspace {name:?} (type {})", workspace.type_shown());
    let done = if existed { "already exists." } else { "created." };
    let ready = workspace.is_ready();
    if existed || !ready {
        writeln!(
            streams.out,
            "{title} {done}{}",
            if ready { "" } else { " Waiting for it to be ready..." }
        )?;
        streams.out.flush()?;
    }
    if !ready {
        workspace = wait_until_ready(&session.client, parent.path(), name)?;
    }
    writeln!(streams.out, "{title} is ready to use.")?;

    if let Some(context_name) = flags.text("create-context") {
        let wanted = context::Wanted {
            name: context_name,
            overwrite: ignore_existing,
            keep_current: !flags.on("enter"),
            server: Some(&workspace.spec.url),
        };
        context::run(&session.config, &wanted, streams)
            .map_err(|e| anyhow::anyhow!("failed to create context: {e}"))
    } else if flags.on("enter") {
        enter::run(session, &workspace.metadata.name, false, streams)
    } else {
        Ok(())
    }
}

/// `name` or `path:name`; type names are lower case.
fn read_type(text: &str) -> TypeReference {
    let (path, name) = text.rsplit_once(':').unwrap_or(("", text));
    TypeReference { path: path.to_owned(), name: name.to_lowercase() }
}

fn workspace_object(name: &str, kind: Option<&TypeReference>, selector: Option<Value>) -> Value {
    let mut spec = json!({});
    if let Some(kind) = kind {
        spec["type"] = json!({ "name": kind.name });
        if !kind.path.is_empty() {
            spec["type"]["path"] = kind.path.as_str().into();
        }
    }
    if let Some(selector) = selector {
        spec["location"] = json!({ "selector": selector });
    }
    json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name }, "spec": spec })
}

fn check_type(
    name: &str,
    wanted: &TypeReference,
    existing: Option<&TypeReference>,
) -> anyhow::Result<()> {
    let existing = existing.cloned().unwrap_or_default();
    let other =
        (!existing.name.is_empty() && existing.name != wanted.name) || existing.path != wanted.path;
    if other {
        bail!(
            "workspace {name:?} cannot be created with type {}, it already exists with different type {}",
            wanted.shown(),
            existing.shown()
        );
    }
    Ok(())
}

fn wait_until_ready(
    client: &Client,
    parent: &ClusterPath,
    name: &str,
) -> anyhow::Result<Workspace> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let workspace =
            session::get_workspace(client, parent, name).context("waiting for the workspace")?;
        if workspace.is_ready() {
            return Ok(workspace);
        }
        if started.elapsed() >= READY_WAIT_MAX {
            let phase = workspace.status.phase;
            bail!(
                "workspace {name:?} is not ready after {}s (phase {phase:?})",
                READY_WAIT_MAX.as_secs()
            );
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn object_sent() {
        let kind = read_type("root:org:Team");
        let selector = selector::parse("region=eu").expect("a selector");
        expect![[r#"{"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"Workspace","metadata":{"name":"a"},"spec":{"location":{"selector":{"matchLabels":{"region":"eu"}}},"type":{"name":"team","path":"root:org"}}}"#]]
            .assert_eq(&workspace_object("a", Some(&kind), Some(selector)).to_string());
        expect![[r#"{"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"Workspace","metadata":{"name":"a"},"spec":{"type":{"name":"universal"}}}"#]]
            .assert_eq(&workspace_object("a", Some(&read_type("Universal")), None).to_string());
    }

    #[test]
    fn existing_of_another_type() {
        let existing = read_type("root:universal");
        assert!(check_type("a", &read_type("root:universal"), Some(&existing)).is_ok());
        let error =
            check_type("a", &read_type("root:team"), Some(&existing)).expect_err("types differ");
        expect![[r#"workspace "a" cannot be created with type root:team, it already exists with different type root:universal"#]]
            .assert_eq(&error.to_string());
    }
}
