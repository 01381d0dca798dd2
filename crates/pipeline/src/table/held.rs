//! Which locks each thread holds.

/// Of one thread, ascending, with how often it took each.
#[derive(Debug, Default)]
struct Locks {
    numbers: Vec<u64>,
    times: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Held(Vec<Locks>);

impl Held {
    /// By number of the thread.
    pub fn of(&self, thread: u32) -> &[u64] {
        self.0.get(thread as usize).map_or(&[], |locks| &locks.numbers)
    }

    /// Returns whether the thread did not hold it before.
    pub fn take(&mut self, thread: u32, lock: u64) -> bool {
        let thread = thread as usize;
        if self.0.len() <= thread {
            self.0.resize_with(thread + 1, Locks::default);
        }
        let Locks { numbers, times } = &mut self.0[thread];
        match numbers.binary_search(&lock) {
            Ok(at) => {
                times[at] += 1;
                false
            }
            Err(at) => {
                numbers.insert(at, lock);
                times.insert(at, 1);
                true
            }
        }
    }

    /// Returns whether the thread no longer holds it.
    pub fn give_back(&mut self, thread: u32, lock: u64) -> bool {
        let Some(Locks { numbers, times }) = self.0.get_mut(thread as usize) else { return false };
        let Ok(at) = numbers.binary_search(&lock) else { return false };
        times[at] -= 1;
        if times[at] > 0 {
            return false;
        }
        numbers.remove(at);
        times.remove(at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_of_nested_acquisitions_counts() {
        let mut held = Held::default();
        assert!(!held.give_back(3, 7));
        assert!(held.take(3, 7) && held.take(3, 5) && !held.take(3, 7));
        assert_eq!(held.of(3), [5, 7]);
        assert!(held.of(2).is_empty() && held.of(9).is_empty());
        assert!(!held.give_back(3, 7) && held.give_back(3, 7) && !held.give_back(3, 7));
        assert_eq!(held.of(3), [5]);
    }
}
