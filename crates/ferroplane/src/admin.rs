//! The admin accounts: their tokens, the hashes that outlive a restart, and the kubeconfig.
//!
//! kcp keeps only the shard admin's token over a restart (`.admin-token-store`); we keep those of
//! `kcp-admin` and `user` too, in a second file that kcp ignores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fp_auth::authenticate::{HashedTokens, TokenHash, hash_token};
use fp_auth::{AUTHENTICATED, User};
use fp_object::yaml;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::root_dir::{self, read_if_there, write_atomically};

const SHARD_ADMIN: &str = "shard-admin";
const KCP_ADMIN: &str = "kcp-admin";
const USER: &str = "user";
/// Beside the kubeconfig: account to token hash (hex) and uid.
const ACCOUNTS_FILE: &str = ".account-token-store";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is not a kubeconfig: {why}; move it away and start again")]
    Kubeconfig { path: PathBuf, why: String },
    #[error("admin token in {kubeconfig} is not valid any more; remove {store} and start again")]
    Stale { kubeconfig: PathBuf, store: PathBuf },
    #[error(
        "{store} is there, but {kubeconfig} holds no token of shard-admin; remove {store} and start again"
    )]
    Lost { kubeconfig: PathBuf, store: PathBuf },
    #[error("{path} is not an admin token store: {why}; remove it and start again")]
    Store { path: PathBuf, why: &'static str },
    #[error(transparent)]
    Write(#[from] root_dir::Error),
}

/// An account with its token in the clear: only in memory and in the kubeconfig.
#[derive(Clone)]
struct Account {
    name: &'static str,
    token: String,
    uid: String,
    groups: &'static [&'static str],
}

/// The accounts of this server.
pub struct Accounts {
    accounts: Vec<Account>,
    files: Files,
}

/// Where the accounts' files are.
#[derive(Clone)]
pub struct Files {
    pub kubeconfig: PathBuf,
    pub token_store: PathBuf,
}

impl Accounts {
    /// Reads the accounts of an earlier start, or makes new ones. [`Accounts::write`] keeps them.
    pub fn load(files: Files, with_user: bool) -> Result<Self, Error> {
        let known = known_tokens(&files.kubeconfig)?;
        let accounts_file = files.token_store.with_file_name(ACCOUNTS_FILE);
        let stored = stored_accounts(&accounts_file)?;
        let shard_admin = shard_admin_token(&files, &known)?;
        let mut accounts = Vec::new();
        for (name, groups) in [
            (SHARD_ADMIN, &["system:masters"][..]),
            (KCP_ADMIN, &["system:kcp:admin"][..]),
            (USER, &[][..]),
        ] {
            if name == USER && !with_user {
                continue;
            }
            let record = stored.get(name);
            let uid = record.map(|r| r.uid.clone()).unwrap_or_else(|| Uuid::new_v4().to_string());
            let token = match (name, record, known.get(name)) {
                (SHARD_ADMIN, ..) => shard_admin.clone(),
                (_, Some(r), Some(token)) if r.hash == hex(&hash_token(token)) => token.clone(),
                _ => Uuid::new_v4().to_string(),
            };
            accounts.push(Account { name, token, uid, groups });
        }
        Ok(Self { accounts, files })
    }

    /// Writes the kubeconfig, and after it the hashes: a start that ends between the two makes new
    /// tokens the next time, where hashes without their tokens would be refused.
    pub fn write(&self, base_url: &str, ca_pem: &[u8]) -> Result<(), Error> {
        self.write_kubeconfig(base_url, ca_pem)?;
        let path = self.files.token_store.with_file_name(ACCOUNTS_FILE);
        let shard_admin = &self.accounts[0];
        write_atomically(&self.files.token_store, &hash_token(&shard_admin.token), 0o600)?;
        let all: BTreeMap<&str, Value> = self
            .accounts
            .iter()
            .map(|a| (a.name, json!({"sha256": hex(&hash_token(&a.token)), "uid": a.uid})))
            .collect();
        let text = serde_json::to_string_pretty(&all).expect("a map of strings is JSON");
        Ok(write_atomically(&path, text.as_bytes(), 0o600)?)
    }

    /// The authenticator of these accounts.
    pub fn authenticator(&self) -> HashedTokens {
        let entry = |a: &Account| {
            let mut user = User::new(a.name, a.groups);
            user.groups.push(AUTHENTICATED.into());
            user.uid.clone_from(&a.uid);
            (hash_token(&a.token), user)
        };
        HashedTokens(self.accounts.iter().map(entry).collect())
    }

