//! Contracts: work that is handed down, as a mail with a state. [`Contract::step`] is the one
//! place where a contract changes state, and says who may make each step.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Actor;
use crate::id::{AgentId, ContractId, UserId};
use crate::mail::BOARD;
use crate::org::{Org, Role};

mod terms;
mod warrant;

pub use terms::Terms;
pub use warrant::Warrant;

/// After this many failures nobody tries again: it goes up.
pub const FAILURES_MAX: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Pending,
    Accepted,
    InProgress,
    Review,
    Passed,
    Failed,
    Escalated,
    Cancelled,
}

impl State {
    pub const ALL: [State; 8] = [
        State::Pending,
        State::Accepted,
        State::InProgress,
        State::Review,
        State::Passed,
        State::Failed,
        State::Escalated,
        State::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Accepted => "accepted",
            State::InProgress => "in_progress",
            State::Review => "review",
            State::Passed => "passed",
            State::Failed => "failed",
            State::Escalated => "escalated",
            State::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// Whether it lets anyone do anything: reach its files, its branch, its cross-department
    /// channel.
    pub fn is_active(self) -> bool {
        matches!(self, State::Accepted | State::InProgress)
    }

    pub fn has_ended(self) -> bool {
        matches!(self, State::Passed | State::Escalated | State::Cancelled)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What somebody is to a contract. One can be several things to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Whom it was given to.
    Assignee,
    /// Who gave it.
    Issuer,
    /// Whoever may tell the issuer whether work passed.
    Judge,
    /// People: the board is above every contract.
    Board,
}

/// As far as the rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    pub id: ContractId,
    pub from: AgentId,
    pub to: AgentId,
    pub state: State,
    pub failures: u32,
    pub cross_department: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("a contract that is {from} does not become {to}")]
    NoSuchStep { from: State, to: State },
    #[error("only {who} may make a contract {to} that is {from}")]
    NotYours { from: State, to: State, who: &'static str },
    #[error("it has failed {FAILURES_MAX} times and goes to the superior of who gave it")]
    FailedTooOften,
}

/// The steps that a contract can make which has failed so often.
pub fn steps(from: State, failures: u32) -> impl Iterator<Item = State> {
    State::ALL.into_iter().filter(move |to| whose(from, *to, failures).is_ok())
}

/// Whose step it is, and how they are called.
fn whose(
    from: State,
    to: State,
    failures: u32,
) -> Result<(&'static [Standing], &'static str), Refusal> {
    use State::*;
    Ok(match (from, to) {
        (Pending, Accepted) | (Accepted, InProgress) | (InProgress, Review) => {
            (&[Standing::Assignee], "whom it was given to")
        }
        (Review, Passed | Failed) => {
            (&[Standing::Issuer, Standing::Judge], "who gave it or judges the work")
        }
        (Failed, InProgress) if failures >= FAILURES_MAX => return Err(Refusal::FailedTooOften),
        (Failed, InProgress) => (&[Standing::Issuer, Standing::Assignee], "who gave it or has it"),
        (Failed, Escalated) => (&[Standing::Issuer], "who gave it"),
        (from, Cancelled) if !from.has_ended() => (&[Standing::Issuer], "who gave it"),
        _ => return Err(Refusal::NoSuchStep { from, to }),
    })
}

impl Contract {
    /// Makes a step. A third failure is one too many: it goes up by itself, so that the states
    /// that were passed through come back, the last one being where it stands.
    pub fn step(&mut self, to: State, standing: &[Standing]) -> Result<Vec<State>, Refusal> {
        use State::*;
        let from = self.state;
        let (may, who) = whose(from, to, self.failures)?;
        let allowed = |it: &Standing| may.contains(it) || *it == Standing::Board;
        // Nobody judges their own work, whatever else they may be to it.
        let judges_itself = from == Review && standing.contains(&Standing::Assignee);
        if judges_itself || !standing.iter().any(allowed) {
            return Err(Refusal::NotYours { from, to, who });
        }
        let mut passed = vec![to];
        if to == Failed {
            self.failures += 1;
            if self.failures >= FAILURES_MAX {
                passed.push(Escalated);
            }
        }
        self.state = passed.last().copied().unwrap_or(to);
        Ok(passed)
    }

