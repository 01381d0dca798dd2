//! The ways a recording ends.

use crate::detect;
use crate::record::process_tree;
use crate::record::recorder;
use crate::serial::{deadlock, replay, sched, standstill};
use crate::system::thread::{State, Thread, all};
use crate::system::{config, header, modules, sys};
use core::sync::atomic::Ordering::*;
use rashomon_abi::header::{field, state};

/// Whether a thread other than the calling one writes nothing before it has the turn: it waits for that, or gave it up for a call
/// into the kernel. Who lost it while it ran may write.
fn stands_still(thread: &Thread) -> bool {
    config::serial() && (thread.state.get() != State::External || thread.evicted.load(Acquire) == sched::LET_GO)
}

/// Closes what can be closed: in serial mode the stream of every thread that stands still.
fn close_streams() {
    let own = crate::system::thread::current_number();
    for thread in all() {
        // Others are stopped (serial) or left alone.
        if thread.has_block() && (thread.number.get() as u64 == own || stands_still(thread) || standstill::stands()) {
            if config::serial() && thread.number.get() as u64 != own && thread.state.get() == State::Runnable {
                recorder::stands(thread);
            }
            recorder::finish(thread);
        }
    }
}

/// The process ends in an orderly way. False: the recording had ended before.
pub fn complete() -> bool {
    if config::mode() == 0 || detect::on() || is_done() {
        return false;
    }
    deadlock::at_end();
    if !header::ends() {
        return false;
    }
    replay::process_ends();
    modules::write();
    close_streams();
    header::set(field::STATE, state::COMPLETE);
    true
}

/// The runtime ends the process: what was asked for has been decided.
pub fn stop() -> ! {
    if header::ends() {
        modules::write();
        close_streams();
        header::set(field::STATE, state::STOPPED);
        process_tree::end_initial_process();
    }
    sys::exit_group(66)
}

pub use crate::system::header::has_ended as is_done;

/// The process went on after all: `exec` failed. Streams continue in new chunks.
pub fn resume() {
    let own = crate::system::thread::current_number();
    for thread in all() {
        if thread.has_block() && thread.chunk.get().is_null() && (thread.number.get() as u64 == own || stands_still(thread)) {
            recorder::begin(thread);
        }
    }
    replay::process_goes_on();
    header::set(field::STATE, state::RUNNING);
    header::is_over(false);
}

/// A forked child's recording has begun.
pub fn begin_again() {
    header::is_over(false);
}

/// A forked child has no recording.
pub fn forget() {
    header::is_over(true);
}
