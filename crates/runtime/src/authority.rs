//! The law in force: one version of the organisation with the tools that there are, compiled.
//! [`Authority::judge`] asks the one function that rules; the gate, the doors and the command
//! line all ask it here.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use chancery_domain::contract::Warrant;
use chancery_domain::event::{Call, Created};
use chancery_domain::id::{AgentId, RoleId};
use chancery_domain::org::Org;
use chancery_domain::policy::{
    Delegation, Fitness, Policy, Question, Reason, Ruling, ToolFacts, Verdict,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::rules::{Contacts, Facts, Literals, Mistake, Rules};
use crate::tool::{Caller, Tools};

/// One version, unchanging. A run may meet several in its life, a ruling only one.
#[derive(Debug)]
pub struct Authority {
    policy: Policy,
    tools: Arc<Tools>,
    /// The operator's own rules over arguments, and the files that they were read from.
    rules: Rules,
    rule_files: Arc<[(String, String)]>,
    /// Whom each role may write to, as the rules see it.
    contacts: BTreeMap<RoleId, Contacts>,
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
    pub given: Given<'c>,
    /// Of the person's own words; absent where nobody said any.
    pub task: Option<&'c Literals>,
    pub now: Timestamp,
    /// What the caller's contracts let it reach.
    pub warrant: &'c Warrant,
    /// What the record has against it that its arguments do not show.
    pub record: Option<&'c Reason>,
    /// What budgets said.
    pub limits: &'c [Reason],
}

/// What is known of a call's arguments.
#[derive(Debug, Clone, Copy)]
pub enum Given<'c> {
    /// They are to be held against the tool's schema and the rules.
    Whole,
    /// They are none that any tool takes, and why.
    Unfit(&'c Fitness),
    /// Nobody gave any: they are left aside.
    Aside,
}

/// A ruling with its reasons, deciding ones first.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgment {
    pub ruling: Ruling,
    pub reasons: Vec<Reason>,
}

impl Authority {
    /// An organisation without rules of its own over arguments.
    pub fn new(org: Arc<Org>, tools: Arc<Tools>) -> Authority {
        Authority::compiled(org, tools, Rules::default(), Arc::new([]))
    }

    /// With rules over arguments, read from files: each with its name and its text.
    pub fn under(
        org: Arc<Org>,
        tools: Arc<Tools>,
        rule_files: Arc<[(String, String)]>,
    ) -> Result<Authority, Vec<Mistake>> {
        let specs = tools.specs().map(|it| (&*it.name, &it.parameters));
        let rules = Rules::load_awaiting(&rule_files, specs, &tools.awaited())?;
        Ok(Authority::compiled(org, tools, rules, rule_files))
    }

    fn compiled(
        org: Arc<Org>,
        tools: Arc<Tools>,
        rules: Rules,
        rule_files: Arc<[(String, String)]>,
    ) -> Authority {
        let arrived = tools.arrived();
        let contacts = org.roles().map(|it| (it.id.clone(), Contacts::of(it.contacts.keys())));
        let contacts = contacts.collect();
        let facts = tools.specs().map(|spec| ToolFacts {
            name: spec.name.clone(),
            risk: spec.risk,
            capabilities: spec.capabilities.clone(),
            place: None,
        });
        let policy = Policy::new(org, facts);
        Authority { policy, tools, rules, rule_files, contacts, arrived }
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
        let fitness = match case.given {
            Given::Unfit(unfit) => unfit.clone(),
            Given::Whole => self.tools.fitness(case.call),
            Given::Aside if self.tools.spec(&case.call.tool).is_none() => Fitness::UnknownTool,
            Given::Aside => Fitness::Fits,
        };
        let arguments = match case.given {
            // Rules over arguments speak of what the schema has let through.
            Given::Whole if fitness == Fitness::Fits => self.on_arguments(&case),
            _ => Vec::new(),
        };
        then(self.policy.rule(Question {
            agent: case.agent,
            user: case.user,
            tool: &case.call.tool,
            delegated: case.delegated,
            fitness: &fitness,
            arguments: &arguments,
            limits: case.limits,
        }))
    }
}

impl Authority {
    /// Whether rules may want to know what the person said.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    fn on_arguments(&self, case: &Case<'_>) -> Vec<Reason> {
        let Some(role) = self.org().role_of(&AgentId::from(case.agent)) else { return Vec::new() };
        let caller = Caller { agent: case.agent, role, org: self.org(), warrant: case.warrant };
        let touched = self.tools.touches(case.call, caller).into_iter();
        let mut said: Vec<Reason> = touched.filter_map(|it| it.rule(caller)).collect();
        said.extend(case.record.cloned());
        if self.has_rules() {
            let (nothing, nobody) = (Literals::default(), Contacts::default());
            said.extend(self.rules.speak(&Facts {
                agent: case.agent,
                role: role.id.as_str(),
                user: case.user,
                tool: &case.call.tool,
                capabilities: self.tools.spec(&case.call.tool).map_or(&[], |it| &it.capabilities),
                arguments: &case.call.arguments,
                task: case.task.unwrap_or(&nothing),
                contacts: self.contacts.get(&role.id).unwrap_or(&nobody),
                now: case.now,
                zone: &TimeZone::UTC,
            }));
        }
        said
    }
}

impl Authority {
    /// The same version, with the tools that have come since it was compiled.
    fn with_what_came(&self) -> Authority {
        let (org, tools, files) = (self.org().clone(), self.tools.clone(), self.rule_files.clone());
        match Authority::under(org.clone(), tools.clone(), files.clone()) {
            Ok(with_all) => with_all,
            Err(mistakes) => {
                // Those that waited for a tool go on denying what they are about.
                for it in mistakes {
                    tracing::error!("A rule does not fit a tool that has come: {it}");
                }
                Authority::compiled(org, tools, self.rules.clone(), files)
            }
        }
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
            let with_all = Arc::new(current.with_what_came());
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