    /// What an actor is to it. `behalf` is the person on whose behalf it was given.
    pub fn standing(
        &self,
        org: &Org,
        actor: &Actor,
        operator: bool,
        behalf: &UserId,
    ) -> Vec<Standing> {
        let mut standing = Vec::new();
        match actor {
            Actor::Agent(agent) => {
                if *agent == self.to {
                    standing.push(Standing::Assignee);
                }
                if *agent == self.from {
                    standing.push(Standing::Issuer);
                }
                if may_judge(org, agent, &self.from) {
                    standing.push(Standing::Judge);
                }
            }
            Actor::User(_) if operator => standing.push(Standing::Board),
            // The board is many people, and who gave it is one of them.
            Actor::User(user) if self.from.as_str() == BOARD && user == behalf => {
                standing.push(Standing::Issuer);
            }
            Actor::System => standing.push(Standing::Board),
            Actor::User(_) | Actor::Service(_) => {}
        }
        standing
    }
}

/// Whether an agent's role tells another whether work passed: by `verdict` mail.
pub fn may_judge(org: &Org, judge: &AgentId, issuer: &AgentId) -> bool {
    let (Some(role), Some(kind)) = (org.active_role_of(judge), org.mail.get("verdict")) else {
        return false;
    };
    let sends = kind.senders.as_ref().is_none_or(|it| it.contains(&role.id));
    let contact = role.contact(org, issuer.as_str());
    let reaches = |types: &[String]| types.is_empty() || types.iter().any(|it| it == "verdict");
    sends && contact.is_some_and(|it| reaches(&it.types))
}

/// Whether a role's line leads to an agent, or to the board, in one step.
pub fn reports_to(org: &Org, role: &Role, superior: &str) -> bool {
    let above = match superior {
        BOARD => BOARD,
        agent => match org.role_of(&AgentId::from(agent)) {
            Some(role) => role.id.as_str(),
            None => return false,
        },
    };
    role.reports_to.iter().any(|it| it.as_str() == above)
}

/// Whom an agent reports to, in the order of its role's line: agents at work, or the board.
pub fn superiors(org: &Org, of: &str) -> Vec<String> {
    let Some(role) = org.role_of(&AgentId::from(of)) else { return vec![BOARD.to_owned()] };
    let above = role.reports_to.iter().flat_map(|above| {
        let at_work = org.agents().filter(move |(_, it)| it.active && it.role == *above);
        at_work.map(|(id, _)| id.to_string())
    });
    let above: Vec<String> = above.collect();
    if above.is_empty() { vec![BOARD.to_owned()] } else { above }
}

/// A step that was made, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub from: State,
    pub to: State,
    pub by: Actor,
    pub note: Option<String>,
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(state: State, failures: u32) -> Contract {
        Contract {
            id: ContractId::from("CTR-1"),
            from: AgentId::from("it_manager"),
            to: AgentId::from("backend_worker"),
            state,
            failures,
            cross_department: false,
        }
    }

    /// The whole machine, as a table that a person can read: who may make which step.
    #[test]
    fn the_machine_is_what_the_table_says() {
        let standings = [
            ("assignee", Standing::Assignee),
            ("issuer", Standing::Issuer),
            ("judge", Standing::Judge),
            ("board", Standing::Board),
        ];
        let mut table = String::new();
        for from in State::ALL {
            for to in State::ALL {
                let may = standings.iter().filter_map(|(name, standing)| {
                    contract(from, 0).step(to, &[*standing]).ok().map(|_| *name)
                });
                let may: Vec<_> = may.collect();
                if !may.is_empty() {
                    table.push_str(&format!("{from} -> {to}: {}\n", may.join(", ")));
                }
            }
        }
        insta::assert_snapshot!(table, @r"
        pending -> accepted: assignee, board
        pending -> cancelled: issuer, board
        accepted -> in_progress: assignee, board
        accepted -> cancelled: issuer, board
        in_progress -> review: assignee, board
        in_progress -> cancelled: issuer, board
        review -> passed: issuer, judge, board
        review -> failed: issuer, judge, board
        review -> cancelled: issuer, board
        failed -> in_progress: assignee, issuer, board
        failed -> escalated: issuer, board
        failed -> cancelled: issuer, board
        ");
    }

    #[test]
    fn the_third_failure_goes_up_and_is_not_tried_again() {
        let mut contract = contract(State::Review, 0);
        for _ in 0..2 {
            assert_eq!(contract.step(State::Failed, &[Standing::Judge]), Ok(vec![State::Failed]));
            contract.step(State::InProgress, &[Standing::Assignee]).unwrap();
            contract.step(State::Review, &[Standing::Assignee]).unwrap();
        }
        let passed = contract.step(State::Failed, &[Standing::Issuer]).unwrap();
        assert_eq!(passed, [State::Failed, State::Escalated]);
        assert!(contract.state.has_ended());
        assert!(contract.step(State::InProgress, &[Standing::Board]).is_err());
    }

    #[test]
    fn a_person_is_issuer_of_what_they_gave_as_the_board_and_of_nothing_else() {
        let of_an_agent = contract(State::Review, 0);
        let of_the_board = Contract { from: AgentId::from(BOARD), ..of_an_agent.clone() };
        let lin = Actor::User(UserId::from("lin"));
        for (contract, behalf, standing) in [
            (&of_the_board, "lin", vec![Standing::Issuer]),
            (&of_the_board, "ada", vec![]),
            (&of_an_agent, "lin", vec![]),
        ] {
            let operator = false;
            let found = contract.standing(&Org::default(), &lin, operator, &UserId::from(behalf));
            assert_eq!(found, standing, "{} for {behalf}", contract.from);
        }
    }

    #[test]
    fn nobody_judges_their_own_work() {
        let both = [Standing::Assignee, Standing::Judge, Standing::Issuer];
        assert!(matches!(
            contract(State::Review, 0).step(State::Passed, &both),
            Err(Refusal::NotYours { .. })
        ));
    }
}
