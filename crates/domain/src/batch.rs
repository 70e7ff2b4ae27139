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

use std::marker::PhantomData;
use std::sync::Arc;

use crate::event::{Actor, Asking, Call, Decision, Proposal};
use crate::id::{CallId, MessageId};
use crate::policy::{Reason, Ruling};

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
}

/// Where one call stands.
#[derive(Debug, Clone, PartialEq)]
enum Standing {
    Cleared,
    Asked { human: bool, asking: Asking },
    Refused(Refusal),
    Started,
    Ended,
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    Policy(Vec<Reason>),
    Person,
    /// Its outcome was unknown, and the answer was not to run it again.
    Unknown,
}

/// What to do about the first call that has not ended.
#[derive(Debug, PartialEq)]
pub enum Turn {
    Execute(Arc<Call>),
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
    #[error("an agent decides nothing")]
    AgentDecides,
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
        for Proposal { call, ruling, reasons } in proposals {
            if slots.iter().any(|slot| slot.call.id == call.id) {
                return Err(BatchError::Twice(call.id.clone()));
            }
            let asking = Asking::Permission;
            let standing = match ruling {
                Ruling::Allow => Standing::Cleared,
                Ruling::RequireApproval => Standing::Asked { human: false, asking },
                Ruling::RequireHuman => Standing::Asked { human: true, asking },
                Ruling::Deny => Standing::Refused(Refusal::Policy(reasons.clone())),
            };
            slots.push(Slot { call: call.clone(), standing, retries: 0 });
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
    fn asked(&self) -> bool {
        matches!(self.standing, Standing::Asked { .. })
    }

    fn ended(&self) -> bool {
        self.standing == Standing::Ended
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
    pub fn decide(
        mut self,
        call: &CallId,
        decision: &Decision,
        by: &Actor,
    ) -> Result<Gate, BatchError> {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.call.id == *call) else {
            return Err(BatchError::NoSuchCall(call.clone()));
        };
        let Standing::Asked { human, asking } = slot.standing else {
            return Err(BatchError::NotAsked(call.clone()));
        };
        let person = matches!(by, Actor::User(_));
        slot.standing = match (decision, asking) {
            _ if matches!(by, Actor::Agent(_)) => return Err(BatchError::AgentDecides),
            (Decision::Denied, Asking::Permission) => Standing::Refused(Refusal::Person),
            (Decision::Denied, Asking::Recover) => Standing::Refused(Refusal::Unknown),
            _ if human && !person => return Err(BatchError::HumanRequired(call.clone())),
            (Decision::Granted, _) => Standing::Cleared,
            (Decision::Supplied(_), Asking::Recover) => Standing::Ended,
            (Decision::Supplied(_), Asking::Permission) => {
                return Err(BatchError::Standing(call.clone()));
            }
        };
        Ok(Gate::of(self.message, self.slots))
    }

    /// The calls that nobody has answered for, with what is asked about each.
    pub fn asked(&self) -> impl Iterator<Item = (&Arc<Call>, Asking)> {
        self.slots.iter().filter_map(|slot| match slot.standing {
            Standing::Asked { asking, .. } => Some((&slot.call, asking)),
            _ => None,
        })
    }
}

impl Batch<Settled> {
    /// What to do about the first call that has not ended. `None`: all have.
    pub fn next(&self) -> Option<Turn> {
        let slot = self.slots.iter().find(|slot| !slot.ended())?;
        let call = slot.call.clone();
        match &slot.standing {
            Standing::Cleared => Some(Turn::Execute(call)),
            Standing::Refused(refusal) => Some(Turn::Refuse { call, refusal: refusal.clone() }),
            // `Asked` cannot be, by the invariant; were it to be, nothing runs.
            Standing::Started | Standing::Asked { .. } => Some(Turn::Unknown(call)),
            Standing::Ended => None,
        }
    }

    /// The next call and the cleared ones that follow it without a gap: those that may overlap
    /// if every one of their tools says that it may.
    pub fn cleared(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.slots
            .iter()
            .skip_while(|slot| slot.ended())
            .take_while(|slot| slot.standing == Standing::Cleared)
            .map(|slot| &slot.call)
    }

    /// Starts a cleared call; those before it have started or ended. The runner makes the start
    /// durable before it spends the permit, so a permit that is lost in a crash shows up as
    /// `Turn::Unknown`.
    pub fn start(mut self, call: &CallId) -> Result<(Batch<Settled>, Permit), BatchError> {
        let message = self.message;
        let slot = self
            .slots
            .iter_mut()
            .find(|slot| !matches!(slot.standing, Standing::Ended | Standing::Started))
            .filter(|slot| slot.call.id == *call)
            .ok_or_else(|| BatchError::NotNext(call.clone()))?;
        if slot.standing != Standing::Cleared {
            return Err(BatchError::Standing(call.clone()));
        }
        slot.standing = Standing::Started;
        let permit = Permit { call: slot.call.clone(), message };
        Ok((self, permit))
    }

    pub fn ended(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        *self.first_open(call, |it| *it == Standing::Started)? = Standing::Ended;
        Ok(self)
    }

    pub fn refused(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        *self.first_open(call, |it| matches!(it, Standing::Refused(_)))? = Standing::Ended;
        Ok(self)
    }

    /// A call whose outcome is unknown may run again: its tool recognises what it has seen.
    pub fn retried(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        *self.first_open(call, |it| *it == Standing::Started)? = Standing::Cleared;
        self.slots.iter_mut().filter(|it| it.call.id == *call).for_each(|it| it.retries += 1);
        Ok(self)
    }

    /// How often a call was let run again by itself. A person's word for it is not counted.
    pub fn retries(&self, call: &CallId) -> u32 {
        self.slots.iter().find(|it| it.call.id == *call).map_or(0, |it| it.retries)
    }

    /// A started call needs a person after all.
    pub fn reopened(mut self, call: &CallId, asking: Asking) -> Result<Gate, BatchError> {
        *self.first_open(call, |it| *it == Standing::Started)? =
            Standing::Asked { human: true, asking };
        Ok(Gate::of(self.message, self.slots))
    }

    /// Checks that `call` is the one now running.
    pub fn running(mut self, call: &CallId) -> Result<Batch<Settled>, BatchError> {
        self.first_open(call, |it| *it == Standing::Started)?;
        Ok(self)
    }

    // Results are recorded in the model's order, so only the first unfinished call may move.
    fn first_open(
        &mut self,
        call: &CallId,
        legal: impl Fn(&Standing) -> bool,
    ) -> Result<&mut Standing, BatchError> {
        match self.slots.iter_mut().find(|slot| !slot.ended()) {
            Some(slot) if slot.call.id != *call => Err(BatchError::NotNext(call.clone())),
            Some(slot) if legal(&slot.standing) => Ok(&mut slot.standing),
            Some(_) => Err(BatchError::Standing(call.clone())),
            None => Err(BatchError::NotNext(call.clone())),
        }
    }
}
