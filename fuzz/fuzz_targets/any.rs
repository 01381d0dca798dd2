//! Formats told by content, compressed ones among them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rashomon_fuzz::read_flagged(input, None));
