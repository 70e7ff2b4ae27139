//! A run's trace: what happened in it and in the runs beneath it, as lines of a tree, each with
//! its stretch of time. Folded from the logs, and nothing else.

mod fold;

use std::collections::HashMap;
use std::sync::Arc;

use chancery_domain::event::Forked;
use chancery_domain::id::RunId;
use chancery_runtime::clock;
use chancery_store::read::RunRow;
use jiff::{SignedDuration, Timestamp};

pub use fold::extended;

use super::card::Why;
use super::forks;
use super::runs::took;
use super::time;
use super::waits::Waits;
use super::words::{Words, span};
use crate::error::Result;
use crate::router::App;

/// A tree of more runs is not looked at as one.
const RUNS_MAX: u32 = 200;
/// More lines than this nobody reads on a page; `chancery run trace` has them all.
const LINES_MAX: usize = 3000;
/// The width of the picture, in its own units.
const WIDTH: f64 = 1000.0;

#[derive(Debug)]
pub struct Trace {
    pub lines: Vec<Line>,
    pub cut_off: bool,
    /// Of a group's run.
    pub members: Vec<String>,
    /// Where another run may go on from, and what this one goes on from.
    pub places: Vec<(u64, String)>,
    pub forked: Option<Arc<Forked>>,
    /// How long it all took, and how much of it a person was waited for. Ready for a page, and
    /// going on by themselves while they do.
    pub total: String,
    pub for_people: String,
}

/// One line. All text in it is ready for a page.
#[derive(Debug, Clone)]
pub struct Line {
    pub id: String,
    pub depth: usize,
    pub kind: &'static str,
    pub what: String,
    /// `completed`, `failed`, `denied`, `waiting`, `running`, or nothing.
    pub state: &'static str,
    /// Of a run that waits: for what in the end.
    pub waits: &'static str,
    pub word: String,
    pub took: String,
    pub href: String,
    pub bars: Vec<Bar>,
    pub details: Vec<Detail>,
    pub reasons: Vec<Why>,
}

#[derive(Debug, Clone)]
pub struct Detail {
    pub name: &'static str,
    pub text: String,
    /// Markdown that an agent wrote, drawn.
    pub drawn: bool,
}

/// A stretch of time in the picture: `work`, `person`, `child`, `signal` or `pause`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub class: &'static str,
    pub x: String,
    pub width: String,
}

/// A stretch of time as it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    pub class: &'static str,
    pub from: Timestamp,
    pub to: Timestamp,
}

pub async fn of(app: &App, run: &RunRow, w: &'static Words) -> Result<Trace> {
    let rows = app.store.tree(run.id, RUNS_MAX).await?;
    let mut logs = HashMap::new();
    for row in &rows {
        logs.insert(row.id, app.store.events(row.id, 0, u32::MAX).await?);
    }
    let rows: HashMap<RunId, RunRow> = rows.into_iter().map(|it| (it.id, it)).collect();
    let now = run.ended_at.unwrap_or_else(clock::now).max(run.created_at);
    let waits = Waits::of(app, rows.values()).await?;
    let mut fold =
        fold::Fold { rows: &rows, logs: &logs, now, w, waits: &waits, lines: Vec::new() };
    fold.run(run.id, 0);
    let drafts = fold.lines;
    let cut_off = drafts.len() > LINES_MAX;
    let scale = Scale { from: run.created_at, to: now, goes_on: run.ended_at.is_none() };
    let stretches = drafts.first().map(|it| &*it.stretches).unwrap_or_default();
    let for_people = for_people(stretches, scale, w);
    let lines = drafts.into_iter().take(LINES_MAX).map(|it| it.placed(scale, w)).collect();
    let log = logs.get(&run.id).map(Vec::as_slice).unwrap_or_default();
    Ok(Trace {
        lines,
        cut_off,
        members: fold::members(log),
        places: forks::places(log, w),
        forked: fold::created(log).and_then(|it| it.forked.clone()),
        total: took(run, now, w),
        for_people,
    })
}

