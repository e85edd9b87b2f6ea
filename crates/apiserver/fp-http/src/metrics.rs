//! `/metrics` in Prometheus' text format.
//!
//! Invariant: the number of series is a constant: labels are closed sets, never a name, a cluster
//! or anything else that a caller chooses.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// The verbs that are told apart.
const VERBS: [&str; 10] =
    ["GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "PATH", "OTHER"];
/// The codes that are told apart; any other counts as its class's last.
const CODES: [u16; 24] = [
    200, 201, 202, 299, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 431, 499, 500,
    501, 502, 503, 504, 599,
];
/// Upper ends of the latency histogram, seconds (a choice of apiserver's own).
const BUCKETS_SECS: [f64; 10] = [0.001, 0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// What a request was, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Post,
    Put,
    Patch,
    Delete,
    DeleteCollection,
    /// A path that is no resource.
    Path,
    /// Refused before it was known.
    Other,
}

/// Appends series of another part of the program. The number of its series must be constant.
pub type Source = Arc<dyn Fn(&mut String) + Send + Sync>;

#[derive(Default)]
pub struct Metrics {
    requests: [[AtomicU64; CODES.len()]; VERBS.len()],
    durations: [Histogram; VERBS.len()],
    inflight: AtomicI64,
    watches: AtomicI64,
    panics: AtomicU64,
    sources: Mutex<Vec<Source>>,
}

#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS_SECS.len() + 1],
    sum_micros: AtomicU64,
}

impl Metrics {
    /// Adds another part's series.
    pub fn add_source(&self, source: Source) {
        self.sources.lock().push(source);
    }

    pub(crate) fn count(&self, verb: Verb, code: u16, took: Duration) {
        let slot = CODES.iter().position(|c| *c == code).unwrap_or_else(|| match code {
            ..400 => 3,
            400..500 => 17,
            _ => CODES.len() - 1,
        });
        self.requests[verb as usize][slot].fetch_add(1, Ordering::Relaxed);
        let secs = took.as_secs_f64();
        let histogram = &self.durations[verb as usize];
        let bucket = BUCKETS_SECS.iter().position(|b| secs <= *b).unwrap_or(BUCKETS_SECS.len());
        histogram.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        histogram.sum_micros.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Guard {
        self.inflight.fetch_add(1, Ordering::Relaxed);
        Guard { metrics: self.clone(), watch: false }
    }

    pub(crate) fn enter_watch(self: &Arc<Self>) -> Guard {
        self.watches.fetch_add(1, Ordering::Relaxed);
        Guard { metrics: self.clone(), watch: true }
    }

    /// The whole page.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(16 << 10);
        self.render_requests(&mut out);
        let load = |n: &AtomicI64| n.load(Ordering::Relaxed);
        head(&mut out, "apiserver_current_inflight_requests", "gauge", "Requests being served.");
        let _ = writeln!(out, "apiserver_current_inflight_requests {}", load(&self.inflight));
        head(&mut out, "apiserver_longrunning_requests", "gauge", "Open watches.");
        let _ = writeln!(out, "apiserver_longrunning_requests {}", load(&self.watches));
        head(&mut out, "apiserver_panics_total", "counter", "Requests whose handler panicked.");
        let _ = writeln!(out, "apiserver_panics_total {}", self.panics.load(Ordering::Relaxed));
        process(&mut out);
        let sources = self.sources.lock().clone();
        for source in sources {
            source(&mut out);
        }
        out
    }

    fn render_requests(&self, out: &mut String) {
        let name = "apiserver_request_total";
        head(out, name, "counter", "Requests by verb and code.");
        for (verb, row) in VERBS.iter().zip(&self.requests) {
            for (code, n) in CODES.iter().zip(row) {
                let n = n.load(Ordering::Relaxed);
                if n > 0 {
                    let _ = writeln!(out, "{name}{{verb=\"{verb}\",code=\"{code}\"}} {n}");
                }
            }
        }
        let name = "apiserver_request_duration_seconds";
        head(out, name, "histogram", "Time to the head of the answer, by verb.");
        for (verb, histogram) in VERBS.iter().zip(&self.durations) {
            let counts: Vec<u64> =
                histogram.buckets.iter().map(|b| b.load(Ordering::Relaxed)).collect();
            let mut total = 0;
            if counts.iter().all(|n| *n == 0) {
                continue;
            }
            for (n, end) in counts.iter().zip(BUCKETS_SECS) {
                total += n;
                let _ = writeln!(out, "{name}_bucket{{verb=\"{verb}\",le=\"{end}\"}} {total}");
            }
            total += counts[BUCKETS_SECS.len()];
            let sum = histogram.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
            let _ = writeln!(out, "{name}_bucket{{verb=\"{verb}\",le=\"+Inf\"}} {total}");
            let _ = writeln!(out, "{name}_sum{{verb=\"{verb}\"}} {sum}");
            let _ = writeln!(out, "{name}_count{{verb=\"{verb}\"}} {total}");
        }
    }
}

/// Counts a request or watch as open until it is dropped.
pub(crate) struct Guard {
    metrics: Arc<Metrics>,
    watch: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let gauge = if self.watch { &self.metrics.watches } else { &self.metrics.inflight };
        gauge.fetch_sub(1, Ordering::Relaxed);
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// The process' own figures, from `/proc`; absent where there is none.
fn process(out: &mut String) {
    /// Clock ticks per second: 100 on every Linux that Rust builds for.
    const TICKS_PER_SEC: f64 = 100.0;
    const PAGE_BYTES: u64 = 4096;
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    // The name in parentheses may hold spaces: fields are counted behind it.
    let Some((_, rest)) = stat.rsplit_once(')') else { return };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    let cpu_secs = (field(11) + field(12)) as f64 / TICKS_PER_SEC;
    head(out, "process_cpu_seconds_total", "counter", "User and system time.");
    let _ = writeln!(out, "process_cpu_seconds_total {cpu_secs}");
    head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
    let _ = writeln!(out, "process_resident_memory_bytes {}", field(21) * PAGE_BYTES);
    head(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.");
    let _ = writeln!(out, "process_virtual_memory_bytes {}", field(20));
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        head(out, "process_open_fds", "gauge", "Open file descriptors.");
        let _ = writeln!(out, "process_open_fds {}", entries.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_bounded() {
        let metrics = Arc::new(Metrics::default());
        for verb in [Verb::Get, Verb::List, Verb::Watch, Verb::Post, Verb::Put] {
            for code in 100..=700 {
                metrics.count(verb, code, Duration::from_millis(u64::from(code)));
            }
        }
        for verb in [Verb::Patch, Verb::Delete, Verb::DeleteCollection, Verb::Path, Verb::Other] {
            for code in 100..=700 {
                metrics.count(verb, code, Duration::from_millis(u64::from(code)));
            }
        }
        let guard = metrics.enter();
        let page = metrics.render();
        let series = page.lines().filter(|l| !l.starts_with('#')).count();
        assert!(series < 500, "{series}");
        assert!(page.contains("apiserver_request_total{verb=\"GET\",code=\"404\"} 1\n"));
        assert!(page.contains("apiserver_current_inflight_requests 1\n"));
        drop(guard);
        assert!(metrics.render().contains("apiserver_current_inflight_requests 0\n"));
    }
}
