//! The functions that programs call: `omp_*`, the same for all compilers.

use super::locks::Lock;
use super::settings::{self, Kind, Settings};
use super::team::{Member, member};
use super::{Call, openmp};
use crate::intercept::time;
use core::ffi::c_int;

/// Changes the settings of the calling thread's task.
fn set(change: impl FnOnce(&mut Settings)) {
    let settings = &member().task().settings;
    let mut value = settings.get();
    change(&mut value);
    settings.set(value);
}

unsafe extern "C" fn thread_number() -> c_int {
    member().number as c_int
}

unsafe extern "C" fn thread_count() -> c_int {
    member().size() as c_int
}

unsafe extern "C" fn most_threads() -> c_int {
    member().task().settings.get().threads as c_int
}

unsafe extern "C" fn set_threads(count: c_int) {
    set(|settings| settings.threads = count.max(1) as u32);
}

unsafe extern "C" fn processors() -> c_int {
    settings::processors() as c_int
}

unsafe extern "C" fn is_parallel() -> c_int {
    member().team().is_some_and(|team| team.active_level > 0) as c_int
}

unsafe extern "C" fn is_dynamic() -> c_int {
    member().task().settings.get().dynamic as c_int
}

unsafe extern "C" fn set_dynamic(dynamic: c_int) {
    set(|settings| settings.dynamic = dynamic != 0);
}

unsafe extern "C" fn is_nested() -> c_int {
    (member().task().settings.get().max_active_levels > 1) as c_int
}

unsafe extern "C" fn set_nested(nested: c_int) {
    set(|settings| settings.max_active_levels = if nested != 0 { settings::MOST_LEVELS } else { 1 });
}

unsafe extern "C" fn max_active_levels() -> c_int {
    member().task().settings.get().max_active_levels as c_int
}

unsafe extern "C" fn set_max_active_levels(levels: c_int) {
    if levels >= 0 {
        set(|settings| settings.max_active_levels = (levels as u32).min(settings::MOST_LEVELS));
    }
}

unsafe extern "C" fn supported_levels() -> c_int {
    settings::MOST_LEVELS as c_int
}

unsafe extern "C" fn thread_limit() -> c_int {
    settings::thread_limit() as c_int
}

unsafe extern "C" fn level() -> c_int {
    member().team().map_or(0, |team| team.level) as c_int
}

unsafe extern "C" fn active_level() -> c_int {
    member().team().map_or(0, |team| team.active_level) as c_int
}

/// The place of the calling thread's ancestor at a level.
fn ancestor(level: c_int) -> Option<&'static Member> {
    let mut place: &Member = member();
    loop {
        let now = place.team().map_or(0, |team| team.level as c_int);
        if level < 0 || level > now {
            return None;
        }
        if level == now {
            return Some(place);
        }
        // SAFETY: the place around outlives the team.
        place = unsafe { &*place.team()?.parent };
    }
}

unsafe extern "C" fn ancestor_number(level: c_int) -> c_int {
    ancestor(level).map_or(-1, |place| place.number as c_int)
}

unsafe extern "C" fn team_size(level: c_int) -> c_int {
    ancestor(level).map_or(-1, |place| place.size() as c_int)
}

unsafe extern "C" fn is_final() -> c_int {
    member().task().is_final as c_int
}

unsafe extern "C" fn schedule(kind: *mut u32, chunk: *mut c_int) {
    let settings = member().task().settings.get();
    // SAFETY: the program's places for both.
    unsafe {
        *kind = settings.kind as u32;
        *chunk = settings.chunk;
    }
}

unsafe extern "C" fn set_schedule(kind: u32, chunk: c_int) {
    set(|settings| {
        settings.kind = Kind::of(kind);
        settings.chunk = if chunk < 1 && settings.kind != Kind::Static { 1 } else { chunk.max(0) };
    });
}

unsafe extern "C" fn none() -> c_int {
    0
}

unsafe extern "C" fn one() -> c_int {
    1
}

unsafe extern "C" fn nothing() {}

unsafe extern "C" fn time_of_wall() -> f64 {
    const MONOTONIC: c_int = 1;
    let mut now = [0i64; 2];
    // SAFETY: our own room for a time.
    Call::current().passing(|| unsafe { time::get_time(MONOTONIC, (&raw mut now).cast()) });
    now[0] as f64 + now[1] as f64 / 1e9
}