    /// The kubeconfig with kcp's clusters, users and contexts.
    fn write_kubeconfig(&self, base_url: &str, ca_pem: &[u8]) -> Result<(), Error> {
        let ca = STANDARD.encode(ca_pem);
        let cluster = |name: &str, server: String| json!({"name": name, "cluster": {"certificate-authority-data": ca, "server": server}});
        let context = |name: &str, cluster: &str, user: &str| json!({"name": name, "context": {"cluster": cluster, "user": user}});
        let mut contexts = vec![
            context("base", "base", KCP_ADMIN),
            context("root", "root", KCP_ADMIN),
            context("shard-base", "base", SHARD_ADMIN),
            context("system:admin", "system:admin", SHARD_ADMIN),
        ];
        if self.accounts.iter().any(|a| a.name == USER) {
            contexts.push(context(USER, "root", USER));
        }
        let users: Vec<Value> = self
            .accounts
            .iter()
            .map(|a| json!({"name": a.name, "user": {"token": a.token}}))
            .collect();
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "preferences": {},
            "clusters": [
                cluster("base", base_url.to_owned()),
                cluster("root", format!("{base_url}/clusters/root")),
                cluster("system:admin", format!("{base_url}/clusters/system:admin")),
            ],
            "contexts": contexts,
            "current-context": "root",
            "users": users,
        });
        let text = yaml::to_string(&config);
        Ok(write_atomically(&self.files.kubeconfig, text.as_bytes(), 0o600)?)
    }
}

fn hex(hash: &TokenHash) -> String {
    hash.iter().map(|b| format!("{b:02x}")).collect()
}

/// User name to token, as an earlier start wrote them.
fn known_tokens(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let read =
        read_if_there(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let Some(content) = read else { return Ok(BTreeMap::new()) };
    let fail = |why: String| Error::Kubeconfig { path: path.to_owned(), why };
    let (config, _) = yaml::decode_value(&content).map_err(|e| fail(e.to_string()))?;
    let users =
        config.get("users").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let pair = |u: &Value| {
        let token = u.get("user")?.get("token")?.as_str()?;
        Some((u.get("name")?.as_str()?.to_owned(), token.to_owned()))
    };
    Ok(users.iter().filter_map(pair).collect())
}

struct Record {
    hash: String,
    uid: String,
}

fn stored_accounts(path: &Path) -> Result<BTreeMap<String, Record>, Error> {
    let read =
        read_if_there(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let Some(content) = read else { return Ok(BTreeMap::new()) };
    let fail = Error::Store { path: path.to_owned(), why: "it is not JSON" };
    let Ok(Value::Object(all)) = serde_json::from_slice(&content) else { return Err(fail) };
    let record = |(name, v): (String, Value)| {
        let text = |key: &str| v.get(key).and_then(Value::as_str).map(str::to_owned);
        Some((name, Record { hash: text("sha256")?, uid: text("uid")? }))
    };
    Ok(all.into_iter().filter_map(record).collect())
}

/// The shard admin's token: the kubeconfig's when its hash is the stored one, new when nothing is
/// stored; anything else is an error, as in kcp.
fn shard_admin_token(files: &Files, known: &BTreeMap<String, String>) -> Result<String, Error> {
    let path = &files.token_store;
    let stored =
        read_if_there(path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let Some(stored) = stored else { return Ok(Uuid::new_v4().to_string()) };
    let stored: TokenHash = stored
        .try_into()
        .map_err(|_| Error::Store { path: path.clone(), why: "it is not 32 bytes" })?;
    let (kubeconfig, store) = (files.kubeconfig.clone(), path.clone());
    match known.get(SHARD_ADMIN) {
        None => Err(Error::Lost { kubeconfig, store }),
        Some(token) if bool::from(hash_token(token).ct_eq(&stored)) => Ok(token.clone()),
        Some(_) => Err(Error::Stale { kubeconfig, store }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn files(dir: &Path) -> Files {
        Files {
            kubeconfig: dir.join("admin.kubeconfig"),
            token_store: dir.join(".admin-token-store"),
        }
    }

    #[test]
    fn tokens_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let first = Accounts::load(files(dir.path()), true).unwrap();
        first.write("https://127.0.0.1:6443", b"PEM").unwrap();
        let again = Accounts::load(files(dir.path()), true).unwrap();
        for (a, b) in first.accounts.iter().zip(&again.accounts) {
            assert_eq!((a.name, &a.token, &a.uid), (b.name, &b.token, &b.uid));
        }
        for file in ["admin.kubeconfig", ".admin-token-store", ACCOUNTS_FILE] {
            let mode = std::fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        assert_eq!(std::fs::read(dir.path().join(".admin-token-store")).unwrap().len(), 32);
    }

    #[test]
    fn a_wrong_kubeconfig_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let first = Accounts::load(files(dir.path()), false).unwrap();
        let load = || {
            Accounts::load(files(dir.path()), false)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        // Nothing is there before the accounts are written, however often a start is refused.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(load(), "");
        first.write("https://x", b"PEM").unwrap();
        assert_eq!(load(), "");
        let path = dir.path().join("admin.kubeconfig");
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        assert!(load().contains("holds no token of shard-admin"));
        std::fs::rename(dir.path().join("moved"), &path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(&first.accounts[0].token, "other")).unwrap();
        assert!(load().contains("is not valid any more"));
        std::fs::write(&path, "{").unwrap();
        assert!(load().contains("is not a kubeconfig"));
    }
}
