//! A ruling in words: which layer said what, by which rule, written where.

use super::compiled::Policy;
use super::{Bounds, Fitness, Layer, Question, Reason, Ruling, glob};
use crate::id::{AgentId, UserId};
use crate::org::{Place, Role, Stated};

/// The rule that arguments break which a tool does not take.
const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// What a layer says, before it is put in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub Ruling, pub Why);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The layer has nothing to go by.
    Silent,
    Known,
    UnknownAgent,
    Deactivated,
    Fits,
    UnknownTool,
    BadArguments,
    Delegated,
    NotDelegated,
    NotTheUsers,
    Bound,
    RoleDenies,
    NotBound,
    Risk,
    RiskWaived,
    Capability,
    /// Others have put it in words already.
    Said,
}

/// A ruling with everything that led to it. Putting it in words is left to those who read them.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'q> {
    policy: &'q Policy,
    question: Question<'q>,
    outcome: Ruling,
    words: [Word; 8],
}

impl<'q> Verdict<'q> {
    pub(super) fn new(policy: &'q Policy, question: Question<'q>, words: [Word; 8]) -> Self {
        // The strictest wins.
        let outcome = words.iter().fold(Ruling::Allow, |strictest, word| strictest.max(word.0));
        Verdict { policy, question, outcome, words }
    }

    pub fn outcome(&self) -> Ruling {
        self.outcome
    }

    /// Every layer that spoke, the strictest first, otherwise in their order.
    pub fn reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = (0..8).flat_map(|at| self.spoken(at)).collect();
        // Whether a call is theirs to make comes before how they made it: to say what a tool takes
        // is for those who have it.
        let unfit = |it: &Reason| it.rule == INVALID_ARGUMENTS;
        reasons.sort_by_key(|it| (std::cmp::Reverse(it.outcome), unfit(it)));
        reasons
    }

    /// What stood against the call: the reasons, without those that allow it.
    pub fn objections(&self) -> Vec<Reason> {
        let mut reasons = self.reasons();
        reasons.retain(|it| it.outcome > Ruling::Allow);
        reasons
    }

    /// The whole table: every layer in its order, those that had nothing to say with an empty
    /// rule.
    pub fn table(&self) -> Vec<Reason> {
        (0..8)
            .flat_map(|at| {
                let spoken = self.spoken(at);
                let silent = spoken.is_empty().then(|| Reason {
                    layer: Layer::of(at).as_str().to_owned(),
                    rule: String::new(),
                    outcome: Ruling::Allow,
                    detail: "nothing to go by".to_owned(),
                });
                spoken.into_iter().chain(silent)
            })
            .collect()
    }

    fn spoken(&self, at: usize) -> Vec<Reason> {
        let Word(outcome, why) = self.words[at];
        match (Layer::of(at), why) {
            (_, Why::Silent) => Vec::new(),
            (Layer::Arguments, _) => self.question.arguments.to_vec(),
            (Layer::Limits, _) => self.question.limits.to_vec(),
            (Layer::Capability, _) => self.capabilities(),
            (layer, why) => {
                let (rule, detail) = self.in_words(why);
                vec![Reason { layer: layer.as_str().to_owned(), rule, outcome, detail }]
            }
        }
    }

    fn in_words(&self, why: Why) -> (String, String) {
        let Question { agent, user, tool, .. } = self.question;
        match why {
            Why::Known => ("agents".to_owned(), format!("`{agent}` is who the server says")),
            Why::UnknownAgent => ("agents".to_owned(), format!("there is no agent `{agent}`")),
            Why::Deactivated => {
                let org = &self.policy.org;
                let place = org.agent(&AgentId::from(agent)).and_then(|it| it.place.as_ref());
                (placed("agents", place), format!("agent `{agent}` is deactivated"))
            }
            Why::Fits => ("schema".to_owned(), "the arguments fit".to_owned()),
            Why::UnknownTool => ("UNKNOWN_TOOL".to_owned(), format!("there is no tool `{tool}`")),
            Why::BadArguments => {
                let how = match self.question.fitness {
                    Fitness::BadArguments(how) => how,
                    _ => "",
                };
                let detail = format!("the arguments do not fit the schema of `{tool}`: {how}");
                (INVALID_ARGUMENTS.to_owned(), detail)
            }
            Why::Delegated => {
                ("delegated_permissions".to_owned(), format!("`{tool}` is within the delegation"))
            }
            Why::NotDelegated => match self.question.delegated {
                Some(given) => refusal(given.bounds(), tool, "of the run's delegation", ""),
                None => Default::default(),
            },
            Why::NotTheUsers => match self.policy.org.users.get(&UserId::from(user)) {
                Some(own) => {
                    let (list, detail) =
                        refusal(&own.bounds, tool, &format!("of user `{user}`"), user);
                    (placed(&list, own.place.as_ref()), detail)
                }
                None => Default::default(),
            },
            Why::Bound | Why::RoleDenies | Why::NotBound => self.role_words(why),
            Why::Risk => self.risk_words(),
            Why::RiskWaived => {
                let (rule, _) = self.role_words(Why::Bound);
                let risk = self.risk();
                (rule, format!("`{tool}` is of {risk} risk, and the role lists it by its name"))
            }
            Why::Silent | Why::Capability | Why::Said => Default::default(),
        }
    }

    fn role_words(&self, why: Why) -> (String, String) {
        let Question { agent, tool, .. } = self.question;
        let Some(role) = self.policy.org.role_of(&AgentId::from(agent)) else {
            return Default::default();
        };
        let id = &role.id;
        let rule = |list: &str, place| placed(&format!("{id}.{list}"), place);
        match why {
            Why::RoleDenies => {
                let entry = matching(&role.deny_tools, tool);
                let pattern = entry.map_or(tool, |it| &it.value);
                let place = entry.and_then(|it| it.place.as_ref());
                let detail =
                    format!("`{tool}` matches `{pattern}` in the denied tools of role `{id}`");
                (rule("deny_tools", place), detail)
            }
            Why::NotBound => {
                let detail = format!("`{tool}` is not among the tools of role `{id}`");
                (rule("tools", listed(role)), detail)
            }
            _ => match role.tools.as_deref().and_then(|it| matching(it, tool)) {
                Some(entry) => {
                    let detail =
                        format!("role `{id}` binds `{tool}` by its entry `{}`", entry.value);
                    (rule("tools", entry.place.as_ref()), detail)
                }
                None => (rule("tools", role.place.as_ref()), format!("role `{id}` has no limit")),
            },
        }
    }

    fn risk(&self) -> &'static str {
        self.policy.facts(self.question.tool).map_or("unknown", |it| it.risk.as_str())
    }

    fn risk_words(&self) -> (String, String) {
        let tool = self.question.tool;
        let Some(facts) = self.policy.facts(tool) else { return Default::default() };
        let stated = self.policy.org.policy.risk.get(&facts.risk);
        let rule =
            placed(&format!("risk.{}", self.risk()), stated.and_then(|it| it.place.as_ref()));
        (rule, format!("`{tool}` is of {} risk", self.risk()))
    }

    /// One reason for every rule over the tool or what it is capable of.
    fn capabilities(&self) -> Vec<Reason> {
        let tool = self.question.tool;
        let Some(facts) = self.policy.facts(tool) else { return Vec::new() };
        let rules = &self.policy.org.policy;
        let reason = |rule: String, stated: &Stated<Ruling>, detail: String| Reason {
            layer: Layer::Capability.as_str().to_owned(),
            rule: placed(&rule, stated.place.as_ref()),
            outcome: stated.value,
            detail,
        };
        let of = facts.capabilities.iter().filter_map(|it| rules.capabilities.get_key_value(it));
        let of = of.map(|(name, stated)| {
            let detail = format!("`{tool}` has the capability `{name}`: {}", said(stated.value));
            reason(format!("capabilities.{name}"), stated, detail)
        });
        let own = rules.tools.iter().filter(|(entry, _)| glob(entry, tool));
        let own = own.map(|(entry, stated)| {
            let detail = format!("the policy says of `{entry}`: {}", said(stated.value));
            reason(format!("tools.{entry}"), stated, detail)
        });
        of.chain(own).collect()
    }
}

