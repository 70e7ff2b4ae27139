//! The law in force: one version of the organisation with the tools that there are, compiled.
//! [`Authority::judge`] asks the one function that rules; the gate, the doors and the command
//! line all ask it here.

use std::sync::{Arc, PoisonError, RwLock};

use chancery_domain::event::{Call, Created};
use chancery_domain::org::Org;
use chancery_domain::policy::{
    Delegation, Fitness, Policy, Question, Reason, Ruling, ToolFacts, Verdict,
};

use crate::tool::Tools;

/// One version, unchanging. A run may meet several in its life, a ruling only one.
#[derive(Debug)]
pub struct Authority {
    policy: Policy,
    tools: Arc<Tools>,
    /// How many of the sources that come later had come when this was compiled.
    arrived: usize,
}

/// The version that holds now. All clones are one.
#[derive(Debug, Clone)]
pub struct InForce(Arc<RwLock<Arc<Authority>>>);

/// One call, with everything that bears on it.
#[derive(Debug, Clone, Copy)]
pub struct Case<'c> {
    pub agent: &'c str,
    pub user: &'c str,
    pub delegated: Option<&'c Delegation>,
    pub call: &'c Call,
    /// What is known of the call beside what its tool's schema says.
    pub unfit: Option<&'c Fitness>,
    /// What budgets said.
    pub limits: &'c [Reason],
}

/// A ruling with its reasons, deciding ones first.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgment {
    pub ruling: Ruling,
    pub reasons: Vec<Reason>,
}

impl Authority {
    pub fn new(org: Arc<Org>, tools: Arc<Tools>) -> Authority {
        let arrived = tools.arrived();
        let facts = tools.specs().map(|spec| ToolFacts {
            name: spec.name.clone(),
            risk: spec.risk,
            capabilities: spec.capabilities.clone(),
            place: None,
        });
        Authority { policy: Policy::new(org, facts), tools, arrived }
    }

    pub fn org(&self) -> &Arc<Org> {
        self.policy.org()
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn tools(&self) -> &Arc<Tools> {
        &self.tools
    }

    /// What a run was given, ready to be asked.
    pub fn delegation(&self, created: &Created) -> Option<Delegation> {
        created.delegated.as_ref().map(|bounds| self.policy.delegation(bounds))
    }

    pub fn judge(&self, case: Case<'_>) -> Judgment {
        self.with_verdict(case, |verdict| Judgment {
            ruling: verdict.outcome(),
            // An allow that nobody asked about needs no words.
            reasons: if verdict.outcome() == Ruling::Allow {
                Vec::new()
            } else {
                verdict.objections()
            },
        })
    }

    /// Every layer's word, for those who ask what would happen.
    pub fn explain(&self, case: Case<'_>) -> (Judgment, Vec<Reason>) {
        self.with_verdict(case, |verdict| {
            let judgment = Judgment { ruling: verdict.outcome(), reasons: verdict.reasons() };
            (judgment, verdict.table())
        })
    }

    fn with_verdict<T>(&self, case: Case<'_>, then: impl FnOnce(Verdict<'_>) -> T) -> T {
        let fitness = match case.unfit {
            Some(unfit) => unfit.clone(),
            None => self.tools.fitness(case.call),
        };
        then(self.policy.rule(Question {
            agent: case.agent,
            user: case.user,
            tool: &case.call.tool,
            delegated: case.delegated,
            fitness: &fitness,
            arguments: &[],
            limits: case.limits,
        }))
    }
}

impl InForce {
    pub fn new(authority: Authority) -> InForce {
        InForce(Arc::new(RwLock::new(Arc::new(authority))))
    }

    pub fn get(&self) -> Arc<Authority> {
        loop {
            let current = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
            if current.arrived == current.tools.arrived() {
                return current;
            }
            // A server's tools have come since: they are under the same law, unless another was
            // put in force meanwhile.
            let with_all = Arc::new(Authority::new(current.org().clone(), current.tools.clone()));
            let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&current, &in_force) {
                *in_force = with_all;
            }
        }
    }

    /// Puts another version in force. Rulings under way end under the one that they began with.
    pub fn replace(&self, authority: Authority) -> Arc<Authority> {
        let authority = Arc::new(authority);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = authority.clone();
        authority
    }
}
