//! RUSTSEC-2021-0124: once a oneshot channel has been closed, sender and receiver may take the value at the same time.
#![forbid(unsafe_code)]

use std::thread;
use tokio::sync::oneshot;

/// The receiver looks once, sooner or later: the value has to be there, and not yet taken back.
#[test]
fn receiving_from_a_closed_channel() {
    for delay in 0..12 {
        let (sender, mut receiver) = oneshot::channel();
        receiver.close();
        let sending = thread::spawn(move || sender.send(delay).is_ok());
        for _ in 0..delay {
            thread::yield_now();
        }
        let _ = receiver.try_recv();
        sending.join().unwrap();
    }
}
