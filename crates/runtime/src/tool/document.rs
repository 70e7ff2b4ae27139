//! `write_note`, `write_prd` and `write_report`: what agents write down, each where it belongs.

use chancery_domain::event::CallResult;
use chancery_domain::org::Role;
use chancery_domain::policy::{Access, Risk, scope_components};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, TEXT_MAX, Work};
use super::files::{FileError, text};
use super::shelf::{Document, Shelf, slug};
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORKS: &[Work] = &[
    Work { spec: note_spec, touches: |_, who| writes(notes(who.agent)), carry_out: write_note },
    Work { spec: prd_spec, touches: |_, _| writes(PRDS.to_owned()), carry_out: write_prd },
    Work {
        spec: report_spec,
        touches: |_, who| writes(own_reports(who.role, who.agent)),
        carry_out: write_report,
    },
];

const PRDS: &str = "docs/prd";
pub(super) const REPORTS: &str = "reports";
pub(super) const REPORT_TYPES: [&str; 6] =
    ["status", "completion", "escalation", "cost", "research", "review"];

fn title() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 200})
}

fn content() -> Value {
    json!({"type": "string", "maxLength": TEXT_MAX, "description": "Markdown"})
}

fn note_spec() -> ToolSpec {
    spec(
        "write_note",
        Risk::Low,
        "Keeps a note or a decision of your own, under your notes.",
        object(json!({"title": title(), "content": content()}), &["title", "content"]),
    )
}

fn prd_spec() -> ToolSpec {
    spec(
        "write_prd",
        Risk::Low,
        "Writes a product requirements document. One of the same title is replaced by a new \
         revision.",
        object(json!({"title": title(), "content": content()}), &["title", "content"]),
    )
}

fn report_spec() -> ToolSpec {
    let properties = json!({
        "title": title(),
        "content": content(),
        "report_type": {"enum": REPORT_TYPES},
    });
    spec(
        "write_report",
        Risk::Low,
        "Writes a report into your own folder of reports. It tells nobody: hand it in with \
         `submit_report`.",
        object(properties, &["title", "content"]),
    )
}

fn writes(folder: String) -> Vec<Touched> {
    vec![Touched::Path(Access::Write, folder)]
}

fn notes(agent: &str) -> String {
    format!("agents/{agent}/notes")
}

/// Where a role's reports are: the folder beneath `reports/` that it may write, or that of its
/// department.
pub(super) fn own_reports(role: &Role, agent: &str) -> String {
    let entries = role.file_scope.iter().flat_map(|it| &it.write);
    let own = entries.into_iter().find_map(|it| {
        let parts = scope_components(&it.value)?;
        (parts.len() > 1 && parts[0] == REPORTS).then(|| parts.join("/"))
    });
    own.unwrap_or_else(|| format!("{REPORTS}/{}", role.department.as_deref().unwrap_or(agent)))
}

fn write_note(given: &Value, desk: &Desk) -> Answer {
    let folder = notes(desk.reach.agent());
    let shelf = Shelf { reach: &desk.reach, folder: &folder, title: "Notes", columns: COLUMNS };
    add(given, desk, shelf, &[])
}

const COLUMNS: &[&str] = &["date", "title", "author"];

fn write_report(given: &Value, desk: &Desk) -> Answer {
    let role = desk.reach.role();
    let Some(role) = role else { return Err(CallResult::error("NOT_HERE", "you are gone")) };
    let folder = own_reports(role, desk.reach.agent());
    let columns = &["date", "title", "type", "author"];
    let shelf = Shelf { reach: &desk.reach, folder: &folder, title: "Reports", columns };
    let kind = given["report_type"].as_str().unwrap_or("research");
    let department = role.department.as_deref().unwrap_or_default();
    add(given, desk, shelf, &[("type", kind), ("department", department)])
}

fn add(given: &Value, desk: &Desk, shelf: Shelf<'_>, more: &[(&str, &str)]) -> Answer {
    let title = text(given, "title");
    let document = document(given, desk, &title, more);
    let path = shelf.add(&document, &title, &desk.context.idempotency_key, desk.now)?;
    Ok(CallResult::ok(format!("wrote `{path}`")))
}

fn document(given: &Value, desk: &Desk, title: &str, more: &[(&str, &str)]) -> Document {
    let date = desk.now.to_string();
    let run = desk.context.run.to_string();
    let mut head = vec![("title", title), ("author", desk.reach.agent()), ("date", &*date)];
    head.extend_from_slice(more);
    head.push(("run", &run));
    Document::new(&head, &text(given, "content"))
}

fn write_prd(given: &Value, desk: &Desk) -> Answer {
    let title = text(given, "title");
    let columns = &["title", "revision", "date", "author"];
    let shelf = Shelf { reach: &desk.reach, folder: PRDS, title: "Requirements", columns };
    let name = format!("{}.md", slug(&title));
    let before = match shelf.read(&name) {
        Ok(before) => Some(before),
        Err(FileError::Missing(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let key = &desk.context.idempotency_key;
    let earlier: u32 = before.iter().find_map(|it| it.get("revision").parse().ok()).unwrap_or(0);
    let repeated = before.is_some_and(|it| it.get("call") == key);
    let revision = if repeated { earlier } else { earlier.saturating_add(1) }.to_string();
    let document = document(given, desk, &title, &[("revision", &revision), ("call", key)]);
    let path = format!("{PRDS}/{name}");
    desk.reach.write(&path, &document.text(), TEXT_MAX)?;
    shelf.index_in(|_| {})?;
    Ok(CallResult::ok(format!("wrote `{path}`, revision {revision}")))
}
