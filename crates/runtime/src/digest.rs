//! One value has one digest, wherever it is computed.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of the canonical form (RFC 8785), in hexadecimal.
pub fn sha256(value: &Value) -> String {
    let canonical = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}
