//! The people of the simulator: who answers what a run asks, at both doors at once, by the clock,
//! with other words; and who changes the rules while it waits.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::command::{self, Reply};
use chancery_domain::event::{
    Actor, Decision, Event, Recorded, Remember, Request, RequestKind, RuleScope,
};
use chancery_domain::id::{CallId, PermissionId, WaitKey};
use chancery_domain::policy::Ruling;
use chancery_domain::run::{Run, Wait};
use chancery_runtime::clock;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Game, Recover};
use crate::conformance::ada;

/// What those who are asked do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct People {
    pub says: Says,
    /// What the rules become while the run waits for the first time.
    pub law: Law,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Says {
    #[default]
    Yes,
    No,
    /// Yes, to something else.
    Edited,
    /// Nobody answers.
    Nothing,
    /// Nobody answers, nor do the others who are told.
    NothingTwice,
    /// Yes, and for the rest of the run.
    Always,
}

impl Says {
    pub const ALL: [Says; 6] =
        [Says::Yes, Says::No, Says::Edited, Says::Nothing, Says::NothingTwice, Says::Always];
}

/// What the rules say of the tool `ask`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Law {
    /// Somebody must approve it.
    #[default]
    Usual,
    /// A person must.
    Human,
    Denied,
    /// There is no such tool any more.
    Gone,
    /// There is no such agent any more.
    Dismissed,
}

impl Law {
    pub const ALL: [Law; 5] = [Law::Usual, Law::Human, Law::Denied, Law::Gone, Law::Dismissed];
}

/// What a run asks.
struct Asked {
    call: CallId,
    request: Request,
    arguments: Value,
    human: bool,
}

