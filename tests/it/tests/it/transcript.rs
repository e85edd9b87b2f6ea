//! Transcripts: what a newcomer, an API author and a second user type, and what they see.
//!
//! A transcript in `tests/oracle/transcript` is a list of commands (`$ ...`), each followed by its
//! output and exit code, with what is random replaced by words. Lines that begin with `##` are
//! ours: they say where Go kcp answers otherwise. `UPDATE_EXPECT=1` writes the answers anew.

use std::path::Path;

use expect_test::{ExpectFile, expect_file};
use it::Server;
use regex::Regex;

const COMMAND: &str = "$ ";
const COMMENT: &str = "##";

/// What differs from run to run, and the word for it.
const RANDOM: [(&str, &str); 11] = [
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4}", "TIME"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"(kcp\.io/cluster: )[0-9a-z]{16}", "${1}CLUSTER"),
    (r#"(resourceVersion: ")\d+"#, "${1}RV"),
    (r"(Resource Version: +)\d+", "${1}RV"),
    (r"\S*/(LIVE|MERGED)-\d+", "$1"),
    (r"^[EW]\d{4} [\d:.]+ +\d+ ", "E "),
    // An age in a column of its own.
    (r"(^|  )(\d+m)?\d+s(  |$)", "${1}AGE$3"),
    // Columns are as wide as what stands in them.
    (r"(\S)  +", "$1  "),
];

#[test]
fn newcomer() {
    check(&Server::start(), &[], expect_file!["../../../oracle/transcript/newcomer.txt"]);
}

#[test]
fn author() {
    check(&Server::start(), &[], expect_file!["../../../oracle/transcript/author.txt"]);
}

#[test]
fn second_user() {
    let dir = tempfile::tempdir().expect("make a folder");
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "user-1-token,user-1,u1,\"team-1\"\n").expect("write the tokens");
    let server = Server::start_with(&[&format!("--token-auth-file={}", tokens.display())]);
    let script = dir.path().join("as-user");
    // `as-user <token> <workspace> <arguments of kubectl>`, with no other credentials.
    let text = format!(
        "token=$1; workspace=$2; shift 2\n\
         exec kubectl --kubeconfig=/dev/null --server={}/clusters/root:$workspace --token=$token \
         --certificate-authority={} \"$@\"\n",
        server.url,
        server.root.join("apiserver.crt").display(),
    );
    std::fs::write(&script, text).expect("write a script");
    let run = |token: &str| format!("sh {} {token}", script.display());
    check(
        &server,
        &[("USER_1", &run("user-1-token")), ("WRONG", &run("wrong"))],
        expect_file!["../../../oracle/transcript/second-user.txt"],
    );
}

/// Types the commands of a transcript, and compares all that comes back.
fn check(server: &Server, variables: &[(&str, &str)], transcript: ExpectFile) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oracle/transcript");
    let random: Vec<(Regex, &str)> = RANDOM
        .iter()
        .map(|(pattern, word)| (Regex::new(pattern).expect("a constant pattern"), *word))
        .collect();
    let mut got = String::new();
    for line in transcript.data().lines() {
        if line.starts_with(COMMENT) {
            got.push_str(&format!("{line}\n"));
        }
        let Some(command) = line.strip_prefix(COMMAND) else { continue };
        let (output, code) = server.shell(command, &folder, variables);
        got.push_str(&format!("{line}\n"));
        for line in output.lines() {
            let plain = random.iter().fold(line.to_owned(), |line, (pattern, word)| {
                pattern.replace_all(&line, *word).into_owned()
            });
            got.push_str(plain.trim_end());
            got.push('\n');
        }
        got.push_str(&format!("[exit {code}]\n"));
    }
    transcript.assert_eq(&got);
}
