//! A start that cannot be says so in one line that tells what to do, exits with 1 and damages
//! nothing: what was there is as it was, and once the cause is gone the same start succeeds.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use it::{Server, program};
use rustix::fs::{FlockOperation, fcntl_lock, flock};

const FREE_PORT: [&str; 3] =
    ["--bind-address=127.0.0.1", "--secure-port=0", "--experimental-bind-free-port"];

/// What the start says: one line on stderr, nothing on stdout.
fn refusal(command: &mut Command) -> String {
    let output = command.output().expect("run the program");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{command:?}: {told}");
    assert!(told.starts_with("error: "), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{command:?}");
    told.trim_end().to_owned()
}

fn start(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("start").args(args);
    command
}

fn start_in(root: &Path) -> Command {
    let mut command = start(&FREE_PORT);
    command.arg(format!("--root-directory={}", root.display()));
    command
}

/// Every file below a folder, but the locks that a start writes its process id to.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("read the folder") {
        let path = entry.expect("read an entry").path();
        if path.is_dir() {
            found.append(&mut content(&path));
        } else if path.extension().is_none_or(|e| e != "lock") {
            found.insert(path.clone(), std::fs::read(&path).expect("read a file"));
        }
    }
    found
}

/// A root directory that has been started once.
fn used_root() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("make a folder");
    let root = dir.path().join("root");
    let mut server = Server::start_in(&root, &[]).expect("start the server");
    server.stop();
    (dir, root)
}

#[test]
fn flags() {
    for (args, want) in [
        (vec!["--etcd-servers=mysql://x"], "mysql is not supported"),
        (vec!["--oidc-issuer-url=https://x"], "--oidc-issuer-url is not available"),
        (vec!["--root-directory="], "give sqlite://<file>"),
        (vec!["--root-directory=/proc/nowhere"], "give a directory that you can write"),
    ] {
        let told = refusal(&mut start(&args));
        assert!(told.contains(want), "{told}");
    }
}

#[test]
fn a_root_directory_that_is_in_use() {
    let server = Server::start();
    let told = refusal(&mut start_in(&server.root));
    assert!(told.contains(&format!("in use by process {}", server.pid())), "{told}");
    assert!(told.contains("stop it, or give another --root-directory"), "{told}");
    let answer = server.get("/readyz").expect("an answer");
    assert_eq!(answer.code, 200);
}

#[test]
fn a_root_directory_of_a_go_kcp() {
    let dir = tempfile::tempdir().expect("make a folder");
    std::fs::create_dir(dir.path().join("etcd-server")).expect("make a folder");
    let told = refusal(&mut start_in(dir.path()));
    assert!(told.contains("holds the data of a Go kcp"), "{told}");
    assert!(content(dir.path()).is_empty());
}

#[test]
fn a_port_in_use() {
    let server = Server::start();
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let dir = tempfile::tempdir().expect("make a folder");
    let root = format!("--root-directory={}", dir.path().display());
    let port_flag = format!("--secure-port={port}");
    let told = refusal(&mut start(&[&root, "--bind-address=127.0.0.1", &port_flag]));
    assert!(told.contains(&format!("127.0.0.1:{port}: the port is in use")), "{told}");
    assert!(told.contains("choose another or stop it"), "{told}");
    // 192.0.2.0/24 is documentation: no machine has it.
    let told = refusal(&mut start(&[&root, "--bind-address=192.0.2.1", "--secure-port=16443"]));
    assert!(told.contains("this machine has no such address; choose another"), "{told}");
    Server::start_in(dir.path(), &[]).expect("start on a free port");
}

#[test]
fn a_foreign_database_file() {
    let text = "this is not a database at all, not even nearly so".repeat(40);
    for content in [text.as_bytes(), &text.as_bytes()[..20], &[0; 8192]] {
        let dir = tempfile::tempdir().expect("make a folder");
        let file = dir.path().join("ferroplane.db");
        std::fs::write(&file, content).expect("write a file");
        let told = refusal(&mut start_in(dir.path()));
        assert!(told.contains("is not a kine database: move it away"), "{told}");
        assert_eq!(std::fs::read(&file).expect("read the file"), content);
        std::fs::rename(&file, dir.path().join("elsewhere")).expect("move it away");
        Server::start_in(dir.path(), &[]).expect("start without it");
    }
}

