//! `manage_backlog` and `prioritize_tasks`: what is to be done, one file an item, and in which
//! order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chancery_domain::event::CallResult;
use chancery_domain::mail::Priority;
use chancery_domain::policy::{Access, Risk};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, TEXT_MAX, Work, wrong};
use super::files::{FileError, text};
use super::shelf::{Document, Shelf};
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORKS: &[Work] = &[
    Work {
        spec: manage_spec,
        touches: |given, _| {
            let access = if given["action"] == "list" { Access::Read } else { Access::Write };
            vec![Touched::Path(access, BACKLOG.to_owned())]
        },
        carry_out: manage,
    },
    Work {
        spec: order_spec,
        touches: |_, _| vec![Touched::Path(Access::Write, BACKLOG.to_owned())],
        carry_out: prioritize,
    },
];

const BACKLOG: &str = "backlog";
const ORDER: &str = "backlog/order.txt";
const ITEMS_MAX: u32 = 9999;
/// How many names are tried where others add at the same time.
const TRIES_MAX: u32 = 100;

/// An item is read and written again: of one process one at a time.
static CHANGING: Mutex<()> = Mutex::new(());

fn manage_spec() -> ToolSpec {
    let properties = json!({
        "action": {"enum": ["add", "update", "close", "list"]},
        "id": {"type": "string", "pattern": "^BL-[0-9]{4}$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 200},
        "description": {"type": "string", "maxLength": 20_000},
        "priority": {"enum": Priority::ALL.map(Priority::as_str)},
        "status": {"enum": ["open", "in_progress", "closed"]},
    });
    spec(
        "manage_backlog",
        Risk::Low,
        "Keeps the backlog: `add` an item by its title, `update` or `close` one by its id, or \
         `list` those that are not closed, in their order (`status: closed` for the closed ones).",
        object(properties, &["action"]),
    )
}

fn order_spec() -> ToolSpec {
    let id = json!({"type": "string", "pattern": "^BL-[0-9]{4}$"});
    let order = json!({"type": "array", "items": id, "minItems": 1, "maxItems": 500,
                       "uniqueItems": true});
    spec(
        "prioritize_tasks",
        Risk::Low,
        "Puts the backlog in order: the ids that come first, the first one first. The others \
         follow by their priority.",
        object(json!({ "order": order }), &["order"]),
    )
}

fn shelf(desk: &Desk) -> Shelf<'_> {
    let columns = &["title", "status", "priority", "updated"];
    Shelf { reach: &desk.reach, folder: BACKLOG, title: "Backlog", columns }
}

fn manage(given: &Value, desk: &Desk) -> Answer {
    let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let id = given["id"].as_str();
    match (given["action"].as_str().unwrap_or_default(), id) {
        ("add", None) => add(given, desk),
        ("add", Some(_)) => Err(wrong("an item gets its id when it is added")),
        ("list", _) => list(given, desk),
        ("update", Some(id)) => change(id, given, desk),
        ("close", Some(id)) => {
            let mut closed = given.clone();
            closed["status"] = json!("closed");
            change(id, &closed, desk)
        }
        (action, None) => Err(wrong(format!("`{action}` needs the `id` of an item"))),
        (action, Some(_)) => Err(wrong(format!("there is no action `{action}`"))),
    }
}

fn add(given: &Value, desk: &Desk) -> Answer {
    let title = text(given, "title");
    if title.trim().is_empty() {
        return Err(wrong("`add` needs a `title`"));
    }
    let shelf = shelf(desk);
    let names = shelf.names()?;
    let key = &desk.context.idempotency_key;
    let again =
        names.iter().rev().take(50).find(|it| shelf.read(it).is_ok_and(|it| it.get("call") == key));
    if let Some(name) = again {
        return Ok(said(name.trim_end_matches(".md"), "added"));
    }
    let last = names.iter().filter_map(|it| number(it)).max().unwrap_or(0);
    let now = desk.now.to_string();
    let priority = given["priority"].as_str().unwrap_or(Priority::default().as_str());
    for number in (last + 1..=ITEMS_MAX).take(TRIES_MAX as usize) {
        let id = format!("BL-{number:04}");
        let head = [
            ("id", &*id),
            ("title", &title),
            ("status", given["status"].as_str().unwrap_or("open")),
            ("priority", priority),
            ("author", desk.reach.agent()),
            ("created", &now),
            ("updated", &now),
            ("call", key),
        ];
        let item = Document::new(&head, &text(given, "description"));
        match desk.reach.create(&format!("{BACKLOG}/{id}.md"), &item.text(), TEXT_MAX) {
            Err(FileError::Exists(_)) => {}
            done => {
                done?;
                index(desk)?;
                return Ok(said(&id, "added"));
            }
        }
    }
    Err(CallResult::error("TOO_MANY", format!("a backlog has at most {ITEMS_MAX} items")))
}

