//! Counters of calls, and the few gauges that dashboards of etcd and kine look at.

use std::collections::BTreeMap;
use std::fmt::Write;

use fp_store::{Error, Store};
use parking_lot::Mutex;

/// The methods that are counted by name; whatever else is called counts as `unknown`.
#[derive(Default)]
pub struct Metrics {
    /// By method and gRPC code.
    calls: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Metrics {
    pub fn count(&self, method: &'static str, code: u16) {
        *self.calls.lock().entry((method, code)).or_default() += 1;
    }

    /// The text format of Prometheus.
    pub async fn render(&self, store: &dyn Store) -> Result<String, Error> {
        let head = store.head().await?;
        let compacted = store.compacted().await?;
        let mut out = String::new();
        gauge(&mut out, "etcd_server_has_leader", 1);
        gauge(&mut out, "etcd_debugging_mvcc_current_revision", head.0);
        gauge(&mut out, "etcd_debugging_mvcc_compact_revision", compacted.0);
        if let Some(bytes) = store.size_bytes().await? {
            gauge(&mut out, "etcd_mvcc_db_total_size_in_bytes", bytes.cast_signed());
        }
        out.push_str("# TYPE grpc_server_handled_total counter\n");
        for ((method, code), n) in &*self.calls.lock() {
            let (service, method) = method.rsplit_once('/').unwrap_or(("", method));
            let service = service.trim_start_matches('/');
            let code = code_name(*code);
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "grpc_server_handled_total{{grpc_service=\"{service}\",grpc_method=\"{method}\",grpc_code=\"{code}\"}} {n}"
            );
        }
        Ok(out)
    }
}

fn gauge(out: &mut String, name: &str, value: i64) {
    let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
}

fn code_name(code: u16) -> &'static str {
    match code {
        0 => "OK",
        3 => "InvalidArgument",
        5 => "NotFound",
        8 => "ResourceExhausted",
        11 => "OutOfRange",
        12 => "Unimplemented",
        14 => "Unavailable",
        16 => "Unauthenticated",
        _ => "Unknown",
    }
}