#[test]
fn a_damaged_database_file() {
    let (_dir, root) = used_root();
    let file = root.join("ferroplane.db");
    let mut bytes = std::fs::read(&file).expect("read the file");
    for wal in ["ferroplane.db-wal", "ferroplane.db-shm"] {
        let _ = std::fs::remove_file(root.join(wal));
    }
    // The header stays, the rest is noise.
    let end = bytes.len();
    for (at, byte) in bytes[100..end].iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    std::fs::write(&file, &bytes).expect("write the file");
    let told = refusal(&mut start_in(&root));
    assert!(told.contains("is damaged: restore it from a backup"), "{told}");
    assert_eq!(std::fs::read(&file).expect("read the file"), bytes);
}

#[test]
fn a_locked_database_file() {
    let (_dir, root) = used_root();
    let before = content(&root);
    let open = |name: &str| {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).open(root.join(name)).expect("open")
    };
    // Our own lock, as another server on the same file holds it.
    let lock = open("ferroplane.db.lock");
    flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("lock");
    let told = refusal(&mut start_in(&root));
    assert!(told.contains("is in use by process"), "{told}");
    assert!(told.contains("stop it or use another root directory"), "{told}");
    drop(lock);
    // SQLite's own locks, as kine or a backup holds them.
    let file = open("ferroplane.db");
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("lock");
    let told = refusal(&mut start_in(&root));
    assert!(told.contains("is busy: another program holds a lock"), "{told}");
    assert!(told.contains("stop kine or the backup"), "{told}");
    drop(file);
    let after = content(&root);
    for name in ["ferroplane.db", ".admin-token-store", "apiserver.key", "sa.key"] {
        assert_eq!(before.get(&root.join(name)), after.get(&root.join(name)), "{name}");
    }
    Server::start_in(&root, &[]).expect("start again");
}

#[test]
fn wrong_files() {
    let (_dir, root) = used_root();
    let config = std::fs::read_to_string(root.join("admin.kubeconfig")).expect("read");
    let other = config.replace("token: ", "token: x");
    for (file, text, want) in [
        ("admin.kubeconfig", "{", "is not a kubeconfig"),
        ("admin.kubeconfig", "a: [b", "is not a kubeconfig"),
        ("admin.kubeconfig", "users: []", "holds no token of shard-admin; remove"),
        ("admin.kubeconfig", other.as_str(), "is not valid any more; remove"),
        (".admin-token-store", "short", "is not an admin token store"),
        ("sa.key", "no key", "holds no private or public key"),
        ("apiserver.crt", "no certificate", "apiserver.crt"),
        ("apiserver.key", "no key", "apiserver.key"),
    ] {
        let path = root.join(file);
        let right = std::fs::read(&path).expect("read");
        std::fs::write(&path, text).expect("write a file");
        let before = content(&root);
        let told = refusal(&mut start_in(&root));
        assert!(told.contains(want), "{file} {text:?}: {told}");
        assert_eq!(content(&root), before, "{file} {text:?}");
        std::fs::write(&path, right).expect("write a file");
    }
    // What can be made again is no reason to refuse.
    for file in ["apiserver.crt", "sa.key", "ferroplane.lock"] {
        std::fs::remove_file(root.join(file)).expect("remove a file");
        Server::start_in(&root, &[]).expect("start again");
    }
}

