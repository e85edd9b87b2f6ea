//! Who a caller is: hashed admin tokens, the token file, client certificates.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{AUTHENTICATED, Authenticator, Credentials, Invalid, User};

/// The longest bearer token that is looked at, in bytes.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Hex is not needed: 32 raw bytes.
pub type TokenHash = [u8; 32];

/// SHA-256 of a token, as `.admin-token-store` keeps it.
pub fn hash_token(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// Tokens known by their hash. Lookups compare in constant time per entry.
pub struct HashedTokens(pub Vec<(TokenHash, User)>);

#[async_trait]
impl Authenticator for HashedTokens {
    async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, Invalid> {
        let Some(token) = credentials.token else { return Ok(None) };
        let hash = hash_token(token);
        let found = self.0.iter().fold(None, |found, (known, user)| {
            if bool::from(known.ct_eq(&hash)) { Some(user) } else { found }
        });
        Ok(found.cloned())
    }
}

/// `--token-auth-file`: CSV of token, user, uid and optional quoted groups.
pub struct TokenFile(HashMap<TokenHash, User>);

/// Why a token file is refused.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("read token file {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("token file {path} line {line}: {why}")]
    Line { path: PathBuf, line: usize, why: &'static str },
}

impl TokenFile {
    /// Reads the file once; an empty user name or a line of fewer than three columns is an error.
    pub fn load(path: &Path) -> Result<Self, TokenFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        let mut users = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |why| TokenFileError::Line { path: path.to_owned(), line: at + 1, why };
            let columns = csv(line).ok_or_else(|| fail("a quote is not closed"))?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(fail("fewer than three columns (token, user, uid)"));
            };
            if token.is_empty() {
                continue;
            }
            let mut groups: Vec<String> = rest
                .first()
                .map(|g| g.split(',').map(|g| g.trim().to_owned()).collect())
                .unwrap_or_default();
            groups.retain(|g| !g.is_empty());
            add_authenticated(&mut groups);
            let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
            users.insert(hash_token(token), user);
        }
        Ok(Self(users))
    }
}

/// One CSV line: fields may be quoted, `""` is a quote. `None` when a quote is not closed.
fn csv(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        let field = fields.last_mut().expect("starts with one field");
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => fields.push(String::new()),
            (' ', false) if field.is_empty() => {}
            (c, _) => field.push(c),
        }
    }
    (!quoted).then_some(fields)
}

fn add_authenticated(groups: &mut Vec<String>) {
    if !groups.iter().any(|g| g == AUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
}

#[async_trait]
impl Authenticator for TokenFile {
    async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, Invalid> {
        // Looked up by hash: the time says nothing about a token that is known.
        Ok(credentials.token.and_then(|t| self.0.get(&hash_token(t))).cloned())
    }
}

/// Client certificates: the common name is the user, organizations are groups. TLS has verified
/// the chain before a certificate stands in [`Credentials`].
pub struct ClientCert;

#[async_trait]
impl Authenticator for ClientCert {
    async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, Invalid> {
        let Some(der) = credentials.client_cert else { return Ok(None) };
        user_of_cert(der).map(Some)
    }
}

/// Organizational values that kube's x509 authenticator reads a uid from.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";

fn user_of_cert(der: &[u8]) -> Result<User, Invalid> {
    let (_, cert) = x509_parser::parse_x509_certificate(der)
        .map_err(|e| Invalid(format!("certificate: {e}")))?;
    let subject = cert.subject();
    let text =
        |a: &x509_parser::x509::AttributeTypeAndValue<'_>| a.as_str().ok().map(str::to_owned);
    let name = subject.iter_common_name().filter_map(text).last().unwrap_or_default();
    if name.is_empty() {
        return Err(Invalid("the certificate names no user (common name)".into()));
    }
    let mut groups: Vec<String> = subject.iter_organization().filter_map(text).collect();
    add_authenticated(&mut groups);
    let uid = subject
        .iter_attributes()
        .find(|a| a.attr_type().to_id_string() == UID_OID)
        .and_then(text)
        .unwrap_or_default();
    Ok(User { name, uid, groups, ..User::default() })
}

/// Asks each in turn. A token that nobody knows is refused; without credentials the caller is
/// anonymous when that is allowed.
pub struct Chain {
    pub authenticators: Vec<Arc<dyn Authenticator>>,
    pub anonymous: bool,
}

#[async_trait]
impl Authenticator for Chain {
    async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, Invalid> {
        if credentials.token.is_some_and(|t| t.len() > TOKEN_BYTES_MAX) {
            return Err(Invalid("the token is too long".into()));
        }
        let mut refused = None;
        for authenticator in &self.authenticators {
            match authenticator.authenticate(credentials).await {
                Ok(Some(user)) => return Ok(Some(user)),
                Ok(None) => {}
                Err(error) => refused = Some(error),
            }
        }
        match (refused, credentials.token) {
            (Some(error), _) => Err(error),
            (None, Some(_)) => Err(Invalid("the token is not known".into())),
            (None, None) if self.anonymous => Ok(Some(User::anonymous())),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_lines() {
        let check = |line: &str, want: Option<&[&str]>| {
            assert_eq!(
                csv(line),
                want.map(|w| w.iter().map(|s| (*s).to_owned()).collect()),
                "{line}"
            );
        };
        check(r#"t,u,1,"a,b""#, Some(&["t", "u", "1", "a,b"]));
        check(r#"t, u, 1"#, Some(&["t", "u", "1"]));
        check(r#"t,"a ""q""",1"#, Some(&["t", r#"a "q""#, "1"]));
        check(r#"t,"u"#, None);
    }

    async fn name(chain: &Chain, token: Option<&str>) -> String {
        let credentials = Credentials { token, client_cert: None };
        match chain.authenticate(&credentials).await {
            Ok(Some(user)) => format!("{} {}", user.name, user.groups.join("+")),
            Ok(None) => "nobody".into(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn tokens() {
        let user = User::new("kcp-admin", &["system:kcp:admin", AUTHENTICATED]);
        let tokens = HashedTokens(vec![(hash_token("secret"), user)]);
        let mut chain = Chain { authenticators: vec![Arc::new(tokens)], anonymous: true };
        assert_eq!(
            name(&chain, Some("secret")).await,
            "kcp-admin system:kcp:admin+system:authenticated"
        );
        assert_eq!(
            name(&chain, Some("wrong")).await,
            "credentials are not valid: the token is not known"
        );
        assert_eq!(name(&chain, None).await, "system:anonymous system:unauthenticated");
        chain.anonymous = false;
        assert_eq!(name(&chain, None).await, "nobody");
    }
}
