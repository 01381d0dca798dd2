//! How many tasks the iterations of a `taskloop` become.

pub enum Pieces {
    /// So many, as equal as can be.
    Count(u64),
    /// Tasks of at least so many iterations, and of less than twice as many.
    AtLeast(u64),
    /// Tasks of just so many iterations, but for the last one.
    Exactly(u64),
}

impl Pieces {
    /// `grainsize`.
    pub fn of_size(size: u64, strict: bool) -> Self {
        if strict { Self::Exactly(size.max(1)) } else { Self::AtLeast(size.max(1)) }
    }

    /// The first iteration of each piece, and the one behind its last.
    pub fn of(&self, total: u64) -> impl Iterator<Item = (u64, u64)> {
        let (count, exact) = match *self {
            Self::Count(count) => (count.clamp(1, total.max(1)), None),
            Self::AtLeast(size) => ((total / size).max(1), None),
            Self::Exactly(size) => (total.div_ceil(size), Some(size)),
        };
        let (least, more) = (total / count.max(1), total % count.max(1));
        (0..if total == 0 { 0 } else { count }).map(move |number| match exact {
            Some(size) => (number * size, (number * size).saturating_add(size).min(total)),
            None => {
                let from = number * least + number.min(more);
                (from, from + least + u64::from(number < more))
            }
        })
    }
}
