//! Key files: the serving pair and the service account key.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::issuer::{self, Key};
use crate::root_dir::{self, read_if_there, write_atomically};

/// How long a certificate that we make is valid.
const VALID_DAYS: i64 = 3650;
/// How long a line of a PEM file is.
const PEM_LINE_LEN: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is there without {other}; put it back or remove both")]
    Half { path: PathBuf, other: PathBuf },
    #[error("{path} holds no private or public key in PEM form (RSA or ECDSA)")]
    NoKey { path: PathBuf },
    #[error("make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("make a key: the random source failed")]
    Generate(#[source] aws_lc_rs::error::Unspecified),
    #[error(transparent)]
    Write(#[from] root_dir::Error),
}

/// A serving pair, PEM. `certificate` ends with the CA that signed it.
pub struct Pair {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// Reads a pair of files.
pub fn read_pair(certificate: &Path, key: &Path) -> Result<Pair, Error> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
    };
    Ok(Pair { certificate: read(certificate)?, key: read(key)? })
}

/// The pair `apiserver.crt` and `apiserver.key` of a directory, made when it is not there. The key
/// is written first, and a key alone, which a start that was cut off leaves, gets a certificate.
pub fn serving_pair(dir: Option<&Path>, hosts: &[String]) -> Result<Pair, Error> {
    let Some(dir) = dir else { return make_pair(hosts, KeyPair::generate()?) };
    let (cert_path, key_path) = (dir.join("apiserver.crt"), dir.join("apiserver.key"));
    let read = |path: &Path| {
        read_if_there(path).map_err(|source| Error::Read { path: path.to_owned(), source })
    };
    match (read(&cert_path)?, read(&key_path)?) {
        (Some(certificate), Some(key)) => Ok(Pair { certificate, key }),
        (Some(_), None) => Err(Error::Half { path: cert_path, other: key_path }),
        (None, Some(key)) => {
            let key = std::str::from_utf8(&key).ok().and_then(|k| KeyPair::from_pem(k).ok());
            let pair = make_pair(hosts, key.ok_or(Error::NoKey { path: key_path })?)?;
            write_atomically(&cert_path, &pair.certificate, 0o644)?;
            Ok(pair)
        }
        (None, None) => {
            let pair = make_pair(hosts, KeyPair::generate()?)?;
            std::fs::create_dir_all(dir)
                .map_err(|source| Error::Read { path: dir.to_owned(), source })?;
            write_atomically(&key_path, &pair.key, 0o600)?;
            write_atomically(&cert_path, &pair.certificate, 0o644)?;
            Ok(pair)
        }
    }
}

fn make_pair(hosts: &[String], key: KeyPair) -> Result<Pair, Error> {
    let now = OffsetDateTime::now_utc();
    let host = hosts.first().map_or("localhost", String::as_str);
    let dated = |mut params: CertificateParams, name: String| {
        params.not_before = now - Duration::hours(1);
        params.not_after = now + Duration::days(VALID_DAYS);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let mut ca = dated(CertificateParams::default(), format!("{host}-ca@{}", now.unix_timestamp()));
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut leaf = dated(CertificateParams::default(), format!("{host}@{}", now.unix_timestamp()));
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for name in hosts {
        leaf.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into()?),
        });
    }
    let signed = leaf.signed_by(&key, &issuer)?;
    Ok(Pair {
        certificate: format!("{}{}", signed.pem(), issuer.pem()).into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

/// `sa.key` of the root directory, made (ECDSA P-256) when it is not there, or the keys that
/// flags name: read and checked. Tokens come later.
pub fn service_account_keys(root: Option<&Path>, given: &[PathBuf]) -> Result<Vec<Key>, Error> {
    if given.is_empty()
        && let Some(root) = root
    {
        let path = root.join("sa.key");
        let read =
            read_if_there(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let content = match read {
            Some(content) => content,
            None => {
                let made = make_key()?.into_bytes();
                write_atomically(&path, &made, 0o600)?;
                made
            }
        };
        return keys_of(&path, &content);
    }
    let mut keys = Vec::new();
    for path in given {
        let content =
            std::fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        keys.extend(keys_of(path, &content)?);
    }
    Ok(keys)
}

fn keys_of(path: &Path, content: &[u8]) -> Result<Vec<Key>, Error> {
    let keys = issuer::keys(content);
    if keys.is_empty() { Err(Error::NoKey { path: path.to_owned() }) } else { Ok(keys) }
}

/// An ECDSA key in the form of RFC 5915: of a PKCS #8 file, Kubernetes' `keyutil` reads the public
/// half of an RSA key only, and a Go kcp would not start with ours.
fn make_key() -> Result<String, Error> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map_err(Error::Generate)?;
    let der: EcPrivateKeyRfc5915Der = pair.private_key().as_der().map_err(Error::Generate)?;
    let text = STANDARD.encode(der.as_ref());
    let mut pem = "-----BEGIN EC PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(PEM_LINE_LEN) {
        pem.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        pem.push('\n');
    }
    pem.push_str("-----END EC PRIVATE KEY-----\n");
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let first = serving_pair(Some(dir.path()), &hosts).unwrap();
        let again = serving_pair(Some(dir.path()), &hosts).unwrap();
        assert_eq!(first.certificate, again.certificate);
        assert_eq!(first.certificate.windows(11).filter(|w| w == b"-----BEGIN ").count(), 2);
        std::fs::remove_file(dir.path().join("apiserver.key")).unwrap();
        assert!(matches!(serving_pair(Some(dir.path()), &hosts), Err(Error::Half { .. })));
        std::fs::write(dir.path().join("apiserver.key"), &first.key).unwrap();
        std::fs::remove_file(dir.path().join("apiserver.crt")).unwrap();
        let renewed = serving_pair(Some(dir.path()), &hosts).unwrap();
        assert_eq!(renewed.key, first.key);
        assert_ne!(renewed.certificate, first.certificate);
    }

    #[test]
    fn service_account_keys_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        service_account_keys(Some(dir.path()), &[]).unwrap();
        let made = std::fs::read(dir.path().join("sa.key")).unwrap();
        assert!(made.starts_with(b"-----BEGIN EC PRIVATE KEY-----\nM"));
        service_account_keys(Some(dir.path()), &[]).unwrap();
        assert_eq!(std::fs::read(dir.path().join("sa.key")).unwrap(), made);
        std::fs::write(dir.path().join("sa.key"), "not a key").unwrap();
        assert!(matches!(service_account_keys(Some(dir.path()), &[]), Err(Error::NoKey { .. })));
    }
}
