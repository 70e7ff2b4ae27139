//! Doors for a fuzzer to all that reads what others wrote. Each takes any bytes, and panics where
//! something does not hold that must. Only built with the feature `fuzz`.

pub use crate::gate::fuzz::raw_arguments;
pub use crate::mailroom::fuzz::letters;
pub use crate::model::fuzz::{anthropic, openai};
pub use crate::rules::fuzz::{arguments, literals, rules};
pub use crate::tool::mcp::fuzz::{mcp_result, mcp_tool};
pub use crate::tool::web::fuzz::web_page;

use serde_json::Value;

use crate::courier::signature;
use crate::digest::sha256;

/// A value has one canonical form, which is the form of what it says; and another value another.
pub fn canonical(data: &[u8]) {
    let (one, other) = halves(data);
    let (Ok(one), Ok(other)) =
        (serde_json::from_slice::<Value>(one), serde_json::from_slice::<Value>(other))
    else {
        return;
    };
    let same = sha256(&one) == sha256(&other);
    assert!(!same || alike(&one, &other), "two values with one digest: {one} and {other}");
    let again: Value = serde_json::from_str(&one.to_string()).unwrap_or_default();
    assert_eq!(sha256(&one), sha256(&again), "one value with two digests: {one}");
}

/// The same, but for how numbers are written: 1 is 1.0.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let whole = |it: &serde_json::Number| it.as_i128();
            match (whole(one), whole(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one.as_f64() == other.as_f64(),
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, it): (&String, &Value)| {
                other.get(name).is_some_and(|other| alike(it, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// A signature is over the time and the body together, and is a header's value.
pub fn webhook(data: &[u8]) {
    let (one, other) = halves(data);
    let (Ok(one), Ok(other)) = (std::str::from_utf8(one), std::str::from_utf8(other)) else {
        return;
    };
    let at = i64::try_from(data.len()).unwrap_or_default();
    let signed = signature("secret", at, one);
    assert!(signed.bytes().all(|it| it.is_ascii_graphic()), "{signed:?}");
    assert_eq!(signed == signature("secret", at, other), one == other);
    assert_ne!(signed, signature("secret", at + 1, one));
    assert_ne!(signed, signature(other, at, one), "{other:?} is not the secret");
}

/// An input that stands for two: they part at the first NUL.
pub fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|it| *it == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}
