//! Which questions a remembered answer answers: the one place that says so. The gate asks it about
//! a call that somebody would be asked about; whoever composes an answer, about those that were.

use std::str::FromStr;

use crate::event::RuleScope;
use crate::id::{AgentId, RunId, UserId};

/// What an answer is remembered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub scope: RuleScope,
    pub user: UserId,
    pub agent: AgentId,
    pub run: RunId,
    pub tool: String,
    /// A command's signature, or the very arguments.
    pub signature: String,
}

/// A question, as far as it matters to a remembered answer. `signature` is `None` where a person
/// must be asked each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question<'q> {
    pub user: &'q UserId,
    pub agent: &'q AgentId,
    pub run: RunId,
    pub tool: &'q str,
    pub signature: Option<&'q str>,
}

impl Pattern {
    pub fn answers(&self, question: Question<'_>) -> bool {
        let within = match self.scope {
            RuleScope::Run => self.run == question.run,
            RuleScope::Agent => self.agent == *question.agent,
            RuleScope::Always => true,
        };
        within
            && self.user == *question.user
            && self.tool == question.tool
            && question.signature == Some(&*self.signature)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `run`, `agent` or `always`")]
pub struct NoScope;

impl FromStr for RuleScope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<RuleScope, NoScope> {
        match text {
            "run" => Ok(RuleScope::Run),
            "agent" => Ok(RuleScope::Agent),
            "always" => Ok(RuleScope::Always),
            _ => Err(NoScope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_the_same_of_one_person_as_far_as_its_scope_reaches() {
        let run = |n| RunId(uuid::Uuid::from_u128(n));
        let check = |scope: &str, user: &str, agent: &str, n, tool: &str, signature| {
            let pattern = Pattern {
                scope: scope.parse().unwrap(),
                user: UserId::from("lin"),
                agent: AgentId::from("pa"),
                run: run(1),
                tool: "pay".to_owned(),
                signature: "sh".to_owned(),
            };
            let (user, agent) = (&UserId::from(user), &AgentId::from(agent));
            pattern.answers(Question { user, agent, run: run(n), tool, signature })
        };
        for (scope, of_run, of_agent) in
            [("run", true, false), ("agent", true, true), ("always", true, true)]
        {
            assert_eq!(check(scope, "lin", "pa", 1, "pay", Some("sh")), of_run, "{scope}");
            assert_eq!(check(scope, "lin", "pa", 2, "pay", Some("sh")), of_agent, "{scope}");
            let always = scope == "always";
            assert_eq!(check(scope, "lin", "clerk", 3, "pay", Some("sh")), always, "{scope}");
            // Never for another person, another tool, other arguments, or where one is asked
            // each time.
            assert!(!check(scope, "mei", "pa", 1, "pay", Some("sh")), "{scope}");
            assert!(!check(scope, "lin", "pa", 1, "note", Some("sh")), "{scope}");
            assert!(!check(scope, "lin", "pa", 1, "pay", Some("rm")), "{scope}");
            assert!(!check(scope, "lin", "pa", 1, "pay", None), "{scope}");
        }
        assert_eq!("once".parse::<RuleScope>(), Err(NoScope));
    }
}
