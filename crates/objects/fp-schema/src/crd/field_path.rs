//! Simple paths into a schema, `.spec.x['a.b']`, as `selectableFields` and the `fieldPath` of rules
//! write them (`apiserver/schema/cel/validation.go`, `ValidFieldPath`).

use fp_object::Value;

/// Whether `['name']` may stand in a path.
#[derive(Clone, Copy, PartialEq)]
pub enum Arrays {
    Allowed,
    Forbidden,
}

pub struct Found<'a> {
    pub path: Vec<String>,
    pub schema: &'a Value,
}

/// The schema that a path leads to.
pub fn valid_field_path<'a>(
    path: &str,
    schema: &'a Value,
    arrays: Arrays,
) -> Result<Found<'a>, String> {
    const END: &str = "unexpected end of JSON path";
    const NO_FIELD: &str = "does not refer to a valid field";
    let mut found = Found { path: Vec::new(), schema };
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or(END)?.to_owned(),
            "[" if arrays == Arrays::Forbidden => {
                return Err("array notation is not allowed".into());
            }
            "[" => {
                let quoted = tokens.next().ok_or(END)?;
                let inside = quoted.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                let name = inside
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                match tokens.next().ok_or(END)? {
                    "]" => name.replace("\\'", "'").replace("\\\\", "\\"),
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let properties = found.schema.get("properties").and_then(Value::as_object);
        found.schema = match properties.filter(|p| !p.is_empty()) {
            Some(properties) => properties.get(&name).ok_or(NO_FIELD)?,
            None => found
                .schema
                .get("additionalProperties")
                .filter(|a| a.is_object())
                .ok_or(NO_FIELD)?,
        };
        found.path.push(name);
    }
    Ok(found)
}

/// `.`, `[` and `]` alone, quoted texts whole, and what stands between.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.0.chars().next()?;
        let end = if first == '\'' {
            let bytes = self.0.as_bytes();
            let close = (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\');
            close.map_or(bytes.len(), |at| at + 1)
        } else if matches!(first, '.' | '[' | ']') {
            1
        } else {
            self.0.find(['.', '[', ']']).unwrap_or(self.0.len())
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}