fn change(id: &str, given: &Value, desk: &Desk) -> Answer {
    let shelf = shelf(desk);
    let mut item = shelf.read(&format!("{id}.md"))?;
    for key in ["title", "status", "priority"] {
        if let Some(value) = given[key].as_str() {
            item.set(key, value);
        }
    }
    if let Some(description) = given["description"].as_str() {
        item.body = description.to_owned();
    }
    item.set("updated", &desk.now.to_string());
    item.set("updated_by", desk.reach.agent());
    desk.reach.write(&format!("{BACKLOG}/{id}.md"), &item.text(), TEXT_MAX)?;
    index(desk)?;
    Ok(said(id, item.get("status")))
}

fn said(id: &str, became: &str) -> CallResult {
    CallResult::ok(
        json!({"id": id, "status": became, "path": format!("{BACKLOG}/{id}.md")}).to_string(),
    )
}

fn list(given: &Value, desk: &Desk) -> Answer {
    let shelf = shelf(desk);
    let wanted = given["status"].as_str();
    let shown = |item: &Document| match wanted {
        Some(wanted) => item.get("status") == wanted,
        None => item.get("status") != "closed",
    };
    let mut names = shelf.names()?;
    let order = Order::read(desk)?;
    order.sort(&mut names);
    let mut items = Vec::new();
    for name in names {
        let Ok(item) = shelf.read(&name) else { continue };
        if shown(&item) {
            items.push(json!({
                "id": item.get("id"),
                "title": item.get("title"),
                "status": item.get("status"),
                "priority": item.get("priority"),
                "updated": item.get("updated"),
                "description": item.body.trim_end().chars().take(1000).collect::<String>(),
            }));
        }
    }
    Ok(CallResult::ok(json!({ "items": items }).to_string()))
}

fn prioritize(given: &Value, desk: &Desk) -> Answer {
    let _alone = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let ids: Vec<&str> =
        given["order"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = shelf(desk).names()?;
    let unknown: Vec<&str> =
        ids.iter().copied().filter(|id| !names.contains(&format!("{id}.md"))).collect();
    if !unknown.is_empty() {
        return Err(CallResult::error("NOT_FOUND", format!("there is no {}", unknown.join(", "))));
    }
    desk.reach.write(ORDER, &format!("{}\n", ids.join("\n")), TEXT_MAX)?;
    index(desk)?;
    Ok(CallResult::ok(format!("{} items come first: {}", ids.len(), ids.join(", "))))
}

fn index(desk: &Desk) -> Result<(), FileError> {
    let order = Order::read(desk)?;
    shelf(desk).index_in(|names| order.sort(names))
}

/// What comes before what: as somebody put it, then by priority, then by age.
struct Order {
    put: Vec<String>,
    urgency: BTreeMap<String, Priority>,
}

impl Order {
    fn read(desk: &Desk) -> Result<Order, FileError> {
        let put = match desk.reach.read(ORDER, TEXT_MAX) {
            Ok(text) => text.lines().map(|it| format!("{}.md", it.trim())).collect(),
            Err(FileError::Missing(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let shelf = shelf(desk);
        let mut urgency = BTreeMap::new();
        for name in shelf.names()? {
            let item = shelf.read(&name).unwrap_or_default();
            urgency.insert(name, Priority::parse(item.get("priority")).unwrap_or_default());
        }
        Ok(Order { put, urgency })
    }

    fn sort(&self, names: &mut [String]) {
        names.sort_by_key(|name| {
            let place = self.put.iter().position(|it| it == name).unwrap_or(usize::MAX);
            let urgency = self.urgency.get(name).copied().unwrap_or_default();
            (place, std::cmp::Reverse(urgency), name.clone())
        });
    }
}

fn number(name: &str) -> Option<u32> {
    name.strip_prefix("BL-")?.strip_suffix(".md")?.parse().ok()
}
