//! Calls on their way from a stream of fragments to a reply. Whatever the far side wrote for an
//! id, a call leaves here with one that no other call of the run has.

use std::collections::BTreeSet;

use super::fault::Fault;
use super::{Message, RawCall};

/// More calls in one answer are a model that repeats itself.
const CALLS_MAX: usize = 128;

/// Calls in the making, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    growing: Vec<Growing>,
}

#[derive(Debug)]
pub(super) struct Growing {
    /// The far side's number for it.
    pub(super) index: Option<u64>,
    /// Its place among the others.
    order: u64,
    pub(super) call: RawCall,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.growing.is_empty()
    }

    pub(super) fn begin(&mut self, index: Option<u64>) -> Result<&mut RawCall, Fault> {
        if self.growing.len() == CALLS_MAX {
            return Err(Fault::Malformed(format!("more than {CALLS_MAX} calls in one answer")));
        }
        let call = RawCall { id: String::new(), tool: String::new(), arguments: String::new() };
        let order = index.unwrap_or(self.growing.len() as u64);
        Ok(&mut self.growing.push_mut(Growing { index, order, call }).call)
    }

    /// The last one that fits: some servers use an index twice.
    pub(super) fn latest(&mut self, fits: impl Fn(&Growing) -> bool) -> Option<&mut RawCall> {
        self.growing.iter_mut().rev().find(|it| fits(it)).map(|it| &mut it.call)
    }

    pub(super) fn finish(self, earlier: &[Message]) -> Result<Vec<RawCall>, Fault> {
        let mut growing = self.growing;
        growing.sort_by_key(|it| it.order);
        let mut calls: Vec<RawCall> = growing.into_iter().map(|it| it.call).collect();
        for call in &mut calls {
            if call.tool.is_empty() {
                return Err(Fault::Malformed("a call names no tool".to_owned()));
            }
            // A tool without parameters gets no fragment of arguments.
            if call.arguments.trim().is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
        }
        tell_apart(&mut calls, earlier);
        Ok(calls)
    }
}

/// Gives an id to every call that has none of its own. They are numbered through the run, so
/// that the same conversation gives the same ids.
pub(super) fn tell_apart(calls: &mut [RawCall], earlier: &[Message]) {
    let mut taken: BTreeSet<String> = earlier
        .iter()
        .flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::User { .. } | Message::Tool { .. } => &[],
        })
        .map(|call| call.id.0.clone())
        .collect();
    let before = taken.len();
    // First those that keep theirs, so that no number is given that is used further on.
    let keeps: Vec<bool> =
        calls.iter().map(|call| !call.id.is_empty() && taken.insert(call.id.clone())).collect();
    let mut number = before;
    for (call, _) in calls.iter_mut().zip(keeps).filter(|(_, keeps)| !keeps) {
        loop {
            number += 1;
            call.id = format!("call_{number}");
            if taken.insert(call.id.clone()) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_domain::event::Call;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(earlier: &[&str], given: &[&str], expected: &[&str]) {
        let call = |id: &&str| {
            Arc::new(Call { id: (**id).into(), tool: "t".to_owned(), arguments: json!({}) })
        };
        let earlier =
            [Message::Assistant { text: String::new(), calls: earlier.iter().map(call).collect() }];
        let raw = |id: &&str| RawCall {
            id: (*id).to_owned(),
            tool: "t".to_owned(),
            arguments: "{}".to_owned(),
        };
        let mut calls: Vec<RawCall> = given.iter().map(raw).collect();
        tell_apart(&mut calls, &earlier);
        let ids: Vec<&str> = calls.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn an_id_of_its_own_is_kept() {
        check(&["x"], &["a", "b"], &["a", "b"]);
    }

    #[test]
    fn missing_repeated_and_used_ids_are_replaced() {
        check(&["x", "call_3"], &["", "a", "a", "x"], &["call_4", "a", "call_5", "call_6"]);
    }

    #[test]
    fn a_given_number_does_not_collide_with_one_further_on() {
        check(&[], &["", "call_1"], &["call_2", "call_1"]);
    }

    #[test]
    fn too_many_calls_are_no_answer() {
        let mut calls = Calls::default();
        for _ in 0..CALLS_MAX {
            calls.begin(None).unwrap();
        }
        assert!(calls.begin(None).is_err());
    }
}
