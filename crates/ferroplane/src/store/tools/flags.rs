//! The flags of the operator's commands. The store is named as for `ferroplane store` itself.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use fp_store::check_prefix;

use super::super::flags::Given;
use super::super::options::{Backend, backend};
use crate::flags::Error;

/// Resources that `stats` lists, and how much of a key names one.
const TOP: &str = "10";
const DEPTH: &str = "3";

pub fn commands() -> Vec<Command> {
    let stats = command("stats", "Counts keys, rows and bytes")
        .arg(number("top", "Prefixes listed, those with most bytes first").default_value(TOP))
        .arg(number("depth", "Segments of a key that are its prefix").default_value(DEPTH));
    let compact = command("compact", "Forgets history; live keys stay")
        .arg(number("revision", "Forget what is older than this revision"))
        .arg(number("keep", "Keep so many of the newest revisions"))
        .group(ArgGroup::new("until").args(["revision", "keep"]).required(true));
    let verify = command("verify", "Checks a backup, or every row of a store")
        .arg(file("A backup; without one the store is checked").required(false));
    let backup = command("backup", "Writes the live keys at one revision into a file")
        .arg(file("The file to write; it must not exist"))
        .arg(Arg::new("prefix").long("prefix").value_name("TEXT").help("Only keys that begin so"));
    let restore = command("restore", "Puts a backup into an empty store").arg(file("The backup"));
    let migrate = command("migrate", "Copies a store that nobody writes into an empty one").arg(
        Arg::new("to").long("to").value_name("ENDPOINT").required(true).help("The empty store"),
    );
    vec![stats, compact, verify, backup, restore, migrate]
}

fn command(name: &'static str, about: &'static str) -> Command {
    let text = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::Append).value_name("VALUE")
    };
    let output = Arg::new("output").short('o').long("output").value_name("FORMAT");
    Command::new(name)
        .about(about)
        .arg(text(
            "endpoint",
            "The store: sqlite://<file> or postgres://... [default: sqlite://./db/state.db] [KINE_ENDPOINT]",
        ))
        .arg(text("ca-file", "CAs of the database's certificate (PostgreSQL) [KINE_CA_FILE]"))
        .arg(text("cert-file", "The client certificate for the database [KINE_CERT_FILE]"))
        .arg(text("key-file", "Its key [KINE_KEY_FILE]"))
        .arg(output.value_parser(["text", "json"]).default_value("text").help("text or json"))
}

fn number(name: &'static str, help: &'static str) -> Arg {
    let parser = value_parser!(i64).range(0..);
    Arg::new(name).long(name).value_name("NUMBER").value_parser(parser).help(help)
}

fn file(help: &'static str) -> Arg {
    let parser = value_parser!(PathBuf);
    Arg::new("file").value_name("FILE").required(true).value_parser(parser).help(help)
}

/// What a command was asked for, checked.
pub struct Asked {
    pub backend: Backend,
    pub to: Option<Backend>,
    pub file: Option<PathBuf>,
    pub prefix: String,
    pub revision: Option<i64>,
    pub keep: Option<i64>,
    pub top: usize,
    pub depth: usize,
    pub json: bool,
}

impl Asked {
    pub fn from_flags(name: &str, matches: &ArgMatches) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let given = Given { matches, variable: &variable };
        let number = |flag| matches.try_get_one::<i64>(flag).ok().flatten().copied();
        let text = |flag| matches.try_get_one::<String>(flag).ok().flatten();
        let file = matches.try_get_one::<PathBuf>("file").ok().flatten().cloned();
        let prefix = text("prefix").cloned().unwrap_or_default();
        check_prefix(&prefix)
            .map_err(|_| Error::value("prefix", prefix.clone(), "begins no key"))?;
        let count = |flag| number(flag).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let asked = Self {
            backend: backend(&given, &given.text("endpoint"))?,
            to: text("to").map(|to| backend(&given, to)).transpose()?,
            file,
            prefix,
            revision: number("revision"),
            keep: number("keep"),
            top: count("top"),
            depth: count("depth").max(1),
            json: text("output").is_some_and(|format| format == "json"),
        };
        let endpoint = asked.backend.to_string();
        if asked.to.as_ref() == Some(&asked.backend) {
            return Err(Error::value("to", endpoint, "is the store itself"));
        }
        let flags = ["endpoint", "ca-file", "cert-file", "key-file"];
        let typed = |flag: &&str| matches.contains_id(flag);
        if let Some(flag) = flags.into_iter().find(typed).filter(|_| name == "verify")
            && asked.file.is_some()
        {
            return Err(Error::value(flag, given.text(flag), "does not go with a backup's name"));
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, want: Expect) {
        let name = line.split(' ').next().expect("a name");
        let store = Command::new("store").subcommands(commands());
        let words = std::iter::once("store").chain(line.split(' '));
        let shown = match store.try_get_matches_from(words) {
            Err(e) => e.to_string().lines().next().unwrap_or_default().to_owned(),
            Ok(matches) => {
                let (_, given) = matches.subcommand().expect("a command");
                match Asked::from_flags(name, given) {
                    Err(e) => e.to_string(),
                    Ok(a) => {
                        let to = a.to.map(|to| to.to_string());
                        let Asked { file, prefix, revision, keep, top, json, .. } = a;
                        let backend = a.backend;
                        format!(
                            "{backend} {to:?} {file:?} {prefix:?} {revision:?} {keep:?} {top} {json}"
                        )
                    }
                }
            }
        };
        want.assert_eq(&shown);
    }

    #[test]
    fn forms() {
        check(
            "stats --endpoint=sqlite:///a --top 3 -o json",
            expect![[r#"sqlite:///a None None "" None None 3 true"#]],
        );
        check(
            "backup --prefix=/registry b",
            expect![[r#"sqlite://./db/state.db None Some("b") "/registry" None None 0 false"#]],
        );
        check(
            "compact --keep=5",
            expect![[r#"sqlite://./db/state.db None None "" None Some(5) 0 false"#]],
        );
        check(
            "migrate --endpoint=sqlite:///a --to postgres://u:secret@h/d",
            expect![[r#"sqlite:///a Some("postgres://u@h/d") None "" None None 0 false"#]],
        );
    }

    #[test]
    fn refusals() {
        check("compact", expect!["error: the following required arguments were not provided:"]);
        check(
            "compact --keep=-1",
            expect![
                "error: invalid value '-1' for '--keep <NUMBER>': -1 is not in 0..9223372036854775807"
            ],
        );
        check("backup", expect!["error: the following required arguments were not provided:"]);
        check("stats -o yaml", expect!["error: invalid value 'yaml' for '--output <FORMAT>'"]);
        check(
            "migrate --endpoint=sqlite:///a --to=sqlite:///a",
            expect!["--to=sqlite:///a: is the store itself"],
        );
        check(
            "verify --endpoint=sqlite:///a b",
            expect!["--endpoint=sqlite:///a: does not go with a backup's name"],
        );
        check(
            "restore --endpoint=nats://h b",
            expect![
                "--endpoint=nats://h: this kind of store is not supported; use sqlite://<file> or postgres://..."
            ],
        );
    }
}
