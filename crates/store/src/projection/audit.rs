//! What the audit keeps of a change: here, and nowhere else, an event becomes an entry. A call
//! that was allowed without a word leaves none.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::{
    Actor, Answer, CallEnded, CallRefused, ChildSpawned, Decision, Event, Member,
    PermissionDecided, PermissionRequested, Proposal,
};
use chancery_domain::history::Change;
use chancery_domain::id::AuditId;
use chancery_domain::policy::Ruling;
use serde_json::json;

pub(super) fn of(change: &Change) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (seq, event, speaker) in change.spoken_by() {
        let about = About { change, seq, speaker };
        match event {
            Event::UserSpoke(it) if change.created().room.is_some() => {
                let said = json!({"text": it.text, "to": it.to});
                let spoke = about.entry(0, kind::PERSON_SPOKE, &it.by);
                entries.push(Entry { detail: said, ..spoke });
            }
            Event::WrapUpAsked(it) => entries.push(about.entry(0, kind::WRAPUP_REQUESTED, &it.by)),
            Event::PauseAsked(it) => entries.push(about.entry(0, kind::PAUSE_REQUESTED, &it.by)),
            Event::Unpaused(it) => entries.push(about.entry(0, kind::RUN_UNPAUSED, &it.by)),
            Event::ChildSpawned(it) => entries.push(about.spawned(it)),
            Event::Cancelled(it) => entries.push(about.entry(0, kind::RUN_CANCELLED, &it.by)),
            Event::BatchProposed(it) => {
                // An allow that was put in words is one to be kept.
                let silent = |it: &Proposal| it.ruling == Ruling::Allow && it.reasons.is_empty();
                let spoken = (0..).zip(&it.calls).filter(|(_, it)| !silent(it));
                entries.extend(spoken.map(|(place, call)| about.proposal(place, call)));
            }
            Event::PermissionRequested(it) => entries.push(about.requested(it)),
            Event::PermissionEscalated(it) => entries.push(Entry {
                reference: Some(it.permission.to_string()),
                detail: json!({"tool_call_id": it.call, "expires_at": it.expires_at}),
                ..about.entry(0, kind::PERMISSION_ESCALATED, &Actor::System)
            }),
            Event::PermissionExtended(it) => entries.push(Entry {
                reference: Some(it.permission.to_string()),
                detail: json!({"tool_call_id": it.call, "expires_at": it.expires_at}),
                ..about.entry(0, kind::PERMISSION_EXTENDED, &it.by)
            }),
            // What the agent said to it is in the run's log alone.
            Event::PermissionInquired(it) => entries.push(Entry {
                reference: Some(it.permission.to_string()),
                detail: json!({"tool_call_id": it.call, "text": it.text}),
                ..about.entry(0, kind::PERMISSION_INQUIRED, &it.by)
            }),
            Event::PermissionDecided(it) => entries.extend(about.decided(it)),
            Event::CallEnded(it) if change.ran_by_grant(seq) => entries.push(about.outcome(it)),
            Event::CallRefused(it) => entries.extend(about.refused(it)),
            _ => {}
        }
    }
    entries
}

/// An event in its place.
struct About<'a> {
    change: &'a Change,
    seq: u64,
    /// Who has the floor.
    speaker: Member,
}

impl About<'_> {
    fn entry(&self, ordinal: u32, kind: &'static str, by: &Actor) -> Entry {
        let run = self.change.run();
        let id = AuditId::of_event(run, self.seq, ordinal);
        Entry {
            agent: Some(self.speaker.agent.clone()),
            role: Some(self.speaker.role.clone()),
            ..Entry::of_run(id, kind, by.clone(), run, self.change.created())
        }
    }

    fn agent(&self) -> Actor {
        Actor::Agent(self.speaker.agent.clone())
    }

    fn spawned(&self, it: &ChildSpawned) -> Entry {
        let child = self.change.children().iter().find(|child| child.run() == it.child);
        Entry {
            reference: Some(it.child.to_string()),
            detail: json!({
                "tool_call_id": it.call,
                "group": it.group,
                "chosen": it.chosen,
                "delegated": child.and_then(|it| it.created().delegated.as_ref()),
            }),
            ..self.entry(0, kind::CHILD_SPAWNED, &self.agent())
        }
    }

    fn proposal(&self, place: u32, it: &Proposal) -> Entry {
        let (kind, reference) = match &it.answer {
            Some(Answer::Request(request)) if it.ruling.asks() => {
                (kind::PERMISSION_REQUESTED, Some(request.id.to_string()))
            }
            Some(Answer::Rule(rule)) => (kind::RULING, Some(rule.to_string())),
            _ => (kind::RULING, None),
        };
        Entry {
            tool: Some(it.call.tool.clone()),
            ruling: Some(it.ruling),
            reference,
            reasons: it.reasons.clone(),
            detail: json!({"tool_call_id": it.call.id, "arguments": it.call.arguments}),
            ..self.entry(place, kind, &self.agent())
        }
    }

    fn requested(&self, it: &PermissionRequested) -> Entry {
        Entry {
            tool: Some(it.tool.clone()),
            ruling: Some(it.ruling),
            reference: Some(it.request.id.to_string()),
            reasons: it.reasons.clone(),
            detail: json!({
                "tool_call_id": it.call,
                "kind": it.request.kind,
                "arguments": it.arguments,
            }),
            ..self.entry(0, kind::PERMISSION_REQUESTED, &self.agent())
        }
    }

    fn decided(&self, it: &PermissionDecided) -> Vec<Entry> {
        let kind = match it.decision {
            Decision::Expired => kind::PERMISSION_EXPIRED,
            _ => kind::PERMISSION_DECIDED,
        };
        let decided = Entry {
            reference: Some(it.permission.to_string()),
            detail: json!({
                "tool_call_id": it.call,
                "decision": it.decision.as_str(),
                "comment": it.comment,
                "edited_arguments": it.arguments,
            }),
            ..self.entry(0, kind, &it.by)
        };
        let made = it.remember.as_ref().map(|remember| Entry {
            tool: Some(remember.tool.clone()),
            reference: Some(remember.rule.to_string()),
            detail: json!({
                "permission": it.permission,
                "scope": remember.scope,
                "signature": remember.signature,
                "expires_at": remember.expires_at,
            }),
            ..self.entry(1, kind::RULE_MADE, &it.by)
        });
        [decided].into_iter().chain(made).collect()
    }

    fn outcome(&self, it: &CallEnded) -> Entry {
        let code = it.result.code.as_deref();
        Entry {
            detail: json!({
                "tool_call_id": it.call,
                "is_error": it.result.is_error,
                "code": code,
            }),
            ..self.entry(0, kind::CALL_OUTCOME, &self.agent())
        }
    }

    /// Only of a call that had been cleared: why the others may not run is in the audit already.
    fn refused(&self, it: &CallRefused) -> Option<Entry> {
        self.change.was_cleared(self.seq).then(|| Entry {
            ruling: Some(Ruling::Deny),
            detail: json!({"tool_call_id": it.call, "result": it.result.text}),
            ..self.entry(0, kind::RULING, &self.agent())
        })
    }
}
