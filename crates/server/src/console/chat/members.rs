//! How the members of a room stand, by its log. Pure.

use std::collections::BTreeSet;

use chancery_domain::event::{Event, Recorded, Room};
use chancery_domain::id::AgentId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Has spoken, and does not have the floor.
    Spoken,
    Floor,
    /// Has the floor, and cannot go on without a person's word.
    Waits,
    Silent,
}

impl Presence {
    pub fn sign(self) -> &'static str {
        match self {
            Presence::Spoken => "✓",
            Presence::Floor => "●",
            Presence::Waits => "?",
            Presence::Silent => "–",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Presence::Spoken => "spoken",
            Presence::Floor => "floor",
            Presence::Waits => "waits",
            Presence::Silent => "silent",
        }
    }
}

/// Each member in the room's order. `waits`: the run waits for somebody's decision.
pub fn presences(room: &Room, log: &[Recorded], waits: bool) -> Vec<(AgentId, Presence)> {
    let mut spoken = BTreeSet::new();
    let mut floor: Option<&AgentId> = None;
    for it in log {
        match &it.event {
            Event::TurnBegan(turn) => floor = Some(&turn.member.agent),
            // Whose word ends the room has spoken, too.
            Event::TurnEnded(_) | Event::Concluded(_) | Event::Completed(_) => {
                spoken.extend(floor.take());
            }
            Event::Failed(_) | Event::Cancelled(_) => floor = None,
            _ => {}
        }
    }
    let presence = |agent: &AgentId| match (floor == Some(agent), spoken.contains(agent)) {
        (true, _) if waits => Presence::Waits,
        (true, _) => Presence::Floor,
        (false, true) => Presence::Spoken,
        (false, false) => Presence::Silent,
    };
    room.members.iter().map(|it| (it.agent.clone(), presence(&it.agent))).collect()
}

#[cfg(test)]
mod tests {
    use chancery_domain::event::{Actor, Cancelled, Member, TurnBegan, TurnEnded, Usage};
    use chancery_domain::id::MessageId;
    use jiff::Timestamp;

    use super::*;

    fn member(name: &str) -> Member {
        Member { agent: name.into(), role: name.into() }
    }

    fn begins(name: &str) -> Event {
        Event::TurnBegan(TurnBegan { member: member(name), round: 1 })
    }

    fn ends() -> Event {
        let message: MessageId = "msg_0190a0b0c0d0700080000000000000aa".parse().unwrap();
        let (text, model) = (String::new(), String::new());
        Event::TurnEnded(TurnEnded { message, text, model, usage: Usage::default() })
    }

    #[track_caller]
    fn check(events: &[Event], waits: bool, signs: &str) {
        let room = Room { members: ["a", "b", "c"].map(member).to_vec(), lead: None, rounds: 2 };
        let log = events.iter().zip(1..).map(|(event, seq)| Recorded {
            seq,
            at: Timestamp::UNIX_EPOCH,
            event: event.clone(),
        });
        let found = presences(&room, &log.collect::<Vec<_>>(), waits);
        let shown: Vec<String> =
            found.iter().map(|(agent, it)| format!("{agent}{}", it.sign())).collect();
        assert_eq!(shown.join(" "), signs);
    }

    #[test]
    fn a_member_stands_where_the_log_has_come_to() {
        check(&[], false, "a– b– c–");
        check(&[begins("a")], false, "a● b– c–");
        check(&[begins("a"), ends(), begins("b")], false, "a✓ b● c–");
        check(&[begins("a"), ends(), begins("b")], true, "a✓ b? c–");
        check(&[begins("a"), ends(), begins("b"), ends()], true, "a✓ b✓ c–");
        // In the next round it has the floor again.
        check(&[begins("a"), ends(), begins("a")], false, "a● b– c–");
        let cancelled = Event::Cancelled(Cancelled { by: Actor::System });
        check(&[begins("a"), ends(), begins("b"), cancelled], false, "a✓ b– c–");
    }
}
