#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chancery_runtime::fuzz::mcp_tool(data));
