//! Discovery of every cluster, plain and aggregated, as lines: one a group, list and resource.
//!
//! The order of groups and resources of definitions is random in Go; only that of compiled-in ones
//! is not, and a unit test of fp-http has it.

use it::Server;
use serde_json::Value;

use super::normal::Words;
use super::{CLUSTERS, facts, get, lines_differ};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub fn differences(server: &Server, words: &Words) -> Vec<String> {
    let facts = facts("discovery.txt");
    let facts: Vec<(&str, &str)> = facts.lines().filter_map(|line| line.split_once(' ')).collect();
    let of = |(digit, cluster): (usize, &&'static str)| {
        let digit = digit.to_string();
        let theirs = facts.iter().filter(|(clusters, _)| clusters.contains(&digit));
        let theirs: Vec<String> = theirs.map(|(_, line)| (*line).to_owned()).collect();
        let known = theirs.iter().filter_map(|line| told_aggregated(line)).collect();
        let at = words.cluster(cluster);
        let ours = plain(server, &at).iter().map(|line| words.text(line)).collect();
        let mut out = lines_differ(&format!("discovery {cluster}"), ours, theirs);
        out.extend(lines_differ(&format!("aggregated {cluster}"), aggregated(server, &at), known));
        out
    };
    CLUSTERS.iter().enumerate().flat_map(of).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().filter(|text| !text.is_empty()).unwrap_or("-")
}

/// The texts of a list; of a list of objects, those below `key`.
fn words_of(list: &Value, key: &str) -> String {
    let items = list.as_array().into_iter().flatten();
    let texts: Vec<&str> = items.filter_map(|i| i.as_str().or_else(|| i[key].as_str())).collect();
    if texts.is_empty() { "-".into() } else { texts.join(",") }
}

fn plain(server: &Server, cluster: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut versions = vec!["v1".to_owned()];
    let groups = get(server, cluster, "/apis");
    for group in groups["groups"].as_array().expect("groups") {
        let line = group_line(group);
        let alone = get(server, cluster, &format!("/apis/{}", text(group, "name")));
        assert_eq!((group_line(&alone), text(&alone, "kind")), (line.clone(), "APIGroup"));
        out.push(line);
        let listed = group["versions"].as_array().expect("versions").iter();
        versions.extend(listed.map(|v| text(v, "groupVersion").to_owned()));
    }
    for version in versions {
        let root = if version.contains('/') { "apis" } else { "api" };
        let list = get(server, cluster, &format!("/{root}/{version}"));
        let (version, kind) = (text(&list, "groupVersion"), text(&list, "kind"));
        out.push(format!("list {version} {} {kind}", text(&list, "apiVersion")));
        let resources = list["resources"].as_array().expect("resources");
        out.extend(resources.iter().map(|resource| plain_line(version, resource)));
    }
    out
}

fn group_line(group: &Value) -> String {
    let addresses = group["serverAddressByClientCIDRs"].as_array().into_iter().flatten();
    let addresses: Vec<String> = addresses
        .map(|a| format!("{}={}", text(a, "clientCIDR"), text(a, "serverAddress")))
        .collect();
    format!(
        "group {} {} {} {}",
        text(group, "name"),
        text(&group["preferredVersion"], "groupVersion"),
        words_of(&group["versions"], "groupVersion"),
        if addresses.is_empty() { "-".into() } else { addresses.join(",") },
    )
}

fn plain_line(version: &str, resource: &Value) -> String {
    let hash = match (version, text(resource, "storageVersionHash")) {
        // The hash of a definition has its random cluster in it.
        ("stable.example.dev/v1", hash) if hash != "-" => "<hash>",
        (_, hash) => hash,
    };
    let scope = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
    let other = format!("{}/{}", text(resource, "group"), text(resource, "version"));
    let names = [text(resource, "name"), text(resource, "kind"), text(resource, "singularName")];
    format!("{} hash={hash}", line(version, names, scope, &other, resource))
}

/// What both forms tell of a resource; `from` has the members with the same name in both.
fn line(version: &str, names: [&str; 3], scope: &str, other: &str, from: &Value) -> String {
    let list = |key: &str| words_of(&from[key], "");
    format!(
        "{version} {} {scope} {other} {} short={} categories={}",
        names.join(" "),
        list("verbs"),
        list("shortNames"),
        list("categories"),
    )
}

/// A plain line as the aggregated form has it: without address and hash. It knows no lists.
fn told_aggregated(line: &str) -> Option<String> {
    let keep = |line: &str| line.rsplit_once(' ').map(|(head, _)| head.to_owned());
    if line.starts_with("list ") { None } else { keep(line) }
}

fn aggregated(server: &Server, cluster: &str) -> Vec<String> {
    let token = server.token("shard-admin");
    let mut out = Vec::new();
    for root in ["/api", "/apis"] {
        let path = format!("/clusters/{cluster}{root}");
        let answer = server.request("GET", &path, Some(&token), &[("Accept", AGGREGATED)], b"");
        let answer = answer.expect("an answer");
        assert_eq!(answer.header("content-type"), Some(AGGREGATED));
        for group in answer.json()["items"].as_array().expect("items") {
            aggregated_group(group, &mut out);
        }
    }
    out
}

fn aggregated_group(group: &Value, out: &mut Vec<String>) {
    let name = text(&group["metadata"], "name");
    let full = |version: &Value| match name {
        "-" => text(version, "version").to_owned(),
        name => format!("{name}/{}", text(version, "version")),
    };
    let versions = group["versions"].as_array().expect("versions");
    if name != "-" {
        let names: Vec<String> = versions.iter().map(full).collect();
        out.push(format!("group {name} {} {}", names[0], names.join(",")));
    }
    for version in versions {
        assert_eq!(text(version, "freshness"), "Current");
        let gv = full(version);
        for resource in version["resources"].as_array().expect("resources") {
            let scope = text(resource, "scope").to_lowercase();
            let at = text(resource, "resource");
            let names = [at, text(&resource["responseKind"], "kind")];
            let names = [names[0], names[1], text(resource, "singularResource")];
            out.push(line(&gv, names, &scope, &other(&gv, &resource["responseKind"]), resource));
            for sub in resource["subresources"].as_array().into_iter().flatten() {
                let at = format!("{at}/{}", text(sub, "subresource"));
                let names = [&at, text(&sub["responseKind"], "kind"), "-"];
                out.push(line(&gv, names, &scope, &other(&gv, &sub["responseKind"]), sub));
            }
        }
    }
}

/// The group-version of a kind when it is not that of its resource.
fn other(gv: &str, kind: &Value) -> String {
    let (group, version) = (text(kind, "group"), text(kind, "version"));
    let own = if group == "-" { version.to_owned() } else { format!("{group}/{version}") };
    if own == gv { "-/-".into() } else { format!("{group}/{version}") }
}
