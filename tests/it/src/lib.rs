//! What the integration tests share: the real program on a port of its own, kubectl, and plain
//! requests.

#[path = "../../../crates/storage/fp-store-sql/tests/postgres/cluster.rs"]
pub mod cluster;
pub mod raw;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test. `make test` builds it and says where it is.
pub fn program() -> PathBuf {
    path_of("FERROPLANE", "")
}

/// The folder of kubectl and the other tools.
pub fn tool(name: &str) -> PathBuf {
    path_of("TOOLS", name)
}

fn path_of(variable: &str, name: &str) -> PathBuf {
    let Some(path) = std::env::var_os(variable) else {
        panic!("{variable} is not set: run the integration tests with `make integration`");
    };
    if name.is_empty() { path.into() } else { Path::new(&path).join(name) }
}

/// A server that runs, and its root directory.
pub struct Server {
    child: Child,
    pub root: PathBuf,
    pub url: String,
    agent: ureq::Agent,
    /// Kept so that the folder lives as long as the server.
    _dir: Option<Arc<TempDir>>,
    plugins: PathBuf,
}

/// How a request ended.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// `code [reason]`, or the code alone when the body is no `Status`.
    pub fn verdict(&self) -> String {
        let status: Option<Value> = serde_json::from_slice(&self.body).ok();
        match status.as_ref().filter(|s| s["kind"] == "Status").map(|s| &s["reason"]) {
            Some(Value::String(reason)) => format!("{} [{reason}]", self.code),
            _ => self.code.to_string(),
        }
    }

    /// `code reason: message`, as tests compare refusals.
    pub fn refusal(&self) -> String {
        let status = self.json();
        let text = |key: &str| status.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        format!("{} {}: {}", self.code, text("reason"), text("message"))
    }
}

