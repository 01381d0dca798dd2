//! Small programs, drawn: what each thread does, and the same as C.

use rashomon_abi::numbers::SplitMix;
use std::fmt::Write as _;

pub const VARIABLES: usize = 2;
pub const LOCKS: usize = 2;
const MOST_THREADS: u64 = 4;
/// Visible steps of all threads, those that create and join apart.
const MOST_STEPS: usize = 8;

/// One step of a thread. Numbers name objects, or threads in the order of their bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    Read(usize),
    /// A value that no other step writes.
    Write(usize),
    Add(usize),
    Lock(usize),
    Unlock(usize),
    /// What follows up to [`Self::UnlockTried`] happens either way.
    Try(usize),
    UnlockTried(usize),
    ReadLock,
    WriteLock,
    UnlockBoth,
    /// For the condition that goes with the mutex.
    Wait(usize),
    Signal(usize),
    Broadcast(usize),
    Take,
    TryTake,
    Post,
    /// As [`Self::Try`], [`Self::Wait`] and [`Self::Take`], for at most so long ([`Program::patience`]).
    TimedLock(usize),
    TimedWait(usize),
    TimedTake,
    Sleep,
    Create(usize),
    Join(usize),
    /// Of a thread that its creator joins later, and that itself creates none.
    Cancel(usize),
    /// Nobody will join this one, which is the thread itself.
    Detach,
    /// Out of a called function.
    EndThread,
    EndProcess,
}

/// Thread 0 is the initial one; its return from `main` ends the process.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Do>>,
}

struct Draw(SplitMix);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn access(&mut self) -> Do {
        let variable = self.below(VARIABLES);
        match self.below(5) {
            0 | 1 => Do::Read(variable),
            2 | 3 => Do::Write(variable),
            _ => Do::Add(variable),
        }
    }

    /// What belongs together.
    fn part(&mut self, is_initial: bool) -> Vec<Do> {
        let lock = self.below(LOCKS);
        match self.below(15) {
            0..=2 => vec![self.access()],
            3 => vec![Do::Lock(lock), self.access(), Do::Unlock(lock)],
            4 => vec![Do::Lock(lock), Do::Lock(1 - lock), Do::Unlock(1 - lock), Do::Unlock(lock)],
            5 => vec![Do::Try(lock), self.access(), Do::UnlockTried(lock)],
            6 => vec![Do::Lock(lock), Do::Wait(lock), Do::Unlock(lock)],
            7 => vec![if self.below(2) == 0 { Do::Signal(lock) } else { Do::Broadcast(lock) }],
            8 => vec![Do::ReadLock, self.access(), Do::UnlockBoth],
            9 => vec![Do::WriteLock, self.access(), Do::UnlockBoth],
            10 => vec![[Do::Take, Do::TryTake, Do::Post][self.below(3)]],
            11 => vec![Do::Sleep],
            12 => vec![Do::TimedTake],
            13 if self.below(2) == 0 => vec![Do::TimedLock(lock), self.access(), Do::UnlockTried(lock)],
            13 => vec![Do::Lock(lock), Do::TimedWait(lock), Do::Unlock(lock)],
            _ if is_initial => vec![self.access()],
            _ => vec![[Do::EndThread, Do::EndProcess][self.below(2)]],
        }
    }
}

impl Program {
    pub fn drawn(seed: u64) -> Self {
        let mut draw = Draw(SplitMix(SplitMix::mixed(seed)));
        let count = 2 + draw.below(MOST_THREADS as usize - 1);
        let mut threads: Vec<Vec<Do>> = vec![Vec::new(); count];
        let mut left = MOST_STEPS;
        for _ in 0..MOST_STEPS {
            let thread = draw.below(count);
            let part = draw.part(thread == 0);
            let has_ended = matches!(threads[thread].last(), Some(Do::EndThread | Do::EndProcess));
            if part.len() <= left && !has_ended {
                left -= part.len();
                threads[thread].extend(part);
            }
        }
        // Each is created by an earlier one, and joined by it, or by nobody.
        for thread in (1..count).rev() {
            let parent = if draw.below(3) == 0 { draw.below(thread) } else { 0 };
            if draw.below(4) == 0 {
                threads[thread].insert(0, Do::Detach);
            } else if !matches!(threads[parent].last(), Some(Do::EndThread | Do::EndProcess)) {
                let is_leaf = !threads[thread].iter().any(|step| matches!(step, Do::Create(_)));
                if is_leaf && draw.below(4) == 0 {
                    let at = draw.below(threads[parent].len() + 1);
                    // Behind what others of the same creator need: their handles.
                    let behind =
                        threads[parent].iter().rposition(|step| matches!(step, Do::Create(_))).map_or(0, |last| last + 1);
                    threads[parent].insert(at.max(behind), Do::Cancel(thread));
                }
                threads[parent].push(Do::Join(thread));
            }
            threads[parent].insert(0, Do::Create(thread));
        }
        Self { threads }
    }

    /// The children of a thread, in the order of their creation.
    pub fn children(&self, thread: usize) -> Vec<usize> {
        let created = |step: &Do| if let Do::Create(child) = step { Some(*child) } else { None };
        self.threads[thread].iter().filter_map(created).collect()
    }

    /// The value that a step writes, which no other one does.
    pub fn value(thread: usize, step: usize) -> i32 {
        (100 * (thread + 1) + step) as i32
    }

