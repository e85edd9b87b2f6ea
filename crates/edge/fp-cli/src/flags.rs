//! The plugins' command lines, read the way their users' scripts already spell them.
//!
//! Grammar and error texts are those of pflag and cobra, which the Go plugins use: `--name value`, `--name=value`,
//! `-n value`, `-nvalue`, grouped switches, flags before or after arguments, `--` ends flags.
//! Invariant: after [`parse`] every flag name in [`Flags`] is one of the command's own.

use std::collections::BTreeMap;

/// What a command line asks for, before anything is looked up.
#[derive(Debug)]
pub struct Invocation {
    pub command: Command,
    pub flags: Flags,
    pub args: Vec<String>,
}

/// A command of the plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `ws [path]` and `ws use path`.
    Use,
    Current,
    Create,
    CreateContext,
    Tree,
    Help,
    Version,
}

/// Where parsing starts: which binary was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `kubectl ws`, with subcommands.
    Workspace,
    /// `kubectl create workspace`.
    Create,
}

/// Flags that were set, by long name; a switch holds `true` or `false`.
#[derive(Debug, Default)]
pub struct Flags(BTreeMap<&'static str, String>);

impl Flags {
    /// The value of a flag, if it was given and is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Whether a switch is on.
    pub fn on(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|v| v == "true")
    }
}

/// Why a command line is not understood. Texts are pflag's and cobra's.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("unknown flag: --{0}")]
    UnknownLong(String),
    #[error("unknown shorthand flag: '{0}' in -{1}")]
    UnknownShort(char, String),
    #[error("bad flag syntax: {0}")]
    Syntax(String),
    #[error("flag needs an argument: --{0}")]
    NoValue(&'static str),
    #[error("flag needs an argument: '{0}' in -{1}")]
    NoShortValue(char, String),
    #[error(
        "invalid argument {value:?} for \"{flag}\" flag: strconv.ParseBool: parsing {value:?}: invalid syntax"
    )]
    NotBool { flag: String, value: String },
    #[error("accepts 1 arg(s), received {0}")]
    OneArg(usize),
}

struct Flag {
    long: &'static str,
    short: Option<char>,
    takes: Takes,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Text,
    Switch,
}

const fn text(long: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, takes: Takes::Text, help }
}

const fn switch(long: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, takes: Takes::Switch, help }
}

/// Flags of every command: how to reach the server.
const CONNECTION: &[Flag] = &[
    text("kubeconfig", "path of the kubeconfig file"),
    text("context", "kubeconfig context to use"),
    text("user", "kubeconfig user to use"),
    Flag {
        long: "namespace",
        short: Some('n'),
        takes: Takes::Text,
        help: "accepted; workspaces have no namespace",
    },
    text("server", "address and port of the server"),
    text("token", "bearer token"),
    text("username", "user name for basic authentication"),
    text("password", "password for basic authentication"),
    text("as-uid", "uid of the user that the kubeconfig impersonates"),
    text("certificate-authority", "file with the certificate authority of the server"),
    switch("insecure-skip-tls-verify", "do not verify the server's certificate"),
    text("tls-server-name", "name to verify the server's certificate against"),
    text("proxy-url", "not available in this version"),
    switch("disable-compression", "accepted; responses are never compressed"),
];

/// Flags of klog, which other plugins' users pass everywhere: accepted, without effect.
const LOGGING: &[Flag] = &[
    Flag {
        long: "v",
        short: Some('v'),
        takes: Takes::Text,
        help: "log level (accepted, as are the other klog flags)",
    },
    text("vmodule", ""),
    text("log_dir", ""),
    text("log_file", ""),
    text("log_file_max_size", ""),
    text("log_backtrace_at", ""),
    text("stderrthreshold", ""),
    text("alsologtostderrthreshold", ""),
    switch("add_dir_header", ""),
    switch("alsologtostderr", ""),
    switch("legacy_stderr_threshold_behavior", ""),
    switch("logtostderr", ""),
    switch("one_output", ""),
    switch("skip_headers", ""),
    switch("skip_log_headers", ""),
];

const META: &[Flag] = &[
    Flag { long: "help", short: Some('h'), takes: Takes::Switch, help: "show this text" },
    switch("version", "show the version"),
];

const SHORT_OUTPUT: Flag = switch("short", "print only the path of the workspace");
const INTERACTIVE: Flag = Flag {
    long: "interactive",
    short: Some('i'),
    takes: Takes::Switch,
    help: "not available in this version",
};
const WORKSPACE: Flag = Flag {
    long: "workspace",
    short: Some('w'),
    takes: Takes::Text,
    help: "workspace to work in: \":absolute:path\", \"relative\", \".\" or \"..\"",
};

