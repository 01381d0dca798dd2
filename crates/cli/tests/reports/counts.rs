//! Two threads count in a cell that claims to be safe to share.
use std::cell::UnsafeCell;
use std::sync::Arc;

struct Shared {
    count: UnsafeCell<u64>,
}

unsafe impl Sync for Shared {}

impl Shared {
    fn add(&self) {
        unsafe { *self.count.get() += 1 };
    }
}

fn main() {
    let shared = Arc::new(Shared { count: UnsafeCell::new(0) });
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.add())
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