/// Root may write everywhere, so the program runs as another user where the tests run as root.
#[test]
fn a_root_directory_without_permission() {
    const NOBODY: u32 = 65534;
    let dir = tempfile::tempdir().expect("make a folder");
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    };
    set(dir.path(), 0o755);
    let copy = dir.path().join("ferroplane");
    std::fs::copy(program(), &copy).expect("copy the program");
    let (closed, file) = (dir.path().join("closed"), dir.path().join("file"));
    std::fs::create_dir(&closed).expect("make a folder");
    set(&closed, 0o555);
    std::fs::write(&file, "").expect("write a file");
    let below = closed.join("below");
    for (root, want) in [
        (&closed, "make it writable for this user, or give another directory"),
        (&below, "make it writable for this user, or give another directory"),
        (&file, "give a directory that you can write"),
    ] {
        let mut command = Command::new(&copy);
        command.arg("start").args(FREE_PORT);
        command.arg(format!("--root-directory={}", root.display()));
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let told = refusal(&mut command);
        assert!(told.contains(want) && told.contains("--root-directory"), "{told}");
    }
    assert_eq!(std::fs::read_dir(&closed).expect("read").count(), 0);
}

/// Starts with little space, frees some, and starts again: `first` and `second` hold the exit
/// codes. The space is a file system of its own where one may be mounted; exit code 77 says that
/// it may not.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size="$SIZE" none "$DIR" 2>/dev/null || exit 77
if [ -n "$FILL" ]; then cat /dev/zero >"$DIR/filler" 2>/dev/null; fi
"$@" 2>"$OUT/told" >&2; echo $? >"$OUT/first"
rm -f "$DIR/filler"
mount -o remount,size=256m "$DIR"
"$@" 2>"$OUT/log" >&2 & pid=$!
until [ -s "$DIR/root/port" ]; do kill -0 $pid || break; sleep 0.05; done
kill -TERM $pid; wait $pid; echo $? >"$OUT/second"
"#;

/// The same with a limit on the size of a file, which needs no rights.
const WITH_SMALL_FILES: &str = r#"
(trap '' XFSZ; ulimit -f "$SIZE"; exec "$@") 2>"$OUT/told" >&2; echo $? >"$OUT/first"
"$@" 2>"$OUT/log" >&2 & pid=$!
until [ -s "$DIR/root/port" ]; do kill -0 $pid || break; sleep 0.05; done
kill -TERM $pid; wait $pid; echo $? >"$OUT/second"
"#;

/// Runs a script around a start; what the first start said, or `None` when it may not mount.
fn with_little_space(shell: &[&str], script: &str, size: &str, fill: &str) -> Option<String> {
    let dir = tempfile::tempdir().expect("make a folder");
    let (disk, out) = (dir.path().join("disk"), dir.path().join("out"));
    std::fs::create_dir(&disk).expect("make a folder");
    std::fs::create_dir(&out).expect("make a folder");
    let status = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", script, "sh"])
        .arg(program())
        .arg("start")
        .args(FREE_PORT)
        .arg(format!("--root-directory={}", disk.join("root").display()))
        .envs([("SIZE", size), ("FILL", fill)])
        .env("DIR", &disk)
        .env("OUT", &out)
        .stderr(std::process::Stdio::null())
        .status();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    if !out.join("first").exists() {
        eprintln!("no file system may be mounted here ({status:?}): only limits are tested");
        return None;
    }
    let told = read("told");
    assert_eq!(read("first"), "1\n", "{size}: {told}");
    assert_eq!(told.lines().count(), 1, "{size}: {told}");
    assert_eq!(read("second"), "0\n", "{size}: after {told}: {}", read("log"));
    Some(told)
}

#[test]
fn a_full_disk() {
    // From a folder that takes nothing, over one that takes the keys, to one that fills while the
    // content of root is written.
    let shell = ["unshare", "-rm", "sh"];
    for (size, fill) in
        [("64k", "yes"), ("32k", ""), ("200k", ""), ("500k", ""), ("1200k", ""), ("3000k", "")]
    {
        let Some(told) = with_little_space(&shell, ON_A_SMALL_DISK, size, fill) else { break };
        println!("{size}: {told}");
        assert!(told.contains("free some"), "{size}: {told}");
    }
    // In blocks of 512 bytes.
    for (blocks, want) in [("1", "raise the limit on the size of files"), ("1024", "free some")] {
        let told = with_little_space(&["sh"], WITH_SMALL_FILES, blocks, "").expect("no mount");
        assert!(told.contains(want), "{blocks}: {told}");
    }
}
