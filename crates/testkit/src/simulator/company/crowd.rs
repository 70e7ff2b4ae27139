//! The people around a company: they ask for runs, answer questions, speak, cancel, and change
//! the rules, each through whichever server they reach, which may die before it has answered.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::command::{self, Effect, Refusal, Reply};
use chancery_domain::event::{
    Actor, Created, Decision, Recorded, Remember, RequestKind, RuleScope,
};
use chancery_domain::history::History;
use chancery_domain::id::{PermissionId, ProjectId, RunId, WaitKey};
use chancery_domain::run::{Outcome, Run, Wait};
use chancery_runtime::clock;
use chancery_store::Store;
use chancery_store::log::Amendment;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::Recover;
use super::super::people::Law;
use super::Company;
use crate::conformance::{ada, created};

/// What somebody does to a run.
#[derive(Debug, Clone)]
enum Word {
    Signal(WaitKey, Value, Actor),
    Decide(PermissionId, Box<Reply>, Actor),
    Speak(String),
    Cancel,
    Pause,
    WrapUp,
    Resume,
}

impl Company {
    /// Somebody does something.
    pub(super) fn act(&mut self) {
        let at_work: Vec<usize> =
            (0..self.servers.len()).filter(|at| self.servers[*at].is_at_work()).collect();
        if at_work.is_empty() {
            return;
        }
        let at = self.dice.pick(&at_work);
        self.set_clock(at);
        let store = self.servers[at].store.clone();
        let waiting = self.ledger.waiting();
        let quiet = !self.faults.are_on();
        match self.dice.roll(24) {
            0 if !quiet => self.interfere(at, store),
            1 if self.dice.once_in(6) => self.legislate(),
            2 if self.dice.once_in(6) => self.revoke(at, store),
            3..=9 if self.made < self.fate.runs => self.ask_for_a_run(at, store),
            _ if !waiting.is_empty() => {
                let run = self.dice.pick(&waiting);
                let word = self.answer(run);
                for word in word {
                    self.say(at, store.clone(), run, word);
                }
            }
            _ => {}
        }
    }

    fn ask_for_a_run(&mut self, at: usize, store: Store) {
        self.made += 1;
        let project = Some(ProjectId::from("p"));
        let asked = Created { project, ..created(&format!("goal-{}", self.made)) };
        let run = clock::new_run_id();
        self.servers[at].spawn(async move {
            if let Some(first) = History::create(run, asked).change() {
                // Who gets no answer asks again, as somebody else: the run may be there.
                let _ = store.create(&first, None, clock::now()).await;
            }
        });
    }

    /// What a run waits for, or something like it; some are left to the clock.
    fn answer(&mut self, run: RunId) -> Vec<Word> {
        let dice = &mut self.dice;
        let recover = self.fate.recover;
        let word = self.ledger.look(run, |history| match history.run() {
            Run::Waiting(Wait::Signal { key, .. }) => {
                Some(Word::Signal(key.clone(), json!("go"), ada()))
            }
            Run::Waiting(Wait::Pause(_)) => Some(Word::Resume),
            Run::Waiting(Wait::Permissions(batch)) => {
                let asked: Vec<_> = batch.asked().collect();
                let (call, request) = asked[dice.roll(asked.len() as u64) as usize];
                let key = request.correlation_key.clone();
                if request.kind == RequestKind::Recover {
                    let payload = match recover {
                        Recover::RunAgain => json!({"approved": true}),
                        Recover::Fail => json!({"approved": false}),
                        Recover::Supply => json!({"result": "found"}),
                    };
                    return Some(Word::Signal(key, payload, ada()));
                }
                let said =
                    |decision| Reply { decision, comment: None, arguments: None, remember: None };
                let service = || Actor::Service("watchdog".to_owned());
                let reply = match dice.roll(8) {
                    0 => said(Decision::Denied),
                    1 => {
                        let mut arguments = call.arguments.clone();
                        arguments["edited"] = json!(true);
                        Reply { arguments: Some(arguments), ..said(Decision::Granted) }
                    }
                    2 => Reply {
                        remember: remember(request.signature.clone()),
                        ..said(Decision::Granted)
                    },
                    3 => {
                        return Some(Word::Signal(
                            key,
                            json!({"approved": dice.once_in(2)}),
                            ada(),
                        ));
                    }
                    // It may need a person; then it is refused.
                    4 => {
                        return Some(Word::Decide(
                            request.id,
                            Box::new(said(Decision::Granted)),
                            service(),
                        ));
                    }
                    _ => said(Decision::Granted),
                };
                Some(Word::Decide(request.id, Box::new(reply), ada()))
            }
            _ => None,
        });
        let Some(word) = word.flatten() else { return Vec::new() };
        if self.faults.are_on() && self.dice.once_in(12) {
            // Both doors at once, or an impatient person.
            return vec![word.clone(), word];
        }
        vec![word]
    }

