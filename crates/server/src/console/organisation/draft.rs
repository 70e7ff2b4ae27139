//! A draft of the organisation: its files are written here, checked, compared, tried on what
//! happened, and put in force by the function behind `PUT /api/org`. A draft is kept by nobody:
//! the page has it, and its forms carry it.

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::org::{Difference, Mistake, NewOrg};
use chancery_runtime::clock;
use serde::Deserialize;
use similar::TextDiff;

use crate::console::audit::operator;
use crate::console::card::{DiffLine, diff};
use crate::console::finding::{Finding, findings};
use crate::console::form::Signed;
use crate::console::html::{shown, ticked};
use crate::console::meaning::{Means, means};
use crate::console::page::{Frame, Room, draw_as};
use crate::console::ruling::sentence;
use crate::console::visitor::Visitor;
use crate::console::words::{Words, fill};
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params};
use crate::organisation::difference::difference;
use crate::organisation::files::NAMES;
use crate::organisation::impact::{
    BACK, Change, Impact, MailChange, MailImpact, MailSeen, Seen, impact,
};
use crate::organisation::{Files, Mistakes, mistake};
use crate::router::App;
use crate::routes::org;
use crate::view;

/// What a file that was built in until now begins with.
const BEGIN: &str = "extends: builtin\n";
const DIFF_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(500);

#[derive(Template)]
#[template(path = "draft.html")]
struct DraftPage {
    frame: Frame,
    /// The version that it was begun from.
    base: String,
    /// Every file there is or may be, and whether it is another than in force.
    names: Vec<(String, bool)>,
    open: String,
    text: String,
    /// What the form carries beside the file that is open.
    carried: Vec<(String, String)>,
    /// Where the text does not come from what is in force, and what became of it.
    notice: String,
    checked: Option<Checked>,
}

/// What there is to say of a draft.
struct Checked {
    findings: Vec<Finding>,
    /// Absent: it has mistakes, and cannot be put in force.
    fine: Option<Fine>,
    diff: Vec<DiffLine>,
}

struct Fine {
    /// Of the files that were looked at: only these are put in force.
    digest: String,
    differences: Vec<Means>,
    rows: Vec<ImpactRow>,
    mails: Vec<MailRow>,
    summary: String,
    mail_summary: String,
    notes: Vec<String>,
    /// It says the same as what is in force.
    same: bool,
}

#[derive(Debug)]
struct ImpactRow {
    agent: String,
    user: String,
    tool: String,
    before: &'static str,
    after: &'static str,
    because: String,
    times: u64,
    run: String,
}

#[derive(Debug)]
struct MailRow {
    from: String,
    to: String,
    kind: String,
    before: &'static str,
    after: &'static str,
    because: String,
    times: u64,
    /// Empty: no run sent it.
    run: String,
}

#[derive(Debug, Deserialize)]
pub struct Which {
    #[serde(default)]
    file: String,
    /// A version to begin with.
    #[serde(default)]
    from: String,
}

/// The files in force, to begin with; or those of an earlier version, which is how one goes back.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(Which { file, from }): Query<Which>,
) -> Result<Response> {
    let operator = operator(&visitor)?;
    let mut draft = Draft::of(&app, BTreeMap::new(), &file);
    let mut notice = String::new();
    if !from.is_empty() {
        let Json(kept) = org::version(State(app), operator, Path(from)).await?;
        draft.begin_with(kept.files);
        let number = kept.version.version.to_string();
        notice = fill(visitor.words().draft_from, &[("n", &number)]);
    }
    draw_as(StatusCode::OK, &draft.page(&visitor, notice, None))
}

