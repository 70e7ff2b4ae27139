//! What a run may use up, and how often an agent may call a tool.

use std::collections::BTreeMap;

use super::{Layer, Reason, Ruling, glob};
use crate::event::{Event, Usage};
use crate::org::Stated;

/// What is absent has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a run and of all the runs of its tree, together.
    pub run_tokens: Option<Stated<u32>>,
    /// How often a run may hear its model.
    pub run_steps: Option<Stated<u32>>,
    /// How often in a minute one agent may call a tool, by name or glob; of those that match,
    /// the lowest counts.
    pub calls_per_minute: BTreeMap<String, Stated<u32>>,
}

/// What a run has used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub tokens: u64,
    pub steps: u64,
}

impl Spent {
    /// With one more answer of the model.
    pub fn with(self, usage: Usage) -> Spent {
        let more = usage.input_tokens.saturating_add(usage.output_tokens);
        Spent { tokens: self.tokens.saturating_add(more), steps: self.steps + 1 }
    }

    /// With what an event tells of.
    pub fn after(self, event: &Event) -> Spent {
        match event {
            Event::BatchProposed(_) | Event::TurnEnded(_) | Event::Completed(_) => {
                self.with(event.usage())
            }
            // What a child used is charged here; its steps were its own. What is explained to a
            // person is no step of the run.
            Event::ChildEnded(_) | Event::PermissionExplained(_) => {
                Spent { steps: self.steps, ..self.with(event.usage()) }
            }
            _ => self,
        }
    }
}

impl Limits {
    /// What stands against any further call of a run.
    pub fn rule_on(&self, spent: Spent) -> Vec<Reason> {
        let over = |limit: &Option<Stated<u32>>, spent: u64, name: &str, what: &str| {
            let limit = limit.as_ref().filter(|it| spent > u64::from(it.value))?;
            let detail = format!("the run has used up {spent} of {} {what}", limit.value);
            Some(reason(name, limit, detail))
        };
        [
            over(&self.run_tokens, spent.tokens, "limits.run_tokens", "tokens"),
            over(&self.run_steps, spent.steps, "limits.run_steps", "steps"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// How often in a minute a tool may be called.
    pub fn rate(&self, tool: &str) -> Option<u32> {
        self.lowest(tool).map(|(_, it)| it.value)
    }

    /// What stands against one call too many.
    pub fn too_often(&self, agent: &str, tool: &str) -> Option<Reason> {
        let (entry, limit) = self.lowest(tool)?;
        let detail = format!("`{agent}` calls `{tool}` more than {} times a minute", limit.value);
        Some(reason(&format!("limits.calls_per_minute.{entry}"), limit, detail))
    }

    fn lowest(&self, tool: &str) -> Option<(&String, &Stated<u32>)> {
        let of = self.calls_per_minute.iter().filter(|(entry, _)| glob(entry, tool));
        of.min_by_key(|(_, it)| it.value)
    }
}

fn reason(rule: &str, limit: &Stated<u32>, detail: String) -> Reason {
    let place = limit.place.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let (layer, rule) = (Layer::Limits.as_str().to_owned(), format!("{rule}{place}"));
    Reason { layer, rule, outcome: Ruling::Deny, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_to_the_last_is_not_overdrawn() {
        let limits =
            Limits { run_tokens: Some(10.into()), run_steps: Some(2.into()), ..Limits::default() };
        let rules = |tokens, steps| {
            let said = limits.rule_on(Spent { tokens, steps });
            said.into_iter().map(|it| it.rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(10, 2), [""; 0]);
        assert_eq!(rules(11, 2), ["limits.run_tokens"]);
        assert_eq!(rules(u64::MAX, 3), ["limits.run_tokens", "limits.run_steps"]);
        assert_eq!(Limits::default().rule_on(Spent { tokens: u64::MAX, steps: u64::MAX }), []);
        let most = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
        assert_eq!(Spent::default().with(most).with(most).tokens, u64::MAX);
    }

    #[test]
    fn of_several_rates_the_lowest_counts() {
        let entries = [("pay", 9), ("p*", 3), ("*", 60)];
        let calls_per_minute = entries.map(|(it, n)| (it.to_owned(), n.into())).into();
        let limits = Limits { calls_per_minute, ..Limits::default() };
        assert_eq!(["pay", "push", "note"].map(|it| limits.rate(it)), [Some(3), Some(3), Some(60)]);
        let said = limits.too_often("pa", "pay").unwrap();
        assert_eq!((&*said.rule, said.outcome), ("limits.calls_per_minute.p*", Ruling::Deny));
        assert_eq!(Limits::default().rate("pay"), None);
    }
}