unsafe extern "C" fn tick() -> f64 {
    1e-9
}

unsafe extern "C" fn begin_lock(lock: *const Lock) {
    // SAFETY: room for a lock, of which this uses the first word.
    unsafe { (*lock).begin(Call::current()) };
}

unsafe extern "C" fn begin_lock_hinted(lock: *const Lock, _hint: c_int) {
    // SAFETY: as in `begin_lock`.
    unsafe { (*lock).begin(Call::current()) };
}

unsafe extern "C" fn end_lock(lock: *const Lock) {
    // SAFETY: a lock that the program has initialised, here and below.
    unsafe { (*lock).end(Call::current()) };
}

unsafe extern "C" fn take_lock(lock: *const Lock) {
    // SAFETY: as in `end_lock`.
    unsafe { (*lock).take(Call::current()) };
}

unsafe extern "C" fn give_lock(lock: *const Lock) {
    // SAFETY: as in `end_lock`.
    unsafe { (*lock).give(Call::current()) };
}

unsafe extern "C" fn test_lock(lock: *const Lock) -> c_int {
    // SAFETY: as in `end_lock`.
    unsafe { (*lock).test(Call::current()) as c_int }
}

unsafe extern "C" fn begin_nestable(lock: *const Lock) {
    // SAFETY: room for a lock that nests, eight bytes at least.
    unsafe { (*lock).begin_nestable(Call::current()) };
}

unsafe extern "C" fn begin_nestable_hinted(lock: *const Lock, _hint: c_int) {
    // SAFETY: as in `begin_nestable`.
    unsafe { (*lock).begin_nestable(Call::current()) };
}

unsafe extern "C" fn take_nestable(lock: *const Lock) {
    // SAFETY: a lock that the program has initialised as one that nests.
    unsafe { (*lock).take_nestable(Call::current()) };
}

unsafe extern "C" fn give_nestable(lock: *const Lock) {
    // SAFETY: as in `take_nestable`.
    unsafe { (*lock).give_nestable(Call::current()) };
}

unsafe extern "C" fn test_nestable(lock: *const Lock) -> c_int {
    // SAFETY: as in `take_nestable`.
    unsafe { (*lock).test_nestable(Call::current()) }
}

openmp! { "libgomp.so.1";
    omp_get_thread_num => thread_number;
    omp_get_num_threads => thread_count;
    omp_get_max_threads => most_threads;
    omp_set_num_threads => set_threads;
    omp_get_num_procs => processors;
    omp_in_parallel => is_parallel;
    omp_get_dynamic => is_dynamic;
    omp_set_dynamic => set_dynamic;
    omp_get_nested => is_nested;
    omp_set_nested => set_nested;
    omp_get_max_active_levels => max_active_levels;
    omp_set_max_active_levels => set_max_active_levels;
    omp_get_supported_active_levels => supported_levels;
    omp_get_thread_limit => thread_limit;
    omp_get_level => level;
    omp_get_active_level => active_level;
    omp_get_ancestor_thread_num => ancestor_number;
    omp_get_team_size => team_size;
    omp_in_final => is_final;
    omp_get_schedule => schedule;
    omp_set_schedule => set_schedule;
    omp_get_cancellation => none;
    omp_get_proc_bind => none;
    omp_get_num_places => none;
    omp_get_num_devices => none;
    omp_get_default_device => none;
    omp_get_initial_device => none;
    omp_get_device_num => none;
    omp_get_team_num => none;
    omp_get_num_teams => one;
    omp_is_initial_device => one;
    omp_get_max_task_priority => none;
    omp_set_default_device => nothing;
    omp_get_wtime => time_of_wall;
    omp_get_wtick => tick;
    omp_init_lock => begin_lock;
    omp_init_lock_with_hint => begin_lock_hinted;
    omp_destroy_lock => end_lock;
    omp_set_lock => take_lock;
    omp_unset_lock => give_lock;
    omp_test_lock => test_lock;
    omp_init_nest_lock => begin_nestable;
    omp_init_nest_lock_with_hint => begin_nestable_hinted;
    omp_destroy_nest_lock => end_lock;
    omp_set_nest_lock => take_nestable;
    omp_unset_nest_lock => give_nestable;
    omp_test_nest_lock => test_nestable;
}
