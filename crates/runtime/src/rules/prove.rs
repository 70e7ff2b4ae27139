//! Whether other rules would let something through: asked of a solver, over every call that could
//! be made, and not over those that were.
//!
//! The symbolic compiler takes what a rule sees for independent: it knows nothing of how literals
//! come from words. So "never" is a proof, and an example is only a sketch until it was played
//! against the rules themselves.

mod claim;
mod sketch;

use std::collections::BTreeMap;

use cedar_policy::{Policy, PolicySet, RequestEnv, Schema};
use cedar_policy_symcc::err::Error;
use cedar_policy_symcc::solver::{LocalSolver, SolverError};
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet};
use chancery_domain::policy::Ruling;
use serde_json::Value;

pub use claim::{Who, words_worth_trying};
pub use sketch::Sketch;

use super::schema::{self, Catalogue};
use super::shape::Fields;
use super::{Governed, Rules, uid};

/// For one question. What takes longer is not decided.
const MILLISECONDS: u32 = 20_000;

/// A solver at work, and the tools that it is asked about.
#[derive(Debug)]
pub struct Prover {
    compiler: CedarSymCompiler<LocalSolver>,
    schema: Schema,
    tools: Catalogue,
}

/// Which calls are looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Within<'a> {
    /// Whose; absent: everybody's.
    pub who: Option<&'a Who<'a>>,
    /// After which words of the person; absent: any.
    pub words: Option<&'a [String]>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    #[error("no solver: {0}")]
    NoSolver(String),
    /// It gave up.
    #[error("the solver did not decide it within {} s", MILLISECONDS / 1000)]
    Undecided,
    #[error("{0}")]
    Failed(String),
}

impl Prover {
    /// Starts the solver, for tools with the JSON Schemas of their arguments.
    pub fn start<'a>(
        tools: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Prover, ProveError> {
        let tools: Catalogue = tools.map(|(name, it)| (name.to_owned(), Fields::of(it))).collect();
        let schema = schema::schema(&tools).map_err(|it| ProveError::Failed(it.to_string()))?;
        let solver = LocalSolver::cvc5_with_args([format!("--tlimit-per={MILLISECONDS}")]);
        let compiler = CedarSymCompiler::new(solver.map_err(of_solver)?)?;
        Ok(Prover { compiler, schema, tools })
    }

    /// A call that `new` leaves at `most` or weaker and `old` does not; without `old`, any that
    /// `new` leaves so. `None`: there is none, whatever the arguments, the words and the time.
    pub async fn weaker(
        &mut self,
        old: Option<&Rules>,
        new: &Rules,
        tool: &str,
        most: Ruling,
        within: Within<'_>,
    ) -> Result<Option<Sketch>, ProveError> {
        let fields = self.tools.get(tool).cloned().unwrap_or_default();
        let mut assumed = claim::always();
        assumed.extend(within.who.into_iter().flat_map(claim::of_who));
        assumed.extend(within.words.into_iter().flat_map(claim::of_words));
        let new = self.compiled(tool, &claim::leaves(new.tools.get(tool), most, &assumed))?;
        let found = match old {
            None => self.compiler.check_always_denies_with_counterexample_opt(&new).await,
            Some(old) => {
                let old = self.compiled(tool, &claim::leaves(old.tools.get(tool), most, &[]))?;
                self.compiler.check_implies_with_counterexample_opt(&new, &old).await
            }
        };
        let found = found?;
        Ok(found.map(|it| Sketch::of(&it.request, &fields, within.words)))
    }

    fn compiled(&self, tool: &str, text: &str) -> Result<CompiledPolicySet, ProveError> {
        let failed = |it: &dyn std::fmt::Display| ProveError::Failed(it.to_string());
        let policy = Policy::parse(None, text).map_err(|it| failed(&it))?;
        let set = PolicySet::from_policies([policy]).map_err(|it| failed(&it))?;
        let [agent, action, of] =
            [("Agent", ""), ("Action", tool), ("Tool", "")].map(|(of, id)| uid(of, id));
        let (agent, of) = (agent.type_name().clone(), of.type_name().clone());
        let env = RequestEnv::new(agent, action, of);
        Ok(CompiledPolicySet::compile(&set, &env, &self.schema)?)
    }
}

impl Rules {
    /// Whether any rule is on a tool.
    pub fn speaks_of(&self, tool: &str) -> bool {
        let governed = self.tools.get(tool);
        governed.is_some_and(|it| !it.rules.is_empty() || !it.waiting.is_empty())
    }

    /// Whether a rule on a tool looks at this part of the context. The role may be asked for in
    /// many ways, so every rule looks at it.
    pub fn look_at(&self, tool: &str, part: &str) -> bool {
        let reads = self.tools.get(tool).map(|it| &it.reads.context);
        match part {
            "role" => self.speaks_of(tool),
            part => reads.is_some_and(|it| it.under(part).is_some()),
        }
    }

    /// Whether the rules on a tool are the same on both sides, in what they ask and in what they
    /// say, whatever they are called.
    pub fn same_on(&self, other: &Rules, tool: &str) -> bool {
        let on = |rules: &Rules| rules.tools.get(tool).map(asked).unwrap_or_default();
        on(self) == on(other)
    }
}

/// How often each condition stands with each outcome.
fn asked(governed: &Governed) -> BTreeMap<(Ruling, String), usize> {
    let mut asked = BTreeMap::new();
    let rules = governed.rules.iter().map(|it| (it.outcome, it.condition.text()));
    let waiting = governed.waiting.iter().map(|_| (Ruling::Deny, String::new()));
    for it in rules.chain(waiting) {
        *asked.entry(it).or_default() += 1;
    }
    asked
}

fn of_solver(error: SolverError) -> ProveError {
    match error {
        SolverError::Io(it) if it.kind() == std::io::ErrorKind::NotFound => {
            ProveError::NoSolver("there is no program `cvc5`".to_owned())
        }
        SolverError::Io(it) => ProveError::NoSolver(format!("`cvc5` cannot be started: {it}")),
        it => ProveError::Failed(it.to_string()),
    }
}

impl From<Error> for ProveError {
    fn from(error: Error) -> ProveError {
        match error {
            Error::SolverUnknown => ProveError::Undecided,
            Error::SolverError(it) => of_solver(it),
            it => ProveError::Failed(it.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
