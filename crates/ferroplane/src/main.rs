//! The one binary: `ferroplane start`, `ferroplane store`, and the kubectl plugins by the name it is called.

mod address;
mod admin;
mod bootstrap;
mod content;
mod flags;
mod gates;
mod issuer;
mod keys;
mod leading;
mod logging;
mod options;
mod progress;
mod root_dir;
mod start;
mod store;
mod surface;
mod version;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Command};
use flags::Given;
use options::Options;

/// The `-v` from which on a start's lines are not held back.
const DETAILS: u8 = 4;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let called = args.first().and_then(|a| a.rsplit('/').next()).unwrap_or("ferroplane").to_owned();
    if fp_cli::is_plugin(&called) {
        return ExitCode::from(fp_cli::run(&called, &args[1..]));
    }
    let matches = command(&called).get_matches_from(args);
    match matches.subcommand() {
        Some(("start", given)) if given.subcommand_matches("options").is_some() => {
            let mut start = flags::command();
            println!("{}", start.render_long_help());
            ExitCode::SUCCESS
        }
        Some(("start", given)) => {
            keep_pages_small();
            start(given)
        }
        Some(("store", given)) => {
            keep_pages_small();
            store(given)
        }
        _ => ExitCode::FAILURE,
    }
}

/// The allocator asks for huge pages, and would hold 30 MB of them for 15 MB of data. Where the
/// kernel has no such switch they are kept.
fn keep_pages_small() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Called `kcp` it is the same program.
fn command(called: &str) -> Command {
    let name = if called == "kcp" { "kcp" } else { "ferroplane" };
    Command::new(name)
        .about("Many isolated, cheap Kubernetes-style control planes in one program")
        .version(version::GIT_VERSION)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(flags::command())
        .subcommand(store::command())
}

/// Whatever goes wrong is told in one line, and the exit code is 1.
fn start(given: &ArgMatches) -> ExitCode {
    let (options, warnings) = match Options::from_flags(&Given(given)) {
        Ok(parsed) => parsed,
        Err(error) => return fail(&error.into()),
    };
    logging::init(&logging::Config {
        json: options.json_logs,
        verbosity: options.verbosity,
        quiet: std::io::stdout().is_terminal() && !options.verbose,
    });
    // Who asks for details gets them as they come.
    if options.verbosity < DETAILS {
        logging::hold();
    }
    let ended = start::run(&options, &warnings);
    match ended {
        Ok(()) => {
            logging::release();
            ExitCode::SUCCESS
        }
        Err(error) => {
            logging::discard();
            fail(&error)
        }
    }
}

/// The same for the store, and for the commands that are not a server.
fn store(given: &ArgMatches) -> ExitCode {
    if let Some((name, given)) = given.subcommand() {
        logging::init(&logging::Config { json: false, verbosity: 1, quiet: true });
        return store::run_tool(name, given).map_or_else(|error| fail(&error), ExitCode::from);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let given = store::Given { matches: given, variable: &variable };
    let (options, warnings) = match store::Options::from_flags(&given) {
        Ok(parsed) => parsed,
        Err(error) => return fail(&error.into()),
    };
    let verbosity = if options.debug { DETAILS } else { 2 };
    logging::init(&logging::Config { json: options.json_logs, verbosity, quiet: false });
    match store::run(&options, &warnings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    // `eprintln!` would panic where the log's disk is full.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::FAILURE
}
