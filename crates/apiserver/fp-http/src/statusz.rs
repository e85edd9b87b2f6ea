//! `/statusz`: what this process is and how long it runs, for people, or as `Statusz` of
//! `config.k8s.io/v1beta1` (apiserver's `server/statusz`).

use std::time::Instant;

use fp_object::status::{Reason, Status};
use fp_object::{Value, json};
use http::Response;

use crate::answer;
use crate::body::Body;
use crate::negotiate::{JSON, StatuszForm};

const NAME: &str = "ferroplane";

pub struct Statusz {
    started: String,
    since: Instant,
    binary_version: String,
    emulation_version: String,
}

impl Statusz {
    /// Of the document that `/version` answers.
    pub fn new(version: &Value, started: String) -> Self {
        let text = |key: &str| version[key].as_str().unwrap_or("").to_owned();
        let emulation_version = format!("{}.{}", text("emulationMajor"), text("emulationMinor"));
        Self {
            started,
            since: Instant::now(),
            binary_version: text("gitVersion"),
            emulation_version,
        }
    }

    /// `paths` are all that the server has.
    pub fn answer(&self, form: StatuszForm, paths: &[String]) -> Result<Response<Body>, Status> {
        let up_secs = self.since.elapsed().as_secs();
        let paths = first_segments(paths);
        match form {
            StatuszForm::Text => Ok(answer::text(200, self.text(up_secs, &paths))),
            StatuszForm::Structured => {
                Ok(answer::whole(200, JSON, json::to_vec(&self.structured(up_secs, &paths))))
            }
            StatuszForm::None => Err(Status::new(
                406,
                Reason::NotAcceptable,
                "only text/plain, or JSON as Statusz of config.k8s.io/v1beta1, is served here",
            )),
        }
    }

    fn text(&self, up_secs: u64, paths: &[&str]) -> String {
        let (hours, minutes, secs) = (up_secs / 3600, up_secs / 60 % 60, up_secs % 60);
        format!(
            "\n{NAME} statusz\nFor people: nothing here keeps its form.\n\n\
             Started: {}\nUp: {hours} hr {minutes:02} min {secs:02} sec\n\
             Binary version: {}\nEmulation version: {}\nPaths: {}\n",
            self.started,
            self.binary_version,
            self.emulation_version,
            paths.join(" "),
        )
    }

    fn structured(&self, up_secs: u64, paths: &[&str]) -> Value {
        serde_json::json!({
            "kind": "Statusz",
            "apiVersion": "config.k8s.io/v1beta1",
            "metadata": {"name": NAME},
            "startTime": self.started,
            "uptimeSeconds": up_secs,
            // The field is required; no Go runs here.
            "goVersion": "",
            "binaryVersion": self.binary_version,
            "emulationVersion": self.emulation_version,
            "paths": paths,
        })
    }
}

/// The first segments of paths that help to debug, each once.
fn first_segments(paths: &[String]) -> Vec<&str> {
    let first = |path: &'_ String| path[1..].find('/').map_or(path.len(), |end| end + 1);
    let mut all: Vec<&str> = paths.iter().map(|path| &path[..first(path)]).collect();
    all.retain(|p| {
        p.len() > 1 && !["/api", "/apis", "/openapi", "/openid", "/.well-known"].contains(p)
    });
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn forms() {
        let version = serde_json::json!({
            "gitVersion": "v1.36.0+x", "emulationMajor": "1", "emulationMinor": "36",
        });
        let statusz = Statusz::new(&version, "2026-01-02T03:04:05Z".into());
        let paths = ["/", "/api/v1", "/livez", "/livez/ping", "/metrics/slis", "/version"];
        let paths = paths.map(str::to_owned);
        let paths = first_segments(&paths);
        expect![[r#"

            ferroplane statusz
            For people: nothing here keeps its form.

            Started: 2026-01-02T03:04:05Z
            Up: 1 hr 01 min 05 sec
            Binary version: v1.36.0+x
            Emulation version: 1.36
            Paths: /livez /metrics /version
        "#]]
        .assert_eq(&statusz.text(3665, &paths));
        expect![[
            r#"{"apiVersion":"config.k8s.io/v1beta1","binaryVersion":"v1.36.0+x","emulationVersion":"1.36","goVersion":"","kind":"Statusz","metadata":{"name":"ferroplane"},"paths":["/livez","/metrics","/version"],"startTime":"2026-01-02T03:04:05Z","uptimeSeconds":5}"#
        ]]
        .assert_eq(&statusz.structured(5, &paths).to_string());
    }
}
