//! The model's input, folded from the log. Nothing is in it that is not recorded, and every
//! result of a batch is in it before the model is called again.

pub mod session;
mod talk;

use std::sync::Arc;

use chancery_domain::event::{
    Actor, CallResult, Created, Decision, Event, PermissionExplained, Recalled, UserSpoke,
};
use chancery_domain::id::{AgentId, CallId, MessageId};
use chancery_domain::policy::{Spent, glob};
use chancery_store::read::Exchange;
use serde_json::Value;

use crate::authority::Authority;
use crate::model::{Message, ToolOffer};

use talk::{Talk, WRAP_UP};

/// Before what somebody wants to know about a call that waits, as the model reads it.
const INQUIRED: &str =
    "(Asked about the calls that waited, by somebody who was to decide on them) ";
/// Before what the model said to that.
const EXPLAINED: &str = "\n(You said to that) ";
/// In the place of results that there are not yet.
const WAITING: &str = "(These calls wait: a person is asked about them, and none of them has run.)";

/// How many of the person's own words another run is given, and how long they may be in all.
const WORDS_MAX: (usize, usize) = (50, 20_000);

#[derive(Debug)]
pub struct Context {
    created: Arc<Created>,
    messages: Vec<Message>,
    /// Said while a batch was open, with what was asked about it and said to that: read after its
    /// results.
    overheard: Vec<(Option<MessageId>, Message)>,
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
        // What is explained to a person is charged, and is no word on what became of the calls.
        if spent != self.spent && !matches!(event, Event::PermissionExplained(_)) {
            self.spent_before = self.spent;
        }
        self.spent = spent;
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
            // Whoever it was: to ask about a call is not to say what the person wants.
            Event::PermissionInquired(it) => {
                let text = format!("{INQUIRED}{}", it.text);
                self.overheard.push((Some(it.message), Message::User { text }));
            }
            Event::PermissionExplained(it) => self.explained(it),
            Event::CallEnded(it) => self.result(it.call.clone(), it.result.clone()),
            Event::CallRefused(it) => self.result(it.call.clone(), it.result.clone()),
            Event::PermissionDecided(it) => {
                if let Decision::Supplied(result) = &it.decision {
                    self.result(it.call.clone(), result.clone());
                }
                if let Some(arguments) = &it.arguments {
                    self.edited(&it.call, arguments);
                }
            }
            Event::WaitBegan(it) => self.waiting_call = Some(it.call.clone()),
            Event::Signalled(it) => {
                let text = match &it.payload {
                    Value::Null => format!("signal `{}` arrived", it.correlation_key),
                    Value::String(text) => text.clone(),
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
                self.messages.extend(overheard.into_iter().map(|(_, it)| it));
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
            self.overheard.push((None, Message::User { text }));
        } else {
            self.messages.push(Message::User { text });
        }
    }

    /// What it said stands with what it was said to, and as a quotation: a model that reads last
    /// what it said itself would go on with that instead of answering.
    fn explained(&mut self, it: &PermissionExplained) {
        let said = self.overheard.iter_mut().find(|(id, _)| *id == Some(it.inquiry));
        if let Some((_, Message::User { text })) = said {
            text.push_str(EXPLAINED);
            text.push_str(&it.text);
        }
    }

    /// The model reads its calls as it made them: where a person put another in the place of one,
    /// it is told which.
    fn edited(&mut self, id: &CallId, arguments: &Value) {
        let called = self.messages.iter().rev().find_map(|it| match it {
            Message::Assistant { calls, .. } => calls.iter().find(|it| it.id == *id),
            Message::User { .. } | Message::Tool { .. } => None,
        });
        let tool = called.map_or("", |it| &*it.tool);
        let text = format!(
            "(Your call of `{tool}` was withdrawn: a person put another in its place, with the \
             arguments {arguments}. What you read as its result is of that.)"
        );
        self.overheard.push((None, Message::User { text }));
    }

