//! The latch: the tool calls of one model output, decided and run as one unit.
//!
//! `Batch<Open>` holds at least one undecided request and can only be decided.
//! `Batch<Settled>` holds none and can only be executed, in the model's order.
//! A `Permit` comes only from starting a call of a settled batch, which uses the batch up, and a
//! tool cannot be called without one. Batches are not `Clone`.
//!
//! ```compile_fail,E0599
//! // An open batch has no way to hand out a permit.
//! use chancery_domain::batch::{Batch, Open};
//! use chancery_domain::id::CallId;
//! fn early(batch: Batch<Open>, call: &CallId) { batch.start(call); }
//! ```
//!
//! ```compile_fail,E0451
//! // A permit cannot be made up,
//! use chancery_domain::batch::Permit;
//! fn forged() -> Permit { Permit { call: todo!(), message: todo!() } }
//! ```
//!
//! ```compile_fail,E0382
//! // nor used twice.
//! use chancery_domain::batch::Permit;
//! fn spend(permit: Permit) {}
//! fn twice(permit: Permit) { spend(permit); spend(permit); }
//! ```

mod cover;
mod remembered;
mod spoken;

pub use cover::Cover;
pub use remembered::{NoScope, Pattern, Question};

use std::marker::PhantomData;
use std::sync::Arc;

use crate::event::{
    Actor, Answer, Call, Decision, PermissionDecided, PermissionExtended, Proposal, Request,
    RequestKind,
};
use crate::id::{CallId, MessageId, RuleId, RunId};
use crate::policy::{Reason, Ruling};
use jiff::Timestamp;

// Invariant: `Batch<Open>` has a slot that is `Asked`; `Batch<Settled>` has none.
#[derive(Debug, PartialEq)]
pub struct Batch<S> {
    message: MessageId,
    slots: Vec<Slot>,
    state: PhantomData<S>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Open {}
#[derive(Debug, PartialEq, Eq)]
pub enum Settled {}

/// A batch read back from the log: one of the two, never neither.
#[derive(Debug, PartialEq)]
pub enum Gate {
    Open(Batch<Open>),
    Settled(Batch<Settled>),
}

/// The right to run one call once. Made by `Batch::start`, used up by the door to the tools.
#[derive(Debug)]
pub struct Permit {
    call: Arc<Call>,
    message: MessageId,
}

#[derive(Debug, PartialEq)]
struct Slot {
    call: Arc<Call>,
    standing: Standing,
    /// How often it was let run again because its outcome was unknown.
    retries: u32,
    /// Somebody said no, or nobody said yes in time.
    denied: bool,
    begun: bool,
    /// What its tool was when somebody said yes: the digest of its definition.
    granted_as: Option<String>,
}

/// Where one call stands.
#[derive(Debug, Clone, PartialEq)]
enum Standing {
    Cleared(Clearance),
    Asked {
        human: bool,
        request: Arc<Request>,
    },
    Refused(Refusal),
    Started(Clearance),
    /// A child run is at it.
    Away(RunId),
    Ended,
}

/// By what a call may run. The rules are asked again before it does, and may be stricter by
/// then than this covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearance {
    Ruled,
    Granted { human: bool },
    Rule(RuleId),
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    Policy(Vec<Reason>),
    Person,
    /// Nobody answered in time.
    Expired,
    /// Its outcome was unknown, and the answer was not to run it again.
    Unknown,
}

/// What to do about the first call that has not ended.
#[derive(Debug, PartialEq)]
pub enum Turn {
    Execute {
        call: Arc<Call>,
        clearance: Clearance,
    },
    Refuse {
        call: Arc<Call>,
        refusal: Refusal,
    },
    /// Started in an earlier life and never ended.
    Unknown(Arc<Call>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("a batch has at least one call")]
    Empty,
    #[error("two calls of one batch are named `{0}`")]
    Twice(CallId),
    #[error("the batch has no call `{0}`")]
    NoSuchCall(CallId),
    #[error("call `{0}` has no open request")]
    NotAsked(CallId),
    #[error("call `{0}` is not the next one: calls run in the model's order")]
    NotNext(CallId),
    #[error("call `{0}` needs a person's word")]
    HumanRequired(CallId),
    #[error("an agent decides nothing, and the system only that nobody did")]
    NotADecider,
    #[error("what call `{0}` needs an answer for has no such answer")]
    NoSuchAnswer(CallId),
    #[error("call `{0}` asks for a person, but nobody is asked")]
    NobodyAsked(CallId),
    #[error("call `{0}` does not stand where this would be legal")]
    Standing(CallId),
}

