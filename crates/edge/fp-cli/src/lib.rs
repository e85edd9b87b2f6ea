//! The kubectl plugins of the one binary, chosen by the name it is called: `kubectl ws`, `kubectl create workspace`
//! and `kubectl kcp workspace`.
//!
//! A plugin reads the command line (`flags`), the kubeconfig (`kubeconfig`, `connect`), asks the server (`client`)
//! and edits the kubeconfig. Output and exit codes are those of the Go plugins, so that scripts keep working.
//! Deliberately absent: everything of the server; this crate knows it by HTTP only.

mod client;
mod connect;
mod context;
mod create;
mod enter;
mod flags;
mod kubeconfig;
mod path;
mod selector;
mod session;
mod tree;

use std::io::{self, Write};

use flags::{Command, Entry};

/// Subcommands of Go's `kubectl kcp` that this version does not have.
const KCP_UNAVAILABLE: [&str; 4] = ["bind", "claims", "crd", "quickstart"];

const CREATE_DEPRECATED: &str = "Command \"create\" is deprecated, install the 'kubectl create workspace' plugin \
    instead, compare https://docs.kcp.io/kcp/latest/setup/kubectl-plugin/.";

/// Whether a binary of this name is one of the plugins.
pub fn is_plugin(called: &str) -> bool {
    plugin(called).is_some()
}

/// Runs the plugin that `called` names (the file name of argv\[0\]) with the arguments after it.
/// Returns the exit code: 0, or 1 after an error, which is on standard error.
pub fn run(called: &str, args: &[String]) -> u8 {
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    let result = execute(called, args, &mut Streams { out: &mut out, err: &mut err });
    let flushed = out.flush();
    match result.and_then(|()| Ok(flushed?)) {
        Ok(()) => 0,
        Err(error) => {
            let prefix = if plugin(called) == Some(Plugin::Kcp) { "error" } else { "Error" };
            // One write, so that lines of programs that share a terminal stay whole. Where it is gone there is
            // nobody to tell.
            let _ = err.write_all(format!("{prefix}: {error}\n").as_bytes());
            1
        }
    }
}

/// Where a plugin writes.
struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plugin {
    Workspace,
    Create,
    Kcp,
}

fn plugin(called: &str) -> Option<Plugin> {
    match called.rsplit('/').next().unwrap_or(called) {
        "kubectl-ws" | "kubectl-workspace" | "kubectl-workspaces" => Some(Plugin::Workspace),
        "kubectl-create_workspace" | "kubectl-create-workspace" => Some(Plugin::Create),
        "kubectl-kcp" => Some(Plugin::Kcp),
        _ => None,
    }
}

fn execute(called: &str, args: &[String], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    match plugin(called) {
        Some(Plugin::Workspace) => workspace(Entry::Workspace, args, streams),
        Some(Plugin::Create) => workspace(Entry::Create, args, streams),
        Some(Plugin::Kcp) => kcp(args, streams),
        None => anyhow::bail!("{called} is not a plugin of this program"),
    }
}

fn kcp(args: &[String], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    match args.split_first() {
        Some((word, rest)) if ["workspace", "workspaces", "ws"].contains(&word.as_str()) => {
            workspace(Entry::Workspace, rest, streams)
        }
        Some((word, _)) if KCP_UNAVAILABLE.contains(&word.as_str()) => {
            anyhow::bail!("kubectl kcp {word} is not available in this version")
        }
        Some((word, _)) if word == "--version" => {
            Ok(writeln!(streams.out, "kcp version {}", version())?)
        }
        Some((word, _)) if !word.starts_with('-') && word != "help" => {
            anyhow::bail!("unknown command {word:?} for \"kcp\"")
        }
        _ => Ok(writeln!(
            streams.out,
            "kubectl plugin for kcp\n\nUsage:\n  kubectl kcp workspace ...   see \"kubectl kcp workspace --help\"\n\n\
             Not available in this version: {}",
            KCP_UNAVAILABLE.join(", ")
        )?),
    }
}

fn workspace(entry: Entry, args: &[String], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    // cobra says so before it looks at the flags.
    if entry == Entry::Workspace && flags::named_command(args) == Some(Command::Create) {
        writeln!(streams.err, "{CREATE_DEPRECATED}")?;
    }
    let call = flags::parse(entry, args)?;
    let argument = call.args.first().map_or("", String::as_str);
    let interactive =
        matches!(call.command, Command::Use | Command::Tree) && call.flags.on("interactive");
    anyhow::ensure!(
        !interactive,
        "the interactive workspace browser (-i) is not available in this version"
    );
    match call.command {
        Command::Use => {
            enter::run(&session::open(&call.flags)?, argument, call.flags.on("short"), streams)
        }
        Command::Current => {
            let session = session::open(&call.flags)?;
            enter::print_current(streams.out, &session.server, call.flags.on("short"), None)
        }
        Command::Create => create::run(&session::open(&call.flags)?, argument, streams),
        Command::CreateContext => {
            let wanted = context::Wanted {
                name: argument,
                overwrite: call.flags.on("overwrite"),
                keep_current: false,
                server: None,
            };
            context::run(&session::load(&call.flags)?, &wanted, streams)
        }
        Command::Tree => tree::run(&session::open(&call.flags)?, streams),
        Command::Help => Ok(streams.out.write_all(flags::help(entry).as_bytes())?),
        Command::Version => {
            let name = if entry == Entry::Create { "create" } else { "workspace" };
            Ok(writeln!(streams.out, "{name} version {}", version())?)
        }
    }
}

fn version() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}
