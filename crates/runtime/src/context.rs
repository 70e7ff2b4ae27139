//! The model's input, folded from the log. Nothing is in it that is not recorded, and every
//! result of a batch is in it before the model is called again.

pub mod session;
mod talk;

use std::sync::Arc;

use chancery_domain::event::{Actor, CallResult, Created, Decision, Event, Recalled, UserSpoke};
use chancery_domain::id::{AgentId, CallId};
use chancery_domain::policy::{Spent, glob};
use chancery_store::read::Exchange;

use crate::authority::Authority;
use crate::model::{Message, ToolOffer};

use talk::{Talk, WRAP_UP};

/// How many of the person's own words another run is given, and how long they may be in all.
const WORDS_MAX: (usize, usize) = (50, 20_000);

#[derive(Debug)]
pub struct Context {
    created: Arc<Created>,
    messages: Vec<Message>,
    /// Said while a batch was open: read after its results.
    overheard: Vec<String>,
    batch_open: bool,
    /// The call whose result a signal will be.
    waiting_call: Option<CallId>,
    /// What the person said themselves, here and before in the session.
    persons_words: Vec<String>,
    /// Of a group's run: what is said in it, and who has the floor.
    talk: Talk,
    floor: Option<AgentId>,
    /// What was remembered as the run began.
    recalled: Vec<Recalled>,
    /// What of the session is not read in full any more.
    earlier: Option<String>,
    spent: Spent,
    /// The same before the model's last answer.
    spent_before: Spent,
}

impl Context {
    /// A run's context begins with what was said before in its session, or with what the run that
    /// it goes on from had come to, and with its input.
    pub fn new(created: Created, before: Vec<Exchange>) -> Context {
        let mut persons_words: Vec<String> = before.iter().map(|it| it.input.clone()).collect();
        let (earlier, before) = session::compact(before, session::BUDGET);
        let mut messages = Vec::with_capacity(before.len() * 2 + 1);
        persons_words.extend(created.persons_words.iter().cloned());
        persons_words.extend(own_words(&created));
        for Exchange { input, output } in before {
            messages.push(Message::User { text: input });
            messages.push(Message::Assistant { text: output, calls: Vec::new() });
        }
        let input = Message::User { text: created.input.clone() };
        let earlier = match created.forked.as_deref() {
            None => {
                messages.push(input);
                earlier
            }
            Some(forked) => {
                messages.extend(forked.before.iter().map(Message::from));
                messages.push(input);
                messages.extend(forked.after.iter().map(Message::from));
                earlier.or_else(|| forked.earlier.clone())
            }
        };
        Context {
            created: Arc::new(created),
            messages,
            overheard: Vec::new(),
            batch_open: false,
            waiting_call: None,
            persons_words,
            talk: Talk::default(),
            floor: None,
            recalled: Vec::new(),
            earlier,
            spent: Spent::default(),
            spent_before: Spent::default(),
        }
    }

    pub fn recalled(&self) -> &[Recalled] {
        &self.recalled
    }

    pub fn earlier(&self) -> Option<&str> {
        self.earlier.as_deref()
    }

    /// The last words of a member of the group.
    pub fn last_said(&self) -> &str {
        self.talk.last_said()
    }

    /// What the person said themselves: no word of an agent, a tool or a document is in it.
    pub fn persons_words(&self) -> impl Iterator<Item = &str> {
        self.persons_words.iter().map(String::as_str)
    }

    /// As many of these as another run is given, the newest first to be kept.
    pub fn kept_words(&self) -> Vec<String> {
        let mut left = WORDS_MAX.1;
        let kept = self.persons_words().collect::<Vec<_>>().into_iter().rev();
        let kept = kept.take(WORDS_MAX.0).take_while(|it| {
            let fits = it.len() <= left;
            left = left.saturating_sub(it.len());
            fits
        });
        let mut kept: Vec<String> = kept.map(str::to_owned).collect();
        kept.reverse();
        kept
    }

    /// What the run has used up.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// What it had used up when the model last heard what became of its calls.
    pub fn spent_before(&self) -> Spent {
        self.spent_before
    }