impl Game<'_> {
    /// Does what the run waits for, twice: the second time changes nothing.
    pub(super) async fn answer(&self) -> Result<(), String> {
        let log = self.log().await?;
        let history = self.fold(&log)?;
        match history.run() {
            Run::Waiting(Wait::Signal { key, .. }) => {
                let key = key.clone();
                self.twice(async || self.signal(&key, &json!("go")).await).await
            }
            Run::Waiting(Wait::Permissions(batch)) => {
                let asked: Vec<Asked> = batch
                    .asked()
                    .map(|(call, request)| Asked {
                        call: call.id.clone(),
                        request: (**request).clone(),
                        arguments: call.arguments.clone(),
                        human: ruling(&log, request.id) == Some(Ruling::RequireHuman),
                    })
                    .collect();
                self.world.enact(self.scenario.people.law, [(self.run, history.seq())]);
                for asked in &asked {
                    self.answer_one(asked).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn answer_one(&self, asked: &Asked) -> Result<(), String> {
        let key = &asked.request.correlation_key;
        if asked.request.kind == RequestKind::Recover {
            let payload = match self.scenario.recover {
                Recover::RunAgain => json!({"approved": true}),
                Recover::Fail => json!({"approved": false}),
                Recover::Supply => json!({"result": "found"}),
            };
            return self.twice(async || self.signal(key, &payload).await).await;
        }
        let said = |decision| Reply { decision, comment: None, arguments: None, remember: None };
        match self.scenario.people.says {
            Says::Yes => self.at_both_doors(asked, said(Decision::Granted)).await,
            Says::No => self.at_both_doors(asked, said(Decision::Denied)).await,
            Says::Edited => {
                let mut arguments = asked.arguments.clone();
                arguments["edited"] = json!(true);
                let reply = Reply { arguments: Some(arguments), ..said(Decision::Granted) };
                self.twice(async || self.decide(asked, &reply, ada()).await).await
            }
            Says::Always if asked.request.signature.is_some() => {
                let day = SignedDuration::from_hours(24);
                let expires_at = clock::now().checked_add(day).map_err(|it| it.to_string())?;
                let remember = Remember {
                    rule: clock::new_rule_id(),
                    scope: RuleScope::Run,
                    tool: "ask".to_owned(),
                    signature: asked.request.signature.clone().unwrap_or_default(),
                    expires_at,
                };
                let reply = Reply { remember: Some(remember), ..said(Decision::Granted) };
                self.twice(async || self.decide(asked, &reply, ada()).await).await
            }
            Says::Always => self.at_both_doors(asked, said(Decision::Granted)).await,
            Says::Nothing => self.expires(asked, false).await,
            Says::NothingTwice => self.expires(asked, true).await,
        }
    }

    /// Two answers of one kind at the same instant: one is recorded, the other is no news.
    async fn at_both_doors(&self, asked: &Asked, reply: Reply) -> Result<(), String> {
        let service = Actor::Service("watchdog".to_owned());
        if asked.human && reply.decision == Decision::Granted {
            let refused = self.decide(asked, &reply, service.clone()).await;
            if refused.is_ok() {
                return Err(format!("a service stood in for a person: {refused:?}"));
            }
        }
        let by = if asked.human { ada() } else { service };
        let payload = json!({"approved": reply.decision == Decision::Granted});
        let key = &asked.request.correlation_key;
        let (decided, signalled) =
            tokio::join!(self.decide(asked, &reply, by), self.signal(key, &payload));
        match (decided?, signalled?) {
            (false, true) | (true, false) => {}
            both => return Err(format!("`{key}` was answered {both:?}")),
        }
        // The other way comes too late.
        let other = json!({"approved": reply.decision != Decision::Granted});
        match self.signal(key, &other).await {
            Err(_) => Ok(()),
            Ok(taken) => Err(format!("`{key}` was answered both ways: {taken}")),
        }
    }

    /// Nobody answers. What is put to others has as long again, whoever looks at the clock.
    async fn expires(&self, asked: &Asked, escalates: bool) -> Result<(), String> {
        let key = &asked.request.correlation_key;
        let due = asked.request.expires_at.ok_or("it stands for ever")?;
        let early = due.checked_sub(SignedDuration::from_secs(1)).map_err(|it| it.to_string())?;
        let expire = async |now: Timestamp| {
            self.amend(|history, _| command::expire(history, key, now)).await
        };
        if !expire(early).await? {
            return Err(format!("`{key}` ended before its time"));
        }
        let mut due = due;
        // One that was put to others before a crash is not put to them again.
        if escalates && asked.request.escalates {
            if expire(due).await? || !expire(due).await? {
                return Err(format!("`{key}` was not put to others once"));
            }
            let stood = due.duration_since(asked.request.asked_at);
            due = due.checked_add(stood).map_err(|it| it.to_string())?;
        }
        self.twice(async || expire(due).await).await
    }

    async fn decide(&self, asked: &Asked, reply: &Reply, by: Actor) -> Result<bool, String> {
        let id = asked.request.id;
        let call = &asked.call;
        self.amend(|history, events| {
            command::decide(history, events, id, reply.clone(), by.clone())
        })
        .await
        .map_err(|it| format!("{call}: {it}"))
    }

    async fn signal(&self, key: &WaitKey, payload: &Value) -> Result<bool, String> {
        self.amend(|history, events| command::signal(history, events, key, payload.clone(), ada()))
            .await
    }

    /// Takes back what was remembered in this run.
    pub(super) async fn revoke(&self) -> Result<(), String> {
        let rules = self.store.rules(None, None, 1000).await.map_err(|it| it.to_string())?;
        let mine = rules.iter().filter(|it| it.run == self.run && it.revoked_at.is_none());
        for rule in mine {
            let entry = Entry::new(clock::new_audit_id(), kind::RULE_REVOKED, ada());
            let revoked = self.store.revoke_rule(rule.id, &ada(), clock::now(), entry).await;
            revoked.map_err(|it| it.to_string())?;
            self.world.revoked(self.run, self.history().await?.seq());
        }
        Ok(())
    }

    /// Does something a second time, which answers that it was so already.
    async fn twice(&self, act: impl AsyncFn() -> Result<bool, String>) -> Result<(), String> {
        for again in [false, true] {
            let already = act().await?;
            if already != again {
                return Err(format!("done, again: {again}, already: {already}"));
            }
        }
        Ok(())
    }
}

fn ruling(log: &[Recorded], permission: PermissionId) -> Option<Ruling> {
    log.iter().rev().find_map(|it| match &it.event {
        Event::PermissionRequested(it) => (it.request.id == permission).then_some(it.ruling),
        event @ Event::BatchProposed(batch) => {
            let asked = command::requests(event);
            let call = asked.iter().find(|(_, it)| it.id == permission)?.0;
            batch.calls.iter().find(|it| it.call.id == *call).map(|it| it.ruling)
        }
        _ => None,
    })
}
