//! Lines of `/proc/self/maps`, byte by byte as they come.

/// A line, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Where the mapping begins, and the address behind it.
    pub numbers: [u64; 2],
    /// Such as `rw-p`.
    pub rights: [u8; 4],
    /// How the path begins.
    rest: [u8; 6],
    /// Field that is being read: start and end, rights, offset, device, inode, path.
    field: usize,
    /// Its bytes so far.
    length: usize,
    second: bool,
}

impl Line {
    /// True: the line is complete.
    pub fn takes(&mut self, byte: u8) -> bool {
        match (byte, self.field) {
            (b'\n', _) => return true,
            // Many spaces stand before the path.
            (b' ', 5) if self.length == 0 => {}
            (b' ', field) if field < 5 => (self.field, self.length) = (field + 1, 0),
            (b'-', 0) => self.second = true,
            (_, 0) => {
                let number = &mut self.numbers[usize::from(self.second)];
                *number = *number << 4 | u64::from((byte as char).to_digit(16).unwrap_or(0));
            }
            (_, field) => {
                let place = if field == 1 {
                    self.rights.get_mut(self.length)
                } else {
                    self.rest.get_mut(self.length).filter(|_| field == 5)
                };
                if let Some(place) = place {
                    *place = byte;
                }
                self.length += 1;
            }
        }
        false
    }

    /// Whether the path begins so, as far as its beginning is known.
    pub fn rest_starts_with(&self, text: &[u8]) -> bool {
        self.rest.starts_with(&text[..text.len().min(self.rest.len())])
    }
}
