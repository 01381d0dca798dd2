//! RAPID's text.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rashomon_fuzz::read_flagged(input, Some(rashomon_packed::Format::Std)));
