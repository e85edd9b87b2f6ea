//! What a person sees of a start: numbered steps on a terminal, and what to type next.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use tracing::info;

/// The steps of a start.
pub struct Progress {
    terminal: bool,
    n_steps: usize,
    step: usize,
    started: Instant,
}

impl Progress {
    pub fn new(n_steps: usize) -> Self {
        Self {
            terminal: std::io::stdout().is_terminal(),
            n_steps,
            step: 0,
            started: Instant::now(),
        }
    }

    /// Tells that a step is done.
    pub fn step(&mut self, what: &str) {
        self.step += 1;
        let millis = self.started.elapsed().as_millis();
        if self.terminal {
            say(&format!("[{}/{}] {what}\n", self.step, self.n_steps));
        } else {
            info!(
                step = self.step as u64,
                of = self.n_steps as u64,
                millis = millis as u64,
                "{what}"
            );
        }
    }

    /// Tells that the server is ready, and the next commands.
    pub fn ready(&self, url: &str, kubeconfig: Option<&std::path::Path>) {
        let millis = self.started.elapsed().as_millis();
        if !self.terminal {
            info!(url, millis = millis as u64, "ready");
            return;
        }
        let mut text = format!("Ready at {url} after {millis} ms.\n");
        if let Some(path) = kubeconfig {
            text.push_str(&format!(
                "\n  export KUBECONFIG={}\n  kubectl ws create acme --enter\n  kubectl api-resources\n\n",
                path.display()
            ));
        }
        say(&text);
    }
}

/// A terminal that is gone is no reason to stop serving.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
