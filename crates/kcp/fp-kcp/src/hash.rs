//! kcp's hashes: names, labels and suffixes that clients and other kcp servers derive themselves.
//!
//! Rules: kcp's `apimachinery/pkg/util/crypto` (big-endian number in base 36 or 62, digits `0-9a-zA-Z`)
//! over SHA-224. "Padded" means one `0` for every leading zero byte.

use fp_base::ClusterName;
use sha2::{Digest, Sha224, Sha256};

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Length of a random cluster name: 82 bits.
const CLUSTER_NAME_CHARS: usize = 16;
/// Length of the shard hash.
const SHARD_HASH_CHARS: usize = 8;
/// Hex digits of an initializer that fit into a label key after its prefix.
const INITIALIZER_KEY_CHARS: usize = 35;
/// The same for a terminator, whose prefix is one shorter.
const TERMINATOR_KEY_CHARS: usize = 36;
/// How much of an export's name goes into the name of its default binding.
const BINDING_EXPORT_CHARS: usize = 247;
const BINDING_SUFFIX_CHARS: usize = 5;

/// The number that `bytes` are, big-endian, in `base` (36 or 62). Leading zero bytes are lost.
pub fn encode(base: u32, bytes: &[u8]) -> String {
    let mut digits = Vec::new();
    let mut rest = bytes.to_vec();
    while rest.iter().any(|b| *b != 0) {
        let mut carry = 0u32;
        for byte in &mut rest {
            let value = (carry << 8) | u32::from(*byte);
            *byte = u8::try_from(value / base)
                .expect("the quotient of a digit fits a byte because carry < base");
            carry = value % base;
        }
        digits.push(DIGITS[carry as usize]);
    }
    if digits.is_empty() {
        return "0".to_owned();
    }
    digits.reverse();
    String::from_utf8(digits).expect("digits are ASCII")
}

/// [`encode`], with one `0` in front for every leading zero byte.
pub fn encode_padded(base: u32, bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    let mut out = "0".repeat(zeros);
    if zeros < bytes.len() {
        out.push_str(&encode(base, bytes));
    }
    out
}

fn sha224(text: &str) -> [u8; 28] {
    Sha224::digest(text.as_bytes()).into()
}

/// `Base62Sha224.String`, unpadded.
pub fn base62_sha224(text: &str) -> String {
    encode(62, &sha224(text))
}

/// `Base36Sha224.StringPad`, padded.
pub fn base36_sha224(text: &str) -> String {
    encode_padded(36, &sha224(text))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The annotation `internal.tenancy.kcp.io/shard` of a workspace on `shard`.
pub fn shard_hash(shard: &str) -> String {
    base36_sha224(shard)[..SHARD_HASH_CHARS].to_owned()
}

/// The label `internal.apis.kcp.io/export` of a binding to `export` of `cluster`.
pub fn export_label(cluster: &ClusterName, export: &str) -> String {
    base62_sha224(&format!("{cluster}:{export}"))
}

/// The label key under which `export` of `cluster` claims objects.
pub fn claim_label_key(cluster: &ClusterName, export: &str) -> String {
    format!("{}{}", crate::names::CLAIM_LABEL_PREFIX, export_label(cluster, export))
}

/// The value of that label: a hash of the claim without verbs and selectors.
pub fn claim_label_value(group: &str, resource: &str, identity: &str) -> String {
    // kcp hashes the Go encoding of its struct: empty strings are left out, nil verbs are not.
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let mut json = String::from("{");
    if !group.is_empty() {
        json.push_str(&format!("\"group\":{},", quote(group)));
    }
    json.push_str(&format!("\"resource\":{},\"verbs\":null", quote(resource)));
    if !identity.is_empty() {
        json.push_str(&format!(",\"identityHash\":{}", quote(identity)));
    }
    json.push('}');
    base62_sha224(&json)
}

/// The value that an APIBinding carries under its own export's claim key.
pub fn reflexive_claim_value() -> String {
    let bytes: Vec<u8> = (0..28).map(|i| i % 10).collect();
    encode(62, &bytes)
}

/// The name of the binding that a workspace gets by default for an export.
pub fn default_binding_name(cluster: &ClusterName, export_path: &str, export: &str) -> String {
    let hash = base62_sha224(&format!("{cluster}|{export_path}|{export}")).to_lowercase();
    let end = export.floor_char_boundary(BINDING_EXPORT_CHARS);
    format!("{}-{}", &export[..end], &hash[..BINDING_SUFFIX_CHARS])
}

/// The label (key, value) of a LogicalCluster on which `initializer` still has to act.
pub fn initializer_label(initializer: &str) -> (String, String) {
    let hash = hex(&sha224(initializer));
    (format!("{}{}", crate::names::INITIALIZER_LABEL_PREFIX, &hash[..INITIALIZER_KEY_CHARS]), hash)
}

/// The label (key, value) of a LogicalCluster on which `terminator` still has to act.
pub fn terminator_label(terminator: &str) -> (String, String) {
    let hash = hex(&sha224(terminator));
    (format!("{}{}", crate::names::TERMINATOR_LABEL_PREFIX, &hash[..TERMINATOR_KEY_CHARS]), hash)
}

/// A new cluster's name: random, never a function of the path.
pub fn random_cluster_name() -> ClusterName {
    let mut token = [0u8; 32];
    getrandom::fill(&mut token).expect("the system has a source of randomness");
    let digest: [u8; 28] = Sha224::digest(token).into();
    let text = encode_padded(36, &digest);
    ClusterName::parse(&text[..CLUSTER_NAME_CHARS]).expect("base 36 digits are a cluster name")
}

/// The cluster of a user's home workspace. `None` where the hash makes no valid name (one of 2^59).
pub fn home_cluster_name(user: &str) -> Option<ClusterName> {
    ClusterName::parse(&encode_padded(36, &sha224(user)[..8])).ok()
}

/// A new export's secret key: 256 random bits, base64 without padding (`pkg/identity`).
pub fn random_identity_key() -> String {
    use base64::Engine as _;
    let mut token = [0u8; 32];
    getrandom::fill(&mut token).expect("the system has a source of randomness");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token)
}

