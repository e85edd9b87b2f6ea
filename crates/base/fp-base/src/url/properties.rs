//! What must hold for every target, tried on random ones that are made of what confuses parsers.

use proptest::prelude::*;

use super::*;

/// Pieces of targets: names, clusters, and everything that another parser could read differently.
const PIECES: [&str; 52] = [
    "/",
    "/",
    "/",
    "/",
    "//",
    "clusters",
    "clusters",
    "root",
    "root:acme",
    "system:admin",
    "*",
    "%2A",
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "secrets",
    "a",
    "x.y",
    ".",
    "..",
    "...",
    "%2e",
    "%2E%2e",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    "%00",
    "%0a",
    "%7f",
    "%25",
    "%252f",
    "%252e",
    "%3a",
    "%3A",
    ":",
    "::",
    "?",
    "#",
    ";",
    "%",
    "%4",
    "%zz",
    "%c0%af",
    "%ff",
    "é",
    "%C3%A9",
    "@",
    "ROOT",
    "-",
];

fn targets() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(PIECES.as_slice());
    let pieces = proptest::collection::vec(piece, 0..14).prop_map(|p| p.concat());
    let below = pieces.clone().prop_map(|p| format!("/clusters/{p}"));
    let known = pieces.clone().prop_map(|p| format!("/clusters/root/{p}"));
    prop_oneof![3 => pieces, 3 => below, 3 => known, 1 => ".{0,40}"]
}

/// The one way to write a target's path: only what must be is encoded.
fn canonical(target: &Target) -> String {
    let prefix = match &target.cluster {
        ClusterRef::None => String::new(),
        ClusterRef::All => "/clusters/*".to_owned(),
        ClusterRef::Path(path) => format!("/clusters/{path}"),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~:@!$&'()*+,;=".contains(&b);
    let path = target.path.bytes().map(|b| match plain(b) {
        true => char::from(b).to_string(),
        false => format!("%{b:02X}"),
    });
    let query = target.query.as_ref().map_or(String::new(), |q| format!("?{q}"));
    format!("{prefix}{}{query}", path.collect::<String>())
}

/// A byte of the path written as an escape, which must change nothing.
fn escape_one(target: &str, at: usize) -> Option<String> {
    let path = target.split('?').next().unwrap_or("");
    let at = at % path.len().max(1);
    let byte = *path.as_bytes().get(at)?;
    let within_escape = byte == b'%' || path.bytes().take(at).rev().take(2).any(|b| b == b'%');
    if byte == b'/' || within_escape || !byte.is_ascii() {
        return None;
    }
    Some(format!("{}%{byte:02x}{}", &target[..at], &target[at + 1..]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_parsed_is_canonical(target in targets()) {
        let Ok(parsed) = parse(&target) else { return Ok(()) };
        let path = &parsed.path;
        prop_assert!(path.starts_with('/'));
        let segments: Vec<&str> = path[1..].split('/').collect();
        for (at, segment) in segments.iter().enumerate() {
            prop_assert!(!matches!(*segment, "." | ".."), "{path}");
            prop_assert!(!segment.is_empty() || at + 1 == segments.len(), "{path}");
            prop_assert!(!segment.contains(['\\', '%', '\0', '\n', '\r', '\x7f']), "{path}");
        }
        // Written again it is the same target, and says so about itself.
        let again = parse(&canonical(&parsed));
        prop_assert_eq!(again.as_ref(), Ok(&parsed), "{}", canonical(&parsed));
        prop_assert_eq!(canonical(&again.expect("just compared")), canonical(&parsed));
    }

    /// Two writings of one target are one target: encoding a byte neither makes nor hides a
    /// cluster, a slash or a dot segment.
    #[test]
    fn encoding_changes_nothing(target in targets(), at in any::<usize>()) {
        let Some(encoded) = escape_one(&target, at) else { return Ok(()) };
        match (parse(&target), parse(&encoded)) {
            (Ok(plain), Ok(other)) => prop_assert_eq!(plain, other, "{} {}", target, encoded),
            (Ok(_), Err(error)) => prop_assert!(false, "{encoded}: {error}"),
            // A control character or backslash stays what it is, encoded or not.
            (Err(_), Ok(other)) => prop_assert!(false, "{target} is refused, {encoded} is {other:?}"),
            (Err(_), Err(_)) => {}
        }
    }

    /// A cluster that was parsed holds exactly what may stand in a storage key.
    #[test]
    fn a_cluster_stays_in_its_segment(target in targets()) {
        let Ok(Target { cluster: ClusterRef::Path(path), .. }) = parse(&target) else { return Ok(()) };
        prop_assert!(!path.as_str().contains(['/', '%', '\\', '*', '\0']), "{path}");
        prop_assert!(path.segments().all(|s| !s.is_empty() && s != "." && s != ".."), "{path}");
        if let Some(name) = path.as_name() {
            prop_assert_eq!(crate::ClusterName::parse(name.as_str()), Ok(name));
        }
        // Only a target that begins so has a cluster.
        let decoded = target.split('?').next().unwrap_or("").to_owned();
        prop_assert!(decoded.starts_with('/'), "{target}");
    }

    /// The route is found in the decoded path alone, and its parts are segments of it.
    #[test]
    fn routes_are_made_of_segments(target in targets()) {
        let Ok(parsed) = parse(&target) else { return Ok(()) };
        let Route::Resource(found) = route(&parsed.path) else { return Ok(()) };
        let segments: Vec<&str> = parsed.path.split('/').collect();
        for part in [Some(&found.group), Some(&found.version), found.namespace.as_ref(), found.name.as_ref()]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
        {
            prop_assert!(segments.contains(&part.as_str()), "{part} in {}", parsed.path);
        }
        prop_assert!(!found.resource.contains('/'));
    }

    #[test]
    fn queries_never_panic(query in ".{0,60}") {
        for (key, _) in query_pairs(&query) {
            prop_assert!(!key.contains('&') || query.contains("%26"), "{query}");
        }
    }
}
