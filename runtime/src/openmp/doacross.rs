//! Doacross loops: `ordered(n)` with `depend(sink: …)` and `depend(source)`.
//!
//! An iteration of the nest is a vector of numbers from 0. Its source releases the iteration's cell; whoever has it for a
//! sink waits until that was done, and acquires the cell.
//!
//! Limit: where the nest has more iterations than [`MOST_CELLS`], those of one iteration of the outermost loop share a cell. Who
//! waits for one of them is then ordered behind later ones, too, that happened to be done.

use super::Call;
use super::shares;
use super::team::{Team, member};
use crate::serial::sched::WaitFor;
use crate::system::sys;
use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Release;
use rashomon_abi::record::{Op, sync_source};

/// Iterations of a nest that have a cell each.
const MOST_CELLS: u64 = 1 << 16;
/// Loops of a nest.
const MOST_LOOPS: usize = 12;

/// A loop of the nest: how many iterations it has, and its variable's values.
#[derive(Clone, Copy)]
pub struct Dimension {
    pub count: u64,
    pub first: i64,
    pub step: i64,
}

impl Dimension {
    /// One whose iterations are numbered.
    pub const fn numbered(count: u64) -> Self {
        Self { count, first: 0, step: 1 }
    }

    /// The number of the iteration with this value. `None`: there is none.
    fn number(&self, value: i64) -> Option<u64> {
        let distance = i128::from(value) - i128::from(self.first);
        let number = distance.checked_div_euclid(i128::from(self.step))?;
        u64::try_from(number).ok().filter(|number| *number < self.count)
    }
}

/// What the threads of a team share of such a loop, before its cells.
struct Nest {
    loops: usize,
    dimensions: [Dimension; MOST_LOOPS],
    /// A cell for each iteration.
    exact: bool,
}

/// Where an iteration is found.
struct Place<'a> {
    cell: &'a Cell<u64>,
    /// What the cell holds at least when its source was passed.
    passed: u64,
}

impl Nest {
    fn of(loops: usize, dimension: impl Fn(usize) -> Dimension) -> Self {
        if loops > MOST_LOOPS {
            sys::die(&[b"doacross loops of more than 12 nested loops are not covered: run the program without observation"]);
        }
        let mut dimensions = [Dimension::numbered(0); MOST_LOOPS];
        for (at, to) in dimensions[..loops].iter_mut().enumerate() {
            *to = dimension(at);
        }
        let all = dimensions[..loops].iter().try_fold(1u64, |product, dimension| product.checked_mul(dimension.count));
        Self { loops, dimensions, exact: all.is_some_and(|all| all <= MOST_CELLS) }
    }

    fn dimensions(&self) -> &[Dimension] {
        &self.dimensions[..self.loops]
    }

    fn cells(&self) -> usize {
        let mut counts = self.dimensions().iter().map(|dimension| dimension.count);
        (if self.exact { counts.product() } else { counts.next().unwrap_or(0) }) as usize
    }

    /// `None` outside of the nest.
    ///
    /// # Safety
    /// As many values as the nest has loops.
    unsafe fn place(&self, values: *const i64) -> Option<Place<'_>> {
        // The outermost loop, and all that are inside it counted through.
        let (mut outer, mut inner) = (0, 0u64);
        for (at, dimension) in self.dimensions().iter().enumerate() {
            // SAFETY: by the contract.
            let number = dimension.number(unsafe { *values.add(at) })?;
            if at == 0 {
                outer = number;
            } else {
                inner = inner.wrapping_mul(dimension.count).wrapping_add(number);
            }
        }
        let within: u64 = self.dimensions().iter().skip(1).map(|dimension| dimension.count).fold(1, u64::wrapping_mul);
        let (index, passed) = if self.exact { (outer * within + inner, 1) } else { (outer, inner.wrapping_add(1)) };
        // SAFETY: as many cells lie behind the nest, see `begin`.
        let cell = unsafe { &*(&raw const *self).add(1).cast::<Cell<u64>>().add(index as usize) };
        Some(Place { cell, passed })
    }
}

/// The calling thread comes to a nest of so many loops.
pub fn begin(call: Call, loops: usize, dimension: impl Fn(usize) -> Dimension) {
    let me = member();
    let Some(team) = me.team() else { return };
    end(call);
    shares::enter_other(call, team, me);
    let nest = Nest::of(loops, dimension);
    let bytes = nest.cells().saturating_mul(8).saturating_add(size_of::<Nest>());
    shares::memory_filled(call, bytes, |block| {
        // SAFETY: a fresh block of that size.
        unsafe { block.cast::<Nest>().write(nest) };
    });
    me.doacross.set(me.share.replace(null_mut()));
}

/// It is done with the loop. Also where it was in none.
pub fn end(call: Call) {
    let me = member();
    let share = me.doacross.replace(null_mut());
    if let Some(team) = me.team()
        && !share.is_null()
    {
        shares::leave_share(call, team, share);
    }
}

/// The team and the nest of the loop that the thread is in. Outside of every team iterations follow each other anyway.
fn present() -> Option<(&'static Team, &'static Nest)> {
    let me = member();
    // SAFETY: the thread's present construct, whose memory begins with the nest.
    unsafe { Some((me.team()?, me.doacross.get().as_ref()?.shared_memory().cast::<Nest>().as_ref()?)) }
}

/// `depend(source)` of an iteration.
///
/// # Safety
/// As many values as the nest has loops.
pub unsafe fn post(call: Call, values: *const i64) {
    let Some((team, nest)) = present() else { return };
    // SAFETY: by the contract.
    let Some(Place { cell, passed }) = (unsafe { nest.place(values) }) else { return };
    let object = &raw const *cell as u64;
    let here = call.enter();
    here.does(Op::Release, object, sync_source::OTHER, &[]);
    team.lock.with(|| {
        cell.set(cell.get().max(passed));
        team.word.fetch_add(1, Release);
    });
    here.wake(WaitFor::Semaphore, object, &raw const team.word);
}

/// `depend(sink: …)`. One that is outside of the loops is nothing to wait for.
///
/// # Safety
/// As many values as the nest has loops.
pub unsafe fn wait(call: Call, values: *const i64) {
    let Some((team, nest)) = present() else { return };
    // SAFETY: by the contract.
    let Some(Place { cell, passed }) = (unsafe { nest.place(values) }) else { return };
    let object = &raw const *cell as u64;
    let here = call.enter();
    here.point(Op::Acquire, object);
    here.wait(WaitFor::Semaphore, object, &team.word, || team.lock.with(|| cell.get() >= passed));
    here.sync(Op::Acquire, object, sync_source::OTHER, &[]);
}