impl Server {
    /// Starts a server in a fresh folder.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server in a fresh folder, with more flags.
    pub fn start_with(flags: &[&str]) -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("make a folder"));
        let root = dir.path().join("root");
        let mut server = Self::start_in(&root, flags).expect("start the server");
        server._dir = Some(dir);
        server
    }

    /// Starts a server in `root`, and waits until it is ready.
    pub fn start_in(root: &Path, flags: &[&str]) -> Result<Self> {
        Self::start_on(root, 0, flags)
    }

    /// The same on the port of an earlier one, for clients that stay; 0 is a free port.
    pub fn start_on(root: &Path, port: u16, flags: &[&str]) -> Result<Self> {
        install_crypto();
        let _ = std::fs::remove_file(root.join("port"));
        let log = root.with_extension("log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(program());
        command
            .arg("start")
            .arg(format!("--root-directory={}", root.display()))
            .arg("--bind-address=127.0.0.1")
            .arg(format!("--secure-port={port}"))
            .arg(format!("--experimental-bind-free-port={}", port == 0))
            .args(store_flag(root, flags))
            .args(flags)
            .stderr(log);
        let url = if port == 0 { String::new() } else { format!("https://127.0.0.1:{port}") };
        let mut server = Self::spawn(&mut command, root, url)?;
        server.await_ready(PATIENCE)?;
        server.link_plugins()?;
        Ok(server)
    }

    /// Starts another program with kcp's flags and files, at a port that is free, and waits until
    /// it is ready: to see what it makes of our data. `log` is beside the root directory.
    pub fn start_other(
        program: &Path,
        root: &Path,
        flags: &[&str],
        patience: Duration,
    ) -> Result<Self> {
        install_crypto();
        // One of ours may have written it.
        let _ = std::fs::remove_file(root.join("port"));
        let log = std::fs::File::create(root.with_extension("log"))?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command
            .arg("start")
            .arg(format!("--root-directory={}", root.display()))
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
            .args(flags)
            .stderr(log);
        let mut server = Self::spawn(&mut command, root, format!("https://127.0.0.1:{port}"))?;
        server.await_ready(patience)?;
        Ok(server)
    }

    fn spawn(command: &mut Command, root: &Path, url: String) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self {
            child: child.context("run the program")?,
            root: root.to_owned(),
            url,
            agent: agent(),
            _dir: None,
            plugins: root.with_extension("bin"),
        })
    }

    fn await_ready(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log =
                    std::fs::read_to_string(self.root.with_extension("log")).unwrap_or_default();
                bail!("the server ended with {status}: {log}");
            }
            if let Ok(port) = std::fs::read_to_string(self.root.join("port")) {
                self.url = format!("https://127.0.0.1:{}", port.trim());
            }
            if !self.url.is_empty() && self.get("/readyz").is_ok_and(|a| a.code == 200) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the server is not ready after {patience:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// kubectl finds its plugins by name on the path.
    fn link_plugins(&self) -> Result<()> {
        std::fs::create_dir_all(&self.plugins)?;
        for name in ["kubectl-ws", "kubectl-kcp", "kubectl-create-workspace"] {
            let link = self.plugins.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(program(), link)?;
            }
        }
        Ok(())
    }

    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().and_then(|p| p.parse().ok()).expect("the URL ends in a port")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("admin.kubeconfig")
    }

    /// The token of a user of the admin kubeconfig.
    pub fn token(&self, user: &str) -> String {
        let text = std::fs::read(self.kubeconfig()).expect("read the kubeconfig");
        let (config, _) = fp_object::yaml::decode_value(&text).expect("parse the kubeconfig");
        let users = config["users"].as_array().cloned().unwrap_or_default();
        let found =
            users.iter().find(|u| u["name"] == user).unwrap_or_else(|| panic!("no user {user}"));
        found["user"]["token"].as_str().expect("a token").to_owned()
    }

    /// A GET without credentials.
    pub fn get(&self, path: &str) -> Result<Answer> {
        self.request("GET", path, None, &[], b"")
    }

    /// A request as `kcp-admin`.
    pub fn admin(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.as_user("kcp-admin", method, path, body)
    }

    /// A request as `shard-admin`.
    pub fn master(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.as_user("shard-admin", method, path, body)
    }

    fn as_user(&self, user: &str, method: &str, path: &str, body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let headers = [("Content-Type", kind), ("Accept", "application/json")];
        self.request(method, path, Some(&self.token(user)), &headers, text.as_bytes())
            .expect("an answer")
    }

    /// Any request; an error is a transport's.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = self.agent.run(request.body(body)?)?;
        let mut bytes = Vec::new();
        answer.body_mut().as_reader().read_to_end(&mut bytes)?;
        let text = |v: &ureq::http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
        let headers = answer.headers().iter().map(|(k, v)| (k.to_string(), text(v))).collect();
        Ok(Answer { code: answer.status().as_u16(), headers, body: bytes })
    }

    /// kubectl with the admin kubeconfig: its output (both streams) and exit code.
    pub fn kubectl(&self, args: &[&str]) -> (String, i32) {
        self.kubectl_with(&self.kubeconfig(), args)
    }

    pub fn kubectl_with(&self, kubeconfig: &Path, args: &[&str]) -> (String, i32) {
        let mut command = Command::new(tool("kubectl"));
        let output = self.settle(&mut command, kubeconfig).args(args).output();
        let output = output.expect("run kubectl");
        let text = [output.stdout, output.stderr]
            .map(|b| String::from_utf8_lossy(&b).into_owned())
            .concat();
        (text, output.status.code().unwrap_or(-1))
    }

    /// A line typed at a shell in `folder`, which finds kubectl and the plugins: its output (both
    /// streams as they come) and exit code.
    pub fn shell(&self, line: &str, folder: &Path, variables: &[(&str, &str)]) -> (String, i32) {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1; {line}")]);
        command.current_dir(folder).envs(variables.iter().copied());
        let output = self.settle(&mut command, &self.kubeconfig()).output().expect("run sh");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, output.status.code().unwrap_or(-1))
    }

    /// The environment of kubectl: this server, our plugins, nothing of the person who tests.
    fn settle<'a>(&self, command: &'a mut Command, kubeconfig: &Path) -> &'a mut Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let tools = tool("kubectl").parent().map(Path::to_owned).unwrap_or_default();
        command
            .env("PATH", format!("{}:{}:{path}", self.plugins.display(), tools.display()))
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECTL_KUBERC", "false")
            .env("HOME", &self.root)
            .stdin(Stdio::null())
    }

    /// kubectl that must succeed: its output.
    pub fn kubectl_ok(&self, args: &[&str]) -> String {
        let (text, code) = self.kubectl(args);
        assert_eq!(code, 0, "kubectl {args:?}: {text}");
        text
    }

    /// Waits until `what` yields something.
    pub fn until<T>(&self, name: &str, mut what: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = what() {
                return found;
            }
            assert!(Instant::now() < deadline, "{name}: not after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A workspace below root that is ready; answers its logical cluster.
    pub fn workspace(&self, name: &str) -> String {
        let body = serde_json::json!({
            "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}},
        });
        let made =
            self.admin("POST", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", &body);
        assert_eq!(made.code, 201, "{}", made.text());
        let path = format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{name}");
        self.until("workspace is Ready", || {
            let workspace = self.admin("GET", &path, &Value::Null).json();
            let ready = workspace["status"]["phase"] == "Ready";
            ready.then(|| workspace["spec"]["cluster"].as_str().expect("a cluster").to_owned())
        })
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).expect("a pid");
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// SIGTERM; the exit code and how long it took.
    pub fn stop(&mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().expect("wait for the server");
        (status.code(), start.elapsed())
    }

    /// SIGSTOP: its clock runs on, it does not.
    pub fn pause(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.root.with_extension("log")).unwrap_or_default()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// With STORE=postgres, servers that no test gives a store keep their objects in a PostgreSQL, in
/// a database for each root directory.
fn store_flag(root: &Path, flags: &[&str]) -> Option<String> {
    let on_postgres = std::env::var_os("STORE").is_some_and(|store| store == "postgres");
    if !on_postgres || flags.iter().any(|flag| flag.starts_with("--etcd-servers")) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    let url = cluster::shared().url(&format!("it{:016x}", hasher.finish()));
    Some(format!("--etcd-servers={url}"))
}

/// A port of this host that nobody uses now.
pub fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// The servers under test make their own certificates; which one answers is known by its port.
fn agent() -> ureq::Agent {
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .max_redirects(0)
        .build()
        .into()
}
