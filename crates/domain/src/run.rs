//! The run state machine. `Run::apply` is the one place that a run changes state.

use jiff::Timestamp;

use crate::batch::{Batch, BatchError, Clearance, Gate, Open, Permit, Settled};
use crate::event::Event;
use crate::id::{CallId, WaitKey};

#[derive(Debug, PartialEq)]
pub enum Run {
    /// Created, never picked up.
    Pending,
    /// Wants a worker.
    Running(Work),
    /// Wants something from outside, and holds no worker.
    Waiting(Wait),
    Finished(Outcome),
}

#[derive(Debug, PartialEq)]
pub enum Work {
    Generate,
    Execute(Batch<Settled>),
}

#[derive(Debug, PartialEq)]
pub enum Wait {
    Permissions(Batch<Open>),
    Signal {
        key: WaitKey,
        until: Option<Timestamp>,
        batch: Batch<Settled>,
        call: CallId,
    },
    // Invariant: a child run is at a call of the batch.
    Children(Batch<Settled>),
    /// A person wanted it to rest; this is what it goes on with.
    Pause(Work),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Completed {
        output: String,
    },
    /// `resumable`: it failed at the model, with no call in the air.
    Failed {
        error: String,
        resumable: bool,
    },
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Illegal {
    #[error("a `{event}` cannot follow in a run that is {state}")]
    Event { state: &'static str, event: &'static str },
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error("the run has waited for `{0}` before: a late signal could be taken for a new one")]
    KeyUsed(WaitKey),
    #[error("the run waits for `{expected}`, not for `{given}`")]
    Key { expected: WaitKey, given: WaitKey },
}

impl From<Gate> for Run {
    // The latch: while one request is open, the run is not one that executes.
    fn from(gate: Gate) -> Run {
        match gate {
            Gate::Open(batch) => Run::Waiting(Wait::Permissions(batch)),
            Gate::Settled(batch) => Run::Running(Work::Execute(batch)),
        }
    }
}

impl Run {
    /// The first event of a log, and the only one that can be.
    pub fn begin(event: &Event) -> Result<Run, Illegal> {
        match event {
            Event::Created(_) => Ok(Run::Pending),
            other => Err(Illegal::Event { state: "not created", event: other.kind() }),
        }
    }

    /// The whole machine. A pair that is not named here is illegal, so a new event is refused
    /// everywhere until this match says where it belongs.
    pub fn apply(self, event: &Event) -> Result<Run, Illegal> {
        self.step(event).map(|(run, _)| run)
    }

