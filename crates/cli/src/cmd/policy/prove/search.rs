//! Looks for calls that a later version rules on more weakly: agents, people and tools one by one,
//! arguments, words and times by the solver. What the solver finds is played on both sides before
//! it is told.

use std::collections::BTreeSet;

use chancery_domain::policy::Ruling;
use chancery_runtime::rules::prove::{ProveError, Prover, Sketch, Who, Within, words_worth_trying};

use super::version::Version;
use super::{Example, Found, Undecided};

/// A ruling that a call may be left at, from the weakest on; beyond `Deny` there is nothing.
const LEVELS: [Ruling; 3] = [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman];

#[derive(Debug)]
pub struct Search<'v> {
    old: &'v Version,
    new: &'v Version,
    agents: Vec<&'v str>,
    /// Whoever is not listed comes first: they have no limits of their own.
    users: Vec<&'v str>,
    roles: Vec<String>,
    /// Started when there is something to ask.
    prover: Option<Prover>,
    pub found: Found,
}

/// One agent for one person with one tool, at one ruling.
#[derive(Debug, Clone, Copy)]
struct Spot<'s> {
    tool: &'s str,
    agent: &'s str,
    user: &'s str,
    most: Ruling,
    /// Whether the earlier rules have a word in it: the other layers alone would have held it.
    against: Against,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Against {
    Rules,
    Nothing,
}

/// What came of one question.
enum Answer {
    Never,
    Found(Box<Example>),
    Open(String),
}

impl<'v> Search<'v> {
    pub fn new(
        [old, new]: [&'v Version; 2],
        agents: &BTreeSet<&'v str>,
        users: &BTreeSet<&'v str>,
        stranger: &'v str,
    ) -> Search<'v> {
        let listed = users.iter().copied().filter(|it| *it != stranger);
        let users = std::iter::once(stranger).chain(listed).collect();
        let agents = agents.iter().copied().collect();
        let roles = [old, new].into_iter().flat_map(|it| it.loaded.org.roles());
        let roles: BTreeSet<String> = roles.map(|it| it.id.to_string()).collect();
        let (roles, found) = (roles.into_iter().collect(), Found::default());
        Search { old, new, agents, users, roles, prover: None, found }
    }

    /// Every agent, for one example each.
    pub async fn tool(&mut self, tool: &str) -> Result<(), ProveError> {
        let mut held = Vec::new();
        for most in LEVELS {
            // Once for everybody: where the rules hold as much, nobody is looked at alone.
            let same = self.old.rules.same_on(&self.new.rules, tool);
            if same || self.ask(tool, most, Against::Rules, Within::default()).await?.is_never() {
                held.push(most);
            }
        }
        for agent in self.agents.clone() {
            if let Some(answer) = self.agent(tool, agent, &held).await? {
                match answer {
                    Answer::Never => {}
                    Answer::Found(example) => self.found.wider.push(*example),
                    Answer::Open(why) => {
                        let about = format!("{tool}, called by {agent}");
                        self.found.undecided.push(Undecided { about, why });
                    }
                }
            }
        }
        Ok(())
    }

    /// The first thing that there is to say of an agent with a tool.
    async fn agent(
        &mut self,
        tool: &str,
        agent: &str,
        held: &[Ruling],
    ) -> Result<Option<Answer>, ProveError> {
        let mut open = None;
        let alike = self.seen_alike(agent, tool);
        for most in LEVELS {
            for user in self.users.clone() {
                let base = |it: &Version| it.base(agent, user, tool);
                let against = match (base(self.old) > most, base(self.new) > most) {
                    (_, true) => continue,
                    (true, false) => Against::Nothing,
                    (false, false) if !alike => {
                        let why = "its role, its contacts or the tool's capabilities differ, and \
                                   rules look at them";
                        open = Some(Answer::Open(why.to_owned()));
                        continue;
                    }
                    (false, false) if held.contains(&most) => continue,
                    (false, false) => Against::Rules,
                };
                match self.spot(Spot { tool, agent, user, most, against }).await? {
                    Answer::Never => {}
                    Answer::Open(why) => open = open.or(Some(Answer::Open(why))),
                    found => return Ok(Some(found)),
                }
            }
        }
        Ok(open)
    }