fn said(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Allow => "allowed",
        Ruling::RequireApproval => "someone must approve it",
        Ruling::RequireHuman => "a person must approve it",
        Ruling::Deny => "denied",
    }
}

/// A rule's name, with the place where it is written.
pub(crate) fn placed(rule: &str, place: Option<&Place>) -> String {
    match place {
        Some(place) => format!("{rule} ({place})"),
        None => rule.to_owned(),
    }
}

fn matching<'l>(list: &'l [Stated<String>], tool: &str) -> Option<&'l Stated<String>> {
    let exact = list.iter().find(|it| it.value == tool);
    exact.or_else(|| list.iter().find(|it| glob(&it.value, tool)))
}

/// Where a role's list begins, or the role itself.
fn listed(role: &Role) -> Option<&Place> {
    let first = role.tools.as_ref().and_then(|it| it.first());
    first.and_then(|it| it.place.as_ref()).or(role.place.as_ref())
}

/// Which of two lists stands against a tool, and a sentence.
fn refusal(bounds: &Bounds, tool: &str, whose: &str, owner: &str) -> (String, String) {
    let owner = if owner.is_empty() { String::new() } else { format!("{owner}.") };
    match bounds.denied_tools.iter().find(|entry| glob(entry, tool)) {
        Some(entry) => (
            format!("{owner}denied_tools"),
            format!("`{tool}` matches `{entry}` in the denied tools {whose}"),
        ),
        None => (
            format!("{owner}allowed_tools"),
            format!("`{tool}` is not among the allowed tools {whose}"),
        ),
    }
}
