//! Logs to lines. A line is begun by one event and changed by those that follow on it.

use std::collections::{BTreeSet, HashMap};

use chancery_domain::event::{
    Answer, CallResult, Carried, Created, Decision, Event, Forked, Proposal, Recorded,
};
use chancery_domain::id::{CallId, PermissionId, RunId};
use chancery_domain::policy::Ruling;
use chancery_store::read::RunRow;
use jiff::Timestamp;

use super::{Bar, Detail, Line, Scale, Stretch};
use crate::console::card::whys;
use crate::console::html::{line, markdown, shown, ticked};
use crate::console::ruling::sentence;
use crate::console::runs::goal;
use crate::console::time;
use crate::console::waits::Waits;
use crate::console::why::{Kept, MAIL_REJECTED};
use crate::console::wire::{Of, who, word};
use crate::console::words::{Words, fill};
use crate::view;

/// Longer results are cut on the page; the log has them whole.
const TEXT_MAX: usize = 6000;

/// A line whose stretches are not yet placed in the picture.
#[derive(Debug)]
pub struct Draft {
    line: Line,
    pub stretches: Vec<Stretch>,
}

#[derive(Debug)]
pub struct Fold<'a> {
    pub rows: &'a HashMap<RunId, RunRow>,
    pub logs: &'a HashMap<RunId, Vec<Recorded>>,
    pub now: Timestamp,
    pub w: &'static Words,
    pub waits: &'a Waits,
    pub lines: Vec<Draft>,
}

/// A run while it is followed.
struct Followed {
    /// Where its own line is.
    place: usize,
    /// How deep what it does lies.
    depth: usize,
    /// By call, where its line is, and its tool, ready for a page.
    calls: HashMap<CallId, usize>,
    tools: HashMap<CallId, String>,
    /// The questions that are open, since when.
    open: BTreeSet<PermissionId>,
    asked_at: Option<Timestamp>,
    waits: Vec<Stretch>,
    turn: Option<usize>,
    n: usize,
    /// Where the audit has its calls.
    kept: Kept,
}

impl Draft {
    pub fn placed(self, scale: Scale, w: &'static Words) -> Line {
        let bars: Vec<Bar> = self.stretches.iter().map(|it| scale.bar(it)).collect();
        let took = scale.took(&self.stretches, w);
        Line { bars, took, ..self.line }
    }
}

/// What a run was made with.
pub fn created(log: &[Recorded]) -> Option<&Created> {
    log.iter().find_map(|it| match &it.event {
        Event::Created(created) => Some(created),
        _ => None,
    })
}

/// Who speaks in a group's run.
pub fn members(log: &[Recorded]) -> Vec<String> {
    let room = created(log).and_then(|it| it.room.as_ref());
    room.map(|it| it.members.iter().map(|it| it.agent.to_string()).collect()).unwrap_or_default()
}