    async fn spot(&mut self, spot: Spot<'_>) -> Result<Answer, ProveError> {
        let Spot { tool, agent, user, most, against } = spot;
        if against == Against::Nothing && !self.new.rules.speaks_of(tool) {
            return Ok(Answer::Found(Box::new(self.whatever(spot))));
        }
        let contacts = self.new.contacts(agent);
        let roles = self.roles.clone();
        let who = Who {
            agent,
            user,
            role: self.new.role(agent).map_or("", |it| it.id.as_str()),
            other_roles: &roles,
            contacts: &contacts,
            capabilities: self.new.capabilities(tool),
        };
        let anything = Within { who: Some(&who), words: None };
        let first = match self.ask(tool, most, against, anything).await? {
            Asked::Never => return Ok(Answer::Never),
            Asked::Gave(why) => return Ok(Answer::Open(why)),
            Asked::Sketch(it) => it,
        };
        // From the plainest on: nothing said, much said, whatever the solver makes of it.
        let (silence, talk) = (Vec::new(), words_worth_trying(self.sides(), tool));
        for words in [&silence, &talk[0], &talk[1]] {
            let within = Within { who: Some(&who), words: Some(words) };
            if let Asked::Sketch(sketch) = self.ask(tool, most, against, within).await?
                && let Some(example) = self.played(spot, &sketch)
            {
                return Ok(Answer::Found(Box::new(example)));
            }
        }
        if let Some(example) = self.played(spot, &first) {
            return Ok(Answer::Found(Box::new(example)));
        }
        Ok(Answer::Open(format!(
            "the rules alone do not keep it from {}, but no call was found that comes to it",
            most.as_str()
        )))
    }

    fn sides(&self) -> [&'v chancery_runtime::rules::Rules; 2] {
        [&self.old.rules, &self.new.rules]
    }

    /// Whether rules that have not changed see the same of a caller as before. If not, the same
    /// rules may say something else.
    fn seen_alike(&self, agent: &str, tool: &str) -> bool {
        let looks = |at: &str| self.sides().iter().any(|it| it.look_at(tool, at));
        let role = |it: &Version| it.role(agent).map(|it| it.id.clone());
        let contacts = |it: &Version| it.contacts(agent);
        let capabilities = |it: &Version| it.capabilities(tool).to_vec();
        (!looks("role") || role(self.old) == role(self.new))
            && (!looks("contacts") || contacts(self.old) == contacts(self.new))
            && (!looks("capabilities") || capabilities(self.old) == capabilities(self.new))
    }

    /// Where no rule speaks, the other layers alone have let go.
    fn whatever(&self, spot: Spot<'_>) -> Example {
        let Spot { tool, agent, user, .. } = spot;
        let base = |it: &Version| it.base(agent, user, tool);
        Example {
            tool: tool.to_owned(),
            agent: agent.to_owned(),
            user: user.to_owned(),
            before: base(self.old),
            after: base(self.new),
            call: None,
            because: self.old.because(agent, user, tool),
        }
    }

    /// The same call on both sides, as the gate would rule on it.
    fn played(&self, spot: Spot<'_>, sketch: &Sketch) -> Option<Example> {
        let Spot { tool, agent, user, .. } = spot;
        let (before, because) = self.old.play(agent, user, tool, sketch);
        let (after, _) = self.new.play(agent, user, tool, sketch);
        (after < before).then(|| Example {
            tool: tool.to_owned(),
            agent: agent.to_owned(),
            user: user.to_owned(),
            before,
            after,
            call: Some(sketch.clone()),
            because,
        })
    }

    async fn ask(
        &mut self,
        tool: &str,
        most: Ruling,
        against: Against,
        within: Within<'_>,
    ) -> Result<Asked, ProveError> {
        if self.prover.is_none() {
            // Every tool that either side knows; where they differ, the later one's arguments.
            let mut schemas = self.old.schemas.clone();
            schemas.extend(self.new.schemas.clone());
            let known = schemas.iter().map(|(name, it)| (&**name, it));
            self.prover = Some(Prover::start(known)?);
        }
        let Some(prover) = &mut self.prover else { return Ok(Asked::Never) };
        self.found.asked += 1;
        let old = (against == Against::Rules).then_some(&self.old.rules);
        match prover.weaker(old, &self.new.rules, tool, most, within).await {
            Ok(None) => Ok(Asked::Never),
            Ok(Some(sketch)) => Ok(Asked::Sketch(Box::new(sketch))),
            Err(ProveError::NoSolver(why)) => Err(ProveError::NoSolver(why)),
            // A solver that failed once may be in any state.
            Err(it) => {
                self.prover = None;
                Ok(Asked::Gave(it.to_string()))
            }
        }
    }
}

enum Asked {
    Never,
    Sketch(Box<Sketch>),
    /// It gave no answer, and why.
    Gave(String),
}

impl Asked {
    fn is_never(&self) -> bool {
        matches!(self, Asked::Never)
    }
}
