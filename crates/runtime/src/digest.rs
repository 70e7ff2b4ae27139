//! One value has one digest, wherever it is computed.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The canonical form has no larger whole numbers: beyond, it rounds, and two look like one.
const EXACT_MAX: u64 = 1 << 53;

/// SHA-256 of the canonical form (RFC 8785), in hexadecimal; after it come the whole numbers that
/// it rounds, each after a NUL, which no canonical form has in it.
pub fn sha256(value: &Value) -> String {
    let mut digest = Sha256::new();
    digest.update(serde_json_canonicalizer::to_vec(value).unwrap_or_default());
    add_rounded(value, &mut digest);
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add_rounded(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Number(it) => {
            let size = it.as_u64().or_else(|| it.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|it| it > EXACT_MAX) {
                digest.update(format!("\0{it}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|it| add_rounded(it, digest)),
        Value::Object(fields) => fields.values().for_each(|it| add_rounded(it, digest)),
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
    }
}
