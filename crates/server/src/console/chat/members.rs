//! How the members of a room stand, by its log. Pure.

use std::collections::BTreeSet;

use chancery_domain::event::{Event, Recorded, Room};
use chancery_domain::id::AgentId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Has spoken, and does not have the floor.
    Spoken,
    Floor,
    /// Has the floor, and cannot go on without a person's word.
    Waits,
    Silent,
}

impl Standing {
    pub fn sign(self) -> &'static str {
        match self {
            Standing::Spoken => "✓",
            Standing::Floor => "●",
            Standing::Waits => "⏸",
            Standing::Silent => "–",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Standing::Spoken => "spoken",
            Standing::Floor => "floor",
            Standing::Waits => "waits",
            Standing::Silent => "silent",
        }
    }
}

/// Each member in the room's order. `waits`: the run waits for somebody's decision.
pub fn standings(room: &Room, log: &[Recorded], waits: bool) -> Vec<(AgentId, Standing)> {
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
    let standing = |agent: &AgentId| match (floor == Some(agent), spoken.contains(agent)) {
        (true, _) if waits => Standing::Waits,
        (true, _) => Standing::Floor,
        (false, true) => Standing::Spoken,
        (false, false) => Standing::Silent,
    };
    room.members.iter().map(|it| (it.agent.clone(), standing(&it.agent))).collect()
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
        let found = standings(&room, &log.collect::<Vec<_>>(), waits);
        let shown: Vec<String> =
            found.iter().map(|(agent, it)| format!("{agent}{}", it.sign())).collect();
        assert_eq!(shown.join(" "), signs);
    }

    #[test]
    fn a_member_stands_where_the_log_has_come_to() {
        check(&[], false, "a– b– c–");
        check(&[begins("a")], false, "a● b– c–");
        check(&[begins("a"), ends(), begins("b")], false, "a✓ b● c–");
        check(&[begins("a"), ends(), begins("b")], true, "a✓ b⏸ c–");
        check(&[begins("a"), ends(), begins("b"), ends()], true, "a✓ b✓ c–");
        // In the next round it has the floor again.
        check(&[begins("a"), ends(), begins("a")], false, "a● b– c–");
        let cancelled = Event::Cancelled(Cancelled { by: Actor::System });
        check(&[begins("a"), ends(), begins("b"), cancelled], false, "a✓ b– c–");
    }
}
