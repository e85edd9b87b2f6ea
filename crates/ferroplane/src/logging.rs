//! Log lines as Kubernetes prints them: klog's text form, or JSON lines.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// How much is logged and how.
pub struct Config {
    pub json: bool,
    /// `-v`: 0 and 1 are warnings, 2 and 3 information, 4 and 5 debugging, more is everything.
    pub verbosity: u8,
    /// A person reads the terminal: only warnings, unless `-v` was given.
    pub quiet: bool,
}

/// Sets the process's logger. Called once.
pub fn init(config: &Config) {
    let most = match config.verbosity {
        _ if config.quiet => Level::WARN,
        0 | 1 => Level::WARN,
        2 | 3 => Level::INFO,
        4 | 5 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let layer = Lines { json: config.json, most };
    tracing_subscriber::registry().with(layer).init();
}

/// Lines that are held are let go when there are so many bytes of them.
const HELD_BYTES_MAX: usize = 64 << 10;

/// What a start has logged so far, while lines are held.
static HELD: LazyLock<Mutex<Option<Vec<u8>>>> = LazyLock::new(Mutex::default);

/// From now on lines are kept back, until [`release`] prints them or [`discard`] forgets them: a
/// start that is refused says one line, the refusal.
pub fn hold() {
    HELD.lock().get_or_insert_default();
}

/// Prints what was held, and every line at once from now on.
pub fn release() {
    let held = HELD.lock().take();
    if let Some(lines) = held {
        print(&lines);
    }
}

/// Forgets what was held.
pub fn discard() {
    *HELD.lock() = None;
}

/// Keeps a line back or prints it.
fn put(line: &[u8]) {
    let mut held = HELD.lock();
    match held.as_mut() {
        Some(lines) => {
            lines.extend_from_slice(line);
            if lines.len() > HELD_BYTES_MAX {
                print(&held.take().unwrap_or_default());
            }
        }
        None => print(line),
    }
}

/// A log that cannot be written has nowhere to say so.
fn print(lines: &[u8]) {
    let _ = std::io::stderr().lock().write_all(lines);
}

struct Lines {
    json: bool,
    most: Level,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Libraries below us log their own lives at INFO and lower; only their warnings count.
        let ours =
            metadata.target().starts_with("fp_") || metadata.target().starts_with("ferroplane");
        *metadata.level() <= if ours { self.most } else { self.most.min(Level::WARN) }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = if self.json { json_line(event, fields) } else { text_line(event, fields) };
        put(line.as_bytes());
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.others.push((name, text.into())),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.others.push((name, value.into())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), value.into()));
    }
}

/// `I1129 23:02:03.123456    1234 start.rs:12] "message" key="value"`.
fn text_line(event: &Event<'_>, fields: Fields) -> String {
    let meta = event.metadata();
    let letter = match *meta.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let when = format_description!("[month][day] [hour]:[minute]:[second].[subsecond digits:6]");
    let now = OffsetDateTime::now_utc().format(when).unwrap_or_default();
    let file = meta.file().and_then(|f| f.rsplit('/').next()).unwrap_or("");
    let (pid, line) = (std::process::id(), meta.line().unwrap_or(0));
    let mut out = format!("{letter}{now} {pid:>7} {file}:{line}] {:?}", fields.message);
    for (key, value) in &fields.others {
        let _ = write!(out, " {key}={value}");
    }
    out.push('\n');
    out
}

/// `{"ts":...,"level":...,"logger":...,"msg":...,...}`.
fn json_line(event: &Event<'_>, fields: Fields) -> String {
    let meta = event.metadata();
    let mut out = Map::new();
    out.insert("ts".into(), OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default().into());
    out.insert("level".into(), meta.level().as_str().to_ascii_lowercase().into());
    out.insert("logger".into(), meta.target().into());
    out.insert("msg".into(), fields.message.into());
    for (key, value) in fields.others {
        out.insert(key.into(), value);
    }
    let mut line = Value::Object(out).to_string();
    line.push('\n');
    line
}
