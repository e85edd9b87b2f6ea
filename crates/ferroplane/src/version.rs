//! What `/version` and `--version` say.

use fp_object::Value;
use serde_json::json;

/// The Kubernetes version that this server behaves as.
const MAJOR: &str = "1";
const MINOR: &str = "36";

/// A version that clients can parse.
pub const GIT_VERSION: &str = concat!("v1.36.0+ferroplane-", env!("CARGO_PKG_VERSION"));

/// `version.Info` of apimachinery.
pub fn document() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": option_env!("FERROPLANE_COMMIT").unwrap_or(""),
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, goarch()),
    })
}

/// The processor by Go's name.
fn goarch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
