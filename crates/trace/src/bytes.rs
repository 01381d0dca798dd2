//! Little-endian words in byte slices.

/// Word `index` of `bytes`. The caller has checked that it is there.
#[inline(always)]
pub fn word_at(bytes: &[u8], index: usize) -> u64 {
    let start = index * 8;
    u64::from_le_bytes(bytes[start..start + 8].try_into().expect("eight bytes"))
}

/// Word `index` of `bytes`, if it is there.
pub fn get_word(bytes: &[u8], index: usize) -> Option<u64> {
    let start = index.checked_mul(8)?;
    bytes.get(start..start.checked_add(8)?).map(|part| u64::from_le_bytes(part.try_into().expect("eight bytes")))
}
