//! Changes that come from within: an [`Amendment`] becomes an edit of `roles.yaml`, and the files
//! with it a version like any other.

use async_trait::async_trait;
use chancery_domain::chart::{self, Amendment};
use chancery_domain::contract::Contract;
use chancery_domain::event::Actor;
use chancery_domain::id::AgentId;
use chancery_domain::org::Org;
use chancery_runtime::tool::staff::{Charter, Unamended};
use serde_json::{Map, Value, json};

use super::Organisation;
use super::files::Files;
use super::mistake::Mistakes;
use super::reload::{ChangeError, State, texts};

const ROLES: &str = "roles.yaml";

#[async_trait]
impl Charter for Organisation {
    async fn amend(
        &self,
        amendment: Amendment,
        by: &AgentId,
        held: &[Contract],
    ) -> Result<u64, Unamended> {
        let edit = |before: &State| {
            let org = &before.loaded.org;
            chart::check(org, by, &amendment, held)?;
            let mut texts = texts(&before.loaded.files);
            let roles = texts.get(ROLES).map_or("extends: builtin\n", String::as_str);
            let roles = amended(roles, org, &amendment).map_err(Unamended::NotPossible)?;
            texts.insert(ROLES.to_owned(), roles);
            let mut mistakes = Mistakes::default();
            Ok((Files::new(texts, &mut mistakes), mistakes))
        };
        let changed = self.revise(&Actor::Agent(by.clone()), edit).await;
        changed.map(|it| it.version.number)
    }
}

impl From<ChangeError> for Unamended {
    fn from(error: ChangeError) -> Unamended {
        Unamended::NotPossible(error.to_string())
    }
}

/// The file with the change in it. What people wrote beside it in comments is not kept: the
/// version before it has them.
fn amended(text: &str, org: &Org, amendment: &Amendment) -> Result<String, String> {
    let read: Result<Option<Value>, _> = serde_saphyr::from_str(text);
    let read = read.map_err(|it| format!("`{ROLES}` cannot be read: {it}"))?;
    let mut file = match read {
        Some(Value::Object(file)) => file,
        None => Map::new(),
        Some(_) => return Err(format!("`{ROLES}` is no table")),
    };
    match amendment {
        Amendment::Hire { agent, role } | Amendment::Move { agent, role } => {
            let entry = section(&mut file, "agents", agent.as_str());
            entry.insert("role".to_owned(), json!(role));
            entry.insert("active".to_owned(), json!(true));
        }
        Amendment::Deactivate { agent } => {
            let role = org.agent(agent).map(|it| json!(it.role)).unwrap_or_default();
            let entry = section(&mut file, "agents", agent.as_str());
            entry.insert("role".to_owned(), role);
            entry.insert("active".to_owned(), json!(false));
        }
        Amendment::Report { role, to } => {
            let entry = section(&mut file, "roles", role.as_str());
            entry.insert("reports_to".to_owned(), json!(to));
        }
    }
    let mut written = String::new();
    write(&Value::Object(file), 0, &mut written);
    Ok(written)
}

fn section<'f>(
    file: &'f mut Map<String, Value>,
    section: &str,
    name: &str,
) -> &'f mut Map<String, Value> {
    let table = |value: &'f mut Value| -> &'f mut Map<String, Value> {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        // It is one now.
        match value {
            Value::Object(table) => table,
            _ => unreachable!("it was made a table"),
        }
    };
    let section = table(file.entry(section).or_insert(Value::Null));
    table(section.entry(name).or_insert(Value::Null))
}

/// Block style for tables, and JSON, which YAML reads, for what is in them.
fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            for (name, value) in table {
                let nested = value.as_object().is_some_and(|it| !it.is_empty());
                let name = json!(name);
                text.push_str(&format!("{}{name}:", "  ".repeat(depth)));
                if nested {
                    text.push('\n');
                    write(value, depth + 1, text);
                } else {
                    text.push_str(&format!(" {value}\n"));
                }
            }
        }
        other => text.push_str(&format!("{other}\n")),
    }
}
