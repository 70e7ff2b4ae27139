//! `policy.yaml`: what is asked and what is refused, whoever calls.

use chancery_domain::org::Stated;
use chancery_domain::policy::Risk;

use super::draft::{Draft, To};
use super::mistake::{Mistakes, meant};
use super::read::{Table, listed, map, ruling, whole};
use super::tree::Node;

/// More than any run uses up.
const NUMBER_MAX: u32 = 1_000_000_000;
pub const RISKS: [Risk; 3] = [Risk::Low, Risk::Medium, Risk::High];

pub fn read(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let keys = &["extends", "risk", "capabilities", "tools", "limits"];
    let Some(file) = Table::read(node, "", keys, mistakes) else { return };
    let section = |name: &str, mistakes: &mut Mistakes| {
        file.get(name).and_then(|it| map(it, name, mistakes)).unwrap_or_default()
    };
    for (key, node) in section("risk", mistakes) {
        let Some(risk) = RISKS.into_iter().find(|it| it.as_str() == key.name) else {
            let words = RISKS.map(Risk::as_str);
            let detail = format!("there is no risk `{}`: {}", key.name, listed(&words));
            mistakes.add_with(key.at, "E105", detail, meant(&key.name, words));
            continue;
        };
        if let Some(stated) = ruling(node, &format!("risk.{}", key.name), mistakes) {
            draft.policy.risk.insert(risk, stated);
        }
    }
    for (key, node) in section("capabilities", mistakes) {
        draft.refer(To::Capability, &key.name, key.at, "capabilities");
        if let Some(stated) = ruling(node, &format!("capabilities.{}", key.name), mistakes) {
            draft.policy.capabilities.insert(key.name.clone(), stated);
        }
    }
    for (key, node) in section("tools", mistakes) {
        draft.refer(To::Tool, &key.name, key.at, "tools");
        if let Some(stated) = ruling(node, &format!("tools.{}", key.name), mistakes) {
            draft.policy.tools.insert(key.name.clone(), stated);
        }
    }
    if let Some(node) = file.get("limits") {
        limits(node, draft, mistakes);
    }
}

fn limits(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let keys = &["run_tokens", "run_steps", "calls_per_minute"];
    let Some(table) = Table::read(node, "limits", keys, mistakes) else { return };
    let number = |node: &Node, path: &str, mistakes: &mut Mistakes| {
        let value = whole(node, path, 0..=NUMBER_MAX, mistakes)?;
        Some(Stated { value, place: Some(node.at.place()) })
    };
    let mut of = |name: &str| number(table.get(name)?, &format!("limits.{name}"), mistakes);
    (draft.policy.limits.run_tokens, draft.policy.limits.run_steps) =
        (of("run_tokens"), of("run_steps"));
    let Some(node) = table.get("calls_per_minute") else { return };
    for (key, node) in map(node, "limits.calls_per_minute", mistakes).unwrap_or_default() {
        draft.refer(To::Tool, &key.name, key.at, "limits.calls_per_minute");
        let path = format!("limits.calls_per_minute.{}", key.name);
        if let Some(stated) = number(node, &path, mistakes) {
            draft.policy.limits.calls_per_minute.insert(key.name.clone(), stated);
        }
    }
}
