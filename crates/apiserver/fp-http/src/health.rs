//! `/healthz`, `/livez` and `/readyz`: named checks, and what they print.
//!
//! Source: apiserver's `server/healthz/healthz.go`. A failed check's reason is logged, never sent:
//! these paths are open to everyone.

use std::fmt::Write;
use std::sync::Arc;

use fp_base::url;

/// Answers `Err` with the reason while something is wrong. Must be cheap: it runs per request.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Which of the three paths a check counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All three.
    Live,
    /// `/readyz` alone.
    Ready,
}

/// The checks, in the order in which they are printed. Fixed when the server is built.
#[derive(Clone, Default)]
pub struct Health {
    checks: Vec<(String, Scope, Check)>,
}

/// An answer: the code, and plain text.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub code: u16,
    pub text: String,
}

impl Health {
    /// With the check that always passes.
    pub fn new() -> Self {
        Self::default().with("ping", Scope::Live, Arc::new(|| Ok(())))
    }

    pub fn with(mut self, name: &str, scope: Scope, check: Check) -> Self {
        self.checks.push((name.to_owned(), scope, check));
        self
    }

    /// Whether `path` is one of the health paths or below one.
    pub fn serves(path: &str) -> bool {
        split(path).is_some()
    }

    /// Every health path that there is.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        for root in ["healthz", "livez", "readyz"] {
            out.push(format!("/{root}"));
            out.extend(self.of(root).map(|(name, _)| format!("/{root}/{name}")));
        }
        out
    }

    fn of<'a>(&'a self, root: &'a str) -> impl Iterator<Item = (&'a str, &'a Check)> {
        let ready = root == "readyz";
        self.checks
            .iter()
            .filter(move |(_, scope, _)| ready || *scope == Scope::Live)
            .map(|(name, _, check)| (name.as_str(), check))
    }

    /// Answers a path for which [`Health::serves`] holds; `None` for a check that does not exist.
    pub fn report(&self, path: &str, query: Option<&str>) -> Option<Report> {
        let (root, name) = split(path)?;
        match name {
            "" => Some(self.all(root, query.unwrap_or(""))),
            name => self.of(root).find(|(n, _)| *n == name).map(|(_, check)| match check() {
                Ok(()) => Report { code: 200, text: "ok".into() },
                // Who may ask for one check by name may know why it fails.
                Err(why) => Report { code: 500, text: format!("internal server error: {why}\n") },
            }),
        }
    }

    fn all(&self, root: &str, query: &str) -> Report {
        let pairs = if query.is_empty() { Vec::new() } else { url::query_pairs(query) };
        let mut excluded: Vec<&str> =
            pairs.iter().filter(|(k, _)| k == "exclude").map(|(_, v)| v.as_str()).collect();
        excluded.sort_unstable();
        excluded.dedup();
        let (mut lines, mut failed) = (String::new(), false);
        for (name, check) in self.of(root) {
            if let Some(at) = excluded.iter().position(|e| *e == name) {
                excluded.remove(at);
                let _ = writeln!(lines, "[+]{name} excluded: ok");
                continue;
            }
            match check() {
                Ok(()) => {
                    let _ = writeln!(lines, "[+]{name} ok");
                }
                Err(why) => {
                    tracing::debug!(check = name, why, "health check failed");
                    failed = true;
                    let _ = writeln!(lines, "[-]{name} failed: reason withheld");
                }
            }
        }
        if !excluded.is_empty() {
            let list: Vec<String> = excluded.iter().map(|e| format!("{e:?}")).collect();
            let list = list.join(", ");
            let _ = writeln!(
                lines,
                "warn: some health checks cannot be excluded: no matches for {list}"
            );
        }
        if failed {
            return Report { code: 500, text: format!("{lines}{root} check failed\n") };
        }
        if pairs.iter().any(|(k, _)| k == "verbose") {
            return Report { code: 200, text: format!("{lines}{root} check passed\n") };
        }
        Report { code: 200, text: "ok".into() }
    }
}

/// `/readyz/a/b` is the root `readyz` and the check `a/b`.
fn split(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let (root, name) = path.split_once('/').unwrap_or((path, ""));
    matches!(root, "healthz" | "livez" | "readyz").then_some((root, name))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(path: &str, query: &str, want: Expect) {
        let health = Health::new().with("store", Scope::Live, Arc::new(|| Ok(()))).with(
            "poststarthook/a",
            Scope::Ready,
            Arc::new(|| Err("a password".into())),
        );
        let query = (!query.is_empty()).then_some(query);
        let got = health.report(path, query);
        want.assert_eq(&got.map_or("none".into(), |r| format!("{} {}", r.code, r.text)));
    }

    #[test]
    fn reports() {
        check("/healthz", "", expect!["200 ok"]);
        check(
            "/livez",
            "verbose",
            expect![[r#"
                200 [+]ping ok
                [+]store ok
                livez check passed
            "#]],
        );
        check(
            "/readyz",
            "",
            expect![[r#"
                500 [+]ping ok
                [+]store ok
                [-]poststarthook/a failed: reason withheld
                readyz check failed
            "#]],
        );
        check("/readyz", "exclude=poststarthook%2Fa", expect!["200 ok"]);
        check(
            "/readyz",
            "verbose=true&exclude=poststarthook/a&exclude=zz",
            expect![[r#"
                200 [+]ping ok
                [+]store ok
                [+]poststarthook/a excluded: ok
                warn: some health checks cannot be excluded: no matches for "zz"
                readyz check passed
            "#]],
        );
        check("/readyz/ping", "", expect!["200 ok"]);
        check(
            "/readyz/poststarthook/a",
            "",
            expect![[r#"
                500 internal server error: a password
            "#]],
        );
        check("/livez/poststarthook/a", "", expect!["none"]);
        check("/version", "", expect!["none"]);
    }
}