    /// Seconds of the program's own time that a timed step waits. No sums of them are equal, so that which of several time-outs
    /// comes first is never in doubt.
    pub fn patience(&self, thread: usize, step: usize) -> u64 {
        let timed = |step: &Do| matches!(step, Do::TimedLock(_) | Do::TimedWait(_) | Do::TimedTake);
        let before: usize = self.threads[..thread].iter().map(|body| body.iter().filter(|step| timed(step)).count()).sum();
        let own = self.threads[thread][..step].iter().filter(|step| timed(step)).count();
        3_u64.pow((before + own) as u32)
    }

    /// As a program that appends to the file in its first argument who ended it, and what that thread saw and those that it
    /// joined. That is done by code which no tool sees, by itself: it is part of the step before.
    pub fn source(&self) -> String {
        let mut source = String::from(PRELUDE);
        for (thread, body) in self.threads.iter().enumerate().rev() {
            let _ = writeln!(source, "static void *body{thread}(void *p) {{");
            for (number, step) in body.iter().enumerate() {
                let _ = writeln!(source, "    {}", self.statement(thread, number, *step));
            }
            let _ = writeln!(source, "    return p;\n}}");
        }
        source.push_str(MAIN);
        source
    }

    fn statement(&self, thread: usize, number: usize, step: Do) -> String {
        let later = || format!("later({})", self.patience(thread, number));
        match step {
            Do::Read(variable) => format!("saw({thread}, x[{variable}]);"),
            Do::Write(variable) => format!("x[{variable}] = {};", Program::value(thread, number)),
            Do::Add(variable) => format!("saw({thread}, __atomic_fetch_add(&a[{variable}], 1, __ATOMIC_SEQ_CST));"),
            Do::Lock(lock) => format!("pthread_mutex_lock(&m[{lock}]);"),
            Do::Unlock(lock) => format!("pthread_mutex_unlock(&m[{lock}]);"),
            Do::Try(lock) => format!("{{ int t = !pthread_mutex_trylock(&m[{lock}]); saw({thread}, t);"),
            Do::UnlockTried(lock) => format!("if (t) pthread_mutex_unlock(&m[{lock}]); }}"),
            Do::ReadLock => "pthread_rwlock_rdlock(&both);".into(),
            Do::WriteLock => "pthread_rwlock_wrlock(&both);".into(),
            Do::UnlockBoth => "pthread_rwlock_unlock(&both);".into(),
            Do::Wait(lock) => format!("pthread_cond_wait(&c[{lock}], &m[{lock}]);"),
            Do::Signal(lock) => format!("pthread_cond_signal(&c[{lock}]);"),
            Do::Broadcast(lock) => format!("pthread_cond_broadcast(&c[{lock}]);"),
            Do::Take => "sem_wait(&s);".into(),
            Do::TryTake => format!("saw({thread}, sem_trywait(&s) == 0);"),
            Do::TimedLock(lock) => {
                format!("{{ int t = !pthread_mutex_timedlock(&m[{lock}], {}); saw({thread}, t);", later())
            }
            Do::TimedWait(lock) => format!("saw({thread}, !pthread_cond_timedwait(&c[{lock}], &m[{lock}], {}));", later()),
            Do::TimedTake => format!("saw({thread}, sem_timedwait(&s, {}) == 0);", later()),
            Do::Post => "sem_post(&s);".into(),
            Do::Sleep => "usleep(1);".into(),
            Do::Create(child) => format!("pthread_create(handle({child}), 0, body{child}, p);"),
            Do::Join(child) => format!("pthread_join(*handle({child}), 0); joined({thread}, {child});"),
            Do::Cancel(child) => format!("pthread_cancel(*handle({child}));"),
            Do::Detach => "pthread_detach(pthread_self());".into(),
            Do::EndThread => "pthread_exit(p);".into(),
            Do::EndProcess => format!("ends({thread}); exit(0);"),
        }
    }
}

/// Compiled without optimisation, else accesses are merged. What is not instrumented is nobody's step.
const PRELUDE: &str = r#"#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define UNSEEN __attribute__((noinline, no_sanitize("thread")))
static int x[2], a[2], values[4][16], count[4], with[4][4];
static const char *path;
static pthread_t threads[4];
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t c[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
static sem_t s;
UNSEEN static void saw(int thread, int value) { values[thread][count[thread]++] = value; }
UNSEEN static pthread_t *handle(int thread) { return &threads[thread]; }
UNSEEN static struct timespec *later(int seconds) {
    static __thread struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec += seconds;
    return &then;
}
UNSEEN static void joined(int thread, int child) {
    with[thread][child] = 1;
    for (int i = 0; i < 4; i++) with[thread][i] |= with[child][i];
}
UNSEEN static long call(long number, long one, long two, long three) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(one), "S"(two), "d"(three) : "rcx", "r11", "memory");
    return result;
}
UNSEEN static char *number(char *at, int value) {
    char digits[12];
    int n = 0;
    do digits[n++] = '0' + value % 10; while (value /= 10);
    while (n) *at++ = digits[--n];
    return at;
}
UNSEEN static void ends(int thread) {
    char line[1024], *at = line;
    at = number(at, thread);
    for (int i = 0; i < 4; i++) {
        if (i != thread && !with[thread][i]) continue;
        *at++ = ' '; *at++ = 't'; at = number(at, i);
        for (int n = 0; n < count[i]; n++) { *at++ = ','; at = number(at, values[i][n]); }
    }
    *at++ = '\n';
    long file = call(2, (long)path, 02001 | 0100 | 02000000, 0600);
    call(1, file, (long)line, at - line);
    call(3, file, 0, 0);
}
UNSEEN static void begin(char **arguments) { path = arguments[1]; }
"#;

const MAIN: &str = "int main(int count, char **arguments) {
    begin(arguments);
    sem_init(&s, 0, 0);
    body0(0);
    ends(0);
    return 0;
}
";
