//! `read_reports`, `read_tech_reports` and `read_user_feedback`: what others wrote, by department,
//! time and type, as far as the caller's file scope reads it.

use std::collections::BTreeSet;

use chancery_domain::event::CallResult;
use chancery_domain::org::Org;
use chancery_domain::policy::{Access, Risk, scope_components};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, TEXT_MAX, Work, wrong};
use super::document::{REPORT_TYPES, REPORTS, own_reports};
use super::files::text;
use super::shelf::{Document, INDEX};
use super::spec::{object, spec};
use super::{Caller, ToolSpec, Touched};

pub(super) const WORKS: &[Work] = &[
    Work {
        spec: reports_spec,
        touches: |given, who| touches(REPORTS, given, who),
        carry_out: |given, desk| read(REPORTS, given, desk),
    },
    Work {
        spec: tech_spec,
        touches: |given, who| touches(TECH, given, who),
        carry_out: |given, desk| read(TECH, given, desk),
    },
    Work {
        spec: feedback_spec,
        touches: |given, who| touches(FEEDBACK, given, who),
        carry_out: |given, desk| read(FEEDBACK, given, desk),
    },
];

const TECH: &str = "reports/tech";
/// Beneath the reports of the product department, whose manager reads it.
const FEEDBACK: &str = "reports/product/feedback";

const FILES_MAX: usize = 5_000;
const LISTED_DEFAULT: u64 = 20;
const LISTED_MAX: u64 = 100;
const EXCERPT_MAX: usize = 400;

