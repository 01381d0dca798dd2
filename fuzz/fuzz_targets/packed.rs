//! Packed traces; with the highest bit of the first byte their checksums are made right first, which no fuzzer would guess.
#![no_main]

use rashomon_packed::Format;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let [flags, content @ ..] = input {
        let mut content = content.to_vec();
        if flags & 0x80 != 0 {
            rashomon_packed::file::reseal(&mut content);
        }
        rashomon_fuzz::read_all(content, Some(Format::Packed), *flags);
    }
});
