//! What safe Rust does with threads, and unsafe code that is right. Nothing of it is a race.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

struct Shared<T>(UnsafeCell<T>);
unsafe impl<T> Sync for Shared<T> {}
unsafe impl<T> Send for Shared<T> {}

#[test]
fn mutex() {
    let count = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let count = Arc::clone(&count);
            thread::spawn(move || *count.lock().unwrap() += 1)
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*count.lock().unwrap(), 3);
}

#[test]
fn read_write_lock() {
    let table = Arc::new(RwLock::new(HashMap::new()));
    thread::scope(|scope| {
        scope.spawn(|| table.write().unwrap().insert(1, "one".to_owned()));
        scope.spawn(|| table.write().unwrap().insert(2, "two".to_owned()));
        scope.spawn(|| table.read().unwrap().values().map(String::len).sum::<usize>());
    });
    assert_eq!(table.read().unwrap().len(), 2);
}

#[test]
fn condition_variable() {
    let pair = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let pair2 = Arc::clone(&pair);
    let producer = thread::spawn(move || {
        for number in 0..3 {
            pair2.0.lock().unwrap().push(number);
            pair2.1.notify_one();
        }
    });
    let mut sum = 0;
    for _ in 0..3 {
        let mut items = pair.1.wait_while(pair.0.lock().unwrap(), |items| items.is_empty()).unwrap();
        sum += items.pop().unwrap();
    }
    producer.join().unwrap();
    assert_eq!(sum, 3);
}

#[test]
fn waiting_with_a_limit() {
    let pair = (Mutex::new(false), Condvar::new());
    let (guard, result) = pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_millis(1)).unwrap();
    assert!(result.timed_out() && !*guard);
}

static ONCE: Once = Once::new();
static CELL: OnceLock<String> = OnceLock::new();
static LAZY: LazyLock<Vec<String>> = LazyLock::new(|| vec!["lazy".to_owned(), "list".to_owned()]);
static SET_UP: Shared<u32> = Shared(UnsafeCell::new(0));

#[test]
fn once() {
    let threads: Vec<_> = (0..3)
        .map(|number| {
            thread::spawn(move || {
                ONCE.call_once(|| unsafe { *SET_UP.0.get() = 7 });
                let text = CELL.get_or_init(|| format!("thread {number}"));
                unsafe { *SET_UP.0.get() as usize + text.len() + LAZY.iter().map(String::len).sum::<usize>() }
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 7 + 8 + 8);
    }
}

#[test]
fn channel() {
    let (sender, receiver) = mpsc::channel::<String>();
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(format!("message {number}")).unwrap())
        })
        .collect();
    drop(sender);
    assert_eq!(receiver.iter().map(|text| text.len()).sum::<usize>(), 18);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn bounded_channels() {
    for bound in [0, 1] {
        let (sender, receiver) = mpsc::sync_channel::<Box<u32>>(bound);
        let producer = thread::spawn(move || (0..3).for_each(|number| sender.send(Box::new(number)).unwrap()));
        assert_eq!(receiver.iter().map(|number| *number).sum::<u32>(), 3);
        producer.join().unwrap();
    }
}

#[test]
fn barrier() {
    let halves = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let results = Arc::new((Barrier::new(2), Shared(UnsafeCell::new([0_u64; 2]))));
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let (halves, results) = (Arc::clone(&halves), Arc::clone(&results));
            thread::spawn(move || {
                unsafe { (*results.1 .0.get())[number] = number as u64 + 1 };
                halves[number].store(1, Ordering::Relaxed);
                results.0.wait();
                unsafe { (*results.1 .0.get())[1 - number] }
            })
        })
        .collect();
    assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 3);
}

#[test]
fn parking() {
    let data = Arc::new((AtomicBool::new(false), Shared(UnsafeCell::new(0))));
    let data2 = Arc::clone(&data);
    let waiter = thread::Builder::new()
        .name("waiter".into())
        .spawn(move || {
            while !data2.0.load(Ordering::Acquire) {
                thread::park();
            }
            assert_eq!(thread::current().name(), Some("waiter"));
            unsafe { *data2.1 .0.get() }
        })
        .unwrap();
    unsafe { *data.1 .0.get() = 5 };
    data.0.store(true, Ordering::Release);
    waiter.thread().unpark();
    assert_eq!(waiter.join().unwrap(), 5);
}

/// `unpark` before and `park` behind order what stands around them.
#[test]
fn parking_alone() {
    let data = Arc::new(Shared(UnsafeCell::new(0)));
    let data2 = Arc::clone(&data);
    let main = thread::current();
    let told = Arc::new(AtomicBool::new(false));
    let told2 = Arc::clone(&told);
    let writer = thread::spawn(move || {
        unsafe { *data2.0.get() = 3 };
        told2.store(true, Ordering::Relaxed);
        main.unpark();
    });
    loop {
        thread::park();
        if told.load(Ordering::Relaxed) {
            break;
        }
    }
    assert_eq!(unsafe { *data.0.get() }, 3);
    writer.join().unwrap();
}

