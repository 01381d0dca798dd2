//! Table 1 step by step, Figs. 3, 8 and 9.

use crate::support::figures::scale_vector;
use crate::support::{A, B, Code, M, N, variable};
use rashomon_units::{Analysis, Bytes, Counts, Detection, Event, Lock, LockSet, Mode, Options, Step, UnitView};

fn counts(acquired: u32, released: u32) -> Counts {
    Counts { acquired, released }
}

fn only(lock: Lock) -> LockSet {
    LockSet::These(vec![(lock, Mode::Exclusive)])
}

struct Run {
    analysis: Analysis,
}

impl Run {
    fn new(shared: &[Bytes]) -> Run {
        let mut analysis = Analysis::new(Options { detection: Detection::States, ..Options::default() });
        shared.iter().for_each(|range| analysis.share(*range));
        Run { analysis }
    }

    fn thread(&mut self, thread: rashomon_units::Thread, code: Code) -> &mut Run {
        for (line, step) in code.0 {
            self.analysis.event(&Event { thread, line, step });
        }
        self
    }

    /// The one unit that accessed the variable.
    fn unit(&self, name: char) -> UnitView {
        let units = self.analysis.units(variable(name).start);
        let [unit] = &units[..] else { panic!("{units:?}") };
        unit.clone()
    }
}

/// Table 1: l_t(m), l_fst,u(m), l_lst,u(m), L_u and C_s behind each statement.
#[test]
fn table_1() {
    let (x, y) = (variable('x'), variable('y'));
    let mut run = Run::new(&[x, y]);
    let row = |run: &Run, vector: Counts, unit: Option<(Counts, Counts)>, locks: &LockSet| {
        assert_eq!(run.analysis.lock_vector(A, M), vector);
        for name in ['x', 'y'] {
            match unit {
                None => assert!(run.analysis.units(variable(name).start).is_empty()),
                Some((first, last)) => {
                    let unit = run.unit(name);
                    assert_eq!(unit.first, Some(vec![(M, first)]));
                    assert_eq!(unit.last, Some(vec![(M, last)]));
                    assert_eq!(unit.locks, *locks);
                }
            }
            assert_eq!(run.analysis.candidates(variable(name).start), *locks);
        }
    };
    row(&run, counts(0, 0), None, &LockSet::All);
    run.thread(A, Code::new().enter(&[]).acquire(M));
    row(&run, counts(1, 0), None, &LockSet::All);
    run.thread(A, Code::new().load(x, 0).load(y, 1));
    row(&run, counts(1, 0), Some((counts(1, 0), counts(1, 0))), &only(M));
    run.thread(A, Code::new().release(M));
    row(&run, counts(1, 1), Some((counts(1, 0), counts(1, 0))), &only(M));
    run.thread(A, Code::new().branch(&[0, 1], 1).compute(2, &[0]).reach(1));
    row(&run, counts(1, 1), Some((counts(1, 0), counts(1, 0))), &only(M));
    run.thread(A, Code::new().acquire(M));
    row(&run, counts(2, 1), Some((counts(1, 0), counts(1, 0))), &only(M));
    run.thread(A, Code::new().load(x, 3).load(y, 4).store(x, &[3, 2]).store(y, &[4, 2]));
    row(&run, counts(2, 1), Some((counts(1, 0), counts(2, 1))), &LockSet::none());
}

/// Fig. 3 a: two units and two sets before the comparison, one of each behind it.
#[test]
fn figure_3_a() {
    let (x, y) = (variable('x'), variable('y'));
    let mut run = Run::new(&[x, y]);
    run.thread(A, Code::new().at(1).load(x, 0).load(y, 1));
    assert_ne!(run.unit('x').number, run.unit('y').number);
    assert_eq!(run.analysis.correlated_set(x.start), Some(vec![x]));
    run.thread(A, Code::new().at(2).branch(&[0, 1], 1).compute(2, &[0]).reach(1));
    assert_eq!(run.unit('x').number, run.unit('y').number);
    assert_eq!(run.analysis.correlated_set(x.start), Some(vec![x, y]));
}

/// Fig. 3 b: reading x a second time ends the unit that wrote it, and begins another one.
#[test]
fn figure_3_b() {
    let (x, y) = (variable('x'), variable('y'));
    let mut run = Run::new(&[x, y]);
    run.thread(A, scale_vector(10, true));
    assert!(!run.unit('x').closed);
    run.thread(A, scale_vector(10, true));
    let units = run.analysis.units(x.start);
    let [first, second] = &units[..] else { panic!("{units:?}") };
    assert!(first.closed && !second.closed);
    assert_eq!(run.analysis.writer(y.start).map(|unit| unit.number), Some(second.number));
    assert_eq!(run.analysis.correlated_set(x.start), Some(vec![x, y]));
}

