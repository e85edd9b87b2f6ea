//! Requests as bytes: a TLS connection that sends what no HTTP library would, and what a request
//! costs the server.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use crate::{Answer, PATIENCE, Server};

/// A TLS connection to the server.
pub struct Raw {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Read and not yet taken.
    left: Vec<u8>,
}

impl Server {
    /// Connects; `protocol` is the one of ALPN: `http/1.1` or `h2`.
    pub fn connect(&self, protocol: &str) -> Raw {
        crate::install_crypto();
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let address = self.url.trim_start_matches("https://");
        let tcp = TcpStream::connect(address).expect("connect to the server");
        tcp.set_read_timeout(Some(PATIENCE)).expect("set a timeout");
        tcp.set_write_timeout(Some(PATIENCE)).expect("set a timeout");
        tcp.set_nodelay(true).expect("set no delay");
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        Raw { stream: StreamOwned::new(tls, tcp), left: Vec::new() }
    }

    /// One request on a connection of its own, its target sent as it stands here.
    pub fn send(
        &self,
        method: &str,
        target: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
        if let Some(token) = token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()));
        let mut raw = self.connect("http/1.1");
        raw.write(&[head.as_bytes(), body].concat());
        raw.answer()
    }

    /// Fails unless the server answers.
    pub fn assert_alive(&self, after: &str) {
        let answer = self.send("GET", "/readyz", None, &[], b"");
        assert_eq!(answer.code, 200, "after {after}: {}", answer.text());
    }

    /// What `work` costs the server.
    pub fn cost<T>(&self, work: impl FnOnce() -> T) -> (T, Cost) {
        // 5 sets the peak back to what is resident now (proc_pid_clear_refs(5)).
        std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").expect("reset the peak");
        let (cpu, resident) = (self.cpu_ns(), self.memory_kib("VmRSS:"));
        let done = work();
        let peak = self.memory_kib("VmHWM:");
        let cost =
            Cost { cpu_us: (self.cpu_ns() - cpu) / 1000, peak_kib: peak.saturating_sub(resident) };
        (done, cost)
    }

    /// CPU time of all threads so far. A thread that has ended is no longer counted, so it is the
    /// exact sum or the process's own in hundredths, whichever is more.
    fn cpu_ns(&self) -> u64 {
        let folder = format!("/proc/{}/task", self.pid());
        let threads = std::fs::read_dir(folder).expect("the server runs");
        let of_thread = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
            let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse().ok()
        };
        let exact: u64 = threads.filter_map(of_thread).sum();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("stat");
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map(|f| f.parse().unwrap_or(0))
            .collect();
        // utime and stime are fields 14 and 15; the name has taken two.
        exact.max((fields[11] + fields[12]) * 10_000_000)
    }

    /// The most that the stack of any of the server's threads has grown to, in KiB: what is
    /// resident of the mapping that the thread's stack pointer is in.
    pub fn deepest_stack_kib(&self) -> u64 {
        let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", self.pid()));
        let maps = of("smaps").expect("the server runs");
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let mut stacks: Vec<(u64, u64, u64)> = Vec::new();
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|r| r.split_once('-'));
            if let Some((from, to)) = range.and_then(|(a, b)| Some((hex(a)?, hex(b)?))) {
                stacks.push((from, to, 0));
            } else if let (Some(size), Some(last)) = (line.strip_prefix("Rss:"), stacks.last_mut())
            {
                last.2 = size.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            }
        }
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("threads");
        let pointers = threads.filter_map(|thread| {
            let path = thread.ok()?.path().join("syscall");
            let text = std::fs::read_to_string(path).ok()?;
            // `running`, or the call, six arguments, the stack pointer and the program counter.
            hex(text.split_ascii_whitespace().nth(7)?)
        });
        let of_pointer = |at: u64| stacks.iter().find(|(from, to, _)| (*from..*to).contains(&at));
        pointers.filter_map(|at| of_pointer(at).map(|(_, _, size)| *size)).max().unwrap_or(0)
    }

    fn memory_kib(&self, key: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("the server runs");
        let line = status.lines().find_map(|l| l.strip_prefix(key)).expect("a line");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
    }
}

/// What a piece of work cost the server.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub cpu_us: u64,
    /// By how much the peak of the resident memory was above what it was before.
    pub peak_kib: u64,
}

impl Cost {
    /// Fails when the cost is far above its bar, which is meant for a release build on a fast and
    /// idle machine: ten times the bar, and six times that for a debug build. What this is to find
    /// grows with the square of the input and is far above that too.
    pub fn assert_below(self, what: &str, cpu_ms: u64, peak_mib: u64) {
        let debug = crate::program().components().any(|c| c.as_os_str() == "debug");
        let slack = if debug { 60 } else { 10 };
        println!("{what}: {} us CPU, {} KiB more at its peak", self.cpu_us, self.peak_kib);
        assert!(self.cpu_us <= slack * cpu_ms * 1000, "{what}: {self:?}, the bar is {cpu_ms} ms");
        let peak_kib = peak_mib * 1024 * 3;
        assert!(self.peak_kib <= peak_kib, "{what}: {self:?}, the bar is {peak_mib} MiB");
    }
}

impl Raw {
    /// Writes, and does not mind when the server has stopped reading.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    /// Like [`Raw::write`], but says whether everything was taken.
    pub fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// How long a read waits.
    pub fn patience(&mut self, patience: std::time::Duration) {
        self.stream.sock.set_read_timeout(Some(patience)).expect("set a timeout");
    }

    /// Reads more; false at the end of the connection. What the server has said is read even when
    /// it no longer takes what we say.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.conn.reader().read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.left.extend_from_slice(&buffer[..n]);
                    return true;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                // An end without a close_notify.
                Err(_) => return false,
            }
            match self.stream.conn.read_tls(&mut self.stream.sock) {
                Ok(_) if self.stream.conn.process_new_packets().is_ok() => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("the server neither answers nor closes")
                }
                // A reset is an end.
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Everything until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.left)
    }

    /// At least `n` bytes, or `None` when the connection ends before.
    pub fn take(&mut self, n: usize) -> Option<Vec<u8>> {
        while self.left.len() < n {
            if !self.more() {
                return None;
            }
        }
        let rest = self.left.split_off(n);
        Some(std::mem::replace(&mut self.left, rest))
    }

    /// One HTTP/1 answer.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().unwrap_or_else(|| panic!("no answer: {:?}", self.left))
    }

    /// One HTTP/1 answer, or `None` when the connection ends before it has begun.
    pub fn try_answer(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = self.left.windows(4).position(|w| w == b"\r\n\r\n") {
                break at;
            }
            if !self.more() {
                return None;
            }
        };
        let head = self.take(end + 4)?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let code = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|l| l.split_once(':'))
            .map(|(k, v)| (k.to_ascii_lowercase(), v.trim().to_owned()))
            .collect();
        let mut answer = Answer { code, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|l| l.parse().ok());
        answer.body = match length {
            Some(length) => self.take(length)?,
            None if answer.header("transfer-encoding").is_some() => self.chunks()?,
            None => self.rest(),
        };
        Some(answer)
    }

    fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                line.push(char::from(self.take(1)?[0]));
            }
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            body.extend_from_slice(&self.take(size)?);
            self.take(2)?;
            if size == 0 {
                return Some(body);
            }
        }
    }
}

/// The servers under test make their own certificates; which one answers is known by its port.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}
