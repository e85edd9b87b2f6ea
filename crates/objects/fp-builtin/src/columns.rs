//! Table columns of the built-in kinds (`pkg/printers/internalversion/printers.go`). Kinds without
//! an own printer show their name and when they were made.

use fp_object::meta::Meta;
use fp_object::{Object, Value, time};
use fp_schema::Column;
use fp_schema::resource::Cell;

use crate::rules;

type CellFn = fn(&Object) -> Value;

/// One column: name, type, priority, cell.
type Row = (&'static str, &'static str, i32, CellFn);

/// The columns between a kind's name and its age, and those behind it.
pub struct Columns {
    between: &'static [Row],
    behind: &'static [Row],
    shape: Shape,
}

enum Shape {
    /// Name, ..., Age, ...
    NameAndAge,
    /// Name and Created At, which the server prints for kinds without a printer.
    Default,
    /// Only the rows themselves.
    Own,
}

impl Columns {
    pub fn build(&self) -> Vec<Column> {
        let mut out = Vec::new();
        match self.shape {
            Shape::NameAndAge => {
                out.push(column("Name", "string", 0, name));
                out.extend(self.between.iter().map(|r| column(r.0, r.1, r.2, r.3)));
                out.push(column("Age", "string", 0, age));
                out.extend(self.behind.iter().map(|r| column(r.0, r.1, r.2, r.3)));
            }
            Shape::Default => {
                out.push(column("Name", "string", 0, name));
                out.push(column("Created At", "date", 0, created_at));
            }
            Shape::Own => out.extend(self.between.iter().map(|r| column(r.0, r.1, r.2, r.3))),
        }
        out
    }
}

fn column(name: &str, kind: &str, priority: i32, cell: CellFn) -> Column {
    Column {
        name: name.into(),
        kind: kind.into(),
        format: if name == "Name" { "name".into() } else { String::new() },
        description: String::new(),
        priority,
        cell: Cell::Fn(cell),
    }
}

const fn named(between: &'static [Row]) -> Columns {
    Columns { between, behind: &[], shape: Shape::NameAndAge }
}

pub const DEFAULT: Columns = Columns { between: &[], behind: &[], shape: Shape::Default };
pub const NAME_AND_AGE: Columns = named(&[]);

pub const NAMESPACE: Columns =
    named(&[("Status", "string", 0, |o| rules::text(o, &["status", "phase"]).into())]);

pub const CONFIG_MAP: Columns =
    named(&[("Data", "string", 0, |o| (map_len(o, "data") + map_len(o, "binaryData")).into())]);

pub const SECRET: Columns = named(&[
    ("Type", "string", 0, |o| rules::text(o, &["type"]).into()),
    ("Data", "string", 0, |o| map_len(o, "data").into()),
]);

pub const LEASE: Columns =
    named(&[("Holder", "string", 0, |o| rules::text(o, &["spec", "holderIdentity"]).into())]);

pub const QUOTA: Columns = named(&[
    ("Request", "string", 0, |o| quota(o, false).into()),
    ("Limit", "string", 0, |o| quota(o, true).into()),
]);

pub const WEBHOOKS: Columns =
    named(&[("Webhooks", "integer", 0, |o| rules::list(o, &["webhooks"]).len().into())]);

pub const VALIDATING_POLICY: Columns = named(&[
    ("Validations", "integer", 0, |o| rules::list(o, &["spec", "validations"]).len().into()),
    ("ParamKind", "string", 0, param_kind),
]);

pub const MUTATING_POLICY: Columns = named(&[
    ("Mutations", "integer", 0, |o| rules::list(o, &["spec", "mutations"]).len().into()),
    ("ParamKind", "string", 0, param_kind),
]);

pub const POLICY_BINDING: Columns = named(&[
    ("PolicyName", "string", 0, |o| rules::text(o, &["spec", "policyName"]).into()),
    ("ParamRef", "string", 0, param_ref),
]);

pub const ROLE_BINDING: Columns = Columns {
    between: &[("Role", "string", 0, |o| {
        let of = |member| rules::text(o, &["roleRef", member]);
        format!("{}/{}", of("kind"), of("name")).into()
    })],
    behind: &[
        ("Users", "string", 1, |o| subjects(o, "User").into()),
        ("Groups", "string", 1, |o| subjects(o, "Group").into()),
        ("ServiceAccounts", "string", 1, |o| subjects(o, "ServiceAccount").into()),
    ],
    shape: Shape::NameAndAge,
};

pub const CERTIFICATE: Columns = Columns {
    between: &[
        ("Name", "string", 0, name),
        ("Age", "string", 0, age),
        ("SignerName", "string", 0, |o| or_none(rules::text(o, &["spec", "signerName"])).into()),
        ("Requestor", "string", 0, |o| rules::text(o, &["spec", "username"]).into()),
        ("RequestedDuration", "string", 0, requested_duration),
        ("Condition", "string", 0, |o| certificate_status(o).into()),
    ],
    behind: &[],
    shape: Shape::Own,
};

