//! What reports ask: answered by detection and by what starts programs and threads.

use crate::detect::{blocks, java, places, stacks};
use crate::intercept::{start, threads};
use crate::report::sources::{Block, Sources};
use crate::system::thread::{Runtime, Thread};
use crate::system::tls::caller;

pub static SOURCES: Sources = Sources { creation, walk: stacks::walk, own_stack, heap, is_managed: java::contains, starts };

fn creation(thread: &Thread) -> u32 {
    thread.detected().creation.get()
}

fn own_stack(into: &mut [u64]) -> usize {
    let Some(runtime) = Runtime::try_enter() else { return 0 };
    stacks::walk(runtime.with_own(|own| places::stack(own, caller())), into)
}

fn heap(address: u64) -> Option<Block> {
    let found = blocks::find(address)?;
    Some(Block { start: found.address, size: found.bytes, thread: found.thread, stack: found.stack, tag: found.tag })
}

fn starts(address: u64) -> bool {
    start::calls_main(address) || threads::calls_routine(address)
}
