//! Whose turn it is in a group's run. Pure: the room as it was made and the turns so far in, the
//! next speaker out.

use crate::event::{Event, Member, Room};

/// How far a room has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Floor {
    /// Turns that have ended.
    turns: usize,
    /// Who speaks now, and in which round.
    speaker: Option<(Member, u32)>,
    /// A person wants it to come to an end.
    wraps_up: bool,
    /// Whether it has come to the turn that is to be the last.
    closing: bool,
    /// What the lead concluded with.
    answer: Option<String>,
}

/// What comes next in a room.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This member has the floor.
    Turn { member: Member, round: u32 },
    /// Whoever has the floor goes on; with `last`, what it says is the room's answer.
    Speak { last: bool },
    /// It has an answer.
    Close(String),
}

impl Floor {
    pub fn follow(&mut self, room: &Room, event: &Event) {
        match event {
            Event::TurnBegan(it) => {
                self.speaker = Some((it.member.clone(), it.round));
                self.closing = self.wraps_up || self.turns + 1 >= room.turns();
            }
            Event::TurnEnded(_) => {
                self.turns += 1;
                self.speaker = None;
            }
            Event::WrapUpAsked(_) => {
                self.wraps_up = true;
                // Whoever speaks need not make way for the lead, if it is the lead.
                self.closing |= self.speaker.as_ref().is_some_and(|it| room.closes(&it.0));
            }
            Event::Concluded(it) => self.answer = Some(it.answer.clone()),
            _ => {}
        }
    }

    pub fn speaker(&self) -> Option<&Member> {
        self.speaker.as_ref().map(|it| &it.0)
    }

    pub fn next(&self, room: &Room) -> Next {
        if let Some(answer) = &self.answer {
            return Next::Close(answer.clone());
        }
        if self.speaker.is_some() {
            return Next::Speak { last: self.closing };
        }
        let at = self.turns % room.members.len().max(1);
        let round = (self.turns / room.members.len().max(1)) as u32 + 1;
        let lead = room.leader().filter(|_| self.wraps_up);
        match lead.or_else(|| room.members.get(at)) {
            Some(member) => Next::Turn { member: member.clone(), round: round.min(room.rounds) },
            // A room without members has nobody to ask; it is not made.
            None => Next::Close(String::new()),
        }
    }
}

impl Room {
    fn turns(&self) -> usize {
        self.members.len().saturating_mul(self.rounds.max(1) as usize)
    }

    fn leader(&self) -> Option<&Member> {
        self.members.iter().find(|it| Some(&it.agent) == self.lead.as_ref())
    }

    /// Whether a member's word ends a room that wraps up: the lead's, or anybody's without one.
    fn closes(&self, member: &Member) -> bool {
        self.leader().is_none_or(|lead| lead == member)
    }

    pub fn is_led_by(&self, member: &Member) -> bool {
        self.leader() == Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Actor, Concluded, TurnBegan, TurnEnded, Usage, WrapUpAsked};
    use crate::id::MessageId;

    fn room(members: &[&str], lead: Option<&str>, rounds: u32) -> Room {
        let member = |it: &&str| Member { agent: (*it).into(), role: (*it).into() };
        Room { members: members.iter().map(member).collect(), lead: lead.map(Into::into), rounds }
    }

    fn said() -> Event {
        let message = MessageId(uuid::Uuid::from_u128(1));
        let (text, model, usage) = (String::new(), String::new(), Usage::default());
        Event::TurnEnded(TurnEnded { message, text, model, usage })
    }

    fn wrap_up() -> Event {
        Event::WrapUpAsked(WrapUpAsked { by: Actor::User("lin".into()) })
    }

    /// Plays a room to its end; `meanwhile` happens in the turn that it names.
    fn played(room: &Room, meanwhile: impl Fn(usize) -> Option<Event>) -> Vec<String> {
        let (mut floor, mut order) = (Floor::default(), Vec::new());
        loop {
            let Next::Turn { member, round } = floor.next(room) else { panic!("a turn was due") };
            order.push(format!("{} {round}", member.agent));
            floor.follow(room, &Event::TurnBegan(TurnBegan { member, round }));
            if let Some(event) = meanwhile(order.len()) {
                floor.follow(room, &event);
            }
            match floor.next(room) {
                Next::Speak { last: true } | Next::Close(_) => return order,
                Next::Speak { last: false } => floor.follow(room, &said()),
                Next::Turn { .. } => panic!("two have the floor"),
            }
        }
    }

    #[test]
    fn members_speak_in_order_round_by_round() {
        let order = played(&room(&["a", "b"], None, 2), |_| None);
        assert_eq!(order, ["a 1", "b 1", "a 2", "b 2"]);
    }

    #[test]
    fn a_lead_ends_it_early_with_its_answer() {
        let concluded = Event::Concluded(Concluded { call: "c".into(), answer: "done".into() });
        let order =
            played(&room(&["a", "b"], Some("a"), 3), |turn| (turn == 3).then(|| concluded.clone()));
        assert_eq!(order, ["a 1", "b 1", "a 2"]);
    }

    #[test]
    fn wrapping_up_gives_the_lead_the_last_word() {
        let wrap = |at: usize| move |turn: usize| (turn == at).then(wrap_up);
        let led = room(&["a", "b", "c"], Some("a"), 2);
        assert_eq!(played(&led, wrap(2)), ["a 1", "b 1", "a 1"]);
        assert_eq!(played(&led, wrap(1)), ["a 1"], "the lead has the floor already");
        assert_eq!(played(&room(&["a", "b", "c"], None, 2), wrap(2)), ["a 1", "b 1"]);
    }
}
