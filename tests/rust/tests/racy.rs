//! Races of every sort; `// race` marks the lines that take part.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::thread;

struct Shared<T>(UnsafeCell<T>);

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0.get()
    }
}

unsafe impl<T> Sync for Shared<T> {}
unsafe impl<T> Send for Shared<T> {}

static mut COUNTER: u32 = 0;

#[test]
fn static_counter() {
    thread::scope(|scope| {
        scope.spawn(|| unsafe { COUNTER += 1 }); // race: static_counter
        unsafe { COUNTER += 2 } // race: static_counter
    });
}

/// The flag tells that the data is there, but nothing orders the two.
#[test]
fn relaxed_flag() {
    let data = Arc::new(Shared(UnsafeCell::new(0)));
    let flag = Arc::new(AtomicBool::new(false));
    let (data2, flag2) = (Arc::clone(&data), Arc::clone(&flag));
    let writer = thread::spawn(move || {
        unsafe { *data2.get() = 1 } // race: relaxed_flag
        flag2.store(true, Ordering::Relaxed);
    });
    while !flag.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    assert_eq!(unsafe { *data.get() }, 1); // race: relaxed_flag
    writer.join().unwrap();
}

/// Two locks, one variable.
#[test]
fn two_locks() {
    let data = Arc::new(Shared(UnsafeCell::new(0)));
    let data2 = Arc::clone(&data);
    let other = thread::spawn(move || {
        let own = Mutex::new(());
        let _guard = own.lock().unwrap();
        unsafe { *data2.get() += 1 } // race: two_locks
    });
    let own = Mutex::new(());
    {
        let _guard = own.lock().unwrap();
        unsafe { *data.get() += 2 } // race: two_locks
    }
    other.join().unwrap();
}

/// Readers' locks, held at the same time, do not keep writers apart.
#[test]
fn write_under_a_read_lock() {
    let data = Arc::new((RwLock::new(()), Barrier::new(2), Shared(UnsafeCell::new(0))));
    let data2 = Arc::clone(&data);
    let other = thread::spawn(move || {
        let _guard = data2.0.read().unwrap();
        data2.1.wait();
        unsafe { *data2.2.get() += 1 } // race: write_under_a_read_lock
    });
    {
        let _guard = data.0.read().unwrap();
        data.1.wait();
        unsafe { *data.2.get() += 2 } // race: write_under_a_read_lock
    }
    other.join().unwrap();
}

/// Two threads meet at a barrier and then do the same at once.
#[test]
fn behind_a_barrier() {
    let data = Arc::new((Barrier::new(2), Shared(UnsafeCell::new(0))));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                data.0.wait();
                unsafe { *data.1.get() += 1 } // race: behind_a_barrier
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A count of references whose last owner does not wait for what the others did: the fence is missing.
struct Count {
    owners: AtomicUsize,
    value: Shared<u32>,
}

#[test]
fn missing_fence() {
    let count = Count { owners: AtomicUsize::new(2), value: Shared(UnsafeCell::new(0)) };
    thread::scope(|scope| {
        scope.spawn(|| {
            unsafe { *count.value.get() = 1 } // race: missing_fence
            count.owners.fetch_sub(1, Ordering::Release);
        });
        while count.owners.load(Ordering::Relaxed) > 1 {
            thread::yield_now();
        }
        if count.owners.fetch_sub(1, Ordering::Release) == 1 {
            unsafe { *count.value.get() = 0 } // race: missing_fence
        }
    });
}

/// The thread that dies of a panic leaves its write behind.
#[test]
fn panicking_writer() {
    let data = Arc::new(Shared(UnsafeCell::new(0)));
    let data2 = Arc::clone(&data);
    let dying = thread::spawn(move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            unsafe { *data2.get() += 1 } // race: panicking_writer
            std::panic::resume_unwind(Box::new("as planned"));
        }));
        assert!(result.is_err());
    });
    unsafe { *data.get() += 2 } // race: panicking_writer
    dying.join().unwrap();
}

#[test]
fn in_c() {
    thread::scope(|scope| {
        scope.spawn(|| unsafe { rust_programs::tally(1) });
        unsafe { rust_programs::tally(2) };
    });
}