fn shared() -> Value {
    json!({
        "path": {"type": "string", "description": "One of those listed, to be read in full"},
        "date_range": {
            "type": "string",
            "description": "`2026-02-01..2026-02-19`, either end left out, or one day",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": LISTED_MAX},
    })
}

fn reports_spec() -> ToolSpec {
    let mut properties = shared();
    properties["department"] = json!({"type": "string", "minLength": 1, "maxLength": 100});
    properties["report_type"] = json!({"enum": REPORT_TYPES});
    spec_of(
        "read_reports",
        "Lists the reports that you may read, the newest first, with how they begin; with `path`, \
         reads one of them in full.",
        properties,
    )
}

fn tech_spec() -> ToolSpec {
    let mut properties = shared();
    properties["report_type"] = json!({"enum": REPORT_TYPES});
    let description = "Lists the technical reports, the newest first, with how they begin; with \
                       `path`, reads one of them in full.";
    spec_of("read_tech_reports", description, properties)
}

fn feedback_spec() -> ToolSpec {
    let description = "Lists what users said, the newest first, with how it begins; with `path`, \
                       reads one of them in full.";
    spec_of("read_user_feedback", description, shared())
}

fn spec_of(name: &str, description: &str, properties: Value) -> ToolSpec {
    let mut spec = spec(name, Risk::Low, description, object(properties, &[]));
    spec.supports_parallel = true;
    spec
}

fn touches(root: &str, given: &Value, who: Caller<'_>) -> Vec<Touched> {
    let path = |path: String| Touched::Path(Access::Read, path);
    if let Some(named) = given["path"].as_str() {
        return vec![path(named.to_owned())];
    }
    if root != REPORTS {
        return vec![path(root.to_owned())];
    }
    let Some(department) = given["department"].as_str() else {
        // Whatever the caller may read is listed, and nothing else.
        return Vec::new();
    };
    let folders = folders_of(who.org, department).into_iter().map(path);
    let (closed, open): (Vec<_>, Vec<_>) = folders.partition(|it| it.rule(who).is_some());
    if open.is_empty() { closed } else { open }
}

/// Where a department's reports are: the folder of its name, and those of its roles.
fn folders_of(org: &Org, department: &str) -> BTreeSet<String> {
    let theirs = org.roles().filter(|it| it.department.as_deref() == Some(department));
    let mut folders: BTreeSet<String> = theirs.map(|it| own_reports(it, it.id.as_str())).collect();
    folders.insert(format!("{REPORTS}/{department}"));
    folders
}

fn read(root: &str, given: &Value, desk: &Desk) -> Answer {
    if let Some(path) = given["path"].as_str() {
        if !is_beneath(root, path) {
            return Err(wrong(format!("`{path}` is not beneath `{root}/`")));
        }
        return Ok(CallResult::ok(desk.reach.read(path, 2 * TEXT_MAX)?));
    }
    let span = Days::parse(&text(given, "date_range")).map_err(wrong)?;
    let kind = given["report_type"].as_str();
    let folders = given["department"].as_str().map(|it| folders_of(&desk.context.org, it));
    let mut found = Vec::new();
    for path in desk.reach.walk(root, FILES_MAX)? {
        let in_folder = |it: &String| is_beneath(it, &path);
        if folders.as_ref().is_some_and(|it| !it.iter().any(in_folder)) || !is_text(&path) {
            continue;
        }
        // What is gone or cannot be read as text is no report.
        let Ok(document) = desk.reach.read(&path, 2 * TEXT_MAX) else { continue };
        let document = Document::parse(&document);
        let date = document.get("date").parse().ok().or_else(|| dated(&path));
        let of_kind = kind.is_none_or(|it| it == document.get("type"));
        if of_kind && span.covers(date) {
            found.push((date, path, document));
        }
    }
    found.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    let total = found.len();
    let most = given["limit"].as_u64().unwrap_or(LISTED_DEFAULT).min(LISTED_MAX) as usize;
    let listed: Vec<Value> = found.iter().take(most).map(entry).collect();
    Ok(CallResult::ok(json!({"total": total, "reports": listed}).to_string()))
}

fn entry((date, path, document): &(Option<Timestamp>, String, Document)) -> Value {
    let mut chars = document.body.chars();
    let begins: String = chars.by_ref().take(EXCERPT_MAX).collect();
    let said = |key: &str| Some(document.get(key)).filter(|it| !it.is_empty());
    json!({
        "path": path,
        "title": said("title"),
        // A report that was handed in by mail says whom it is from.
        "author": said("author").or_else(|| said("from")),
        "type": said("type"),
        "date": date.map(|it| it.to_string()),
        "begins": begins,
        "whole": chars.next().is_none(),
    })
}

fn is_beneath(folder: &str, path: &str) -> bool {
    match (scope_components(folder), scope_components(path)) {
        (Some(folder), Some(path)) => path.len() > folder.len() && path.starts_with(&folder),
        _ => false,
    }
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let kinds = [".md", ".txt", ".json", ".yaml", ".yml", ".csv", ".log"];
    name != INDEX && kinds.iter().any(|it| name.ends_with(it))
}

/// By the time that a file's name begins with.
fn dated(path: &str) -> Option<Timestamp> {
    let name = path.rsplit('/').next()?;
    let day = Date::strptime("%Y%m%d", name.get(..8)?).ok();
    let day = day.or_else(|| name.get(..10)?.parse().ok())?;
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Days, both ends with them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Days {
    from: Option<Date>,
    to: Option<Date>,
}

impl Days {
    fn parse(text: &str) -> Result<Days, String> {
        let day = |it: &str| match it.trim() {
            "" => Ok(None),
            it => it.parse::<Date>().map(Some).map_err(|_| {
                format!("`date_range`: `{it}` is not a day: days are written `2026-02-19`")
            }),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Days { from: day(from)?, to: day(to)? }),
            None => Ok(Days { from: day(text)?, to: day(text)? }),
        }
    }

    fn covers(&self, at: Option<Timestamp>) -> bool {
        if *self == Days::default() {
            return true;
        }
        let day = at.map(|it| Zoned::new(it, TimeZone::UTC).date());
        day.is_some_and(|it| {
            self.from.is_none_or(|from| from <= it) && self.to.is_none_or(|to| it <= to)
        })
    }
}
