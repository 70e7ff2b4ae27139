//! What the rules say about a tool call. Pure: no clock, no storage, no async.
//!
//! [`Policy::rule`] is where a tool call is authorised. Eight layers speak, none is skipped, and
//! the strictest wins, so adding a rule can only tighten. [`Policy::offers`] is the same function
//! with the arguments left out, so what a model is shown and what it may call cannot disagree.

mod bounds;
mod branch;
mod compiled;
mod explain;
mod file_scope;
mod limits;
mod looked;
mod protected;

pub use bounds::{Bounds, glob, is_glob};
pub use branch::is_branch_name;
pub use compiled::{Delegation, Policy, ToolFacts};
pub use explain::Verdict;
pub(crate) use explain::placed;
pub use file_scope::{Access, components as scope_components};
pub use limits::{Limits, Spent};
pub use looked::{Looked, Manner, Said, looked_at};
pub use protected::{protected, rule_on_protected};

use serde::{Deserialize, Serialize};

/// The policy's answer. Ordered: the strictest of several rulings wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    Allow,
    RequireApproval,
    RequireHuman,
    Deny,
}

impl Ruling {
    pub fn as_str(self) -> &'static str {
        match self {
            Ruling::Allow => "allow",
            Ruling::RequireApproval => "require_approval",
            Ruling::RequireHuman => "require_human",
            Ruling::Deny => "deny",
        }
    }

    /// Whether somebody has to be asked.
    pub fn asks(self) -> bool {
        matches!(self, Ruling::RequireApproval | Ruling::RequireHuman)
    }
}

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Low,
    Medium,
    High,
}

impl Risk {
    pub fn as_str(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }
}

/// The layers, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    Identity,
    Tool,
    Delegation,
    Role,
    Risk,
    Capability,
    Arguments,
    Limits,
}

impl Layer {
    pub const ALL: [Layer; 8] = [
        Layer::Identity,
        Layer::Tool,
        Layer::Delegation,
        Layer::Role,
        Layer::Risk,
        Layer::Capability,
        Layer::Arguments,
        Layer::Limits,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Identity => "identity",
            Layer::Tool => "tool",
            Layer::Delegation => "delegation",
            Layer::Role => "role",
            Layer::Risk => "risk",
            Layer::Capability => "capability",
            Layer::Arguments => "arguments",
            Layer::Limits => "limits",
        }
    }
}

/// One layer's word on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub layer: String,
    pub rule: String,
    pub outcome: Ruling,
    pub detail: String,
}

/// Whether the tool that a call names can be called as it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    Fits,
    UnknownTool,
    /// The arguments fail the tool's schema; says how.
    BadArguments(String),
}

/// One call, as the rules look at it. Who calls and for whom is said by the system, never by a
/// model.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    pub agent: &'q str,
    /// The person behind the run.
    pub user: &'q str,
    pub tool: &'q str,
    /// What the run was given; `None`: no limits.
    pub delegated: Option<&'q Delegation>,
    pub fitness: &'q Fitness,
    /// What the rules over the arguments said.
    pub arguments: &'q [Reason],
    /// What budgets and rates said.
    pub limits: &'q [Reason],
}
