//! Values as Kubernetes stores them: decoding and encoding gives the same bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fp_builtin::tables;
use fp_object::proto;

fn message(kind: &str) -> &'static proto::Message {
    match kind {
        "ConfigMap" => &tables::core::CONFIG_MAP,
        "Namespace" => &tables::core::NAMESPACE,
        "Secret" => &tables::core::SECRET,
        "ServiceAccount" => &tables::core::SERVICE_ACCOUNT,
        "ClusterRoleBinding" => &tables::rbac::CLUSTER_ROLE_BINDING,
        other => panic!("no message for {other}"),
    }
}

#[test]
fn stored_values_keep_their_bytes() {
    let lines = include_str!("data/stored.txt").lines().filter(|line| !line.starts_with('#'));
    let mut n_values = 0;
    for line in lines {
        let stored = STANDARD.decode(line).expect("the data is base64");
        let unknown = proto::unwrap(&stored).expect("the data is an envelope");
        let message = message(unknown.kind);
        let object = proto::decode(message, unknown.raw).expect("the data is the message");
        let raw = proto::encode(message, &object).expect("what was decoded encodes");
        let again = proto::wrap(unknown.api_version, unknown.kind, &raw);
        assert_eq!(again, stored, "{}", serde_json::to_string(&object).unwrap());
        let mut unknown_members = Vec::new();
        let conformed = proto::conform(message, &object, &mut unknown_members).unwrap();
        assert_eq!((conformed, unknown_members), (object, vec![]));
        n_values += 1;
    }
    assert_eq!(n_values, 7);
}

#[test]
fn cut_and_flipped_bytes_are_errors_not_panics() {
    let lines = include_str!("data/stored.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let stored = STANDARD.decode(line).unwrap();
        let whole = proto::unwrap(&stored).unwrap();
        let message = message(whole.kind);
        for end in 0..stored.len() {
            if let Ok(cut) = proto::unwrap(&stored[..end]) {
                let _ = proto::decode(message, cut.raw);
            }
        }
        for at in 0..whole.raw.len() {
            for flip in [0x01, 0x08, 0x80, 0xff] {
                let mut bytes = whole.raw.to_vec();
                bytes[at] ^= flip;
                if let Ok(object) = proto::decode(message, &bytes) {
                    proto::encode(message, &object).expect("what was decoded encodes");
                }
            }
        }
    }
}