    /// What the model would read now if the calls of the open batch had ended with nothing but
    /// that they wait; the inquiry itself comes last. All of it in words: without tools to offer,
    /// some models take no calls and no results.
    pub fn in_words(&self, inquiry: MessageId) -> Vec<Message> {
        let mut words: Vec<Message> = self.messages.iter().map(in_words).collect();
        words.push(Message::User { text: WAITING.to_owned() });
        let (asked, others): (Vec<_>, Vec<_>) =
            self.overheard.iter().partition(|(id, _)| *id == Some(inquiry));
        words.extend(others.into_iter().chain(asked).map(|(_, it)| it.clone()));
        words
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

/// A message without calls and results.
fn in_words(message: &Message) -> Message {
    match message {
        Message::User { .. } => message.clone(),
        Message::Assistant { text, calls } => {
            let called =
                calls.iter().map(|it| format!("(called `{}` with {})", it.tool, it.arguments));
            let lines = Some(text.clone()).filter(|it| !it.is_empty()).into_iter().chain(called);
            let text = lines.collect::<Vec<_>>().join("\n");
            Message::Assistant { text, calls: Vec::new() }
        }
        Message::Tool { result, .. } => {
            let text = format!("(a call's result, quoted)\n{}", result.text);
            Message::User { text }
        }
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

#[cfg(test)]
mod tests {
    use chancery_domain::event::{BatchClosed, PermissionInquired, Usage};
    use chancery_domain::policy::Ruling;
    use chancery_testkit::conformance::{ada, call_ended, call_started, created, proposed, spoke};

    use super::*;
    use crate::clock;

    #[test]
    fn what_is_asked_about_a_call_is_read_after_its_result_and_is_not_the_persons_word() {
        let (call, permission) = (CallId::from("a"), clock::new_permission_id());
        let [first, second] = [clock::new_message_id(), clock::new_message_id()];
        let inquired = |message| -> Event {
            let (call, text, by) = (call.clone(), "what for?".to_owned(), ada());
            PermissionInquired { call, permission, message, text, by }.into()
        };
        let explained = |inquiry| -> Event {
            let (call, text, model) = (call.clone(), "rent".to_owned(), "m".to_owned());
            let usage = Usage { input_tokens: 3, output_tokens: 5, ..Usage::default() };
            PermissionExplained { call, permission, inquiry, text, model, usage }.into()
        };
        let mut context = Context::new(created("goal"), Vec::new());
        for event in [
            proposed(&[("a", Ruling::RequireHuman)], 1),
            inquired(first),
            spoke("hm"),
            inquired(second),
            explained(first),
        ] {
            context.follow(&event);
        }
        // It is charged, and the model has not heard that the rest is all that there is.
        assert_eq!((context.spent().tokens, context.spent().steps), (10, 1));
        assert_eq!(context.spent_before(), Spent::default());
        let text = |it: &Message| match it {
            Message::User { text } => text.clone(),
            Message::Assistant { text, calls } => format!("{text}{}", calls.len()),
            Message::Tool { result, .. } => result.text.clone(),
        };
        let first_told = format!("{INQUIRED}what for?{EXPLAINED}rent");
        let second_told = format!("{INQUIRED}what for?");
        let words: Vec<String> = context.in_words(second).iter().map(text).collect();
        let called = "(called `act` with {})0";
        assert_eq!(words, ["goal", called, WAITING, &first_told, "hm", &second_told]);
        context.follow(&call_started("a"));
        context.follow(&call_ended("a"));
        context.follow(&BatchClosed { message: clock::new_message_id() }.into());
        let read: Vec<String> = context.messages().iter().map(text).collect();
        assert_eq!(read, ["goal", "1", "done", &first_told, "hm", &second_told]);
        assert_eq!(context.persons_words().collect::<Vec<_>>(), ["goal", "hm"]);
    }
}