impl Permit {
    pub fn call(&self) -> &Call {
        &self.call
    }

    pub fn message(&self) -> MessageId {
        self.message
    }
}

impl Gate {
    /// Opens the latch over every call of one model output.
    pub fn new(message: MessageId, proposals: &[Proposal]) -> Result<Gate, BatchError> {
        if proposals.is_empty() {
            return Err(BatchError::Empty);
        }
        let mut slots: Vec<Slot> = Vec::with_capacity(proposals.len());
        for Proposal { call, ruling, reasons, answer } in proposals {
            if slots.iter().any(|slot| slot.call.id == call.id) {
                return Err(BatchError::Twice(call.id.clone()));
            }
            let standing = match (ruling, answer) {
                (Ruling::Allow, _) => Standing::Cleared(Clearance::Ruled),
                (Ruling::Deny, _) => Standing::Refused(Refusal::Policy(reasons.clone())),
                // A rule never stands in for a person where a person must be asked.
                (Ruling::RequireApproval, Some(Answer::Rule(rule))) => {
                    Standing::Cleared(Clearance::Rule(*rule))
                }
                (_, Some(Answer::Request(request))) => {
                    let human = *ruling == Ruling::RequireHuman;
                    Standing::Asked { human, request: request.clone() }
                }
                _ => return Err(BatchError::NobodyAsked(call.id.clone())),
            };
            slots.push(Slot::new(call.clone(), standing));
        }
        Ok(Gate::of(message, slots))
    }

    fn of(message: MessageId, slots: Vec<Slot>) -> Gate {
        if slots.iter().any(Slot::asked) {
            Gate::Open(Batch { message, slots, state: PhantomData })
        } else {
            Gate::Settled(Batch { message, slots, state: PhantomData })
        }
    }
}

impl Slot {
    fn new(call: Arc<Call>, standing: Standing) -> Slot {
        Slot { call, standing, retries: 0, denied: false, begun: false, granted_as: None }
    }

    fn asked(&self) -> bool {
        matches!(self.standing, Standing::Asked { .. })
    }

    fn ended(&self) -> bool {
        self.standing == Standing::Ended
    }

    fn away(&self) -> bool {
        matches!(self.standing, Standing::Away(_))
    }
}

impl<S> Batch<S> {
    pub fn message(&self) -> MessageId {
        self.message
    }

    pub fn call(&self, id: &CallId) -> Option<&Arc<Call>> {
        self.slots.iter().map(|slot| &slot.call).find(|call| call.id == *id)
    }
}

impl Batch<Open> {
    /// Records one answer. The batch settles with the last one.
    pub fn decide(mut self, decided: &PermissionDecided) -> Result<Gate, BatchError> {
        let call = &decided.call;
        let slot = self.asked_slot(call)?;
        let Standing::Asked { human, request } = &slot.standing else {
            return Err(BatchError::NotAsked(call.clone()));
        };
        if request.id != decided.permission {
            return Err(BatchError::NotAsked(call.clone()));
        }
        let recovers = request.kind == RequestKind::Recover;
        let definition = request.definition_sha256.clone();
        let person = matches!(decided.by, Actor::User(_));
        let edits = decided.arguments.is_some() || decided.remember.is_some();
        match (&decided.decision, &decided.by) {
            (Decision::Expired, Actor::System) if !edits => {}
            (_, Actor::Agent(_) | Actor::System) => return Err(BatchError::NotADecider),
            (Decision::Denied, _) if !edits => {}
            _ if *human && !person => return Err(BatchError::HumanRequired(call.clone())),
            // What a person must be asked is asked each time.
            (Decision::Granted, _) if decided.remember.is_some() && *human => {
                return Err(BatchError::HumanRequired(call.clone()));
            }
            (Decision::Granted, _) if !(recovers && edits) => {}
            (Decision::Supplied(_), _) if recovers && !edits => {}
            _ => return Err(BatchError::NoSuchAnswer(call.clone())),
        }
        slot.standing = match decided.decision {
            Decision::Granted => Standing::Cleared(Clearance::Granted { human: person }),
            Decision::Supplied(_) => Standing::Ended,
            Decision::Denied | Decision::Expired if recovers => Standing::Refused(Refusal::Unknown),
            Decision::Denied => Standing::Refused(Refusal::Person),
            Decision::Expired => Standing::Refused(Refusal::Expired),
        };
        slot.granted_as = definition;
        slot.denied |= matches!(decided.decision, Decision::Denied | Decision::Expired);
        if let Some(arguments) = &decided.arguments {
            Arc::make_mut(&mut slot.call).arguments = arguments.clone();
        }
        Ok(Gate::of(self.message, self.slots))
    }

