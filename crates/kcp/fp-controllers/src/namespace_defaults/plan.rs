//! What a namespace must hold.

use fp_base::ClusterName;
use fp_object::meta::Meta;
use fp_object::{Object, Value};
use serde_json::json;

use crate::action::{self, Action, Plan, Target};
use crate::world::gvr;

pub const SERVICE_ACCOUNT: &str = "default";
pub const ROOT_CA: &str = "kube-root-ca.crt";
/// The annotation that kube-controller-manager puts on the bundle, as stored by Go kcp.
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

pub struct Snapshot<'a> {
    pub cluster: &'a ClusterName,
    pub namespace: &'a str,
    pub deleting: bool,
    pub has_service_account: bool,
    pub root_ca: Option<Object>,
    pub ca_pem: &'a str,
}

pub fn plan(s: &Snapshot<'_>) -> Plan {
    if s.deleting {
        return Plan::none();
    }
    let at = |resource: &str| Target {
        cluster: s.cluster.clone(),
        gvr: gvr::core(resource),
        namespace: s.namespace.to_owned(),
    };
    let mut writes = Vec::new();
    if !s.has_service_account {
        writes.push(make(at("serviceaccounts"), "ServiceAccount", SERVICE_ACCOUNT, None));
    }
    let data = json!({"ca.crt": s.ca_pem});
    match &s.root_ca {
        None => writes.push(make(at("configmaps"), "ConfigMap", ROOT_CA, Some(data))),
        Some(old) if old.get("data") != Some(&data) => {
            let mut new = old.clone();
            new.insert("data".into(), data);
            new.set_annotation(DESCRIPTION.0, DESCRIPTION.1);
            writes.extend(action::update(at("configmaps"), old, new));
        }
        Some(_) => {}
    }
    Plan::none().then(writes)
}

fn make(at: Target, kind: &str, name: &str, data: Option<Value>) -> Action {
    let mut object = Object::new();
    object.insert("apiVersion".into(), "v1".into());
    object.insert("kind".into(), kind.into());
    object.set_meta("name", name);
    object.set_meta("namespace", at.namespace.as_str());
    if let Some(data) = data {
        object.insert("data".into(), data);
        object.set_annotation(DESCRIPTION.0, DESCRIPTION.1);
    }
    Action::Create { at, object }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::describe;

    fn check(deleting: bool, has_service_account: bool, ca: Option<&str>, want: &str) {
        let root_ca = ca.map(|pem| {
            let object = json!({"metadata": {"name": ROOT_CA}, "data": {"ca.crt": pem}});
            object.as_object().cloned().unwrap_or_default()
        });
        let cluster = ClusterName::root();
        let snapshot = Snapshot {
            cluster: &cluster,
            namespace: "ns",
            deleting,
            has_service_account,
            root_ca,
            ca_pem: "PEM",
        };
        assert_eq!(describe(&plan(&snapshot)), want);
    }

    #[test]
    fn cases() {
        check(
            false,
            false,
            None,
            "create serviceaccounts root|ns/default\ncreate configmaps root|ns/kube-root-ca.crt\n",
        );
        check(true, false, None, "");
        check(false, true, Some("PEM"), "");
        check(false, true, Some("OLD"), "update main configmaps root|ns/kube-root-ca.crt\n");
    }
}
