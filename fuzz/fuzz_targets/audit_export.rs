#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chancery_store::fuzz::audit_export(data));
