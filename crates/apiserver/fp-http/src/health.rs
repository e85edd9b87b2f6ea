//! `/healthz`, `/livez` and `/readyz`: named checks, and what they print.
//!
//! Source: apiserver's `server/healthz/healthz.go`. A failed check's reason is logged, never sent:
//! these paths are open to everyone.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    checks: Vec<Named>,
}

#[derive(Clone)]
struct Named {
    name: String,
    scope: Scope,
    check: Check,
    /// By root, as in [`ROOTS`].
    seen: Arc<[Seen; 3]>,
}

const ROOTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// How often a check has passed and failed, and whether it passed the last time.
#[derive(Default)]
struct Seen {
    passed: AtomicU64,
    failed: AtomicU64,
    last_passed: AtomicBool,
}

impl Named {
    fn run(&self, root: &str) -> Result<(), String> {
        let outcome = (self.check)();
        let seen = &self.seen[ROOTS.iter().position(|r| *r == root).expect("one of the three")];
        let count = if outcome.is_ok() { &seen.passed } else { &seen.failed };
        count.fetch_add(1, Ordering::Relaxed);
        seen.last_passed.store(outcome.is_ok(), Ordering::Relaxed);
        outcome
    }
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
        self.checks.push(Named { name: name.to_owned(), scope, check, seen: Arc::default() });
        self
    }

    /// Whether `path` is one of the health paths or below one.
    pub fn serves(path: &str) -> bool {
        split(path).is_some()
    }

    /// Every health path that there is.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        for root in ROOTS {
            out.push(format!("/{root}"));
            out.extend(self.of(root).map(|c| format!("/{root}/{}", c.name)));
        }
        out
    }

    fn of<'a>(&'a self, root: &'a str) -> impl Iterator<Item = &'a Named> {
        let ready = root == "readyz";
        self.checks.iter().filter(move |c| ready || c.scope == Scope::Live)
    }

    /// `/metrics/slis`: the outcomes of the checks that were asked for
    /// (`component-base/metrics/prometheus/slis`).
    pub fn metrics(&self) -> String {
        let mut last = String::from(
            "# HELP kubernetes_healthcheck Whether the check passed the last time.\n\
             # TYPE kubernetes_healthcheck gauge\n",
        );
        let mut totals = String::from(
            "# HELP kubernetes_healthchecks_total How often the check passed and failed.\n\
             # TYPE kubernetes_healthchecks_total counter\n",
        );
        for check in &self.checks {
            for (root, seen) in ROOTS.iter().zip(&*check.seen) {
                let name = &check.name;
                let passed = u8::from(seen.last_passed.load(Ordering::Relaxed));
                let counts = [("error", &seen.failed), ("success", &seen.passed)]
                    .map(|(status, n)| (status, n.load(Ordering::Relaxed)));
                for (status, n) in counts.iter().filter(|(_, n)| *n > 0) {
                    let _ = writeln!(
                        totals,
                        "kubernetes_healthchecks_total{{name={name:?},status={status:?},type={root:?}}} {n}"
                    );
                }
                if counts.iter().any(|(_, n)| *n > 0) {
                    let _ = writeln!(
                        last,
                        "kubernetes_healthcheck{{name={name:?},type={root:?}}} {passed}"
                    );
                }
            }
        }
        last + &totals
    }

    /// Answers a path for which [`Health::serves`] holds; `None` for a check that does not exist.
    pub fn report(&self, path: &str, query: Option<&str>) -> Option<Report> {
        let (root, name) = split(path)?;
        match name {
            "" => Some(self.all(root, query.unwrap_or(""))),
            name => self.of(root).find(|c| c.name == name).map(|check| match (check.check)() {
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
        for check in self.of(root) {
            let name = check.name.as_str();
            if let Some(at) = excluded.iter().position(|e| *e == name) {
                excluded.remove(at);
                let _ = writeln!(lines, "[+]{name} excluded: ok");
                continue;
            }
            match check.run(root) {
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
    ROOTS.contains(&root).then_some((root, name))
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
    fn outcomes_are_counted() {
        let failing: Check = Arc::new(|| Err("broken".into()));
        let health = Health::new().with("store", Scope::Ready, failing);
        for path in ["/livez", "/readyz", "/readyz", "/readyz/store", "/healthz?exclude=ping"] {
            let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
            health.report(path, query);
        }
        expect![[r##"
            # HELP kubernetes_healthcheck Whether the check passed the last time.
            # TYPE kubernetes_healthcheck gauge
            kubernetes_healthcheck{name="ping",type="livez"} 1
            kubernetes_healthcheck{name="ping",type="readyz"} 1
            kubernetes_healthcheck{name="store",type="readyz"} 0
            # HELP kubernetes_healthchecks_total How often the check passed and failed.
            # TYPE kubernetes_healthchecks_total counter
            kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1
            kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2
            kubernetes_healthchecks_total{name="store",status="error",type="readyz"} 2
        "##]]
        .assert_eq(&health.metrics());
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