const USE: &[Flag] = &[SHORT_OUTPUT, INTERACTIVE];
const CURRENT: &[Flag] = &[SHORT_OUTPUT];
const CREATE: &[Flag] = &[
    text("type", "workspace type: \"name\" or \"path:name\""),
    switch("enter", "enter the workspace once it is ready"),
    switch("ignore-existing", "no error if the workspace exists; --type must be absolute then"),
    text("location-selector", "label selector of the shards to choose from"),
    text("create-context", "create a kubeconfig context of this name for the workspace"),
    WORKSPACE,
];
const CREATE_CONTEXT: &[Flag] = &[switch("overwrite", "replace the context if it exists")];
const TREE: &[Flag] = &[
    Flag { long: "full", short: Some('f'), takes: Takes::Switch, help: "show full paths" },
    INTERACTIVE,
    switch("wide", "show phases of workspaces and logical clusters"),
    WORKSPACE,
];

fn own_flags(command: Command) -> &'static [Flag] {
    match command {
        Command::Use => USE,
        Command::Current => CURRENT,
        Command::Create => CREATE,
        Command::CreateContext => CREATE_CONTEXT,
        Command::Tree => TREE,
        Command::Help | Command::Version => &[],
    }
}

fn all_flags(command: Command) -> impl Iterator<Item = &'static Flag> {
    own_flags(command).iter().chain(CONNECTION).chain(LOGGING).chain(META)
}

fn subcommand(word: &str) -> Option<Command> {
    Some(match word {
        "use" | "cd" => Command::Use,
        "current" => Command::Current,
        "create" => Command::Create,
        "create-context" => Command::CreateContext,
        "tree" => Command::Tree,
        "help" => Command::Help,
        _ => return None,
    })
}

/// The subcommand that the words name, without a look at its flags: what runs even if they are wrong.
pub fn named_command(words: &[String]) -> Option<Command> {
    words.iter().find(|w| !w.starts_with('-')).and_then(|w| subcommand(w))
}

/// Reads a command line.
pub fn parse(entry: Entry, words: &[String]) -> Result<Invocation, Error> {
    let mut command = if entry == Entry::Create { Command::Create } else { Command::Use };
    let mut may_descend = entry == Entry::Workspace;
    let mut descended = entry == Entry::Create;
    let mut flags = Flags::default();
    let mut args = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            args.extend(rest.cloned());
            break;
        } else if let Some(long) = word.strip_prefix("--") {
            read_long(command, long, &mut rest, &mut flags)?;
        } else if word.len() > 1 && word.starts_with('-') {
            read_short(command, &word[1..], &mut rest, &mut flags)?;
        } else if let Some(sub) = subcommand(word).filter(|_| may_descend) {
            (command, may_descend, descended) = (sub, false, true);
        } else {
            may_descend = false;
            args.push(word.clone());
        }
    }
    if flags.on("help") {
        command = Command::Help;
    } else if flags.on("version") {
        command = Command::Version;
    }
    let command = match command {
        Command::Create if args.len() != 1 => return Err(Error::OneArg(args.len())),
        // cobra's RunE functions answer a wrong number of arguments with the help text.
        Command::Use if args.len() > 1 || (descended && args.is_empty()) => Command::Help,
        Command::CreateContext if args.len() > 1 => Command::Help,
        Command::Current | Command::Tree if !args.is_empty() => Command::Help,
        other => other,
    };
    Ok(Invocation { command, flags, args })
}

fn read_long<'a>(
    command: Command,
    word: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    flags: &mut Flags,
) -> Result<(), Error> {
    let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
    if name.is_empty() || name.starts_with('-') {
        return Err(Error::Syntax(format!("--{word}")));
    }
    let flag = all_flags(command)
        .find(|f| f.long == name)
        .ok_or_else(|| Error::UnknownLong(name.to_owned()))?;
    let value = match (value, flag.takes) {
        (Some(value), Takes::Text) => value.to_owned(),
        (Some(value), Takes::Switch) => read_bool(format!("--{name}"), value)?,
        (None, Takes::Switch) => "true".to_owned(),
        (None, Takes::Text) => rest.next().cloned().ok_or(Error::NoValue(flag.long))?,
    };
    flags.0.insert(flag.long, value);
    Ok(())
}

fn read_short<'a>(
    command: Command,
    group: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    flags: &mut Flags,
) -> Result<(), Error> {
    let mut left = group;
    while let Some(letter) = left.chars().next() {
        let group_left = left;
        left = &left[letter.len_utf8()..];
        let flag = all_flags(command)
            .find(|f| f.short == Some(letter))
            .ok_or_else(|| Error::UnknownShort(letter, group_left.to_owned()))?;
        let value = match (left.strip_prefix('='), flag.takes) {
            (Some(value), Takes::Switch) => {
                left = "";
                read_bool(format!("-{letter}, --{}", flag.long), value)?
            }
            (Some(value), Takes::Text) => {
                left = "";
                value.to_owned()
            }
            (None, Takes::Switch) => "true".to_owned(),
            (None, Takes::Text) if !left.is_empty() => std::mem::take(&mut left).to_owned(),
            (None, Takes::Text) => rest
                .next()
                .cloned()
                .ok_or_else(|| Error::NoShortValue(letter, group_left.to_owned()))?,
        };
        flags.0.insert(flag.long, value);
    }
    Ok(())
}

