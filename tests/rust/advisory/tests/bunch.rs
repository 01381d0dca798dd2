//! RUSTSEC-2020-0130: `push` holds a lock and `get` does not, though both take a shared reference.
#![forbid(unsafe_code)]

use bunch::Bunch;
use std::thread;

#[test]
fn getting_while_pushing() {
    let numbers = Bunch::new();
    numbers.push(1_u32);
    thread::scope(|scope| {
        scope.spawn(|| *numbers.push(2));
        assert_eq!(*numbers.get(0), 1);
    });
}
