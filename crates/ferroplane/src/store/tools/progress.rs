//! How far a command is: a bar on a terminal, a line now and then elsewhere; on the error stream.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const REDRAW: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);
const BAR_CELLS: u64 = 30;

pub struct Progress {
    what: &'static str,
    unit: &'static str,
    /// 0 where it is not known.
    total: u64,
    terminal: bool,
    next: Instant,
}

impl Progress {
    pub fn new(what: &'static str, unit: &'static str, total: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let next = Instant::now() + if terminal { Duration::ZERO } else { LINE_EVERY };
        Self { what, unit, total, terminal, next }
    }

    pub fn at(&mut self, n: u64) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + if self.terminal { REDRAW } else { LINE_EVERY };
        self.show(n);
    }

    /// Says the last number, and leaves the line.
    pub fn end(&mut self, n: u64) {
        self.show(n);
        if self.terminal {
            say("\n");
        }
    }

    fn show(&self, n: u64) {
        let line = line(self.what, self.unit, n, self.total, self.terminal);
        say(&if self.terminal { format!("\r\x1b[K{line}") } else { format!("{line}\n") });
    }
}

fn line(what: &str, unit: &str, n: u64, total: u64, bar: bool) -> String {
    if total == 0 {
        return format!("{what}: {n} {unit}");
    }
    let n = n.min(total);
    let filled = usize::try_from(n.saturating_mul(BAR_CELLS) / total).unwrap_or_default();
    let rest = usize::try_from(BAR_CELLS).unwrap_or_default() - filled;
    let bar =
        if bar { format!("[{}{}] ", "#".repeat(filled), "-".repeat(rest)) } else { String::new() };
    format!("{what}: {bar}{n} of {total} {unit}")
}

/// A terminal that is gone is no reason to stop.
fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn lines() {
        assert_eq!(line("verify", "rows", 5, 0, true), "verify: 5 rows");
        assert_eq!(line("backup", "keys", 1, 3, false), "backup: 1 of 3 keys");
        assert_eq!(
            line("backup", "keys", 5, 10, true),
            "backup: [###############---------------] 5 of 10 keys"
        );
        assert_eq!(line("backup", "keys", 11, 10, false), "backup: 10 of 10 keys");
    }
}