/// How long a person was waited for in all. Empty: not for a second.
fn for_people(stretches: &[Stretch], scale: Scale, w: &'static Words) -> String {
    let mut before = SignedDuration::ZERO;
    for it in stretches.iter().filter(|it| it.class == "person") {
        if scale.reaches(it) {
            return time::taken_beside(it.from, before, scale.to, w);
        }
        before += it.to.duration_since(it.from);
    }
    match before.as_secs() {
        0 => String::new(),
        _ => span(w, scale.from, scale.from + before),
    }
}

impl Trace {
    /// Only the lines where something was refused, waits or failed, and the runs they are in.
    pub fn trouble(mut self) -> Trace {
        self.lines.retain(|it| it.kind == "run" || it.is_trouble());
        self
    }
}

impl Line {
    pub fn is_trouble(&self) -> bool {
        matches!(self.state, "denied" | "waiting" | "failed" | "refused")
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Scale {
    from: Timestamp,
    to: Timestamp,
    /// Whether it ends now, and nowhere else.
    goes_on: bool,
}

impl Scale {
    /// Whether a stretch has not ended yet.
    fn reaches(self, stretch: &Stretch) -> bool {
        self.goes_on && stretch.to >= self.to && stretch.from < stretch.to
    }

    /// From the beginning of the first to the end of the last, or so far.
    fn took(self, stretches: &[Stretch], w: &'static Words) -> String {
        let Some((first, last)) = stretches.first().zip(stretches.last()) else {
            return String::new();
        };
        if self.reaches(last) {
            return time::taken(first.from, last.to, w);
        }
        match last.to.duration_since(first.from).as_millis() {
            ..10 => String::new(),
            it @ 10..1_000 => format!("{it} {}", w.unit_ms),
            it @ 1_000..10_000 => format!("{}.{} {}", it / 1000, it % 1000 / 100, w.unit_s),
            _ => span(w, first.from, last.to),
        }
    }

    fn bar(self, stretch: &Stretch) -> Bar {
        let whole = self.to.duration_since(self.from).as_secs_f64().max(0.001);
        let at = |time: Timestamp| {
            let part = time.duration_since(self.from).as_secs_f64() / whole;
            part.clamp(0.0, 1.0) * WIDTH
        };
        let (x, end) = (at(stretch.from), at(stretch.to));
        // What took no time can still be seen.
        let width = (end - x).max(2.5);
        let x = x.min(WIDTH - width);
        Bar { class: stretch.class, x: format!("{x:.1}"), width: format!("{width:.1}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::words::EN;

    #[test]
    fn a_bar_lies_within_the_picture_and_can_be_seen() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let scale = Scale { from: at(100), to: at(200), goes_on: true };
        let bar = |from, to| {
            let it = scale.bar(&Stretch { class: "work", from: at(from), to: at(to) });
            (it.x, it.width)
        };
        assert_eq!(bar(100, 150), ("0.0".to_owned(), "500.0".to_owned()));
        assert_eq!(bar(200, 200), ("997.5".to_owned(), "2.5".to_owned()));
        assert_eq!(bar(50, 400), ("0.0".to_owned(), "1000.0".to_owned()));
        let instant = Scale { from: at(1), to: at(1), goes_on: false };
        // What has not ended yet goes on; what ended just now does not.
        let stretch = |from, to| Stretch { class: "person", from: at(from), to: at(to) };
        let reached = [stretch(150, 200), stretch(150, 190), stretch(200, 200)];
        assert_eq!(reached.map(|it| scale.reaches(&it)), [true, false, false]);
        assert!(!Scale { goes_on: false, ..scale }.reaches(&stretch(150, 200)));
        let waited = |stretches: &[Stretch]| for_people(stretches, scale, &EN);
        assert_eq!(waited(&[stretch(100, 130), stretch(140, 150)]), "40 s");
        let open = waited(&[stretch(100, 130), stretch(150, 200)]);
        assert!(open.contains("data-before=\"30\" aria-live=\"off\">1 min<"), "{open}");
        assert_eq!(waited(&[]), "");
        assert_eq!(instant.bar(&Stretch { class: "work", from: at(1), to: at(1) }).width, "2.5");
    }
}
