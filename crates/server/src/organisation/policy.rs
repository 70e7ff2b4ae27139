//! `policy.yaml`: what is asked and what is refused, whoever calls.

use chancery_domain::policy::Risk;

use super::draft::{Draft, To};
use super::mistake::{Mistakes, meant};
use super::read::{Table, listed, map, ruling};
use super::tree::Node;

pub const RISKS: [Risk; 3] = [Risk::Low, Risk::Medium, Risk::High];

pub fn read(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let keys = &["extends", "risk", "capabilities", "tools"];
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
}