    /// Nobody answered one question in time, and it has as long again. Once only.
    pub fn escalated(mut self, call: &CallId, until: Timestamp) -> Result<Gate, BatchError> {
        let slot = self.asked_slot(call)?;
        match &mut slot.standing {
            Standing::Asked { request, .. } if request.escalates => {
                let request = Arc::make_mut(request);
                (request.escalates, request.expires_at) = (false, Some(until));
            }
            _ => return Err(BatchError::Standing(call.clone())),
        }
        Ok(Gate::of(self.message, self.slots))
    }

    /// Somebody gives one question more time, and never less. That nobody decides by this is why
    /// a service may do it where a person must answer.
    pub fn extended(mut self, extended: &PermissionExtended) -> Result<Gate, BatchError> {
        if matches!(extended.by, Actor::Agent(_) | Actor::System) {
            return Err(BatchError::NotADecider);
        }
        let longer = |it: &Request| it.expires_at.is_some_and(|at| at < extended.expires_at);
        match &mut self.asked_slot(&extended.call)?.standing {
            Standing::Asked { request, .. }
                if request.id == extended.permission && longer(request) =>
            {
                Arc::make_mut(request).expires_at = Some(extended.expires_at);
            }
            _ => return Err(BatchError::Standing(extended.call.clone())),
        }
        Ok(Gate::of(self.message, self.slots))
    }

    /// The calls that nobody has answered for, with what is asked about each.
    pub fn asked(&self) -> impl Iterator<Item = (&Arc<Call>, &Arc<Request>)> {
        self.slots.iter().filter_map(|slot| match &slot.standing {
            Standing::Asked { request, .. } => Some((&slot.call, request)),
            _ => None,
        })
    }

    fn asked_slot(&mut self, call: &CallId) -> Result<&mut Slot, BatchError> {
        let slot = self.slots.iter_mut().find(|slot| slot.call.id == *call);
        slot.ok_or_else(|| BatchError::NoSuchCall(call.clone()))
    }
}

impl Batch<Settled> {
    /// What to do about the first call that has not ended. `None`: all have.
    pub fn next(&self) -> Option<Turn> {
        let slot = self.slots.iter().find(|slot| !slot.ended())?;
        let call = slot.call.clone();
        match &slot.standing {
            Standing::Cleared(clearance) => Some(Turn::Execute { call, clearance: *clearance }),
            Standing::Refused(refusal) => Some(Turn::Refuse { call, refusal: refusal.clone() }),
            // The others cannot be, by the invariants; were they to be, nothing runs.
            Standing::Started(_) | Standing::Asked { .. } | Standing::Away(_) => {
                Some(Turn::Unknown(call))
            }
            Standing::Ended => None,
        }
    }

    /// The next call and the cleared ones that follow it without a gap: those that may overlap
    /// if every one of their tools says that it may.
    pub fn cleared(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.slots
            .iter()
            .skip_while(|slot| slot.ended())
            .take_while(|slot| matches!(slot.standing, Standing::Cleared(_)))
            .map(|slot| &slot.call)
    }

    /// By what a call may run, or runs.
    pub fn clearance(&self, call: &CallId) -> Option<Clearance> {
        let slot = self.slots.iter().find(|it| it.call.id == *call)?;
        match slot.standing {
            Standing::Cleared(clearance) | Standing::Started(clearance) => Some(clearance),
            _ => None,
        }
    }

    /// What the tool of a call was when the call was granted, if it was.
    pub fn granted_as(&self, call: &CallId) -> Option<&str> {
        let slot = self.slots.iter().find(|it| it.call.id == *call)?;
        slot.granted_as.as_deref()
    }

    /// The calls that were begun, whatever became of them.
    pub fn begun(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.slots.iter().filter(|it| it.begun).map(|it| &it.call)
    }

    /// Whether somebody said no to a call of this batch, or nobody said yes in time.
    pub fn has_denied(&self) -> bool {
        self.slots.iter().any(|slot| slot.denied)
    }