/// The identity that a secret key gives: the hex SHA-256.
pub fn identity_hash(key: &[u8]) -> String {
    hex(&Sha256::digest(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    /// Recorded from a Go kcp.
    #[test]
    fn vectors() {
        assert_eq!(shard_hash("root"), "1pfxsevk");
        for (export, hash) in [
            ("tenancy.kcp.io", "bmCdly9xXiUpEHe3ypvDwvXMTfoVZUE92mqAQf"),
            ("topology.kcp.io", "7QHLqjz8KlhjPddt8MECYq0OLDUNvLAO5v9x4x"),
            ("shards.core.kcp.io", "7mlPRVZmqVPETjd6WJxexaIIDwI2DRk1aAcaFg"),
            ("cache.kcp.io", "7CHGPSoR6ORtOPisi3nSrYlvt7gmFvQ5zVCjhP"),
            ("migration.kcp.io", "b7zf6F3c6fIOxcMTu3w6gVTkGhxiwBLKTn6KEh"),
        ] {
            assert_eq!(export_label(&ClusterName::root(), export), hash);
        }
        assert_eq!(
            export_label(&cluster("338rzxtns0c9c77z"), "gadgets"),
            "5tJAhU2tgeH4PeXktAMcN2hEfcjuuDQMiLedYc"
        );
        assert_eq!(
            claim_label_value("", "configmaps", ""),
            "3QVjs6pfBjMpLEVYYhysJnroYGsQGlWm05E4qe"
        );
        assert_eq!(reflexive_claim_value(), "LstvmbbzVDDOn90ZbhzSQO5U3DMCf88h1pZ");
        for (name, tenancy, topology) in
            [("338rzxtns0c9c77z", "40y7d", "1rc80"), ("2uqs24hp209i7ju0", "6r07t", "8tpqn")]
        {
            let binding = |export| default_binding_name(&cluster(name), "root", export);
            assert_eq!(binding("tenancy.kcp.io"), format!("tenancy.kcp.io-{tenancy}"));
            assert_eq!(binding("topology.kcp.io"), format!("topology.kcp.io-{topology}"));
        }
        for (user, name) in [
            ("alice", "v1u4alow0iv9"),
            ("bob", "2okdry95y5lkv"),
            ("", "36ks9xj4a2n61"),
            ("user172", "0f9mt7goyif7"),
        ] {
            assert_eq!(home_cluster_name(user), Some(cluster(name)));
        }
    }

    #[test]
    fn lifecycle_labels() {
        assert_eq!(
            initializer_label("root:universal"),
            (
                "initializer.internal.kcp.io/d1d6459a03641b6fd7560fc2849f6c66fa9".to_owned(),
                "d1d6459a03641b6fd7560fc2849f6c66fa971a0afeded6ba2d2743f2".to_owned()
            )
        );
        assert_eq!(
            initializer_label("system:apibindings").0,
            "initializer.internal.kcp.io/dd58c810629ccc3e49c7d8225b9bcfaa42a"
        );
        let (key, value) = terminator_label("root:universal");
        assert_eq!(key, "terminator.internal.kcp.io/d1d6459a03641b6fd7560fc2849f6c66fa97");
        assert_eq!(value.len(), 56);
    }

    #[test]
    fn encodings() {
        assert_eq!(encode(36, &[0, 0]), "0");
        assert_eq!(encode_padded(36, &[0, 0]), "00");
        assert_eq!(encode_padded(36, &[0, 36]), "010");
        assert_eq!(encode(62, &[61]), "Z");
        assert_eq!(encode(62, &[255, 255]), "h31");
        assert_eq!(random_cluster_name().as_str().len(), 16);
        assert_ne!(random_cluster_name(), random_cluster_name());
        assert_eq!(random_identity_key().len(), 43);
        assert_eq!(
            identity_hash(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
