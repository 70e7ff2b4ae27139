//! One call before all eight layers.

use std::sync::Arc;

use chancery_domain::id::{AgentId, UserId};
use chancery_domain::org::{self, Org, PolicyRules, Role, Stated, User};
use chancery_domain::policy::{Bounds, Fitness, Policy, Question, Reason, Risk, Ruling, ToolFacts};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    agent: Option<Agent>,
    tool: String,
    facts: Option<Facts>,
    fit: Fit,
    delegated: Option<Bounds>,
    person: Option<Bounds>,
    arguments: Vec<Ruling>,
    limits: Vec<Ruling>,
    is: Ruling,
    offers: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    active: bool,
    tools: Option<Vec<String>>,
    deny_tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    risk: Ruling,
    capabilities: Vec<Ruling>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fit {
    Fits,
    UnknownTool,
    BadArguments,
}

impl Asked {
    pub fn holds(&self) -> bool {
        let policy = self.policy();
        let delegated = self.delegated.as_ref().map(|it| policy.delegation(it));
        let fitness = match self.fit {
            Fit::Fits => Fitness::Fits,
            Fit::UnknownTool => Fitness::UnknownTool,
            Fit::BadArguments => Fitness::BadArguments("they do not".to_owned()),
        };
        let verdict = policy
            .rule(Question {
                agent: "ann",
                user: "lin",
                tool: &self.tool,
                delegated: delegated.as_ref(),
                fitness: &fitness,
                arguments: &reasons("arguments", &self.arguments),
                limits: &reasons("limits", &self.limits),
            })
            .outcome();
        let offers = policy.offers("ann", "lin", delegated.as_ref(), &self.tool);
        (verdict, offers) == (self.is, self.offers)
    }

    fn policy(&self) -> Policy {
        let stated = |list: &[String]| list.iter().cloned().map(Stated::from).collect::<Vec<_>>();
        let role = self.agent.as_ref().map(|it| Role {
            tools: it.tools.as_deref().map(stated),
            deny_tools: stated(&it.deny_tools),
            ..Role::unlimited("clerk")
        });
        let agent = self.agent.as_ref().map(|it| {
            (AgentId::from("ann"), org::Agent { active: it.active, ..org::Agent::of("clerk") })
        });
        let mut org = Org::new(role, agent).unwrap();
        if let Some(bounds) = &self.person {
            let user = User { bounds: bounds.clone(), ..User::default() };
            org.users.insert(UserId::from("lin"), user);
        }
        let Some(facts) = &self.facts else { return Policy::new(Arc::new(org), []) };
        // The first rule is over what the tool can do, a second one over the tool itself.
        let mut rules = PolicyRules::default();
        rules.risk.insert(Risk::High, facts.risk.into());
        for (name, ruling) in ["power", "a*"].into_iter().zip(&facts.capabilities) {
            let of = if name == "power" { &mut rules.capabilities } else { &mut rules.tools };
            of.insert(name.to_owned(), (*ruling).into());
        }
        org.policy = rules;
        let tool = ToolFacts {
            name: self.tool.clone(),
            risk: Risk::High,
            capabilities: vec!["power".to_owned()],
            place: None,
        };
        Policy::new(Arc::new(org), [tool])
    }
}

fn reasons(layer: &str, rulings: &[Ruling]) -> Vec<Reason> {
    let reason = |outcome: &Ruling| Reason {
        layer: layer.to_owned(),
        rule: "a rule".to_owned(),
        outcome: *outcome,
        detail: "so it is".to_owned(),
    };
    rulings.iter().map(reason).collect()
}