/// The spellings of Go's `strconv.ParseBool`.
fn read_bool(flag: String, value: &str) -> Result<String, Error> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok("true".to_owned()),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok("false".to_owned()),
        _ => Err(Error::NotBool { flag, value: value.to_owned() }),
    }
}

/// The help text of a plugin.
pub fn help(entry: Entry) -> String {
    let (head, commands): (&str, &[Command]) = match entry {
        Entry::Create => (
            "Creates a workspace.\n\nUsage:\n  kubectl create workspace <name> [flags]\n",
            &[Command::Create],
        ),
        Entry::Workspace => (
            WORKSPACE_HELP,
            &[Command::Use, Command::Create, Command::CreateContext, Command::Tree],
        ),
    };
    let mut out = head.to_owned();
    for command in commands {
        let title = match command {
            Command::Create => "create",
            Command::CreateContext => "create-context",
            Command::Tree => "tree",
            _ => "use, current",
        };
        push_flags(&mut out, &format!("Flags of {title}"), own_flags(*command));
    }
    push_flags(&mut out, "Flags of every command", CONNECTION);
    push_flags(&mut out, "Other", &LOGGING[..1]);
    push_flags(&mut out, "", META);
    out
}

const WORKSPACE_HELP: &str = "Manages workspaces.

Usage:
  kubectl ws [use] <path>            enter a workspace
  kubectl ws current                 print the current workspace
  kubectl ws create <name>           create a workspace below the current one
  kubectl ws create-context [name]   create a kubeconfig context for the current workspace
  kubectl ws tree                    print the workspaces below the current one

A path is relative (\"team:app\"), absolute (\":root:team\"), \".\" (current), \"..\" (parent), \"-\" (previous),
\":\" (root) or \"~\" (home, where the server has home workspaces). \"/\" may stand for \":\".
";

fn push_flags(out: &mut String, title: &str, flags: &[Flag]) {
    if !title.is_empty() {
        out.push_str(&format!("\n{title}:\n"));
    }
    for flag in flags {
        let short = flag.short.map_or("    ".to_owned(), |c| format!("-{c}, "));
        out.push_str(&format!("  {short}--{:<26} {}\n", flag.long, flag.help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(entry: Entry, line: &str, expected: Expect) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let shown = match parse(entry, &words) {
            Ok(i) => format!("{:?} {:?} {:?}", i.command, i.flags.0, i.args),
            Err(error) => format!("Error: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn lines_of_ws() {
        let ws = |line: &str, expected: Expect| check(Entry::Workspace, line, expected);
        ws("", expect![[r#"Use {} []"#]]);
        ws("-", expect![[r#"Use {} ["-"]"#]]);
        ws("..:a --short", expect![[r#"Use {"short": "true"} ["..:a"]"#]]);
        ws("--short=0 :", expect![[r#"Use {"short": "false"} [":"]"#]]);
        ws("a use", expect![[r#"Help {} ["a", "use"]"#]]);
        ws("use", expect!["Help {} []"]);
        ws("cd a -v 9 -n x", expect![[r#"Use {"namespace": "x", "v": "9"} ["a"]"#]]);
        ws("tree -f --wide", expect![[r#"Tree {"full": "true", "wide": "true"} []"#]]);
        ws(
            "tree -fi -w:root",
            expect![[r#"Tree {"full": "true", "interactive": "true", "workspace": ":root"} []"#]],
        );
        ws("--kubeconfig k current", expect![[r#"Current {"kubeconfig": "k"} []"#]]);
        ws("create-context -- --overwrite", expect![[r#"CreateContext {} ["--overwrite"]"#]]);
        ws(
            "create a --type t --enter",
            expect![[r#"Create {"enter": "true", "type": "t"} ["a"]"#]],
        );
        ws("a --help", expect![[r#"Help {"help": "true"} ["a"]"#]]);
        ws("--version", expect![[r#"Version {"version": "true"} []"#]]);
    }

    #[test]
    fn errors_are_worded_as_by_pflag() {
        let ws = |line: &str, expected: Expect| check(Entry::Workspace, line, expected);
        ws("--foo", expect!["Error: unknown flag: --foo"]);
        ws("-x", expect!["Error: unknown shorthand flag: 'x' in -x"]);
        ws("tree --kubeconfig", expect!["Error: flag needs an argument: --kubeconfig"]);
        ws("tree -w", expect!["Error: flag needs an argument: 'w' in -w"]);
        ws("--=x", expect!["Error: bad flag syntax: --=x"]);
        ws(
            "--short=zz",
            expect![[
                r#"Error: invalid argument "zz" for "--short" flag: strconv.ParseBool: parsing "zz": invalid syntax"#
            ]],
        );
        ws("create", expect!["Error: accepts 1 arg(s), received 0"]);
        check(Entry::Create, "a b", expect!["Error: accepts 1 arg(s), received 2"]);
        check(Entry::Create, "use", expect![[r#"Create {} ["use"]"#]]);
    }
}