/// Fig. 8 a: when units merge, their shared parts do, and what lies between.
#[test]
fn figure_8_a() {
    let (x, y) = (variable('x'), variable('y'));
    let mut run = Run::new(&[x, y]);
    run.thread(A, Code::new().acquire(N).locked(&[M], Code::new().load(x, 0)).locked(&[M], Code::new().load(y, 1)));
    let both = LockSet::These(vec![(M, Mode::Exclusive), (N, Mode::Exclusive)]);
    assert_eq!((run.unit('x').locks, run.unit('y').locks), (both.clone(), both));
    run.thread(A, Code::new().compute(2, &[0, 1]));
    assert_eq!(run.unit('x').locks, only(N));
    assert_eq!(run.unit('x').first, Some(vec![(M, counts(1, 0)), (N, counts(1, 0))]));
    assert_eq!(run.unit('x').last, Some(vec![(M, counts(2, 1)), (N, counts(1, 0))]));
}

/// Fig. 8 b: a variable that was exclusive turns out to be shared; the shared part of the unit that accessed it grows.
#[test]
fn figure_8_b() {
    let (x, v) = (variable('x'), variable('v'));
    let mut run = Run::new(&[x]);
    run.thread(A, Code::new().locked(&[M], Code::new().load(x, 0)).store(v, &[0]));
    assert_eq!(run.unit('x').locks, only(M));
    run.thread(B, Code::new().load(v, 0));
    assert_eq!(run.unit('x').locks, LockSet::none());
    assert_eq!(run.unit('x').last, Some(vec![]));
}

/// Fig. 9, with acquisitions of a lock that is held already.
#[test]
fn figure_9() {
    let mut run = Run::new(&[]);
    let mut after = |code: Code| run.thread(A, code).analysis.lock_vector(A, M);
    assert_eq!(after(Code::new().acquire(M)), counts(1, 0));
    assert_eq!(after(Code::new().acquire(M)), counts(1, 0));
    assert_eq!(after(Code::new().release(M)), counts(1, 0));
    assert_eq!(after(Code::new().release(M)), counts(1, 1));
    assert_eq!(after(Code::new().acquire(M)), counts(2, 1));
    assert_eq!(after(Code::new().release(M)), counts(2, 2));
    assert_eq!(after(Code::new().release(M)), counts(2, 2));
    assert_eq!(run.analysis.summary().steps_out_of_place, 1);
}

/// Another thread's read ends no unit: if it did, seeing the violation would be what hides it.
#[test]
fn only_the_own_thread_ends_a_unit() {
    let (x, y) = (variable('x'), variable('y'));
    let mut run = Run::new(&[x, y]);
    run.thread(A, Code::new().load(x, 0).locked(&[M], Code::new().store(x, &[0])));
    run.thread(B, Code::new().locked(&[M], Code::new().load(x, 0).load(y, 1)));
    run.thread(A, Code::new().locked(&[M], Code::new().store(y, &[0])));
    let writers = [x, y].map(|bytes| run.analysis.writer(bytes.start).map(|unit| unit.number));
    assert_eq!(writers[0], writers[1]);
    assert_eq!(run.analysis.writer(x.start).map(|unit| unit.locks), Some(LockSet::none()));
}

/// A branch has no influence behind the point where its paths meet, nor in functions that are called.
#[test]
fn control_dependences_end() {
    let (x, y, z, v) = (variable('x'), variable('y'), variable('z'), variable('v'));
    let mut run = Run::new(&[]);
    let code = Code::new().enter(&[]).load(x, 0).branch(&[0], 7).store(y, &[]).enter(&[]).store(v, &[]).exit(&[], None);
    run.thread(A, code.reach(7).store(z, &[]).exit(&[], None));
    assert_eq!(run.analysis.correlated_set(x.start), Some(vec![x, y]));
    assert_eq!(run.analysis.correlated_set(z.start), Some(vec![z]));
    assert_eq!(run.analysis.correlated_set(v.start), Some(vec![v]));
}

/// A loop: what each iteration does depends on the conditions of all iterations before; jumps out of the body end inner branches.
#[test]
fn loops_and_jumps_out_of_them() {
    let (x, y, z) = (variable('x'), variable('y'), variable('z'));
    let mut run = Run::new(&[]);
    let code = Code::new().enter(&[]).load(x, 0).branch(&[0], 9).load(y, 1).branch(&[1], 4).reach(4).load(x, 0).branch(&[0], 9);
    // The last iteration leaves from within an inner branch.
    let code = code.load(y, 1).branch(&[1], 4).reach(9).store(z, &[]).exit(&[], None);
    run.thread(A, code);
    assert_eq!(run.analysis.correlated_set(y.start), Some(vec![x, y]));
    assert_eq!(run.analysis.correlated_set(z.start), Some(vec![z]));
    assert_eq!(run.unit('x').number, run.unit('y').number);
}

#[test]
fn an_unused_step_of_the_other_kind_is_counted() {
    let mut run = Run::new(&[]);
    run.thread(A, Code::new().exit(&[], None).step(Step::Leave { barrier: rashomon_units::Object(1) }));
    run.thread(A, Code::new().step(Step::Join { child: A }));
    assert_eq!(run.analysis.summary().steps_out_of_place, 3);
}