    /// What nobody asked for.
    fn interfere(&mut self, at: usize, store: Store) {
        let live = self.ledger.live();
        if live.is_empty() {
            return;
        }
        let run = self.dice.pick(&live);
        let word = match self.dice.roll(6) {
            0 => Word::Cancel,
            1 => Word::Pause,
            2 => Word::WrapUp,
            3 => match self.failed() {
                Some(run) => return self.say(at, store, run, Word::Resume),
                None => Word::Resume,
            },
            _ => Word::Speak(format!("word-{}", self.tally.steps)),
        };
        self.say(at, store, run, word);
    }

    /// A run without parents that failed where it can go on.
    fn failed(&mut self) -> Option<RunId> {
        let runs = self.ledger.runs();
        let run = self.dice.pick(&runs);
        let resumable = self.ledger.look(run, |history| {
            matches!(history.run(), Run::Finished(Outcome::Failed { resumable: true, .. }))
                && history.created().parent.is_none()
        });
        (resumable == Some(true)).then_some(run)
    }

    fn say(&self, at: usize, store: Store, run: RunId, word: Word) {
        self.servers[at].spawn(async move {
            let said = store.amend(run, clock::now(), |history, events| {
                word.carry_out(history, events).map(|effect| match effect {
                    Effect::Record(history) => Amendment::Record(history),
                    Effect::Already => Amendment::Nothing(()),
                })
            });
            // A store that is away, or somebody who was faster: they look again later.
            let _ = said.await;
        });
    }

    /// The rules change, once, for all servers at one moment.
    fn legislate(&mut self) {
        let law = self.fate.law;
        if law == Law::Usual || self.stage.world.law() == law {
            return;
        }
        let places = self.ledger.places();
        self.stage.world.enact(law, places);
        for server in &self.servers {
            server.in_force.replace(self.stage.authority(&server.seat));
        }
    }

    /// Takes back what was remembered in some run.
    fn revoke(&mut self, at: usize, store: Store) {
        let world = self.stage.world.clone();
        let ledger = self.ledger.clone();
        self.servers[at].spawn(async move {
            let Ok(rules) = store.rules(None, None, 10).await else { return };
            let Some(rule) = rules.iter().find(|it| it.revoked_at.is_none()) else { return };
            let entry = Entry::new(clock::new_audit_id(), kind::RULE_REVOKED, ada());
            if store.revoke_rule(rule.id, &ada(), clock::now(), entry).await.is_ok() {
                let seq = ledger.look(rule.run, History::seq).unwrap_or(0);
                world.revoked(rule.run, seq);
            }
        });
    }
}

fn remember(signature: Option<String>) -> Option<Remember> {
    let expires_at = clock::now().checked_add(SignedDuration::from_hours(24)).ok()?;
    let (scope, tool) = (RuleScope::Run, "ask".to_owned());
    Some(Remember { rule: clock::new_rule_id(), scope, tool, signature: signature?, expires_at })
}

impl Word {
    fn carry_out(&self, history: History, events: &[Recorded]) -> Result<Effect, Refusal> {
        match self.clone() {
            Word::Signal(key, payload, by) => command::signal(history, events, &key, payload, by),
            Word::Decide(id, reply, by) => command::decide(history, events, id, *reply, by),
            Word::Speak(text) => {
                command::speak(history, clock::new_message_id(), text, None, ada())
            }
            Word::Cancel => command::cancel(history, ada()),
            Word::Pause => command::pause(history, ada()),
            Word::WrapUp => command::wrap_up(history, events, ada()),
            Word::Resume => command::resume(history, ada()),
        }
    }
}
