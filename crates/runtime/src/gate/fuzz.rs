//! Calls as a model wrote them: a door for the fuzzer.

use std::collections::HashSet;

use super::raw;
use crate::fuzz::halves;
use crate::model::RawCall;

/// The same id twice, with any arguments.
pub fn raw_arguments(data: &[u8]) {
    let (id, arguments) = halves(data);
    let (id, arguments) = (String::from_utf8_lossy(id), String::from_utf8_lossy(arguments));
    let call = || RawCall {
        id: id.clone().into_owned(),
        tool: "t".to_owned(),
        arguments: arguments.clone().into_owned(),
    };
    let mut ids = HashSet::new();
    for raw::Read { call, unfit } in raw::read(vec![call(), call(), call()]) {
        assert!(ids.insert(call.id.clone()), "{:?} twice", call.id);
        assert!(call.id.0.chars().all(|it| it.is_ascii_graphic()), "{:?}", call.id);
        // What stands in the log must be readable from there.
        let kept = serde_json::to_string(&call).unwrap_or_default();
        let read: Result<serde_json::Value, _> = serde_json::from_str(&kept);
        assert!(read.is_ok() || unfit.is_some(), "{kept}");
    }
}