pub const EVENT: Columns = Columns {
    between: &[
        ("Last Seen", "string", 0, |o| last_seen(o).into()),
        ("Type", "string", 0, |o| rules::text(o, &["type"]).into()),
        ("Reason", "string", 0, |o| rules::text(o, &["reason"]).into()),
        ("Object", "string", 0, event_object),
        ("Subobject", "string", 1, |o| event_text(o, "involvedObject", "fieldPath").into()),
        ("Source", "string", 1, event_source),
        ("Message", "string", 0, |o| {
            event_member(o, "message").and_then(Value::as_str).unwrap_or("").trim().into()
        }),
        ("First Seen", "string", 1, |o| first_seen(o).into()),
        ("Count", "string", 1, event_count),
        ("Name", "string", 1, name),
    ],
    behind: &[],
    shape: Shape::Own,
};

fn name(object: &Object) -> Value {
    object.name().into()
}

fn age(object: &Object) -> Value {
    since(object.at(&["metadata", "creationTimestamp"])).into()
}

fn created_at(object: &Object) -> Value {
    object.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or(Value::Null)
}

fn since(at: Option<&Value>) -> String {
    match at.and_then(Value::as_str).and_then(time::parse) {
        Some(at) => time::human_duration(::time::OffsetDateTime::now_utc() - at),
        None => "<unknown>".into(),
    }
}

fn map_len(object: &Object, member: &str) -> usize {
    object.get(member).and_then(Value::as_object).map_or(0, Object::len)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

fn quota(object: &Object, limits: bool) -> String {
    let used = object.at(&["status", "used"]);
    let mut out = Vec::new();
    for (resource, hard) in rules::entries(object, &["status", "hard"]) {
        if resource.starts_with("limits.") == limits {
            let used = used.and_then(|u| u.get(resource)).and_then(Value::as_str).unwrap_or("0");
            out.push(format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0")));
        }
    }
    out.join(", ")
}

fn param_kind(object: &Object) -> Value {
    match object.at(&["spec", "paramKind"]).and_then(Value::as_object) {
        Some(kind) => {
            let of = |member| rules::text(kind, &[member]);
            format!("{}/{}", of("apiVersion"), of("kind")).into()
        }
        None => "<unset>".into(),
    }
}

fn param_ref(object: &Object) -> Value {
    let Some(param) = object.at(&["spec", "paramRef"]).and_then(Value::as_object) else {
        return "<unset>".into();
    };
    let (name, namespace) = (rules::text(param, &["name"]), rules::text(param, &["namespace"]));
    match (name, namespace, param.get("selector")) {
        ("", _, Some(selector)) => selector.to_string().into(),
        ("", _, None) => "<unset>".into(),
        (name, "", _) => format!("*/{name}").into(),
        (name, namespace, _) => format!("{namespace}/{name}").into(),
    }
}

fn subjects(object: &Object, kind: &str) -> String {
    let mut out = Vec::new();
    for subject in rules::list(object, &["subjects"]).iter().filter_map(Value::as_object) {
        if rules::text(subject, &["kind"]) == kind {
            let name = rules::text(subject, &["name"]);
            out.push(match kind {
                "ServiceAccount" => format!("{}/{name}", rules::text(subject, &["namespace"])),
                _ => name.to_owned(),
            });
        }
    }
    out.join(", ")
}

fn requested_duration(object: &Object) -> Value {
    let seconds = object.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    match seconds {
        Some(seconds) => time::human_duration(::time::Duration::seconds(seconds)).into(),
        None => "<none>".into(),
    }
}

fn certificate_status(object: &Object) -> String {
    let conditions = rules::list(object, &["status", "conditions"]);
    let has = |kind: &str| conditions.iter().any(|c| c.get("type").is_some_and(|t| t == kind));
    let mut out = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        out.push_str(",Failed");
    }
    if !rules::text(object, &["status", "certificate"]).is_empty() {
        out.push_str(",Issued");
    }
    out
}

/// A member of an event by its core name, in either of the two forms.
fn event_member<'a>(object: &'a Object, core: &'static str) -> Option<&'a Value> {
    let member = crate::core_v1::event::name_in(object, core);
    object.get(member).filter(|v| !v.is_null())
}

fn event_text<'a>(object: &'a Object, member: &'static str, inner: &str) -> &'a str {
    event_member(object, member).and_then(|v| v.get(inner)).and_then(Value::as_str).unwrap_or("")
}

fn event_object(object: &Object) -> Value {
    let kind = event_text(object, "involvedObject", "kind").to_lowercase();
    match event_text(object, "involvedObject", "name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn event_source(object: &Object) -> Value {
    let first = |inner, other: &'static str| match event_text(object, "source", inner) {
        "" => event_member(object, other).and_then(Value::as_str).unwrap_or("").to_owned(),
        text => text.to_owned(),
    };
    let (component, instance) =
        (first("component", "reportingComponent"), first("host", "reportingInstance"));
    if instance.is_empty() { component.into() } else { format!("{component}, {instance}").into() }
}

fn first_seen(object: &Object) -> String {
    since(event_member(object, "firstTimestamp").or_else(|| event_member(object, "eventTime")))
}

fn last_seen(object: &Object) -> String {
    if let Some(series) = event_member(object, "series") {
        return since(series.get("lastObservedTime"));
    }
    match event_member(object, "lastTimestamp") {
        Some(at) => since(Some(at)),
        None => first_seen(object),
    }
}

fn event_count(object: &Object) -> Value {
    let count = |v: Option<&Value>| v.and_then(Value::as_i64).unwrap_or(0);
    if let Some(series) = event_member(object, "series") {
        return count(series.get("count")).into();
    }
    count(event_member(object, "count")).max(1).into()
}
