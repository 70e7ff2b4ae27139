//! The operator's own rules over a call's arguments, in Cedar: layer 7 of the ruling. Pure: rules
//! are read once, checked against the tools' schemas, and then only looked up.
//!
//! A rule can only tighten. One that errs denies, and so do arguments that rules cannot read.

mod context;
mod draft;
mod engine;
mod example;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod literals;
mod load;
mod named;
mod number;
pub mod prove;
mod reads;
mod schema;
mod shape;
mod source;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use cedar_policy::{
    Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use chancery_domain::policy::{Reason, Ruling};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

pub use draft::Mistake;
pub use literals::{Contacts, Literals};

use engine::{Call, Condition};
use reads::Reads;
use shape::Fields;

const LAYER: &str = "arguments";

/// The rules that there are, by the tool that they are on.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    tools: BTreeMap<String, Governed>,
    count: usize,
    waiting: Vec<String>,
}

/// What a ruling on one call is made from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub agent: &'a str,
    pub role: &'a str,
    pub user: &'a str,
    pub tool: &'a str,
    /// Of the tool.
    pub capabilities: &'a [String],
    pub arguments: &'a Value,
    /// Of the person's own words, and of nobody else's.
    pub task: &'a Literals,
    pub contacts: &'a Contacts,
    pub now: Timestamp,
    /// Whose clock `context.time` shows.
    pub zone: &'a TimeZone,
}

impl Rules {
    /// Reads rules from files, each with its name and its text, and checks them against the
    /// tools, each with its name and the JSON Schema of its arguments.
    ///
    /// # Errors
    ///
    /// Every mistake in every file.
    pub fn load<'a>(
        files: &[(String, String)],
        tools: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Rules, Vec<Mistake>> {
        Rules::load_awaiting(files, tools, &[])
    }

    /// As [`Rules::load`], while tools whose names begin with one of `awaited` are not there yet.
    /// A rule that names such a tool waits, and what else it is on is denied until it is read
    /// again.
    ///
    /// # Errors
    ///
    /// Every mistake in every file.
    pub fn load_awaiting<'a>(
        files: &[(String, String)],
        tools: impl Iterator<Item = (&'a str, &'a Value)>,
        awaited: &[&str],
    ) -> Result<Rules, Vec<Mistake>> {
        load::load(files, tools, awaited)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The rules that wait for a tool, by name and place.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// What the rules say about a call, the strictest first. Nothing, if no rule matches.
    pub fn speak(&self, facts: &Facts<'_>) -> Vec<Reason> {
        if self.is_empty() {
            return Vec::new();
        }
        match self.tools.get(facts.tool) {
            Some(governed) => governed.speak(facts),
            None => vec![deny(
                "rules",
                format!("`{}` was not there when the rules were read", facts.tool),
            )],
        }
    }
}

/// A rule, ready.
#[derive(Debug)]
struct Rule {
    /// The id, with file and line.
    label: String,
    outcome: Ruling,
    detail: String,
    condition: Condition,
    reads: Reads,
}

/// A tool with the rules on it.
#[derive(Debug, Clone)]
struct Governed {
    fields: Arc<Fields>,
    rules: Vec<Arc<Rule>>,
    reads: Reads,
    action: EntityUid,
    resource: EntityUid,
    entities: Entities,
    /// Rules on this tool that cannot be checked yet.
    waiting: Vec<String>,
}

/// What one rule says about one call.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Matches,
    Errs(String),
}

impl Governed {
    fn new(tool: &str, group: Option<&str>, fields: Arc<Fields>) -> Governed {
        let action = uid("Action", tool);
        let parents: HashSet<EntityUid> = group.map(|it| uid("Action", it)).into_iter().collect();
        let entity = Entity::new_no_attrs(action.clone(), parents);
        Governed {
            fields,
            rules: Vec::new(),
            reads: Reads::default(),
            resource: uid("Tool", tool),
            // Invariant: one entity cannot be there twice, and it stands in no circle.
            entities: Entities::from_entities([entity], None).unwrap_or_default(),
            action,
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, rule: Arc<Rule>) {
        self.reads.merge(&rule.reads);
        self.rules.push(rule);
    }

    fn speak(&self, facts: &Facts<'_>) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = self.waiting.iter().map(|rule| waits(rule)).collect();
        if self.rules.is_empty() {
            return reasons;
        }
        match self.words(facts) {
            Ok(words) => reasons.extend(words.into_iter().map(|(rule, word)| match word {
                Word::Matches => Reason {
                    layer: LAYER.to_owned(),
                    rule: rule.label.clone(),
                    outcome: rule.outcome,
                    detail: rule.detail.clone(),
                },
                Word::Errs(why) => {
                    deny(&rule.label, format!("the rule could not be evaluated: {why}"))
                }
            })),
            Err(why) => reasons.push(deny(
                "rules",
                format!("the rules cannot read the arguments of `{}`: {why}", facts.tool),
            )),
        }
        reasons.sort_by_key(|it| std::cmp::Reverse(it.outcome));
        reasons
    }

    /// The rules that match or err, in the order in which they were read.
    fn words(&self, facts: &Facts<'_>) -> Result<Vec<(&Rule, Word)>, String> {
        let context = context::context(&self.fields, &self.reads.context, facts)?;
        let agent = uid("Agent", facts.agent);
        let with_agent;
        let entities = if self.reads.principal {
            let entity = principal(&agent, facts)?;
            let entities = self.entities.clone().add_entities([entity], None);
            with_agent = entities.map_err(|error| error.to_string())?;
            &with_agent
        } else {
            &self.entities
        };
        let request =
            Request::new(agent, self.action.clone(), self.resource.clone(), context, None)
                .map_err(|error| error.to_string())?;
        let call = Call::new(&request, entities);
        let word = |rule: &Rule| match call.matches(&rule.condition) {
            Ok(true) => Some(Word::Matches),
            Ok(false) => None,
            Err(why) => Some(Word::Errs(why)),
        };
        Ok(self.rules.iter().filter_map(|it| Some((&**it, word(it)?))).collect())
    }
}

fn principal(agent: &EntityUid, facts: &Facts<'_>) -> Result<Entity, String> {
    let text = |it: &str| RestrictedExpression::new_string(it.to_owned());
    let attributes = [("role".to_owned(), text(facts.role)), ("user".to_owned(), text(facts.user))];
    let parents = HashSet::from([uid("Role", facts.role)]);
    let entity = Entity::new(agent.clone(), attributes.into_iter().collect(), parents);
    entity.map_err(|error| error.to_string())
}

fn deny(rule: &str, detail: String) -> Reason {
    Reason { layer: LAYER.to_owned(), rule: rule.to_owned(), outcome: Ruling::Deny, detail }
}

fn waits(rule: &str) -> Reason {
    deny(rule, "the rule names a tool that is not there yet, and so cannot be checked".to_owned())
}

fn uid(of: &'static str, id: &str) -> EntityUid {
    static TYPES: LazyLock<BTreeMap<&str, EntityTypeName>> = LazyLock::new(|| {
        let names = ["Action", "Agent", "Role", "Tool"];
        names.into_iter().filter_map(|it| Some((it, it.parse().ok()?))).collect()
    });
    // Invariant: every call names one of the four.
    #[expect(clippy::indexing_slicing, reason = "the names are constants")]
    EntityUid::from_type_name_and_id(TYPES[of].clone(), EntityId::new(id))
}

#[cfg(test)]
mod tests;
