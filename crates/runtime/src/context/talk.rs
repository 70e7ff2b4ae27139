//! What is said in a group, as the member reads it whose turn it is: the goal, the blackboard,
//! what members before it said, what people said to the room or to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use chancery_domain::event::{Actor, Call, CallEnded, Event, Member, UserSpoke};
use chancery_domain::id::{AgentId, CallId};

pub const WRAP_UP: &str = "A person asks you to wrap up now: begin nothing new, finish with what \
                           you have, and give your answer.";

/// The tool that writes on the blackboard.
const RECORD: &str = "record";

#[derive(Debug, Default)]
pub struct Talk {
    said: Vec<Said>,
    board: Vec<String>,
    /// The calls of the batch in hand, and who made them.
    calls: BTreeMap<CallId, Arc<Call>>,
    speaker: Option<Member>,
    /// A person wants it to come to an end.
    wraps_up: bool,
}

#[derive(Debug)]
enum Said {
    Member { agent: AgentId, text: String },
    Person { name: String, text: String, to: Option<AgentId> },
}

impl Talk {
    pub fn follow(&mut self, event: &Event) {
        match event {
            Event::TurnBegan(it) => self.speaker = Some(it.member.clone()),
            Event::TurnEnded(it) => {
                let speaker = self.speaker.take();
                if let Some(Member { agent, .. }) = speaker.filter(|_| !it.text.trim().is_empty()) {
                    self.said.push(Said::Member { agent, text: it.text.clone() });
                }
            }
            Event::UserSpoke(UserSpoke { text, by, to, .. }) => {
                let (name, text, to) = (name(by), text.clone(), to.clone());
                self.said.push(Said::Person { name, text, to });
            }
            Event::BatchProposed(it) => {
                self.calls =
                    it.calls.iter().map(|it| (it.call.id.clone(), it.call.clone())).collect();
            }
            Event::WrapUpAsked(_) => self.wraps_up = true,
            Event::CallEnded(it) => self.board.extend(self.recorded(it)),
            _ => {}
        }
    }

    /// What was put on the blackboard, if this call did so.
    fn recorded(&self, ended: &CallEnded) -> Option<String> {
        let call = self.calls.get(&ended.call).filter(|it| it.tool == RECORD)?;
        if ended.result.is_error {
            return None;
        }
        let said = |field: &str| call.arguments.get(field).and_then(|it| it.as_str());
        let agent = self.speaker.as_ref().map_or("", |it| it.agent.as_str());
        Some(format!("- {} ({agent}): {}", said("kind")?, said("content")?))
    }

    /// The last words of a member.
    pub fn last_said(&self) -> &str {
        let words = |it: &&Said| matches!(it, Said::Member { .. });
        match self.said.iter().rev().find(words) {
            Some(Said::Member { text, .. }) => text,
            _ => "",
        }
    }

    /// All that a member reads as its turn begins.
    pub fn brief(&self, goal: &str, member: &Member) -> String {
        let mut text = goal.to_owned();
        if !self.board.is_empty() {
            let _ = write!(text, "\n\n# The blackboard\n{}", self.board.join("\n"));
        }
        let heard: Vec<&Said> = self.said.iter().filter(|it| it.is_for(&member.agent)).collect();
        if !heard.is_empty() {
            text.push_str("\n\n# What was said so far");
        }
        for said in heard {
            let _ = match said {
                Said::Member { agent, text: words } => write!(text, "\n\n## {agent}\n{words}"),
                Said::Person { name, text: words, to: None } => {
                    write!(text, "\n\n## {name}, a person, to all\n{words}")
                }
                Said::Person { name, text: words, to: Some(_) } => {
                    write!(text, "\n\n## {name}, a person, to you\n{words}")
                }
            };
        }
        if self.wraps_up {
            let _ = write!(text, "\n\n{WRAP_UP}");
        }
        let _ = write!(text, "\n\nIt is your turn, {}.", member.agent);
        text
    }
}

impl Said {
    fn is_for(&self, agent: &AgentId) -> bool {
        match self {
            Said::Person { to: Some(to), .. } => to == agent,
            _ => true,
        }
    }
}

pub fn name(by: &Actor) -> String {
    match by {
        Actor::User(user) => user.to_string(),
        Actor::Service(name) => name.clone(),
        Actor::Agent(agent) => agent.to_string(),
        Actor::System => "the system".to_owned(),
    }
}