    /// `apply`, with the permit that a started call gives.
    pub(crate) fn step(self, event: &Event) -> Result<(Run, Option<Permit>), Illegal> {
        use Event as E;
        let next = match (self, event) {
            (Run::Pending, E::Started(_)) => Run::Running(Work::Generate),

            (Run::Running(Work::Generate), E::BatchProposed(it)) => {
                Gate::new(it.message, &it.calls)?.into()
            }
            (Run::Running(Work::Generate), E::Completed(it)) => {
                Run::Finished(Outcome::Completed { output: it.output.clone() })
            }

            (Run::Running(Work::Execute(batch)), E::CallStarted(it)) => {
                let (batch, permit) = batch.start(&it.call)?;
                return Ok((Run::Running(Work::Execute(batch)), Some(permit)));
            }
            (Run::Running(Work::Execute(batch)), E::CallEnded(it)) => {
                Run::Running(Work::Execute(batch.ended(&it.call)?))
            }
            (Run::Running(Work::Execute(batch)), E::CallRefused(it)) => {
                Run::Running(Work::Execute(batch.refused(&it.call)?))
            }
            (Run::Running(Work::Execute(batch)), E::CallRetried(it)) => {
                Run::Running(Work::Execute(batch.retried(&it.call)?))
            }
            (Run::Running(Work::Execute(batch)), E::PermissionRequested(it)) => {
                batch.reopened(&it.call, it.ruling, it.request.clone())?.into()
            }
            (Run::Running(Work::Execute(batch)), E::WaitBegan(it)) => Run::Waiting(Wait::Signal {
                key: it.correlation_key.clone(),
                until: it.until,
                batch: batch.running(&it.call)?,
                call: it.call.clone(),
            }),
            (Run::Running(Work::Execute(batch)), E::BatchClosed(_)) if batch.next().is_none() => {
                Run::Running(Work::Generate)
            }

            // Calls side by side go out in one append, and the run waits from the first one on.
            (
                Run::Running(Work::Execute(batch)) | Run::Waiting(Wait::Children(batch)),
                E::ChildSpawned(it),
            ) => Run::Waiting(Wait::Children(batch.sent(&it.call, it.child)?)),
            (Run::Waiting(Wait::Children(batch)), E::CallEnded(it)) => {
                Run::Waiting(Wait::Children(batch.ended(&it.call)?))
            }
            (Run::Waiting(Wait::Children(batch)), E::ChildEnded(it)) => {
                let batch = batch.back(&it.call, it.child)?;
                let others = batch.away().next().is_some();
                match others {
                    true => Run::Waiting(Wait::Children(batch)),
                    false => Run::Running(Work::Execute(batch)),
                }
            }

            (run @ Run::Running(Work::Generate), E::MemoryRecalled(_)) => run,
            // Whose turn it is belongs to the room, not to what the run does.
            (run @ Run::Running(Work::Generate), E::TurnBegan(_) | E::TurnEnded(_)) => run,
            (Run::Running(Work::Execute(batch)), E::Concluded(it)) => {
                Run::Running(Work::Execute(batch.ended(&it.call)?))
            }
            (Run::Running(work), E::Paused(_)) => Run::Waiting(Wait::Pause(work)),
            (Run::Waiting(Wait::Pause(work)), E::Unpaused(_)) => Run::Running(work),
            (
                run @ (Run::Pending | Run::Running(_) | Run::Waiting(_)),
                E::WrapUpAsked(_) | E::PauseAsked(_) | E::Unpaused(_),
            ) => run,

            (Run::Waiting(Wait::Permissions(batch)), E::PermissionDecided(it)) => {
                batch.decide(it)?.into()
            }
            (Run::Waiting(Wait::Permissions(batch)), E::PermissionEscalated(it)) => {
                batch.escalated(&it.call, it.expires_at)?.into()
            }
            (Run::Waiting(Wait::Permissions(batch)), E::PermissionExtended(it)) => {
                batch.extended(it)?.into()
            }
            (Run::Waiting(Wait::Permissions(batch)), E::PermissionInquired(it)) => {
                batch.inquired(it)?.into()
            }
            (Run::Waiting(Wait::Permissions(batch)), E::PermissionExplained(it)) => {
                batch.explained(it)?.into()
            }
            (Run::Waiting(Wait::Signal { key, batch, call, .. }), E::Signalled(it)) => {
                expect_key(key, &it.correlation_key)?;
                Run::Running(Work::Execute(batch.ended(&call)?))
            }
            (Run::Waiting(Wait::Signal { key, batch, call, .. }), E::WaitExpired(it)) => {
                expect_key(key, &it.correlation_key)?;
                Run::Running(Work::Execute(batch.ended(&call)?))
            }

            // Words change what the model reads next, not what the run does now.
            (run @ (Run::Pending | Run::Running(_) | Run::Waiting(_)), E::UserSpoke(_)) => run,

            (run @ (Run::Pending | Run::Running(_) | Run::Waiting(_)), E::Failed(it)) => {
                let resumable = matches!(run, Run::Running(Work::Generate));
                Run::Finished(Outcome::Failed { error: it.error.clone(), resumable })
            }
            (Run::Pending | Run::Running(_) | Run::Waiting(_), E::Cancelled(_)) => {
                Run::Finished(Outcome::Cancelled)
            }
            (Run::Finished(Outcome::Failed { resumable: true, .. }), E::Resumed(_)) => {
                Run::Running(Work::Generate)
            }

            (run, event) => {
                return Err(Illegal::Event { state: run.status(), event: event.kind() });
            }
        };
        Ok((next, None))
    }

    pub fn status(&self) -> &'static str {
        match self {
            Run::Pending => "pending",
            Run::Running(_) => "running",
            Run::Waiting(_) => "waiting",
            Run::Finished(Outcome::Completed { .. }) => "completed",
            Run::Finished(Outcome::Failed { .. }) => "failed",
            Run::Finished(Outcome::Cancelled) => "cancelled",
        }
    }

    /// Why a waiting run waits, in the one word that the wire has for it.
    pub fn waiting_for(&self) -> Option<&'static str> {
        match self {
            Run::Waiting(Wait::Permissions(_)) => Some("permission"),
            Run::Waiting(Wait::Signal { .. }) => Some("signal"),
            Run::Waiting(Wait::Children(_)) => Some("child"),
            Run::Waiting(Wait::Pause(_)) => Some("pause"),
            _ => None,
        }
    }

    /// By what a call of the batch in hand was cleared, if it was.
    pub(crate) fn clearance(&self, call: &CallId) -> Option<Clearance> {
        match self {
            Run::Running(Work::Execute(batch)) => batch.clearance(call),
            _ => None,
        }
    }

    /// Whether the run belongs in the queue.
    pub fn wants_worker(&self) -> bool {
        matches!(self, Run::Pending | Run::Running(_))
    }
}

fn expect_key(expected: WaitKey, given: &WaitKey) -> Result<(), Illegal> {
    if expected == *given { Ok(()) } else { Err(Illegal::Key { expected, given: given.clone() }) }
}
