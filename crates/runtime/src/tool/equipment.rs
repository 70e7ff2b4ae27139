//! `manage_tools`: the register of what the company works with. It describes; what anybody may
//! call is the policy's, and nothing here changes it.

use chancery_domain::event::CallResult;
use chancery_domain::policy::{Access, Risk};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, TEXT_MAX, Work, wrong};
use super::files::{FileError, text};
use super::shelf::{Document, Shelf};
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORK: Work = Work { spec: manage_spec, touches, carry_out: manage };

const EQUIPMENT: &str = "equipment";

fn manage_spec() -> ToolSpec {
    let properties = json!({
        "action": {"enum": ["add", "update", "retire", "list"]},
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"},
        "description": {"type": "string", "maxLength": 20_000},
        "owner": {"type": "string", "maxLength": 100},
    });
    spec(
        "manage_tools",
        Risk::High,
        "Keeps the register of equipment: `add`, `update` or `retire` an entry by its name, or \
         `list` them. An entry says what there is and whose it is; it gives nobody the right to \
         use it.",
        object(properties, &["action"]),
    )
}

fn touches(given: &Value, _: super::Caller<'_>) -> Vec<Touched> {
    let access = if given["action"] == "list" { Access::Read } else { Access::Write };
    vec![Touched::Path(access, EQUIPMENT.to_owned())]
}

fn manage(given: &Value, desk: &Desk) -> Answer {
    let columns = &["status", "owner", "updated"];
    let shelf = Shelf { reach: &desk.reach, folder: EQUIPMENT, title: "Equipment", columns };
    let action = given["action"].as_str().unwrap_or_default();
    if action == "list" {
        return list(&shelf);
    }
    let Some(name) = given["name"].as_str() else {
        return Err(wrong(format!("`{action}` needs a `name`")));
    };
    let file = format!("{name}.md");
    let path = format!("{EQUIPMENT}/{file}");
    let mut entry = match (action, shelf.read(&file)) {
        ("add", Err(FileError::Missing(_))) => {
            Document::new(&[("name", name), ("call", &desk.context.idempotency_key)], "")
        }
        // The call that is repeated has added it.
        ("add", Ok(it)) if it.get("call") == desk.context.idempotency_key => it,
        ("add", Ok(_)) => return Err(FileError::Exists(path).into()),
        (_, read) => read?,
    };
    if let Some(owner) = given["owner"].as_str() {
        entry.set("owner", owner);
    }
    if given["description"].is_string() {
        entry.body = text(given, "description");
    }
    entry.set("status", if action == "retire" { "retired" } else { "in use" });
    entry.set("updated", &desk.now.to_string());
    entry.set("updated_by", desk.reach.agent());
    desk.reach.write(&path, &entry.text(), TEXT_MAX)?;
    shelf.index_in(|_| {})?;
    Ok(CallResult::ok(format!("`{name}` is {}: `{path}`", entry.get("status"))))
}

fn list(shelf: &Shelf<'_>) -> Answer {
    let mut entries = Vec::new();
    for name in shelf.names()? {
        let Ok(entry) = shelf.read(&name) else { continue };
        entries.push(json!({
            "name": name.trim_end_matches(".md"),
            "status": entry.get("status"),
            "owner": entry.get("owner"),
            "description": entry.body.trim_end().chars().take(1000).collect::<String>(),
        }));
    }
    Ok(CallResult::ok(json!({ "equipment": entries }).to_string()))
}
