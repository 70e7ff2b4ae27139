//! An explanation as a page shows it: every layer in its order, and what would let it through,
//! sorted by what that takes.

use std::collections::HashMap;

use chancery_api::audit::RuledNow;
use chancery_api::permission::{Looked, Way};
use chancery_domain::event::Event;
use chancery_domain::id::{AuditId, CallId, MessageId, RunId, idempotency_key};
use chancery_domain::policy::Ruling;

use super::html::{line, ticked};
use super::page::escaped;
use super::ruling::sentence;
use super::words::{Words, fill};
use crate::organisation::files::NAMES;

/// One layer's line.
#[derive(Debug)]
pub struct Line {
    pub layer: String,
    pub class: String,
    pub said: String,
    pub rule: String,
    pub detail: String,
    pub decides: bool,
}

/// What the rules in force say of the same.
#[derive(Debug)]
pub struct Now {
    pub title: String,
    pub ruling: String,
    /// As it was ruled then.
    pub same: bool,
    pub lines: Vec<Line>,
}

/// The ways that take the same.
#[derive(Debug)]
pub struct Through {
    pub kind: String,
    pub takes: &'static str,
    pub ways: Vec<Told>,
}

#[derive(Debug)]
pub struct Told {
    pub text: String,
    pub rule: String,
    /// Who may change the organisation so; empty: it is no such change.
    pub who: String,
    /// Where an operator would write it; empty: nowhere, or it is not theirs to write.
    pub href: String,
}

pub fn lines(all: &[Looked], w: &'static Words) -> Vec<Line> {
    let one = |it: &Looked| {
        let (class, said) = match (&*it.said, &it.outcome) {
            ("objects", Some(ruling)) => {
                let said = format!("{}: {}", w.layer_objects, w.ruling_word(ruling));
                (format!("ruling {ruling}"), said)
            }
            ("pass", _) => ("ruling allow".to_owned(), w.layer_passes.to_owned()),
            _ => ("faint".to_owned(), w.layer_aside.to_owned()),
        };
        Line {
            layer: w.layer_word(&it.layer).to_owned(),
            class,
            said,
            rule: line(&it.rule),
            detail: ticked(&sentence(&it.detail, w)),
            decides: it.decides,
        }
    };
    all.iter().map(one).collect()
}

impl Now {
    pub fn of(it: &RuledNow, then: Option<&str>, w: &'static Words) -> Now {
        Now {
            title: fill(w.now_title, &[("n", &it.version.to_string())]),
            lines: lines(&it.layers, w),
            ruling: it.ruling.clone(),
            same: then == Some(&it.ruling),
        }
    }
}

pub fn through(ways: &[Way], w: &'static Words, operator: bool) -> Vec<Through> {
    let mut all: Vec<Through> = Vec::new();
    for way in ways {
        let told = Told {
            text: ticked(&sentence(&way.text, w)),
            rule: line(&way.rule),
            who: may(&way.who, w),
            href: if operator { written(way) } else { String::new() },
        };
        match all.last_mut().filter(|it| it.kind == way.kind) {
            Some(last) => last.ways.push(told),
            None => {
                let takes = w.way_word(&way.kind);
                all.push(Through { kind: way.kind.clone(), takes, ways: vec![told] });
            }
        }
    }
    all
}

fn may(who: &[String], w: &'static Words) -> String {
    let names: Vec<String> = who.iter().map(|it| ticked(&sentence(it, w))).collect();
    match names.is_empty() {
        true => String::new(),
        false => fill(w.way_who, &[("who", &names.join(w.way_or))]),
    }
}

/// The draft of the file that a rule stands in. What is built in is overridden by the file of the
/// same name.
fn written(way: &Way) -> String {
    let place = way.rule.rsplit_once('(').map_or(&*way.rule, |(_, it)| it);
    let place = place.strip_prefix("builtin/").unwrap_or(place);
    let file = place.split(':').next().unwrap_or_default();
    let known = NAMES.contains(&file) || file.starts_with("rules/");
    match way.kind == "organisation" && known {
        true => format!("/org/draft?file={}", escaped(file)),
        false => String::new(),
    }
}

/// What a call that sent a mail has come to, where the mailroom rejected it.
pub const MAIL_REJECTED: &str = "MAIL_REJECTED";

/// Where the audit has what became of the calls of a run.
#[derive(Debug)]
pub struct Kept {
    run: RunId,
    calls: HashMap<CallId, (MessageId, Option<AuditId>)>,
}

impl Kept {
    pub fn of(run: RunId) -> Kept {
        Kept { run, calls: HashMap::new() }
    }

    /// Ids of calls come again in a group's run: the last that has one is meant.
    pub fn follow(&mut self, seq: u64, event: &Event) {
        match event {
            Event::BatchProposed(batch) => {
                for (place, it) in (0..).zip(&batch.calls) {
                    // What was allowed without a word leaves no entry.
                    let spoken = it.ruling != Ruling::Allow || !it.reasons.is_empty();
                    let id = spoken.then(|| AuditId::of_event(self.run, seq, place));
                    self.calls.insert(it.call.id.clone(), (batch.message, id));
                }
            }
            Event::PermissionRequested(asked) => {
                if let Some((_, id)) = self.calls.get_mut(&asked.call) {
                    *id = Some(AuditId::of_event(self.run, seq, 0));
                }
            }
            _ => {}
        }
    }

    /// The page that says why a call came to nothing; the run's entries, where it has none.
    pub fn entry(&self, call: &CallId, code: Option<&str>) -> String {
        let run = self.run;
        let id = match self.calls.get(call) {
            Some((message, _)) if code == Some(MAIL_REJECTED) => {
                Some(AuditId::of_call(run, &idempotency_key(run, *message, call)))
            }
            Some((_, id)) => *id,
            None => None,
        };
        id.map_or_else(|| format!("/audit?run={run}"), |id| format!("/audit/{id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_written_where_its_rule_stands() {
        let href = |kind: &str, rule: &str| {
            let [kind, rule] = [kind, rule].map(str::to_owned);
            written(&Way { kind, text: String::new(), rule, who: Vec::new() })
        };
        let of = "organisation";
        assert_eq!(href(of, "qa.tools (builtin/roles.yaml:9)"), "/org/draft?file=roles.yaml");
        assert_eq!(href(of, "mail.yaml"), "/org/draft?file=mail.yaml");
        assert_eq!(href(of, "no-gold (rules/a.cedar:2)"), "/org/draft?file=rules/a.cedar");
        assert_eq!([href("now", "x (roles.yaml:9)"), href(of, "clerk.tools")], ["", ""]);
    }
}
