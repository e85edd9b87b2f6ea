//! `ferroplane store` as clients of etcd see it: etcdctl's own transcripts.

mod flags;
mod matrix;
mod restarts;
mod watch;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
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

    /// The same with an input to write to.
    fn interactive(mut command: Command) -> (ChildStdin, Self) {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("run a program");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let input = child.stdin.take().expect("it is piped");
        (input, Self { child, output })
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
        expect![[r#"
            $ put /a/1 one
            OK
            $ put /a/2 two
            OK
            $ put /a/3 three
            OK
            $ put /b four
            OK
            $ put /a/2 zwei --prev-kv
            OK
            /a/2
            two
            $ get /a/2
            /a/2
            zwei
            $ get /a/ --prefix
            /a/1
            one
            /a/2
            zwei
            /a/3
            three
            $ get /a/ --prefix --limit=2 --keys-only -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 6
            "RaftTerm" : 1
            "Key" : "/a/1"
            "CreateRevision" : 2
            "ModRevision" : 2
            "Version" : 1
            "Value" : ""
            "Lease" : 0
            "Key" : "/a/2"
            "CreateRevision" : 3
            "ModRevision" : 6
            "Version" : 2
            "Value" : ""
            "Lease" : 0
            "More" : true
            "Count" : 3
            $ get /a/2 --from-key --print-value-only
            zwei
            three
            four
            $ get /a/1 /a/3 --keys-only
            /a/1

            /a/2

            $ get / --prefix --order=DESCEND --sort-by=MODIFY --keys-only
            /a/2

            /b

            /a/3

            /a/1

            $ get / --prefix --sort-by=VALUE --print-value-only
            four
            one
            three
            zwei
            $ get / --prefix --count-only -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 6
            "RaftTerm" : 1
            "More" : false
            "Count" : 4
            $ get /a/2 --rev=3
            /a/2
            two
            $ get /a/2 --rev=99
            Error: etcdserver: mvcc: required revision is a future revision
            $ get / --prefix --rev=3 --keys-only
            /a/1

            /a/2

            $ put /a/2 --ignore-value
            OK
            $ put /nope --ignore-value
            Error: etcdserver: key not found
            $ del /a/2 --prev-kv
            1
            /a/2
            zwei
            $ del /a/2
            0
            $ del /a/ --prefix
            2
            $ get  --prefix --keys-only
            /b

            $ put 1 x
            Error: rpc error: code = InvalidArgument desc = etcdserver: a key is UTF-8 without NUL, begins with / or a letter, and has at most 2048 bytes
            $ get health
        "#]],
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
            "txn\nvalue(\"/a\") > \"1\"\n\ndel / --prefix\nget / --prefix\n\n\n",
            "get / --prefix",
        ],
        expect![[r#"
            $ put /a 1
            OK
            $ txn
            mod("/a") = "2"
            create("/b") = "0"

            put /b 2
            put /c 3
            get / --prefix

            get /a
            SUCCESS

            OK

            OK

            /a
            1
            /b
            2
            /c
            3
            $ txn
            value("/a") = "9"

            put /a 2

            get /a
            get /b
            FAILURE

            /a
            1

            /b
            2
            $ txn
            version("/a") > "0"
            version("/none") = "0"

            put /a 2 --prev-kv
            SUCCESS

            OK
            /a
            1
            $ txn
            version("/a") = "5"

            put /a 3
            Error: rpc error: code = Unimplemented desc = a compare of VERSION with more than 1 is not served by ferroplane store
            $ txn

            put /a 1
            put /a 2
            Error: etcdserver: duplicate key given in txn request
            $ txn

            del / --prefix
            put /a 2
            Error: etcdserver: duplicate key given in txn request
            $ txn
            value("/a") > "1"

            del / --prefix
            get / --prefix
            SUCCESS

            3

            $ get / --prefix
        "#]],
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
            "move-leader 1",
            "user list",
            "member add x --peer-urls=http://localhost:1",
        ],
        expect![[r#"
            $ put /a 1
            OK
            $ put /a 2
            OK
            $ put /a 3
            OK
            $ compact 3
            compacted revision 3
            $ compact 3
            Error: etcdserver: mvcc: required revision has been compacted
            $ compact 99
            Error: etcdserver: mvcc: required revision is a future revision
            $ get /a --rev=2
            Error: etcdserver: mvcc: required revision has been compacted
            $ get /a --rev=3
            /a
            2
            $ watch /a --rev=2
            watch was canceled (etcdserver: mvcc: required revision has been compacted)
            Error: watch is canceled by the server
            $ endpoint status -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 4
            "RaftTerm" : 1
            "Version" : "3.6.11"
            "StorageVersion" : ""
            "DBSize" : 32768
            "DBSizeInUse" : 32768
            "DBSizeQuota" : 0
            "Leader" : 7739838815445019764
            "IsLearner" : false
            "RaftIndex" : 4
            "RaftTerm" : 1
            "RaftAppliedIndex" : 4
            "Errors" : []
            "Endpoint" : "URL"
            "DowngradeTargetVersion" : ""
            "DowngradeEnabled" : false

            $ endpoint hashkv -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 4
            "RaftTerm" : 1
            "Endpoint" : "URL"
            "Hash" : 321130553
            "HashRevision" : 4

            $ endpoint hashkv --rev=3 -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 4
            "RaftTerm" : 1
            "Endpoint" : "URL"
            "Hash" : 3938293529
            "HashRevision" : 3

            $ member list
            6b696e652d616c74, started, ferroplane, URL, URL, false
            $ alarm list
            $ alarm disarm
            $ lease grant 3600
            lease 0000000000000e10 granted with TTL(3600s)
            $ put /l x --lease=e10
            OK
            $ get /l -w fields
            "ClusterID" : 7378429400337902689
            "MemberID" : 7739838815445019764
            "Revision" : 5
            "RaftTerm" : 1
            "Key" : "/l"
            "CreateRevision" : 5
            "ModRevision" : 5
            "Version" : 1
            "Value" : "x"
            "Lease" : 3600
            "More" : false
            "Count" : 1
            $ put /l x --lease=7fffffffffffffff
            Error: etcdserver: requested lease not found
            $ lease timetolive e10
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Lease.LeaseTimeToLive is not served by ferroplane store
            $ lease keep-alive e10 --once
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Lease.LeaseKeepAlive is not served by ferroplane store
            $ lease revoke e10
            Error: failed to revoke lease (rpc error: code = Unimplemented desc = etcdserverpb.Lease.LeaseRevoke is not served by ferroplane store)
            $ lease list
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Lease.LeaseLeases is not served by ferroplane store
            $ move-leader 1
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Maintenance.MoveLeader is not served by ferroplane store
            $ user list
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Auth.UserList is not served by ferroplane store
            $ member add x --peer-urls=http://localhost:1
            Error: rpc error: code = Unimplemented desc = etcdserverpb.Cluster.MemberAdd is not served by ferroplane store
        "#]],
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
    Store::start(&[]).transcript(
        &commands,
        expect![[r#"
        $ txn
        version("compact_rev_key") = "0"

        put compact_rev_key 10

        get compact_rev_key
        SUCCESS

        OK
        $ txn
        version("compact_rev_key") = "1"

        put compact_rev_key 20

        get compact_rev_key
        SUCCESS

        OK
        $ txn
        version("compact_rev_key") = "1"

        put compact_rev_key 30

        get compact_rev_key
        FAILURE

        compact_rev_key
        20
        $ txn
        version("compact_rev_key") = "2"

        put compact_rev_key 40

        get compact_rev_key
        SUCCESS

        OK
        $ get compact_rev_key -w fields
        "ClusterID" : 7378429400337902689
        "MemberID" : 7739838815445019764
        "Revision" : 4
        "RaftTerm" : 1
        "Key" : "compact_rev_key"
        "CreateRevision" : 2
        "ModRevision" : 4
        "Version" : 3
        "Value" : "40"
        "Lease" : 0
        "More" : false
        "Count" : 1
    "#]],
    );
}
