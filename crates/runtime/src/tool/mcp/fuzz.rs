//! What an MCP server says: doors for the fuzzer.

use rmcp::model::{CallToolResult, Tool};

use super::call::{RESULT_BYTES_MAX, result_of};
use super::catalog::{NAME_MAX, offer};

/// One tool of a server's list.
pub fn mcp_tool(data: &[u8]) {
    let Ok(tool) = serde_json::from_slice::<Tool>(data) else { return };
    let Ok(offered) = offer(&tool, "mcp__files__") else { return };
    let name = &offered.spec.name;
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    assert!(name.len() <= NAME_MAX && name.chars().all(plain), "{name:?}");
    assert!(name.starts_with("mcp__files__"), "{name:?}");
    let described = &offered.spec.description;
    assert!(!described.contains(['\u{1b}', '\u{202e}', '\0']), "{described:?}");
    // A schema that cannot be compiled is refused where the tool is registered.
    let _ = jsonschema::validator_for(&offered.spec.parameters);
}

/// The answer to a call.
pub fn mcp_result(data: &[u8]) {
    let Ok(result) = serde_json::from_slice::<CallToolResult>(data) else { return };
    assert!(result_of(&result).text.len() <= RESULT_BYTES_MAX + 100);
}
