//! Bounds that meet, and chains of delegation.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_domain::id::{AgentId, UserId};
use chancery_domain::org::{Agent, Org, Role, Stated, User};
use chancery_domain::policy::{Bounds, Policy, Risk, ToolFacts};
use serde::Deserialize;

const TOOLS: [&str; 3] = ["a", "ab", "b"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    known: Vec<String>,
    a: Bounds,
    is: Bounds,
    permits: [bool; 3],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meet {
    known: Vec<String>,
    a: Bounds,
    b: Bounds,
    is: Bounds,
    permits: [bool; 3],
}

/// One escalation: what there was, who handed on, for whom, and what the call asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    n: usize,
    known: Vec<String>,
    role: Option<Bounds>,
    user: Option<Bounds>,
    asked: Option<Bounds>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    given: Option<Bounds>,
    links: Vec<usize>,
    is: Bounds,
    permits: [bool; 3],
}

impl Named {
    pub fn holds(&self) -> bool {
        let named = self.a.named(self.known.iter().map(String::as_str));
        named == self.is && TOOLS.map(|it| named.permits(it)) == self.permits
    }
}

impl Meet {
    pub fn holds(&self) -> bool {
        let met = self.a.meet(&self.b, self.known.iter().map(String::as_str));
        met == self.is && TOOLS.map(|it| met.permits(it)) == self.permits
    }
}

/// The links as the code knows them, and what came of the chains so far.
#[derive(Debug, Default)]
pub struct Chains {
    links: Vec<(Link, Policy)>,
    met: HashMap<(bool, Vec<usize>), Bounds>,
}

impl Chains {
    pub fn add(&mut self, link: &Link) -> bool {
        let in_order = link.n == self.links.len();
        self.links.push((link.clone(), link.policy()));
        in_order
    }

    pub fn holds(&mut self, row: &Chain) -> bool {
        let Some((last, above)) = row.links.split_last() else { return false };
        let limited = row.given.is_some();
        let parent = match above {
            [] => row.given.as_ref(),
            above => self.met.get(&(limited, above.to_vec())),
        };
        let (link, policy) = &self.links[*last];
        let (agent, user) = (AgentId::from("ann"), UserId::from("lin"));
        let met = policy.delegate(parent, &agent, &user, link.asked.as_ref());
        let same = met == row.is && TOOLS.map(|it| met.permits(it)) == row.permits;
        self.met.insert((limited, row.links.clone()), met);
        same
    }
}

impl Link {
    fn policy(&self) -> Policy {
        let stated = |list: &[String]| list.iter().cloned().map(Stated::from).collect::<Vec<_>>();
        let role = self.role.as_ref().map(|it| Role {
            tools: it.allowed_tools.as_deref().map(stated),
            deny_tools: stated(&it.denied_tools),
            ..Role::unlimited("lead")
        });
        let agent = role.as_ref().map(|_| (AgentId::from("ann"), Agent::of("lead")));
        let mut org = Org::new(role, agent).unwrap();
        if let Some(bounds) = &self.user {
            let user = User { bounds: bounds.clone(), ..User::default() };
            org.users.insert(UserId::from("lin"), user);
        }
        let facts = self.known.iter().map(|name| ToolFacts {
            name: name.clone(),
            risk: Risk::Low,
            capabilities: vec![],
            place: None,
        });
        Policy::new(Arc::new(org), facts)
    }
}
