//! Responses: heads, refusals, warnings, compression.

use std::io::Write;

use bytes::Bytes;
use fp_builtin::tables::meta;
use fp_object::status::Status;
use fp_object::{Value, proto};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER,
    USER_AGENT, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::negotiate::{JSON, PROTOBUF, Refusal};

/// Smaller answers are not compressed (apiserver's `defaultGzipThresholdBytes`).
const GZIP_BYTES_MIN: usize = 128 << 10;
/// apiserver's `defaultGzipContentEncodingLevel`.
const GZIP_LEVEL: u32 = 1;
/// All warnings of one answer together (apiserver's `truncateAtTotalRunes`).
const WARNING_BYTES_MAX: usize = 4 << 10;

/// Names the request in logs; the client may choose it.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// An answer of one whole body.
pub fn whole(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    head(code, content_type, Body::from(body.into()))
}

pub fn head(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_CACHE);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Plain text, as the health paths answer.
pub fn text(code: u16, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = whole(code, "text/plain; charset=utf-8", body);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    response
}

pub fn json(value: &impl serde::Serialize) -> Response<Body> {
    whole(200, JSON, fp_object::json::to_vec(value))
}

/// A refusal.
pub fn refuse(status: &Status, form: Refusal) -> Response<Body> {
    let mut response = match form {
        Refusal::Text => text(status.code, status.message.clone()),
        Refusal::Json | Refusal::Protobuf => {
            let value = status.to_json();
            let encoded = match value.as_object() {
                Some(object) if form == Refusal::Protobuf => {
                    proto::encode(&meta::STATUS, object).ok()
                }
                _ => None,
            };
            match encoded {
                Some(raw) => whole(status.code, PROTOBUF, proto::wrap("v1", "Status", &raw)),
                None => whole(status.code, JSON, status_json(&value)),
            }
        }
    };
    let headers = response.headers_mut();
    let retry_secs = status.details.as_ref().map_or(0, |d| d.retry_after_secs);
    if retry_secs > 0 {
        headers.insert(RETRY_AFTER, HeaderValue::from(retry_secs));
    }
    // An error may carry what the caller sent: no browser may take it for a page.
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    response
}

/// A Status with its members in Go's order.
pub fn status_json(value: &Value) -> Vec<u8> {
    const ORDER: [&str; 8] =
        ["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"];
    let mut out = vec![b'{'];
    for key in ORDER {
        let Some(member) = value.get(key) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        let _ = write!(out, "\"{key}\":");
        out.extend(fp_object::json::to_vec(member));
    }
    out.extend(b"}\n");
    out
}

/// Adds `Warning: 299 - "..."` headers.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    let mut left = WARNING_BYTES_MAX;
    for text in warnings {
        let mut value = String::with_capacity(text.len() + 10);
        value.push_str("299 - \"");
        for c in text.chars().take(left) {
            match c {
                '"' | '\\' => value.extend(['\\', c]),
                c if c.is_control() => value.push(' '),
                c => value.push(c),
            }
        }
        value.push('"');
        left = left.saturating_sub(text.len());
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(WARNING, value);
        }
        if left == 0 {
            return;
        }
    }
}

/// Indents a JSON answer for a reader: `?pretty=1`, or a tool that people type
/// (`negotiation.isPrettyPrint`).
pub fn prettify(response: &mut Response<Body>, request: &HeaderMap, query: Option<&str>) {
    let Body::Whole(Some(bytes)) = response.body() else { return };
    if response.headers().get(CONTENT_TYPE).is_none_or(|t| t != JSON) {
        return;
    }
    let asked = query.filter(|q| q.contains("pretty")).and_then(|q| {
        let pairs = fp_base::url::query_pairs(q);
        let (_, value) = pairs.into_iter().find(|(k, v)| k == "pretty" && !v.is_empty())?;
        Some(matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
    });
    let typed = || {
        let agent = request.get(USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
        [&b"curl"[..], b"Wget", b"Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool))
    };
    if !asked.unwrap_or_else(typed) {
        return;
    }
    let mut text = Limited { out: Vec::new(), max: bytes.len() * PRETTY_FACTOR_MAX + (1 << 20) };
    // What nests deeper than serde_json reads is nothing for a reader's eyes either.
    if let Ok(value) = serde_json::from_slice::<Value>(bytes)
        && serde_json::to_writer_pretty(&mut text, &value).is_ok()
    {
        let mut text = text.out;
        text.push(b'\n');
        *response.body_mut() = Body::from(Bytes::from(text));
    }
}

/// How much longer an answer may get by indentation, which a deep value has on every line; beyond
/// it the answer stays as it is.
const PRETTY_FACTOR_MAX: usize = 4;

/// A writer that fails beyond `max` bytes.
struct Limited {
    out: Vec<u8>,
    max: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.out.len() + bytes.len() > self.max {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Compresses a large answer when the client takes gzip.
pub async fn compress(mut response: Response<Body>, request: &HeaderMap) -> Response<Body> {
    let large = matches!(response.body(), Body::Whole(Some(b)) if b.len() >= GZIP_BYTES_MIN);
    if !large || !takes_gzip(request) {
        return response;
    }
    let Body::Whole(Some(bytes)) = std::mem::replace(response.body_mut(), Body::empty()) else {
        return response;
    };
    // Tens of milliseconds for megabytes: not on a thread that serves others.
    let plain = bytes.clone();
    match tokio::task::spawn_blocking(move || gzip(&plain)).await {
        Ok(Ok(packed)) => {
            *response.body_mut() = Body::from(Bytes::from(packed));
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Ok(Err(_)) | Err(_) => *response.body_mut() = Body::from(bytes),
    }
    response
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|clause| {
            let (name, params) = clause.split_once(';').unwrap_or((clause, ""));
            name.trim() == "gzip"
                && !params.replace(' ', "").starts_with("q=0;")
                && !matches!(params.trim(), "q=0" | "q=0.0")
        })
}

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let level = flate2::Compression::new(GZIP_LEVEL);
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(plain.len() / 8), level);
    encoder.write_all(plain)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pretty(json: &str) -> Bytes {
        let mut response = whole(200, JSON, json.to_owned());
        prettify(&mut response, &HeaderMap::new(), Some("pretty=true"));
        match response.into_body() {
            Body::Whole(Some(bytes)) => bytes,
            _ => panic!("an answer that is whole stays so"),
        }
    }

    #[test]
    fn indentation_does_not_multiply() {
        assert_eq!(pretty(r#"{"a":[1]}"#), "{\n  \"a\": [\n    1\n  ]\n}\n");
        // 100,000 lines of which each would begin with 200 spaces.
        let deep = format!("{}{}0{}", "[".repeat(100), "0,".repeat(100_000), "]".repeat(100));
        assert_eq!(pretty(&deep), deep);
    }
}