/// The form of the page: `file:NAME` is a file's text, `open` the one that is shown, `open_next`
/// the one to be shown, `act` what to do, `checked` the digest of what was checked.
pub async fn act(
    State(app): State<App>,
    Signed { visitor, form }: Signed<BTreeMap<String, String>>,
) -> Result<Response> {
    let operator = operator(&visitor)?;
    let given = form.iter().filter_map(|(key, text)| {
        // A browser sends its own ends of lines.
        Some((key.strip_prefix("file:")?.to_owned(), text.replace("\r\n", "\n")))
    });
    let field = |name: &str| form.get(name).map_or("", String::as_str);
    let open = if field("open_next").is_empty() { field("open") } else { field("open_next") };
    let mut draft = Draft::of(&app, given.collect(), open);
    if !field("base").is_empty() {
        field("base").clone_into(&mut draft.base);
    }
    match field("act") {
        "apply" => {
            let version = app.organisation.state().version.number.to_string();
            if version != draft.base {
                let detail = visitor.words().draft_late.to_owned();
                return Err(ApiError::Conflict { code: "org_changed", detail });
            }
            // Invariant: what is put in force is what somebody has seen checked.
            if draft.digest() != field("checked") {
                return draft.checked(&app, &visitor, Some(visitor.words().draft_unchecked)).await;
            }
            let body = Body(NewOrg { files: draft.files() });
            let params = Params(org::ChangeParams::default());
            let Json(_) = org::change(State(app), operator, params, body).await?;
            Ok(Redirect::to("/org").into_response())
        }
        "check" => draft.checked(&app, &visitor, None).await,
        _ => draw_as(StatusCode::OK, &draft.page(&visitor, String::new(), None)),
    }
}

struct Draft {
    base: String,
    /// As they are in force.
    before: BTreeMap<String, String>,
    /// As somebody has written them.
    written: BTreeMap<String, String>,
    open: String,
}

impl Draft {
    fn of(app: &App, written: BTreeMap<String, String>, open: &str) -> Draft {
        let state = app.organisation.state();
        let before = state.loaded.files.iter();
        let before = before.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let mut draft =
            Draft { base: state.version.number.to_string(), before, written, open: String::new() };
        let known = draft.names().into_iter().map(|it| it.0).find(|it| it == open);
        draft.open = known.unwrap_or_else(|| "policy.yaml".to_owned());
        draft
    }

    fn names(&self) -> Vec<(String, bool)> {
        let mut names: Vec<String> = NAMES.iter().map(|it| (*it).to_owned()).collect();
        names.extend(self.before.keys().chain(self.written.keys()).cloned());
        let mut known = std::collections::BTreeSet::new();
        names.retain(|it| known.insert(it.clone()));
        let changed = |name: &String| {
            let written = self.written.get(name);
            written.is_some_and(|it| it != self.text_before(name))
        };
        names.into_iter().map(|it| (it.clone(), changed(&it))).collect()
    }

    fn text_before(&self, name: &str) -> &str {
        let begin = if name.ends_with(".yaml") { BEGIN } else { "" };
        self.before.get(name).map_or(begin, String::as_str)
    }

    /// All of it, as it would be in force. A file that is left empty is built in again.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = self.before.clone();
        for (name, text) in &self.written {
            let untouched = !self.before.contains_key(name) && text == self.text_before(name);
            if text.trim().is_empty() || untouched {
                files.remove(name);
            } else {
                files.insert(name.clone(), text.clone());
            }
        }
        files
    }

    /// As another version had it: a file that it did not have is built in again.
    fn begin_with(&mut self, mut files: BTreeMap<String, String>) {
        for name in self.before.keys() {
            files.entry(name.clone()).or_default();
        }
        self.written = files;
    }

    fn digest(&self) -> String {
        Files::new(self.files(), &mut Mistakes::default()).digest()
    }

    /// The page with what there is to say of the draft; `instead` of what was asked for.
    async fn checked(
        self,
        app: &App,
        visitor: &Visitor,
        instead: Option<&'static str>,
    ) -> Result<Response> {
        let checked = self.check(app, visitor.words()).await?;
        let status = match (&checked.fine, instead) {
            (None, _) => StatusCode::UNPROCESSABLE_ENTITY,
            (Some(_), Some(_)) => StatusCode::CONFLICT,
            (Some(_), None) => StatusCode::OK,
        };
        let notice = instead.unwrap_or_default().to_owned();
        draw_as(status, &self.page(visitor, notice, Some(checked)))
    }

    async fn check(&self, app: &App, w: &'static Words) -> Result<Checked> {
        let mut mistakes = Mistakes::default();
        let files = Files::new(self.files(), &mut mistakes);
        let diff = self.diff();
        let (loaded, authority) = match app.organisation.draft(files, mistakes) {
            Ok(good) => good,
            Err(mistakes) => {
                return Ok(Checked { findings: found(&mistakes, w), fine: None, diff });
            }
        };
        let before = app.organisation.state();
        let differences = difference(&before.loaded, &loaded);
        let differences: Vec<Difference> =
            differences.into_iter().map(view::org::difference).collect();
        let now = clock::now();
        let impact = impact(&app.store, &app.authority.get(), &authority, now - BACK, now).await?;
        Ok(Checked {
            findings: found(&loaded.warnings, w),
            fine: Some(Fine {
                digest: self.digest(),
                same: before.loaded.files == loaded.files,
                differences: means(&differences, w),
                summary: summary(&impact, w),
                notes: notes(&impact, w),
                rows: impact.changes.iter().map(|(it, seen)| row(it, *seen, w)).collect(),
                mail_summary: mail_summary(&impact.mail, w),
                mails: impact
                    .mail
                    .changes
                    .iter()
                    .map(|(it, seen)| mail_row(it, *seen, w))
                    .collect(),
            }),
            diff,
        })
    }

    fn diff(&self) -> Vec<DiffLine> {
        lines_between(&self.before, &self.files())
    }

    fn page(self, visitor: &Visitor, notice: String, checked: Option<Checked>) -> DraftPage {
        let names = self.names();
        let text = self.written.get(&self.open).map(String::as_str);
        let text = text.unwrap_or_else(|| self.text_before(&self.open)).to_owned();
        let carried = self.written.into_iter().filter(|(name, _)| *name != self.open);
        DraftPage {
            frame: Frame::of(visitor, Room::Organisation, visitor.words().draft),
            carried: carried.collect(),
            base: self.base,
            names,
            open: self.open,
            text,
            notice,
            checked,
        }
    }
}

