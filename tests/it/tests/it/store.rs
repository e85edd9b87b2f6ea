//! `ferroplane store` as clients of etcd see it: etcdctl's own transcripts.

mod flags;
mod matrix;
mod restarts;
mod watch;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use it::{PATIENCE, program, tool};
use tempfile::TempDir;

/// A store that runs; ends with the value.
struct Store {
    child: Child,
    url: String,
    /// Where its file is.
    folder: TempDir,
}

impl Store {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("make a folder");
        Self::start_in(folder, flags)
    }

    fn start_in(folder: TempDir, flags: &[&str]) -> Self {
        let file = format!("--endpoint=sqlite://{}", folder.path().join("state.db").display());
        let mut child = Command::new(program())
            .args(["store", "--listen-address=127.0.0.1:0", "--metrics-bind-address=0", &file])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("run the store");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("read what it says");
        let url = line.strip_prefix("Ready at ").and_then(|rest| rest.split(' ').next());
        let url = url.unwrap_or_else(|| panic!("the store says {line:?}")).to_owned();
        Self { child, url, folder }
    }

    /// Ends it as an operator does, and returns its folder.
    fn stop(mut self) -> TempDir {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("send SIGTERM");
        let ended = self.child.wait().expect("wait for the store");
        assert!(ended.success(), "{ended}");
        std::mem::replace(&mut self.folder, tempfile::tempdir().expect("make a folder"))
    }

    fn etcdctl(&self) -> Command {
        let mut command = Command::new(tool("etcdctl"));
        command.arg(format!("--endpoints={}", self.url));
        command
    }

    /// What etcdctl says to a command: what it prints, and its error without the log line.
    fn run(&self, line: &str) -> String {
        let (line, input) = line.split_once('\n').unwrap_or((line, ""));
        let mut child = self
            .etcdctl()
            .args(line.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run etcdctl");
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("write");
        let output = child.wait_with_output().expect("wait for etcdctl");
        let mut text = String::from_utf8(output.stdout).expect("text");
        let errors = String::from_utf8(output.stderr).expect("text");
        for error in errors.lines().filter(|line| !line.starts_with('{')) {
            text.push_str(error);
            text.push('\n');
        }
        text
    }

    /// A transcript: each command after `$`, and what it says.
    fn transcript(&self, commands: &[&str], want: Expect) {
        let mut all = String::new();
        for command in commands {
            all.push_str(&format!("$ {}\n{}", command.trim_end(), self.run(command)));
        }
        want.assert_eq(&all.replace(&self.url, "URL").replace(self.address(), "ADDRESS"));
    }

    fn address(&self) -> &str {
        self.url.split_once("://").map_or(&*self.url, |(_, address)| address)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program whose lines are awaited.
struct Follower {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Follower {
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("run a program");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, output }
    }

    /// The next `n` lines.
    fn lines(&mut self, n: usize) -> String {
        let mut text = String::new();
        for _ in 0..n {
            assert_ne!(self.output.read_line(&mut text).expect("read"), 0, "it ended: {text}");
        }
        text
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_and_ranges() {
    Store::start(&[]).transcript(
        &[
            "put /a/1 one",
            "put /a/2 two",
            "put /a/3 three",
            "put /b four",
            "put /a/2 zwei --prev-kv",
            "get /a/2",
            "get /a/ --prefix",
            "get /a/ --prefix --limit=2 --keys-only -w fields",
            "get /a/2 --from-key --print-value-only",
            "get /a/1 /a/3 --keys-only",
            "get / --prefix --order=DESCEND --sort-by=MODIFY --keys-only",
            "get / --prefix --sort-by=VALUE --print-value-only",
            "get / --prefix --count-only -w fields",
            "get /a/2 --rev=3",
            "get /a/2 --rev=99",
            "get / --prefix --rev=3 --keys-only",
            "put /a/2 --ignore-value",
            "put /nope --ignore-value",
            "del /a/2 --prev-kv",
            "del /a/2",
            "del /a/ --prefix",
            "get  --prefix --keys-only",
            "put 1 x",
            "get health",
        ],
        expect![[""]],
    );
}

#[test]
fn transactions() {
    Store::start(&[]).transcript(
        &[
            "put /a 1",
            "txn\nmod(\"/a\") = \"2\"\ncreate(\"/b\") = \"0\"\n\nput /b 2\nput /c 3\nget / --prefix\n\nget /a\n\n",
            "txn\nvalue(\"/a\") = \"9\"\n\nput /a 2\n\nget /a\nget /b\n\n",
            "txn\nversion(\"/a\") > \"0\"\nversion(\"/none\") = \"0\"\n\nput /a 2 --prev-kv\n\n\n",
            "txn\nversion(\"/a\") = \"5\"\n\nput /a 3\n\n\n",
            "txn\n\nput /a 1\nput /a 2\n\n\n",
            "txn\n\ndel / --prefix\nput /a 2\n\n\n",
            "txn\nlease(\"/a\") = \"0\"\n\ndel / --prefix\nget / --prefix\n\n\n",
            "get / --prefix",
        ],
        expect![[""]],
    );
}

#[test]
fn the_rest() {
    let store = Store::start(&[]);
    store.transcript(
        &[
            "put /a 1",
            "put /a 2",
            "put /a 3",
            "compact 3",
            "compact 3",
            "compact 99",
            "get /a --rev=2",
            "get /a --rev=3",
            "watch /a --rev=2",
            "endpoint status -w fields",
            "endpoint hashkv -w fields",
            "endpoint hashkv --rev=3 -w fields",
            "member list",
            "alarm list",
            "alarm disarm",
            "lease grant 3600",
            "put /l x --lease=e10",
            "get /l -w fields",
            "put /l x --lease=7fffffffffffffff",
            "lease timetolive e10",
            "lease keep-alive e10 --once",
            "lease revoke e10",
            "lease list",
            "defrag",
            "move-leader 1",
            "user list",
            "member add x --peer-urls=http://localhost:1",
        ],
        expect![[""]],
    );
    let health = store.run("endpoint health");
    assert!(health.contains("is healthy"), "{health}");
}

/// What kine keeps for itself and API servers use: the version counts although versions are not
/// counted elsewhere.
#[test]
fn the_compact_key_of_api_servers() {
    let compact = |version: &str, revision: &str| {
        format!(
            "txn\nversion(\"compact_rev_key\") = \"{version}\"\n\nput compact_rev_key {revision}\n\nget compact_rev_key\n\n"
        )
    };
    let steps = [compact("0", "10"), compact("1", "20"), compact("1", "30"), compact("2", "40")];
    let mut commands: Vec<&str> = steps.iter().map(String::as_str).collect();
    commands.push("get compact_rev_key -w fields");
    Store::start(&[]).transcript(&commands, expect![[""]]);
}
