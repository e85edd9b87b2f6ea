//! Service account issuer discovery: the public halves of the service account keys as the OpenID
//! documents that relying parties read (`kubernetes/pkg/serviceaccount/openidmetadata.go`).

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fp_object::Value;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// kcp's issuer where no flag names one (`pkg/server/options/options.go`).
const ISSUER: &str = "https://kcp.default.svc";

/// A public key as DER `SubjectPublicKeyInfo`, of a sort that can be told as a JSON Web Key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// The keys of a PEM file; blocks that hold none are passed over.
pub fn keys(pem: &[u8]) -> Vec<Key> {
    Pem::iter_from_buffer(pem).filter_map(Result::ok).filter_map(|block| key(&block)).collect()
}

fn key(block: &Pem) -> Option<Key> {
    let der = block.contents.as_slice();
    let public = match block.label.as_str() {
        "EC PRIVATE KEY" | "RSA PRIVATE KEY" | "PRIVATE KEY" => {
            let private = PrivateKeyDer::try_from(der).ok()?;
            KeyPair::try_from(&private).ok()?.subject_public_key_info()
        }
        "PUBLIC KEY" | "RSA PUBLIC KEY" => der.to_vec(),
        "CERTIFICATE" => {
            let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
            certificate.public_key().raw.to_vec()
        }
        _ => return None,
    };
    let key = Key(public);
    key.web_key().is_some().then_some(key)
}

impl Key {
    /// As `golang.org/go-jose` writes it, `kid` being the hash that Kubernetes names keys by.
    fn web_key(&self) -> Option<Value> {
        let (_, info) = SubjectPublicKeyInfo::from_der(&self.0).ok()?;
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let kid = text(digest(&SHA256, &self.0).as_ref());
        match info.parsed().ok()? {
            PublicKey::RSA(rsa) => Some(json!({
                "use": "sig", "kty": "RSA", "kid": kid, "alg": "RS256",
                "n": text(unsigned(rsa.modulus)), "e": text(unsigned(rsa.exponent)),
            })),
            PublicKey::EC(point) => {
                // An uncompressed point: 4, then both coordinates at full length.
                let (4, coordinates) = point.data().split_first()? else { return None };
                let (curve, alg) = match coordinates.len() {
                    64 => ("P-256", "ES256"),
                    96 => ("P-384", "ES384"),
                    132 => ("P-521", "ES512"),
                    _ => return None,
                };
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                Some(json!({
                    "use": "sig", "kty": "EC", "kid": kid, "crv": curve, "alg": alg,
                    "x": text(x), "y": text(y),
                }))
            }
            _ => None,
        }
    }
}

/// A DER integer without the zero byte that keeps it positive.
fn unsigned(integer: &[u8]) -> &[u8] {
    let zeros = integer.iter().take_while(|b| **b == 0).count();
    &integer[zeros..]
}

/// The documents; `None` without a key, when there is nothing to discover.
pub fn documents(keys: &[Key], external_address: &str) -> Option<fp_http::OpenId> {
    let mut web_keys: Vec<Value> = Vec::new();
    for key in keys.iter().filter_map(Key::web_key) {
        if !web_keys.contains(&key) {
            web_keys.push(key);
        }
    }
    let mut algorithms: Vec<Value> = web_keys.iter().map(|k| k["alg"].clone()).collect();
    algorithms.sort_by_key(Value::to_string);
    algorithms.dedup();
    (!web_keys.is_empty()).then(|| fp_http::OpenId {
        configuration: json!({
            "issuer": ISSUER,
            "jwks_uri": format!("https://{external_address}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        }),
        keys: json!({"keys": web_keys}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 7517, appendix A.1 (EC), as SubjectPublicKeyInfo.
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMKBCTNIcKUSDii11ySs3526iDZ8A\n\
        iTo7Tu6KPAqv7D7gS2XpJFbZiItSs3m9+9Ue6GnvHw/GW2ZZaVtszggXIw==\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn a_public_key_is_told() {
        let documents = documents(&keys(PUBLIC.as_bytes()), "kcp.example.com:6443").unwrap();
        expect_test::expect![[r#"
            {
              "id_token_signing_alg_values_supported": [
                "ES256"
              ],
              "issuer": "https://kcp.default.svc",
              "jwks_uri": "https://kcp.example.com:6443/openid/v1/jwks",
              "response_types_supported": [
                "id_token"
              ],
              "subject_types_supported": [
                "public"
              ]
            }
            {
              "keys": [
                {
                  "alg": "ES256",
                  "crv": "P-256",
                  "kid": "UblEzfpUTUwyc6pr81BiWn3VO7tqcXIydPU4sZogd2A",
                  "kty": "EC",
                  "use": "sig",
                  "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
                  "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
                }
              ]
            }"#]]
        .assert_eq(&format!("{:#}\n{:#}", documents.configuration, documents.keys));
    }

    #[test]
    fn a_key_is_the_same_from_either_half() {
        let pair = KeyPair::generate().unwrap();
        let both = format!("{}{}", pair.serialize_pem(), pair.public_key_pem());
        let found = keys(both.as_bytes());
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], found[1]);
        let told = documents(&found, "localhost").unwrap().keys;
        assert_eq!(told["keys"].as_array().map(Vec::len), Some(1));
        assert!(documents(&keys(b"not a key"), "localhost").is_none());
    }
}
