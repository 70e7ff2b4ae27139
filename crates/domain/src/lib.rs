//! The rules. Pure: no async, no IO, no clock, no randomness.
//!
//! Reading order: [`event`] is everything that can be recorded about a run, [`run`] the one
//! place that a run changes state, [`batch`] the latch over the calls of one model output,
//! [`history`] a run folded from its log with the changes that may be appended to it,
//! [`command`] what may be done to a run from outside, [`escalation`] how a goal is handed to a
//! group and what is handed back, [`room`] whose turn it is there, [`policy`] what the rules say
//! about a call, [`audit`] what is kept of it for those who check, [`memory`] what is remembered
//! and for whom, [`mail`] who writes to whom, [`contract`] work that is handed down, [`raise`] what
//! follows when nobody answers, [`chart`] how the organisation is changed from within, [`ways`] what
//! would let something through that was refused.

pub mod id;

pub mod event;
pub mod run;

pub mod batch;
pub mod command;
pub mod escalation;
pub mod history;
pub mod room;

pub mod audit;
pub mod bucket;
pub mod chart;
pub mod contract;
pub mod mail;
pub mod memory;
pub mod org;
pub mod policy;
pub mod raise;
pub mod text;
pub mod ways;