    /// Starts a cleared call; those before it have started or ended. The runner makes the start
    /// durable before it spends the permit, so a permit that is lost in a crash shows up as
    /// `Turn::Unknown`.
    pub fn start(mut self, call: &CallId) -> Result<(Batch<Settled>, Permit), BatchError> {
        let message = self.message;
        let slot = self
            .slots
            .iter_mut()
            .find(|slot| !matches!(slot.standing, Standing::Ended | Standing::Started(_)))
            .filter(|slot| slot.call.id == *call)
            .ok_or_else(|| BatchError::NotNext(call.clone()))?;
        let Standing::Cleared(clearance) = slot.standing else {
            return Err(BatchError::Standing(call.clone()));
        };
        (slot.standing, slot.begun) = (Standing::Started(clearance), true);
        let permit = Permit { call: slot.call.clone(), message };
        Ok((self, permit))
    }

    pub fn ended(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        *self.first_open(call, is_started)? = Standing::Ended;
        Ok(self)
    }

    /// A child run is at a call that has started. Neighbours may be sent side by side.
    pub fn sent(mut self, call: &CallId, child: RunId) -> Result<Batch<Settled>, BatchError> {
        *self.first_open(call, is_started)? = Standing::Away(child);
        Ok(self)
    }

    /// The child run that is at a call is back, or not waited for any longer.
    pub fn back(mut self, call: &CallId, child: RunId) -> Result<Batch<Settled>, BatchError> {
        let slot = self.slots.iter_mut().find(|slot| slot.call.id == *call);
        let slot = slot.ok_or_else(|| BatchError::NoSuchCall(call.clone()))?;
        if slot.standing != Standing::Away(child) {
            return Err(BatchError::Standing(call.clone()));
        }
        slot.standing = Standing::Ended;
        Ok(self)
    }

    /// The child runs that are at calls of this batch.
    pub fn away(&self) -> impl Iterator<Item = (&Arc<Call>, RunId)> {
        self.slots.iter().filter_map(|slot| match slot.standing {
            Standing::Away(child) => Some((&slot.call, child)),
            _ => None,
        })
    }

    pub fn refused(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        // A call that was cleared may meet a rule that has become stricter since.
        let legal = |it: &Standing| matches!(it, Standing::Refused(_) | Standing::Cleared(_));
        *self.first_open(call, legal)? = Standing::Ended;
        Ok(self)
    }

    /// A call whose outcome is unknown may run again: its tool recognises what it has seen.
    pub fn retried(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        let standing = self.first_open(call, is_started)?;
        if let Standing::Started(clearance) = *standing {
            *standing = Standing::Cleared(clearance);
        }
        self.slots.iter_mut().filter(|it| it.call.id == *call).for_each(|it| it.retries += 1);
        Ok(self)
    }

    /// How often a call was let run again by itself. A person's word for it is not counted.
    pub fn retries(&self, call: &CallId) -> u32 {
        self.slots.iter().find(|it| it.call.id == *call).map_or(0, |it| it.retries)
    }

    /// A call that was cleared or has started needs a person after all.
    pub fn reopened(
        mut self,
        call: &CallId,
        ruling: Ruling,
        request: Arc<Request>,
    ) -> Result<Gate, BatchError> {
        if !ruling.asks() {
            return Err(BatchError::NobodyAsked(call.clone()));
        }
        let human = ruling == Ruling::RequireHuman;
        let legal = |it: &Standing| match it {
            Standing::Started(_) => true,
            Standing::Cleared(_) => request.kind != RequestKind::Recover,
            _ => false,
        };
        *self.first_open(call, legal)? = Standing::Asked { human, request: request.clone() };
        Ok(Gate::of(self.message, self.slots))
    }

    /// Checks that `call` is the one now running.
    pub fn running(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        self.first_open(call, is_started)?;
        Ok(self)
    }

    // Results are recorded in the model's order, so only the first unfinished call may move; what
    // a child run is at is not in the way of its neighbours.
    fn first_open(
        &mut self,
        call: &CallId,
        legal: impl Fn(&Standing) -> bool,
    ) -> Result<&mut Standing, BatchError> {
        match self.slots.iter_mut().find(|slot| !slot.ended() && !slot.away()) {
            Some(slot) if slot.call.id != *call => Err(BatchError::NotNext(call.clone())),
            Some(slot) if legal(&slot.standing) => Ok(&mut slot.standing),
            Some(_) => Err(BatchError::Standing(call.clone())),
            None => Err(BatchError::NotNext(call.clone())),
        }
    }
}

fn is_started(standing: &Standing) -> bool {
    matches!(standing, Standing::Started(_))
}
