//! What a client sends and what it accepts.
//!
//! Sources: apiserver's `endpoints/handlers/negotiation/negotiate.go`, `rest.go`
//! (`AllowsMediaTypeTransform`), and goautoneg.

use fp_object::status::Status;
use fp_verbs::request::{Media, Method};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// The most `Accept` clauses that are looked at.
const CLAUSES_MAX: usize = 32;

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }
}

/// What the answer shows of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Full,
    /// `as=Table`.
    Table,
    /// `as=PartialObjectMetadata[List]`.
    Partial,
}

/// The negotiated form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub format: Format,
    pub shape: Shape,
    /// `v1beta1` of meta.k8s.io was asked for.
    pub beta: bool,
}

impl Accepted {
    pub const JSON: Self = Self { format: Format::Json, shape: Shape::Full, beta: false };

    pub fn meta_version(self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }
}

/// What the endpoint can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Full objects in protobuf: built-ins only.
    pub protobuf: bool,
    /// `as=Table` and `as=PartialObjectMetadata`.
    pub transforms: bool,
    /// A watch: no YAML, and `;stream=watch` is allowed.
    pub watch: bool,
}

/// The first acceptable clause of the `Accept` header, by quality and then in order.
pub fn accept(headers: &HeaderMap, offer: Offer) -> Result<Accepted, Status> {
    let Some(value) = headers.get(ACCEPT) else { return Ok(Accepted::JSON) };
    let text = value.to_str().unwrap_or("");
    if matches!(text, "" | JSON | "*/*" | "application/json, */*") {
        return Ok(Accepted::JSON);
    }
    let clauses = clauses(text);
    clauses.iter().find_map(|c| c.matches(offer)).ok_or_else(|| not_acceptable(offer))
}

fn not_acceptable(offer: Offer) -> Status {
    let list = if offer.watch {
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    };
    Status::not_acceptable(format!("only the following media types are accepted: {list}"))
}

/// How a refusal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Json,
    /// Only when JSON is not accepted at all.
    Protobuf,
    /// The message alone. client-go reads no Status in answer to aggregated discovery
    /// or OpenAPI v2 (`discovery_client.go` takes the raw body): of anything but text kubectl says
    /// `unknown`.
    Text,
}

/// The form in which clients ask for OpenAPI v2 ends with `@v1.0+protobuf`.
const OPENAPI_V2: &str = "proto-openapi.spec.v2";

/// The form of a refusal that the client can read.
pub fn refusal(accept: Option<&http::HeaderValue>) -> Refusal {
    let text = accept.and_then(|v| v.to_str().ok()).unwrap_or("");
    if text.contains("as=APIGroupDiscoveryList") || text.contains(OPENAPI_V2) {
        return Refusal::Text;
    }
    if !text.contains(PROTOBUF) || text.contains(JSON) || text.contains('*') {
        return Refusal::Json;
    }
    Refusal::Protobuf
}

/// The discovery form that is asked for: aggregated (`APIGroupDiscoveryList` v2), or plain.
pub fn wants_aggregated(headers: &HeaderMap) -> bool {
    let text = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    if !text.contains("APIGroupDiscoveryList") {
        return false;
    }
    for clause in clauses(text) {
        let aggregated = clause.get("as") == Some("APIGroupDiscoveryList")
            && clause.get("g") == Some("apidiscovery.k8s.io");
        match aggregated {
            true if clause.get("v") == Some("v2") && clause.media == JSON => return true,
            true => {}
            // A plain clause that stands earlier is preferred by the client.
            false if matches!(clause.media, JSON | "*/*" | "application/*") => return false,
            false => {}
        }
    }
    false
}

/// How `/statusz` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatuszForm {
    Text,
    Structured,
    None,
}

/// The form of `/statusz` that is asked for; text is the default.
pub fn statusz(headers: &HeaderMap) -> StatuszForm {
    let text = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    if text.trim().is_empty() {
        return StatuszForm::Text;
    }
    let form = |clause: &Clause<'_>| match clause.media {
        "text/plain" | "text/*" | "*/*" => Some(StatuszForm::Text),
        JSON if clause.get("as") == Some("Statusz")
            && clause.get("g") == Some("config.k8s.io")
            && clause.get("v") == Some("v1beta1") =>
        {
            Some(StatuszForm::Structured)
        }
        _ => None,
    };
    clauses(text).iter().find_map(form).unwrap_or(StatuszForm::None)
}

