//! What the logs say beside what the far side saw.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Everything about one call, by its idempotency key.
#[derive(Debug, Default)]
struct Life {
    starts: usize,
    finishes: usize,
    unknown: usize,
    /// A person said: run it again. Or its tool may be.
    again: usize,
}

/// The figures of a whole test.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub runs: usize,
    pub calls: usize,
    pub finished: usize,
    /// Calls that had started when a server died, as the log says it.
    pub unknown: usize,
    /// Of these, the ones that had had their effect.
    pub unknown_took_effect: usize,
}

/// Holds every log against the effects, and answers with the figures. Panics at the first
/// effect too many, effect too few, or gap.
pub fn audit(logs: &BTreeMap<String, Vec<Value>>, effects: &BTreeMap<String, usize>) -> Figures {
    let mut lives = BTreeMap::new();
    for (run, log) in logs {
        read(run, log, &mut lives);
    }
    let known: BTreeSet<&String> = lives.keys().collect();
    let strays: Vec<_> = effects.keys().filter(|key| !known.contains(key)).collect();
    assert!(strays.is_empty(), "effects without a durable start: {strays:?}");
    let mut figures = Figures { runs: logs.len(), ..Figures::default() };
    for (key, life) in &lives {
        let happened = effects.get(key).copied().unwrap_or(0);
        let said = format!("{key} had its effect {happened} times: {life:?}");
        assert_eq!(life.starts, 1 + life.again, "{said}");
        assert!(life.finishes <= 1, "{said}");
        assert!(happened <= life.starts, "more effects than starts: {said}");
        if life.finishes == 1 {
            assert!(happened >= 1, "finished without an effect: {said}");
        } else {
            assert_eq!(life.unknown, life.starts, "neither finished nor unknown: {said}");
        }
        figures.calls += 1;
        figures.finished += life.finishes;
        figures.unknown += life.unknown;
        figures.unknown_took_effect += happened - life.finishes.min(happened);
    }
    figures
}

fn read(run: &str, log: &[Value], lives: &mut BTreeMap<String, Life>) {
    // By the call's id, within the batch that is open.
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for (place, event) in log.iter().enumerate() {
        assert_eq!(event["seq"], place as u64 + 1, "{run} has a gap: {event}");
        let data = &event["data"];
        let call = data["call"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "batch.proposed" => {
                keys.clear();
                for proposal in data["calls"].as_array().unwrap() {
                    let call = &proposal["call"];
                    // A wait has no effect in the world, and no finish of its own.
                    if call["tool"] != "wait_for_signal" {
                        keys.insert(call["id"].as_str().unwrap().to_owned(), String::new());
                    }
                }
            }
            "tool.started" if keys.contains_key(&call) => {
                let key = data["idempotency_key"].as_str().unwrap().to_owned();
                let life: &mut Life = lives.entry(key.clone()).or_default();
                assert_eq!(life.finishes, 0, "{run} runs a finished call again: {log:#?}");
                life.starts += 1;
                keys.insert(call, key);
            }
            kind => {
                let Some(life) = keys.get(&call).and_then(|key| lives.get_mut(key)) else {
                    continue;
                };
                match kind {
                    "tool.finished" if data["result"]["code"] == "OUTCOME_UNKNOWN" => {
                        life.unknown += 1;
                    }
                    "tool.finished" => {
                        assert_eq!(data["result"]["is_error"], Value::Null, "{run}: {event}");
                        life.finishes += 1;
                    }
                    "permission.requested" => life.unknown += 1,
                    "tool.retried" => {
                        life.unknown += 1;
                        life.again += 1;
                    }
                    "permission.updated" if data["decision"] == "granted" => life.again += 1,
                    _ => {}
                }
            }
        }
    }
}