#[test]
fn scoped_results() {
    let mut numbers = [3, 1, 2];
    let (first, rest) = numbers.split_at_mut(1);
    let sum = thread::scope(|scope| {
        let left = scope.spawn(|| {
            first[0] += 1;
            first[0]
        });
        let right = scope.spawn(|| {
            rest.sort();
            rest.iter().sum::<i32>()
        });
        left.join().unwrap() + right.join().unwrap()
    });
    assert_eq!(sum, 7);
    assert_eq!(numbers, [4, 1, 2]);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct CountsDrops(Vec<u32>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0.len(), Ordering::SeqCst);
    }
}

thread_local! {
    static LOCAL: RefCell<CountsDrops> = RefCell::new(CountsDrops(Vec::new()));
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn thread_local_destructors() {
    let threads: Vec<_> = (0..2)
        .map(|number| {
            thread::spawn(move || {
                NUMBER.set(number);
                LOCAL.with_borrow_mut(|local| local.0.push(NUMBER.get()));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(DROPPED.load(Ordering::SeqCst), 2);
}

/// The last owner of an `Arc` reads and frees what others wrote: a release and a fence order them.
#[test]
fn last_owner() {
    let data = Arc::new(Mutex::new(vec![1, 2]));
    let data2 = Arc::clone(&data);
    let other = thread::spawn(move || {
        data2.lock().unwrap().push(3);
        drop(data2);
    });
    data.lock().unwrap().push(4);
    drop(data);
    other.join().unwrap();
}

#[test]
fn unwrapped_owner() {
    let mut data = Arc::new(Shared(UnsafeCell::new(1)));
    let data2 = Arc::clone(&data);
    let other = thread::spawn(move || unsafe { *data2.0.get() += 1 });
    let value = loop {
        match Arc::try_unwrap(data) {
            Ok(shared) => break shared.0.into_inner(),
            Err(again) => data = again,
        }
        thread::yield_now();
    };
    assert_eq!(value, 2);
    other.join().unwrap();
}

#[test]
fn fences() {
    let data = Arc::new((AtomicBool::new(false), Shared(UnsafeCell::new(0))));
    let data2 = Arc::clone(&data);
    let writer = thread::spawn(move || {
        unsafe { *data2.1 .0.get() = 9 };
        fence(Ordering::Release);
        data2.0.store(true, Ordering::Relaxed);
    });
    while !data.0.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    fence(Ordering::Acquire);
    assert_eq!(unsafe { *data.1 .0.get() }, 9);
    writer.join().unwrap();
}

#[test]
fn handed_over_pointer() {
    static SLOT: AtomicPtr<String> = AtomicPtr::new(std::ptr::null_mut());
    let giver = thread::spawn(|| SLOT.store(Box::into_raw(Box::new("gift".to_owned())), Ordering::Release));
    let gift = loop {
        let found = SLOT.swap(std::ptr::null_mut(), Ordering::Acquire);
        if !found.is_null() {
            break unsafe { Box::from_raw(found) };
        }
        thread::yield_now();
    };
    assert_eq!(*gift, "gift");
    giver.join().unwrap();
}

#[test]
fn panics() {
    let lock = Arc::new(Mutex::new(0));
    let lock2 = Arc::clone(&lock);
    let dying = thread::spawn(move || {
        let mut guard = lock2.lock().unwrap();
        *guard = 1;
        std::panic::resume_unwind(Box::new("as planned"));
    });
    assert!(dying.join().is_err());
    let value = *lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert_eq!(value, 1);
}

#[test]
fn deep_unwinding() {
    fn down(depth: u32, lock: &Mutex<u32>) {
        if depth == 0 {
            panic!("as planned");
        }
        *lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        down(depth - 1, lock);
    }
    let lock = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(std::panic::catch_unwind(|| down(20, &lock)).is_err()));
        }
    });
    assert_eq!(*lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), 40);
}

#[test]
fn output() {
    thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn(move || {
                println!("thread {number}");
                eprintln!("thread {number}");
            });
        }
    });
}

#[test]
fn environment_and_hashing() {
    thread::scope(|scope| {
        for number in 0..2 {
            scope.spawn(move || {
                let path = std::env::var_os("PATH").map_or(0, |path| path.len());
                HashMap::from([(number, path), (number + 1, path)]).len()
            });
        }
    });
}

#[test]
fn in_c() {
    static LOCK: Mutex<()> = Mutex::new(());
    let add = |amount| {
        let _guard = LOCK.lock().unwrap();
        unsafe { rust_programs::tally(amount) }
    };
    thread::scope(|scope| {
        scope.spawn(|| add(1));
        add(2);
    });
}
