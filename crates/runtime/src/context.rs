//! The model's input, folded from the log. Nothing is in it that is not recorded, and every
//! result of a batch is in it before the model is called again.

use std::sync::Arc;

use chancery_domain::event::{Actor, CallResult, Created, Decision, Event};
use chancery_domain::id::CallId;
use chancery_domain::policy::{Spent, glob};
use chancery_store::read::Exchange;

use crate::authority::Authority;
use crate::model::{Message, ToolOffer};

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
    spent: Spent,
    /// The same before the model's last answer.
    spent_before: Spent,
}

impl Context {
    /// A run's context begins with what was said before in its session, and with its input.
    pub fn new(created: Created, before: Vec<Exchange>) -> Context {
        let mut messages = Vec::with_capacity(before.len() * 2 + 1);
        let mut persons_words: Vec<String> = before.iter().map(|it| it.input.clone()).collect();
        persons_words.extend(own_words(&created));
        for Exchange { input, output } in before {
            messages.push(Message::User { text: input });
            messages.push(Message::Assistant { text: output, calls: Vec::new() });
        }
        messages.push(Message::User { text: created.input.clone() });
        Context {
            created: Arc::new(created),
            messages,
            overheard: Vec::new(),
            batch_open: false,
            waiting_call: None,
            persons_words,
            spent: Spent::default(),
            spent_before: Spent::default(),
        }
    }

    /// What the person said themselves: no word of an agent, a tool or a document is in it.
    pub fn persons_words(&self) -> impl Iterator<Item = &str> {
        self.persons_words.iter().map(String::as_str)
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

    /// Follows the log by one event.
    pub fn follow(&mut self, event: &Event) {
        if let Event::UserSpoke(it) = event
            && is_persons(&it.by)
        {
            self.persons_words.push(it.text.clone());
        }
        let spent = self.spent.after(event);
        if spent != self.spent {
            (self.spent_before, self.spent) = (self.spent, spent);
        }
        match event {
            Event::BatchProposed(it) => {
                self.batch_open = true;
                self.messages.push(Message::Assistant {
                    text: it.text.clone(),
                    calls: it.calls.iter().map(|proposal| proposal.call.clone()).collect(),
                });
            }
            Event::UserSpoke(it) if self.batch_open => self.overheard.push(it.text.clone()),
            Event::UserSpoke(it) => self.messages.push(Message::User { text: it.text.clone() }),
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
                let overheard = std::mem::take(&mut self.overheard);
                self.messages.extend(overheard.into_iter().map(|text| Message::User { text }));
            }
            Event::Created(_)
            | Event::Started(_)
            | Event::CallStarted(_)
            | Event::CallRetried(_)
            | Event::PermissionRequested(_)
            | Event::PermissionEscalated(_)
            | Event::Completed(_)
            | Event::Failed(_)
            | Event::Cancelled(_)
            | Event::Resumed(_) => {}
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

/// A child run's goal is put in an agent's words, not in the person's.
fn own_words(created: &Created) -> Option<String> {
    (created.parent.is_none() && is_persons(&created.by)).then(|| created.input.clone())
}

/// A service speaks for the person whose run it is.
fn is_persons(by: &Actor) -> bool {
    matches!(by, Actor::User(_) | Actor::Service(_))
}

/// The tools that a model is shown: those whose ruling, arguments aside, is not Deny, and of
/// these, where the role says so, only what it exposes.
pub fn offers<'a>(authority: &'a Authority, created: &Created) -> Vec<&'a ToolOffer> {
    let delegated = authority.delegation(created);
    let (agent, user) = (created.agent.as_str(), created.user.as_str());
    let role = authority.org().role_of(&created.agent);
    let exposed = |name: &str| {
        let list = role.and_then(|it| it.expose.as_ref());
        list.is_none_or(|it| it.iter().any(|entry| glob(entry, name)))
    };
    authority.tools().offers(|name| {
        authority.policy().offers(agent, user, delegated.as_ref(), name) && exposed(name)
    })
}
