//! A PostgreSQL of the tests' own: a temporary folder, a free port of 127.0.0.1, fsync on.
//!
//! The server runs as an unprivileged user even when the tests are root, and ends with the tests
//! however they end: a shell waits for the end of its input.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub const PASSWORD: &str = "s3:cr@t";
const PASSWORD_IN_URL: &str = "s3%3Acr%40t";

pub struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    pub port: u16,
    user: Option<(u32, u32)>,
    _watchdog: Child,
}

static SHARED: OnceLock<Cluster> = OnceLock::new();
static N_DATABASES: AtomicU32 = AtomicU32::new(0);

/// The URL of a database that does not exist yet, on the server that all tests share.
pub fn fresh_database() -> String {
    shared().fresh_database()
}

pub fn shared() -> &'static Cluster {
    SHARED.get_or_init(|| Cluster::start(&[]))
}

impl Cluster {
    /// A server of one's own, with settings like `max_connections=20`.
    pub fn start(settings: &[&str]) -> Self {
        let bin = bin();
        let folder = tempfile::tempdir().expect("a folder").keep();
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).expect("give the folder away");
        }
        let stop =
            "cat >/dev/null; \"$0/pg_ctl\" stop -s -m immediate -D \"$1/data\"; rm -rf \"$1\"";
        let mut watchdog = as_user(Command::new("sh"), user);
        watchdog.args(["-c", stop]).arg(&bin).arg(&folder).stdin(Stdio::piped());
        // Not with the terminal's Ctrl-C, which is for the tests.
        watchdog.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let watchdog = watchdog.spawn().expect("run sh");
        let port = free_port();
        let cluster = Self { bin, folder, port, user, _watchdog: watchdog };
        cluster.init(settings);
        cluster.up();
        cluster
    }

    fn init(&self, settings: &[&str]) {
        let password = self.folder.join("password");
        std::fs::write(&password, PASSWORD).expect("write the password");
        let data = self.data();
        let options = ["--username=kine", "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"];
        let pwfile = format!("--pwfile={}", password.display());
        // A locale that is not C, where there is one: names must sort by bytes all the same.
        let locale = if has_locale("en_US") { "en_US.UTF-8" } else { "C.UTF-8" };
        self.run("initdb", &[&["-D", &data, &pwfile, "--locale", locale], &options[..]].concat());
        let mut conf = format!(
            "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n\
             fsync = on\nmax_connections = 200\nmax_prepared_transactions = 16\n",
            self.port,
            self.folder.display()
        );
        for setting in settings {
            let (name, value) = setting.split_once('=').expect("name=value");
            conf.push_str(&format!("{name} = '{value}'\n"));
        }
        let path = self.folder.join("data/postgresql.auto.conf");
        std::fs::write(path, conf).expect("write the settings");
    }

    pub fn up(&self) {
        let log = self.folder.join("log");
        self.run("pg_ctl", &["start", "-s", "-w", "-D", &self.data(), "-l", &shown(&log)]);
    }

    /// As a crash: nothing is written down that is not in the log.
    pub fn down(&self) {
        self.run("pg_ctl", &["stop", "-s", "-m", "immediate", "-D", &self.data()]);
    }

    /// Everything is written down.
    pub fn shut_down(&self) {
        self.run("pg_ctl", &["stop", "-s", "-m", "fast", "-D", &self.data()]);
    }

    /// Gives a file to the user of the server, who alone may read it.
    pub fn hand_over(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("write a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("close it");
        if let Some((uid, gid)) = self.user {
            chown(&path, Some(uid), Some(gid)).expect("give it away");
        }
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://kine:{PASSWORD_IN_URL}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn fresh_database(&self) -> String {
        self.url(&format!("t{}", N_DATABASES.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn data(&self) -> String {
        shown(&self.folder.join("data"))
    }

    /// Runs one of PostgreSQL's programs to its end.
    pub fn run(&self, program: &str, args: &[&str]) {
        let mut command = as_user(Command::new(self.bin.join(program)), self.user);
        let log = self.folder.join(format!("{program}.out"));
        let out = std::fs::File::create(&log).expect("a log");
        let errors = out.try_clone().expect("a second handle");
        command.args(args).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(out).stderr(errors).current_dir(&self.folder);
        let status = command.status().expect(program);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        assert!(status.success(), "{program} {args:?}: {status}: {said}");
    }
}

fn as_user(mut command: Command, user: Option<(u32, u32)>) -> Command {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// The user that the server runs as; `None` is the present one.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").expect("read /etc/passwd");
    let ids = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        let mut next = || fields.next()?.parse().ok();
        Some((next()?, next()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user postgres or nobody"))
}

/// The newest server that is installed: Debian's are not on the path.
fn bin() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.parse::<u32>().unwrap_or(0)
    };
    let newest = versions.map(|entry| entry.path()).max_by_key(number);
    if let Some(bin) = newest.map(|path| path.join("bin")).filter(|bin| bin.join("initdb").exists())
    {
        return bin;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|folder| folder.join("initdb").exists());
    found.expect("PostgreSQL's initdb: `make need-postgres` installs it")
}

fn has_locale(name: &str) -> bool {
    let output = Command::new("locale").arg("-a").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(name))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
