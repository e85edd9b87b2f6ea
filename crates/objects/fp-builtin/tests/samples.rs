//! Random objects of every message, written by Go: the same bytes and the same JSON both ways.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fp_builtin::tables::{
    admissionregistration, apiextensions, apiextensions_v1beta1, authentication, authorization,
    autoscaling, certificates, coordination, core, events, meta, rbac,
};
use fp_object::proto::{self, Message};
use fp_object::{Object, Value};

static ROOTS: &[&Message] = &[
    &apiextensions::JSON_SCHEMA_PROPS,
    &apiextensions_v1beta1::JSON_SCHEMA_PROPS,
    &meta::STATUS,
    &meta::PARTIAL_OBJECT_METADATA,
    &meta::PARTIAL_OBJECT_METADATA_LIST,
    &meta::DELETE_OPTIONS,
    &meta::CREATE_OPTIONS,
    &meta::UPDATE_OPTIONS,
    &meta::PATCH_OPTIONS,
    &meta::LIST_OPTIONS,
    &meta::GET_OPTIONS,
    &meta::API_GROUP,
    &meta::API_GROUP_LIST,
    &meta::API_RESOURCE_LIST,
    &meta::API_VERSIONS,
    &meta::WATCH_EVENT,
    &meta::LIST,
    &core::CONFIG_MAP_LIST,
    &core::EVENT_LIST,
    &core::NAMESPACE_LIST,
    &core::RESOURCE_QUOTA_LIST,
    &core::SECRET_LIST,
    &core::SERVICE_ACCOUNT_LIST,
    &rbac::CLUSTER_ROLE_LIST,
    &rbac::CLUSTER_ROLE_BINDING_LIST,
    &rbac::ROLE_LIST,
    &rbac::ROLE_BINDING_LIST,
    &events::EVENT_LIST,
    &coordination::LEASE_LIST,
    &certificates::CERTIFICATE_SIGNING_REQUEST_LIST,
    &authentication::TOKEN_REVIEW,
    &authentication::SELF_SUBJECT_REVIEW,
    &authentication::TOKEN_REQUEST,
    &authorization::SUBJECT_ACCESS_REVIEW,
    &authorization::SELF_SUBJECT_ACCESS_REVIEW,
    &authorization::LOCAL_SUBJECT_ACCESS_REVIEW,
    &authorization::SELF_SUBJECT_RULES_REVIEW,
    &autoscaling::SCALE,
    &admissionregistration::VALIDATING_WEBHOOK_CONFIGURATION_LIST,
    &admissionregistration::MUTATING_WEBHOOK_CONFIGURATION_LIST,
    &admissionregistration::VALIDATING_ADMISSION_POLICY_LIST,
    &admissionregistration::VALIDATING_ADMISSION_POLICY_BINDING_LIST,
    &admissionregistration::MUTATING_ADMISSION_POLICY_LIST,
    &admissionregistration::MUTATING_ADMISSION_POLICY_BINDING_LIST,
    &apiextensions::CUSTOM_RESOURCE_DEFINITION_LIST,
    &apiextensions_v1beta1::CUSTOM_RESOURCE_DEFINITION_LIST,
];

struct Sample {
    message: &'static Message,
    wire: Vec<u8>,
    printed: &'static str,
}

fn samples() -> impl Iterator<Item = Sample> {
    include_str!("data/samples.txt").lines().map(|line| {
        let mut columns = line.split('\t');
        let mut column = || columns.next().expect("three columns");
        let (name, wire, printed) = (column(), column(), column());
        let message = *ROOTS.iter().find(|m| m.name == name).expect("the message is listed");
        Sample { message, wire: STANDARD.decode(wire).expect("base64"), printed }
    })
}

#[test]
fn wire_and_json_are_gos() {
    let mut n_samples = 0;
    for Sample { message, wire, printed } in samples() {
        let decoded = proto::decode(message, &wire).expect(message.name);
        let expected: Object = serde_json::from_str(printed).unwrap();
        let show = |o: &Object| serde_json::to_string_pretty(o).unwrap();
        assert_eq!(show(&decoded), show(&expected), "{}", message.name);
        let encoded = proto::encode(message, &decoded).expect(message.name);
        assert_eq!(
            STANDARD.encode(&encoded),
            STANDARD.encode(&wire),
            "{}: {printed}",
            message.name
        );
        assert_eq!(String::from_utf8(proto::to_json(message, &decoded)).unwrap(), printed);
        let mut unknown = Vec::new();
        let conformed = proto::conform(message, &decoded, &mut unknown).expect(message.name);
        assert_eq!((show(&conformed), unknown), (show(&decoded), vec![]));
        n_samples += 1;
    }
    assert_eq!(n_samples, ROOTS.len() * 3);
}

#[test]
fn any_json_is_refused_or_conforms_to_itself() {
    // Every member of every sample is replaced by values of other types in turn.
    let others = [
        Value::Null,
        true.into(),
        7.into(),
        "text".into(),
        Value::Array(vec![]),
        Value::Object(Object::new()),
    ];
    for Sample { message, printed, .. } in samples() {
        let object: Object = serde_json::from_str(printed).unwrap();
        for key in object.keys() {
            for other in &others {
                let mut changed = object.clone();
                changed.insert(key.clone(), other.clone());
                let Ok(once) = proto::conform(message, &changed, &mut Vec::new()) else { continue };
                let twice = proto::conform(message, &once, &mut Vec::new()).unwrap();
                assert_eq!(once, twice, "{}", message.name);
                proto::encode(message, &once).expect(message.name);
            }
        }
    }
}

#[test]
fn cut_and_flipped_bytes_never_panic() {
    for Sample { message, wire, .. } in samples() {
        // About as many places in a large sample as in a small one.
        let step = wire.len() / 24 + 1;
        for end in (0..wire.len()).step_by(step) {
            let _ = proto::decode(message, &wire[..end]);
        }
        for at in (0..wire.len()).step_by(step) {
            for flip in [0x01, 0x08, 0x80, 0xff] {
                let mut bytes = wire.clone();
                bytes[at] ^= flip;
                if let Ok(object) = proto::decode(message, &bytes) {
                    proto::encode(message, &object).expect("what was decoded encodes");
                }
            }
        }
    }
}