/// One clause: `type/subtype;name=value;...`.
struct Clause<'a> {
    media: &'a str,
    params: &'a str,
    /// Quality in thousandths.
    quality: u32,
}

fn clauses(text: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<Clause<'_>> = text
        .split(',')
        .take(CLAUSES_MAX)
        .map(|clause| {
            let (media, params) = clause.split_once(';').unwrap_or((clause, ""));
            let quality = param(params, "q").and_then(|q| q.parse::<f32>().ok()).unwrap_or(1.0);
            Clause { media: media.trim(), params, quality: (quality * 1000.0) as u32 }
        })
        .collect();
    if all.iter().any(|c| c.quality != 1000) {
        all.retain(|c| c.quality > 0);
        all.sort_by_key(|c| std::cmp::Reverse(c.quality));
    }
    all
}

fn param<'a>(params: &'a str, name: &str) -> Option<&'a str> {
    params.split(';').find_map(|p| {
        let (key, value) = p.split_once('=')?;
        (key.trim() == name).then(|| value.trim().trim_matches('"'))
    })
}

impl Clause<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        param(self.params, name)
    }

    fn matches(&self, offer: Offer) -> Option<Accepted> {
        let formats: &[Format] = match self.media {
            JSON => &[Format::Json],
            YAML if !offer.watch => &[Format::Yaml],
            PROTOBUF => &[Format::Protobuf],
            // The server's own order: JSON first.
            "*/*" | "application/*" => &[Format::Json],
            _ => return None,
        };
        let format = formats[0];
        match self.get("stream") {
            None | Some("") => {}
            Some("watch") if offer.watch => {}
            Some(_) => return None,
        }
        if self.get("sv").is_some_and(|sv| !sv.is_empty()) {
            return None;
        }
        let (shape, beta) = match (self.get("as"), self.get("g"), self.get("v")) {
            (None, None, None) => (Shape::Full, false),
            (Some(kind), Some("meta.k8s.io"), Some(version @ ("v1" | "v1beta1"))) => {
                (transform(kind, format, offer)?, version == "v1beta1")
            }
            _ => return None,
        };
        if shape == Shape::Full && format == Format::Protobuf && !offer.protobuf {
            return None;
        }
        Some(Accepted { format, shape, beta })
    }
}

fn transform(kind: &str, format: Format, offer: Offer) -> Option<Shape> {
    match kind {
        _ if !offer.transforms => None,
        "Table" if format != Format::Protobuf => Some(Shape::Table),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(Shape::Partial),
        _ => None,
    }
}

/// The media type of a request body. `None`: there is no `Content-Type`.
pub fn content_type(headers: &HeaderMap, method: Method) -> Result<Option<Media>, Status> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        // A patch must say what it is; everything else is JSON.
        return if method == Method::Patch { Err(unsupported(method)) } else { Ok(None) };
    };
    let text = value.to_str().unwrap_or("");
    let media = text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let media = match (method, media.as_str()) {
        (Method::Patch, "application/json-patch+json") => Media::JsonPatch,
        (Method::Patch, "application/merge-patch+json") => Media::MergePatch,
        (Method::Patch, "application/strategic-merge-patch+json") => Media::StrategicMergePatch,
        (Method::Patch, "application/apply-patch+yaml") => Media::ApplyPatch,
        (Method::Patch, "application/apply-patch+cbor") => Media::ApplyPatchCbor,
        (Method::Patch, _) => return Err(unsupported(method)),
        (_, JSON) => Media::Json,
        (_, YAML) => Media::Yaml,
        (_, PROTOBUF) => Media::Protobuf,
        (_, "") => return Ok(None),
        _ => return Err(unsupported(method)),
    };
    Ok(Some(media))
}

