//! Checksums of damaged packed traces, made right again: so that tests reach what stands behind them.

use super::layout::{CHUNK_HEADER, HEADER, u32_at};

/// Every header and chunk that can be found gets the checksum of what it holds.
pub fn reseal(bytes: &mut [u8]) {
    let put = |bytes: &mut [u8], at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    if bytes.len() < HEADER {
        return;
    }
    put(bytes, 12, 0);
    let checksum = crc32fast::hash(&bytes[..HEADER]);
    put(bytes, 12, checksum);
    let mut at = HEADER;
    while at + CHUNK_HEADER <= bytes.len() {
        let payload = at + CHUNK_HEADER;
        let Some(next) = payload.checked_add(u32_at(bytes, at + 4) as usize).filter(|next| *next <= bytes.len()) else {
            return;
        };
        let checksum = crc32fast::hash(&bytes[payload..next]);
        put(bytes, at + 12, checksum);
        let checksum = crc32fast::hash(&bytes[at..at + 28]);
        put(bytes, at + 28, checksum);
        at = next;
    }
}