fn found(mistakes: &[mistake::Mistake], w: &'static Words) -> Vec<Finding> {
    let mistakes: Vec<Mistake> = mistakes.iter().map(view::org::mistake).collect();
    findings(&mistakes, w)
}

/// Which lines of which files differ.
pub fn lines_between(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<DiffLine> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old == new {
            continue;
        }
        let (old, new) = (old.map_or("", String::as_str), new.map_or("", String::as_str));
        let text = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(old, new);
        let text = text.unified_diff().context_radius(3).header(name, name).to_string();
        lines.extend(diff(&text));
    }
    lines
}

fn row(it: &Change, seen: Seen, w: &'static Words) -> ImpactRow {
    ImpactRow {
        agent: shown(&it.agent),
        user: shown(&it.user),
        tool: shown(&it.tool),
        before: it.before.as_str(),
        after: it.after.as_str(),
        because: ticked(&sentence(&it.because, w)),
        times: seen.times,
        run: seen.run.to_string(),
    }
}

fn mail_row(it: &MailChange, seen: MailSeen, w: &'static Words) -> MailRow {
    let (before, after) = if it.passes { ("deny", "allow") } else { ("allow", "deny") };
    MailRow {
        from: shown(&it.from),
        to: shown(&it.to),
        kind: shown(&it.kind),
        before,
        after,
        because: ticked(&sentence(&it.because, w)),
        times: seen.times,
        run: seen.run.map(|it| it.to_string()).unwrap_or_default(),
    }
}

fn mail_summary(found: &MailImpact, w: &'static Words) -> String {
    let (passed, blocked) = found.passed_and_blocked();
    let [mails, passed, blocked] = [found.mails, passed, blocked].map(|it| it.to_string());
    fill(w.impact_mail, &[("n", &mails), ("p", &passed), ("b", &blocked)])
}

fn summary(found: &Impact, w: &'static Words) -> String {
    let (stricter, looser) = found.stricter_and_looser();
    let [calls, runs, stricter, looser] =
        [found.calls, found.runs, stricter, looser].map(|it| it.to_string());
    let gaps = [("n", &*calls), ("r", &*runs), ("s", &*stricter), ("l", &*looser)];
    fill(w.impact_summary, &gaps)
}

fn notes(found: &Impact, w: &'static Words) -> Vec<String> {
    let mut notes = Vec::new();
    if found.unknown > 0 {
        notes.push(fill(w.impact_unknown, &[("n", &found.unknown.to_string())]));
    }
    if found.cut_off {
        notes.push(w.impact_cut_off.to_owned());
    }
    if found.mail.cut_off {
        notes.push(w.impact_mail_cut_off.to_owned());
    }
    notes
}