impl Fold<'_> {
    pub fn run(&mut self, id: RunId, depth: usize) {
        let (Some(row), Some(log)) = (self.rows.get(&id), self.logs.get(&id)) else { return };
        let w = self.w;
        let who = row.group.as_ref().map_or(row.agent.as_str(), |it| it.as_str());
        let what = format!("<b>{}</b> {}", line(who), theirs(&row.input));
        let place = self.push("run", depth, format!("{id}"), what);
        self.lines[place].line.state = known(&row.status);
        let stands = self.waits.stands(row, w);
        self.lines[place].line.waits = stands.waits;
        self.lines[place].line.word = stands.word;
        self.lines[place].line.href = format!("/runs/{id}");
        self.detail(place, w.goal, &row.input, false);
        let mut followed = Followed {
            place,
            depth: depth + 1,
            calls: HashMap::new(),
            tools: HashMap::new(),
            open: BTreeSet::new(),
            asked_at: None,
            waits: Vec::new(),
            turn: None,
            n: 0,
            kept: Kept::of(id),
        };
        for recorded in log {
            followed.n += 1;
            followed.kept.follow(recorded.seq, &recorded.event);
            self.follow(id, &mut followed, recorded);
        }
        if row.ended_at.is_none() {
            self.goes_on(&followed);
        }
        let end = row.ended_at.unwrap_or(self.now);
        if let Some(from) = followed.asked_at {
            followed.waits.push(Stretch { class: "person", from, to: end });
        }
        self.close(row, followed, end);
    }

    /// The turn and the calls that have begun and not ended take as long as it is now.
    fn goes_on(&mut self, it: &Followed) {
        let now = self.now;
        let begun = |place: &usize| matches!(self.lines[*place].line.state, "running" | "waiting");
        let calls = it.calls.values().copied().filter(begun);
        for place in it.turn.into_iter().chain(calls).collect::<Vec<_>>() {
            self.extend(place, "work", now);
        }
    }

    /// What a run did between its waits was work.
    fn close(&mut self, row: &RunRow, followed: Followed, end: Timestamp) {
        let mut waits = followed.waits;
        waits.sort_by_key(|it| it.from);
        let mut at = row.created_at;
        let stretches = &mut self.lines[followed.place].stretches;
        for wait in waits {
            if wait.from > at {
                stretches.push(Stretch { class: "work", from: at, to: wait.from });
            }
            at = at.max(wait.to);
            stretches.push(wait);
        }
        if end > at || stretches.is_empty() {
            stretches.push(Stretch { class: "work", from: at, to: end });
        }
    }

    fn follow(&mut self, run: RunId, it: &mut Followed, recorded: &Recorded) {
        let (w, at) = (self.w, recorded.at);
        let id = format!("{run}-{}", recorded.seq);
        let depth = it.depth + usize::from(it.turn.is_some());
        match &recorded.event {
            Event::Created(created) => {
                if let Some(forked) = &created.forked {
                    self.forked(forked, depth, id, at);
                }
            }
            Event::MemoryRecalled(recalled) if !recalled.memories.is_empty() => {
                let n = recalled.memories.len().to_string();
                let place = self.push("memory", depth, id, fill(w.trace_recalled, &[("n", &n)]));
                for memory in &recalled.memories {
                    self.detail(place, w.memory, &memory.content, false);
                }
                self.instant(place, at);
            }
            Event::UserSpoke(spoke) => {
                let by = line(&who(&spoke.by, w));
                let to = spoke.to.as_ref().map(|it| format!(" → {}", line(it.as_str())));
                let what = format!("<b>{by}</b>{} {}", to.unwrap_or_default(), theirs(&spoke.text));
                let place = self.push("spoke", depth, id, what);
                self.detail(place, w.trace_said, &spoke.text, false);
                self.instant(place, at);
            }
            Event::BatchProposed(batch) => {
                if !batch.text.trim().is_empty() {
                    let place = self.push("said", depth, id.clone(), theirs(&batch.text));
                    self.detail(place, w.agent_says, &batch.text, true);
                    self.instant(place, at);
                }
                // Ids of calls come again in a group's run; a line's place does not.
                for (n, proposal) in batch.calls.iter().enumerate() {
                    self.proposed(it, proposal, depth, format!("{id}-{n}"), at);
                }
            }
            Event::PermissionRequested(asked) => {
                it.open.insert(asked.request.id);
                it.asked_at.get_or_insert(at);
                self.mark(it, &asked.call, "waiting", w.waits_person);
            }
            Event::PermissionDecided(decided) => {
                it.open.remove(&decided.permission);
                let (by, word) = match &decided.decision {
                    Decision::Granted | Decision::Supplied(_) => (w.state_granted, "running"),
                    Decision::Denied => (w.state_denied, "denied"),
                    Decision::Expired => (w.state_expired, "denied"),
                };
                let by = format!("{by} · {}", line(&who(&decided.by, w)));
                self.mark(it, &decided.call, word, &by);
                if let Some(place) = it.calls.get(&decided.call).copied() {
                    self.extend(place, "person", at);
                    if let Some(comment) = &decided.comment {
                        self.detail(place, w.reason, comment, false);
                    }
                }
                if it.open.is_empty()
                    && let Some(from) = it.asked_at.take()
                {
                    it.waits.push(Stretch { class: "person", from, to: at });
                }
            }
            Event::PermissionInquired(asked) => {
                let by = line(&who(&asked.by, w));
                let what = format!("<b>{by}</b> {}", theirs(&asked.text));
                let place = self.push("spoke", depth, id, what);
                self.detail(place, w.trace_said, &asked.text, false);
                self.instant(place, at);
            }
            Event::PermissionExplained(said) => {
                let place = self.push("said", depth, id, theirs(&said.text));
                self.detail(place, w.agent_says, &said.text, true);
                self.instant(place, at);
            }
            Event::PermissionExtended(more) => {
                let tool = it.tools.get(&more.call).map_or("", String::as_str);
                let what = extended(w, tool, more.expires_at);
                self.by(depth, id, &what, &who(&more.by, w), at);
            }
            Event::CallRefused(refused) => {
                let code = refused.result.code.as_deref().map(|it| word(Of::Code, it, w));
                self.mark(it, &refused.call, "refused", code.unwrap_or(w.state_refused));
                self.ended(it, &refused.call, &refused.result, at, true);
                self.leads(it, &refused.call, None);
            }
            Event::CallStarted(started) => {
                self.mark(it, &started.call, "running", w.status_running);
                if let Some(place) = it.calls.get(&started.call).copied() {
                    self.lines[place].stretches.push(Stretch { class: "work", from: at, to: at });
                }
            }
            Event::CallEnded(ended) => {
                let code = ended.result.code.as_deref();
                let known = match ended.result.is_error {
                    true if code == Some(MAIL_REJECTED) => "refused",
                    true => "failed",
                    false => "completed",
                };
                let failed = || code.map_or(w.status_failed, |it| word(Of::Code, it, w));
                let said = if ended.result.is_error { failed() } else { w.status_completed };
                self.mark(it, &ended.call, known, said);
                self.ended(it, &ended.call, &ended.result, at, false);
                if known == "refused" {
                    self.leads(it, &ended.call, code);
                }
            }
            Event::WaitBegan(wait) => {
                self.mark(it, &wait.call, "waiting", w.waits_signal);
                it.waits.push(Stretch { class: "signal", from: at, to: self.now });
            }
            Event::Signalled(_) | Event::WaitExpired(_) => self.wait_ends(it, "signal", at),
            Event::ChildSpawned(child) => {
                self.mark(it, &child.call, "waiting", w.waits_child);
                it.waits.push(Stretch { class: "child", from: at, to: self.now });
                self.run(child.child, depth + 1);
            }
            Event::ChildEnded(child) => {
                let (known, word) = match child.result.is_error {
                    true => ("failed", w.status_failed),
                    false => ("completed", w.status_completed),
                };
                self.mark(it, &child.call, known, word);
                self.wait_ends(it, "child", at);
                self.ended(it, &child.call, &child.result, at, false);
            }
            Event::TurnBegan(turn) => {
                let round = turn.round.to_string();
                let round = fill(w.trace_round, &[("n", &round)]);
                let what = format!(
                    "<b>{}</b> <span class=\"faint\">{round}</span>",
                    line(turn.member.agent.as_str())
                );
                let place = self.push("turn", it.depth, id, what);
                self.lines[place].stretches.push(Stretch { class: "work", from: at, to: at });
                it.turn = Some(place);
            }
            Event::TurnEnded(turn) => {
                if let Some(place) = it.turn.take() {
                    self.extend(place, "work", at);
                    self.lines[place].line.what.push_str(&format!(" {}", theirs(&turn.text)));
                    self.detail(place, w.agent_says, &turn.text, true);
                }
            }
            Event::Concluded(concluded) => {
                it.turn = None;
                let what = format!("{} {}", w.trace_concluded, theirs(&concluded.answer));
                let place = self.push("said", it.depth, id, what);
                self.detail(place, w.agent_says, &concluded.answer, true);
                self.instant(place, at);
            }
            Event::Completed(done) => {
                let place = self.push("said", it.depth, id, theirs(&done.output));
                self.lines[place].line.state = "completed";
                self.lines[place].line.word = w.trace_answer.to_owned();
                self.detail(place, w.agent_says, &done.output, true);
                self.instant(place, at);
            }
            Event::Failed(failed) => {
                let place = self.push("failed", it.depth, id, ticked(&sentence(&failed.error, w)));
                self.lines[place].line.state = "failed";
                self.lines[place].line.word = w.status_failed.to_owned();
                self.instant(place, at);
            }
            Event::Cancelled(cancelled) => {
                self.by(it.depth, id, w.status_cancelled, &who(&cancelled.by, w), at);
            }
            Event::WrapUpAsked(asked) => {
                self.by(it.depth, id, w.wrap_up, &who(&asked.by, w), at);
            }
            Event::PauseAsked(asked) => self.by(it.depth, id, w.pause, &who(&asked.by, w), at),
            Event::Paused(_) => {
                it.waits.push(Stretch { class: "pause", from: at, to: self.now });
            }
            Event::Unpaused(unpaused) => {
                self.wait_ends(it, "pause", at);
                self.by(it.depth, id, w.resume, &who(&unpaused.by, w), at);
            }
            _ => {}
        }
    }

    /// What it goes on from, with every call that its model has read of.
    fn forked(&mut self, forked: &Forked, depth: usize, id: String, at: Timestamp) {
        let (run, n) = (forked.run.to_string(), forked.at.to_string());
        let what = fill(self.w.forked_from, &[("run", &run), ("n", &n)]);
        let place = self.push("spoke", depth, id, what);
        self.lines[place].line.href = format!("/runs/{run}");
        for it in forked.before.iter().chain(&forked.after) {
            match it {
                Carried::Answered { calls, .. } => calls.iter().for_each(|call| {
                    let said = format!("{} {}", call.tool, call.arguments);
                    self.detail(place, self.w.trace_carried, &said, false);
                }),
                Carried::Ended { result, .. } => {
                    self.detail(place, self.w.trace_result, &result.text, false);
                }
                Carried::Said { .. } => {}
            }
        }
        self.instant(place, at);
    }

    fn proposed(
        &mut self,
        it: &mut Followed,
        proposal: &Proposal,
        depth: usize,
        id: String,
        at: Timestamp,
    ) {
        let w = self.w;
        let call = &proposal.call;
        let arguments = call.arguments.to_string();
        let brief = if arguments == "{}" { String::new() } else { goal(&arguments) };
        let what = format!(
            "<span class=\"tool\">{}</span> <code class=\"faint\">{brief}</code>",
            line(&call.tool)
        );
        let place = self.push("call", depth, id, what);
        let pretty = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        self.detail(place, w.trace_arguments, &pretty, false);
        self.lines[place].line.reasons = whys(&view::reasons(proposal.reasons.clone()), w);
        if let Some(Answer::Request(request)) = &proposal.answer {
            it.open.insert(request.id);
            it.asked_at.get_or_insert(at);
            self.lines[place].line.href = format!("/inbox/{}", request.id);
            self.lines[place].line.state = "waiting";
            self.lines[place].line.word = w.waits_person.to_owned();
            let now = self.now;
            self.lines[place].stretches.push(Stretch { class: "person", from: at, to: now });
        } else if proposal.ruling == Ruling::Deny {
            self.lines[place].line.state = "refused";
            self.lines[place].line.word = w.state_refused.to_owned();
        }
        it.calls.insert(call.id.clone(), place);
        it.tools.insert(call.id.clone(), line(&call.tool));
    }

    fn push(&mut self, kind: &'static str, depth: usize, id: String, what: String) -> usize {
        let line = Line {
            id,
            // Deeper lines are drawn no further in.
            depth: depth.min(9),
            kind,
            what,
            state: "",
            waits: "",
            word: String::new(),
            took: String::new(),
            href: String::new(),
            bars: Vec::new(),
            details: Vec::new(),
            reasons: Vec::new(),
        };
        self.lines.push(Draft { line, stretches: Vec::new() });
        self.lines.len() - 1
    }

    fn by(&mut self, depth: usize, id: String, what: &str, who: &str, at: Timestamp) {
        let place = self.push("spoke", depth, id, format!("{what} · <b>{}</b>", line(who)));
        self.instant(place, at);
    }

    fn detail(&mut self, place: usize, name: &'static str, text: &str, drawn: bool) {
        let cut = text.char_indices().nth(TEXT_MAX).map(|(end, _)| end);
        let text = cut.map_or(text, |end| &text[..end]);
        let more = if cut.is_some() { "<p class=\"faint\">…</p>" } else { "" };
        let text = if drawn { markdown(text) } else { shown(text) };
        let text = format!("{text}{more}");
        self.lines[place].line.details.push(Detail { name, text, drawn });
    }

    fn instant(&mut self, place: usize, at: Timestamp) {
        self.lines[place].stretches.push(Stretch { class: "work", from: at, to: at });
    }

    fn extend(&mut self, place: usize, class: &str, at: Timestamp) {
        let last = self.lines[place].stretches.iter_mut().rev().find(|it| it.class == class);
        if let Some(last) = last {
            last.to = at;
        }
    }

    fn mark(&mut self, it: &Followed, call: &CallId, state: &'static str, word: &str) {
        if let Some(place) = it.calls.get(call) {
            self.lines[*place].line.state = state;
            self.lines[*place].line.word = word.to_owned();
        }
    }

    fn ended(
        &mut self,
        it: &Followed,
        call: &CallId,
        result: &CallResult,
        at: Timestamp,
        refused: bool,
    ) {
        let Some(place) = it.calls.get(call).copied() else { return };
        let name = if refused { self.w.trace_told } else { self.w.trace_result };
        self.detail(place, name, &result.text, false);
        if self.lines[place].stretches.is_empty() {
            self.instant(place, at);
        }
        self.extend(place, "work", at);
    }

    /// From a refusal to where it is explained.
    fn leads(&mut self, it: &Followed, call: &CallId, code: Option<&str>) {
        let line = it.calls.get(call).map(|place| &mut self.lines[*place].line);
        // What a person was asked leads to the question.
        if let Some(line) = line.filter(|it| it.href.is_empty()) {
            line.href = it.kept.entry(call, code);
        }
    }

    fn wait_ends(&mut self, it: &mut Followed, class: &str, at: Timestamp) {
        let open = it.waits.iter_mut().find(|wait| wait.class == class && wait.to == self.now);
        if let Some(open) = open {
            open.to = at;
        }
    }
}

/// That a question was given more time, and until when; `tool` is ready for a page, and so is this.
pub fn extended(w: &'static Words, tool: &str, until: Timestamp) -> String {
    let until = time::at(&until);
    let tool = format!("<span class=\"tool\">{tool}</span>");
    fill(w.trace_extended, &[("t", &until), ("tool", &tool)])
}

/// What somebody said, as much as fits: in whichever language that was.
fn theirs(text: &str) -> String {
    format!("<span lang=\"\">{}</span>", goal(text))
}

fn known(status: &str) -> &'static str {
    match status {
        "completed" => "completed",
        "failed" => "failed",
        "cancelled" => "cancelled",
        "waiting" => "waiting",
        _ => "running",
    }
}