fn unsupported(method: Method) -> Status {
    let list = match method {
        Method::Patch => {
            "application/json-patch+json, application/merge-patch+json, \
             application/strategic-merge-patch+json, application/apply-patch+yaml, \
             application/apply-patch+cbor"
        }
        _ => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    };
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {list}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILTIN: Offer = Offer { protobuf: true, transforms: true, watch: false };
    const CUSTOM: Offer = Offer { protobuf: false, transforms: true, watch: false };
    const WATCH: Offer = Offer { protobuf: true, transforms: true, watch: true };

    fn check(offer: Offer, text: &str, want: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        let got = match accept(&headers, offer) {
            Ok(a) => {
                format!("{:?} {:?}{}", a.format, a.shape, if a.beta { " beta" } else { "" })
            }
            Err(status) => format!("{} {}", status.code, status.message),
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn accepts() {
        let kubectl_get = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                           application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;\
                        g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;\
                        g=meta.k8s.io;v=v1,application/json";
        let client_go = "application/vnd.kubernetes.protobuf,application/json";
        let none = "406 only the following media types are accepted: application/json, \
                    application/yaml, application/vnd.kubernetes.protobuf";
        check(BUILTIN, "application/json", "Json Full");
        check(BUILTIN, "*/*", "Json Full");
        check(BUILTIN, "application/*", "Json Full");
        check(BUILTIN, "application/yaml", "Yaml Full");
        check(BUILTIN, client_go, "Protobuf Full");
        check(CUSTOM, client_go, "Json Full");
        check(CUSTOM, PROTOBUF, none);
        check(BUILTIN, kubectl_get, "Json Table");
        check(CUSTOM, kubectl_get, "Json Table");
        check(BUILTIN, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "Json Table beta");
        check(BUILTIN, "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", none);
        check(CUSTOM, metadata, "Protobuf Partial");
        check(BUILTIN, "application/json;as=Table;v=v2;g=meta.k8s.io", none);
        check(BUILTIN, "application/json;as=Widget;v=v1;g=meta.k8s.io,*/*", "Json Full");
        check(BUILTIN, "image/png", none);
        check(BUILTIN, "text/html, application/yaml;q=0.4, */*;q=0.8", "Json Full");
        check(BUILTIN, "application/yaml, application/json;q=0.5", "Yaml Full");
        check(BUILTIN, "application/json;q=0", none);
        check(WATCH, "application/json;stream=watch", "Json Full");
        check(WATCH, "application/vnd.kubernetes.protobuf;stream=watch", "Protobuf Full");
        check(BUILTIN, "application/json;stream=watch", none);
        check(
            WATCH,
            "application/yaml",
            "406 only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch",
        );
    }

    #[test]
    fn content_types() {
        let check = |method: Method, text: &str, want: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, text.parse().unwrap());
            let got = match content_type(&headers, method) {
                Ok(media) => format!("{media:?}"),
                Err(status) => format!("{} {}", status.code, status.reason.as_str()),
            };
            assert_eq!(got, want, "{text}");
        };
        check(Method::Post, "application/json", "Some(Json)");
        check(Method::Post, "application/json; charset=utf-8", "Some(Json)");
        check(Method::Put, "application/yaml", "Some(Yaml)");
        check(Method::Post, PROTOBUF, "Some(Protobuf)");
        check(Method::Post, "text/xml", "415 UnsupportedMediaType");
        check(Method::Post, "application/merge-patch+json", "415 UnsupportedMediaType");
        check(Method::Patch, "application/merge-patch+json", "Some(MergePatch)");
        check(Method::Patch, "application/apply-patch+yaml", "Some(ApplyPatch)");
        check(Method::Patch, "application/json", "415 UnsupportedMediaType");
        check(Method::Delete, "application/json", "Some(Json)");
        assert_eq!(content_type(&HeaderMap::new(), Method::Post), Ok(None));
        assert!(content_type(&HeaderMap::new(), Method::Patch).is_err());
    }

    #[test]
    fn discovery_forms() {
        let check = |text: &str, want: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            assert_eq!(wants_aggregated(&headers), want, "{text}");
        };
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        check("application/json", false);
        check(v2, true);
        check(&format!("{v2},{v2beta1},application/json"), true);
        check(&format!("{v2beta1},application/json"), false);
        check(&format!("application/json,{v2}"), false);
    }
}
