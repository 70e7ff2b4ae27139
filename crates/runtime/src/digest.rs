//! One value has one digest, wherever it is computed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The canonical form has no larger whole numbers: beyond, it rounds, and two look like one.
const EXACT_MAX: u64 = 1 << 53;

/// SHA-256 of the canonical form (RFC 8785), in hexadecimal; after it come the whole numbers that
/// it rounds, each with its place and after a NUL, which no canonical form has in it.
pub fn sha256(value: &Value) -> String {
    let mut digest = Sha256::new();
    digest.update(serde_json_canonicalizer::to_vec(value).unwrap_or_default());
    let mut rounded = BTreeMap::new();
    find_rounded(value, &mut Vec::new(), &mut rounded);
    for (place, number) in rounded {
        digest.update(format!("\0{place}\0{number}"));
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sorted by place: the order in which fields were written is no part of a value.
fn find_rounded(value: &Value, place: &mut Vec<Value>, found: &mut BTreeMap<String, String>) {
    let mut beneath = |name: Value, value: &Value| {
        place.push(name);
        find_rounded(value, place, found);
        place.pop();
    };
    match value {
        Value::Number(it) => {
            let size = it.as_u64().or_else(|| it.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|it| it > EXACT_MAX) {
                found.insert(json!(place).to_string(), it.to_string());
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, it)| beneath(json!(place), it));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, it)| beneath(json!(name), it)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_the_canonical_form() {
        // As anyone would compute it: `printf '{"a":1,"b":2}' | sha256sum`
        let known = "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777";
        assert_eq!(sha256(&json!({"b": 2, "a": 1.0})), known);
    }

    #[test]
    fn whole_numbers_that_the_canonical_form_rounds_are_told_apart() {
        let of = |it: u64| sha256(&json!({"amount": it}));
        assert_ne!(of(9_007_199_254_740_993), of(9_007_199_254_740_992));
        assert_ne!(of(u64::MAX), of(u64::MAX - 1));
        let (one, other) = (json!([i64::MIN, 1]), json!([i64::MIN + 1, 1]));
        assert_ne!(sha256(&one), sha256(&other));
        // Where they stand counts, and in which order fields were written does not.
        let (large, exact) = (9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64);
        let of = |text: String| sha256(&serde_json::from_str(&text).unwrap());
        let one = of(format!(r#"{{"a": {large}, "b": {exact}}}"#));
        assert_ne!(one, of(format!(r#"{{"a": {exact}, "b": {large}}}"#)));
        let both = of(format!(r#"{{"a": {large}, "b": {}}}"#, u64::MAX));
        assert_eq!(both, of(format!(r#"{{"b": {}, "a": {large}}}"#, u64::MAX)));
    }
}