    pub fn created(&self) -> &Arc<Created> {
        &self.created
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What became of a call, once it has ended.
    pub fn result_of(&self, call: &CallId) -> Option<&CallResult> {
        self.messages.iter().rev().find_map(|it| match it {
            Message::Tool { call: of, result } if of == call => Some(result),
            _ => None,
        })
    }

    /// Follows the log by one event.
    pub fn follow(&mut self, event: &Event) {
        if let Event::UserSpoke(it) = event
            && is_persons(&it.by)
        {
            self.persons_words.push(it.text.clone());
        }
        if self.created.room.is_some() {
            self.talk.follow(event);
        }
        let spent = self.spent.after(event);
        if spent != self.spent {
            (self.spent_before, self.spent) = (self.spent, spent);
        }
        match event {
            // Each member reads the room anew, and its own calls from there on.
            Event::TurnBegan(it) => {
                let text = self.talk.brief(&self.created.input, &it.member);
                self.messages = vec![Message::User { text }];
                self.floor = Some(it.member.agent.clone());
            }
            Event::UserSpoke(it) if !self.is_heard(it) => {}
            Event::WrapUpAsked(_) => self.hear(WRAP_UP.to_owned()),
            Event::BatchProposed(it) => {
                self.batch_open = true;
                self.messages.push(Message::Assistant {
                    text: it.text.clone(),
                    calls: it.calls.iter().map(|proposal| proposal.call.clone()).collect(),
                });
            }
            Event::UserSpoke(it) => self.hear(it.text.clone()),
            Event::CallEnded(it) => self.result(it.call.clone(), it.result.clone()),
            Event::CallRefused(it) => self.result(it.call.clone(), it.result.clone()),
            Event::PermissionDecided(it) => {
                if let Decision::Supplied(result) = &it.decision {
                    self.result(it.call.clone(), result.clone());
                }
            }
            Event::WaitBegan(it) => self.waiting_call = Some(it.call.clone()),
            Event::Signalled(it) => {
                let text = match &it.payload {
                    serde_json::Value::Null => format!("signal `{}` arrived", it.correlation_key),
                    serde_json::Value::String(text) => text.clone(),
                    payload => payload.to_string(),
                };
                self.signal_result(CallResult::ok(text));
            }
            Event::WaitExpired(it) => self.signal_result(CallResult::error(
                "TIMEOUT",
                format!("signal `{}` did not arrive in time", it.correlation_key),
            )),
            Event::BatchClosed(_) => {
                self.batch_open = false;
                self.in_the_models_order();
                let overheard = std::mem::take(&mut self.overheard);
                self.messages.extend(overheard.into_iter().map(|text| Message::User { text }));
            }
            Event::ChildEnded(it) => self.result(it.call.clone(), it.result.clone()),
            Event::Concluded(it) => self.result(it.call.clone(), CallResult::ok("concluded")),
            Event::MemoryRecalled(it) => self.recalled.extend(it.memories.iter().cloned()),
            Event::Created(_)
            | Event::Started(_)
            | Event::ChildSpawned(_)
            | Event::TurnEnded(_)
            | Event::PauseAsked(_)
            | Event::Paused(_)
            | Event::Unpaused(_)
            | Event::CallStarted(_)
            | Event::CallRetried(_)
            | Event::PermissionRequested(_)
            | Event::PermissionEscalated(_)
            | Event::PermissionExtended(_)
            | Event::Completed(_)
            | Event::Failed(_)
            | Event::Cancelled(_)
            | Event::Resumed(_) => {}
        }
    }

    /// In a group, what people say is read by those whose turn it is, and by those to come.
    fn is_heard(&self, spoke: &UserSpoke) -> bool {
        match (&self.created.room, &self.floor) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(floor)) => spoke.to.as_ref().is_none_or(|it| it == floor),
        }
    }

    fn hear(&mut self, text: String) {
        if self.batch_open {
            self.overheard.push(text);
        } else {
            self.messages.push(Message::User { text });
        }
    }

    /// Child runs come back in any order; their results are read in the order of the calls.
    fn in_the_models_order(&mut self) {
        let is_result = |it: &Message| matches!(it, Message::Tool { .. });
        let results = self.messages.iter().rev().take_while(|it| is_result(it)).count();
        let place = self.messages.len() - results;
        let (before, results) = self.messages.split_at_mut(place);
        if let Some(Message::Assistant { calls, .. }) = before.last() {
            let place = |it: &Message| match it {
                Message::Tool { call, .. } => calls.iter().position(|made| made.id == *call),
                _ => None,
            };
            results.sort_by_key(place);
        }
    }

    fn signal_result(&mut self, result: CallResult) {
        if let Some(call) = self.waiting_call.take() {
            self.result(call, result);
        }
    }

    fn result(&mut self, call: CallId, result: CallResult) {
        self.messages.push(Message::Tool { call, result });
    }
}

/// A child run's goal is put in an agent's words, not in the person's. Of a run that goes on from
/// another, `persons_words` says all that is theirs: who goes on with a goal need not have said it.
fn own_words(created: &Created) -> Option<String> {
    let told = created.parent.is_none() && created.forked.is_none();
    (told && is_persons(&created.by)).then(|| created.input.clone())
}

/// A service speaks for the person whose run it is.
pub fn is_persons(by: &Actor) -> bool {
    matches!(by, Actor::User(_) | Actor::Service(_))
}

/// The tools that a model is shown: those whose ruling, arguments aside, is not Deny, and of
/// these, where the role says so, only what it exposes.
pub fn offers<'a>(
    authority: &'a Authority,
    created: &Created,
    agent: &AgentId,
) -> Vec<&'a ToolOffer> {
    let delegated = authority.delegation(created);
    let role = authority.org().role_of(agent);
    let (agent, user) = (agent.as_str(), created.user.as_str());
    let exposed = |name: &str| {
        let list = role.and_then(|it| it.expose.as_ref());
        list.is_none_or(|it| it.iter().any(|entry| glob(entry, name)))
    };
    authority.tools().offers(|name| {
        authority.policy().offers(agent, user, delegated.as_ref(), name) && exposed(name)
    })
}
