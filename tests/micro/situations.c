/* Small programs with known answers: CASE says how two threads work on a variable, KIND what that variable is. Each line below
 * tells the truth of a case: `race`, `violation` (no access races, and yet two critical sections that belong together may be
 * interleaved), or `none`.
 *
 * case 1: race: nothing protects the variable
 * case 2: race: one thread holds a mutex
 * case 3: race: each thread holds another mutex
 * case 4: race: one thread only reads, and holds nothing
 * case 5: race: both write under the lock of a reader
 * case 6: race: the semaphore is posted before the write
 * case 7: race: both threads are behind the same barrier
 * case 8: race: a flag is set without release, and read without acquire
 * case 9: race: the mutex is given back too early
 * case 10: race: main reads before it joins
 * case 11: race: the first of two accesses holds the mutex
 * case 12: race: the mutex is taken on one way of two
 * case 13: violation: read in one critical section, written in the next
 * case 14: violation: looked at in one critical section, changed in the next
 * case 15: violation: two variables, one critical section for each
 * case 16: violation: atomic read, then atomic write
 * case 17: none: one mutex
 * case 18: none: two mutexes, one of them common
 * case 19: none: a lock of writers
 * case 20: none: a writer's lock and readers' locks
 * case 21: none: a spin lock
 * case 22: none: a mutex that is only tried
 * case 23: none: a mutex that one thread takes twice
 * case 24: none: created behind the first access
 * case 25: none: joined before the second access
 * case 26: none: a semaphore is posted behind the write
 * case 27: none: a barrier between the accesses
 * case 28: none: a condition variable tells of the write
 * case 29: none: an atomic flag is set with release, and read with acquire
 * case 30: none: a flag under a mutex is polled
 * case 31: none: atomic increments
 * case 32: none: both threads only read
 * case 33: none: initialised once
 * case 34: none: each thread has a part of its own
 * case 35: none: two critical sections within one of another mutex
 * case 36: none: read and written in one critical section, then again
 */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sched.h>

struct pair {
    long first, second;
};

#if KIND == 1 /* a global variable */
static int variable, second;
#define X variable
#define Y second
#elif KIND == 2 /* an element of an array of bytes */
static char bytes[16];
#define X bytes[5]
#define Y bytes[9]
#elif KIND == 3 /* members of a structure */
static struct pair pair;
#define X pair.first
#define Y pair.second
#elif KIND == 4 /* a block of the heap */
static struct pair *block;
#define X block->first
#define Y block->second
#define BEGIN block = calloc(1, sizeof *block)
#elif KIND == 5 /* a local variable of main */
static struct pair *local;
#define X local->first
#define Y local->second
#define BEGIN struct pair here = {0, 0}; local = &here
#endif
#ifndef BEGIN
#define BEGIN (void)0
#endif

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t posted;
static int ready;
static atomic_int flag, number;

#define LOCK(lock) pthread_mutex_lock(&lock)
#define UNLOCK(lock) pthread_mutex_unlock(&lock)
#define UNDER(lock, what) (LOCK(lock), what, UNLOCK(lock))

static __attribute__((noinline)) void add(void) { X = X + 1; }
static __attribute__((noinline)) long get(void) { return X; }
static __attribute__((noinline)) void set(long value) { X = value; }
static __attribute__((unused)) void initialise(void) { X = 7; }

#if CASE == 13
static void apart(void) {
    long seen;
    UNDER(m, seen = get());
    UNDER(m, set(seen + 1));
}
#elif CASE == 14
static int apart(void) {
    int free;
    UNDER(m, free = get() == 0);
    if (free) UNDER(m, add());
    return free;
}
#endif

static void *a(void *result) {
#if CASE == 1 || CASE == 4
    add();
#elif CASE == 2 || CASE == 3 || CASE == 17
    UNDER(m, add());
#elif CASE == 5 || CASE == 19 || CASE == 20
    if (CASE == 5) pthread_rwlock_rdlock(&rw); else pthread_rwlock_wrlock(&rw);
    add();
    pthread_rwlock_unlock(&rw);
#elif CASE == 6
    sem_post(&posted);
    add();
#elif CASE == 7
    pthread_barrier_wait(&barrier);
    add();
#elif CASE == 8 || CASE == 29
    add();
    atomic_store_explicit(&flag, 1, CASE == 8 ? memory_order_relaxed : memory_order_release);
#elif CASE == 9
    LOCK(m);
    UNLOCK(m);
    add();
#elif CASE == 10 || CASE == 24 || CASE == 25
    add();
#elif CASE == 11
    UNDER(m, add());
    add();
#elif CASE == 12
    if (ready == 0) add();
    else UNDER(m, add());
#elif CASE == 13 || CASE == 14
    apart();
#elif CASE == 15
    UNDER(m, X = X - 1);
    UNDER(m, Y = Y + 1);
#elif CASE == 16
    int seen = atomic_load(&number);
    atomic_store(&number, seen + 1);
#elif CASE == 18
    LOCK(n);
    UNDER(m, add());
    UNLOCK(n);
#elif CASE == 21
    pthread_spin_lock(&spin);
    add();
    pthread_spin_unlock(&spin);
#elif CASE == 22
    if (pthread_mutex_trylock(&m) == 0) add(), UNLOCK(m);
#elif CASE == 23
    LOCK(again);
    UNDER(again, add());
    add();
    UNLOCK(again);
#elif CASE == 26
    add();
    sem_post(&posted);
#elif CASE == 27
    add();
    pthread_barrier_wait(&barrier);
#elif CASE == 28
    add();
    LOCK(m);
    ready = 1;
    pthread_cond_signal(&changed);
    UNLOCK(m);
#elif CASE == 30
    add();
    UNDER(m, ready = 1);
#elif CASE == 31
    atomic_fetch_add(&number, 1);
#elif CASE == 32
    if (get() != 0) abort();
#elif CASE == 33
    pthread_once(&once, initialise);
    assert(get() == 7);
#elif CASE == 34
    X = X + 1;
#elif CASE == 35
    LOCK(n);
    long seen;
    UNDER(m, seen = get());
    UNDER(m, set(seen + 1));
    UNLOCK(n);
#elif CASE == 36
    UNDER(m, add());
    UNDER(m, add());
#endif
    return result;
}

static void *b(void *result) {
#if CASE == 4
    if (get() > 2) abort();
#elif CASE == 1 || CASE == 2
    add();
#elif CASE == 3
    UNDER(n, add());
#elif CASE == 20
    pthread_rwlock_rdlock(&rw);
    if (get() > 2) abort();
    pthread_rwlock_unlock(&rw);
#elif CASE == 6 || CASE == 26
    sem_wait(&posted);
    add();
#elif CASE == 8 || CASE == 29
    while (!atomic_load_explicit(&flag, CASE == 8 ? memory_order_relaxed : memory_order_acquire)) sched_yield();
    add();
#elif CASE == 9 || CASE == 11 || CASE == 12 || CASE == 18 || CASE == 36
    UNDER(m, add());
#elif CASE == 15
    LOCK(m);
    long sum = X + Y;
    UNLOCK(m);
    assert(sum == 0);
#elif CASE == 27
    pthread_barrier_wait(&barrier);
    add();
#elif CASE == 28
    LOCK(m);
    while (!ready) pthread_cond_wait(&changed, &m);
    UNLOCK(m);
    add();
#elif CASE == 30
    for (int seen = 0; !seen; sched_yield()) UNDER(m, seen = ready);
    add();
#elif CASE == 34
    Y = Y + 1;
#elif CASE == 10 || CASE == 24 || CASE == 25
    (void)0;
#else
    result = a(result);
#endif
    return result;
}

int main(void) {
    pthread_t first, second;
    BEGIN;
    sem_init(&posted, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    pthread_spin_init(&spin, 0);
#if CASE == 24
    add();
#endif
    pthread_create(&first, 0, a, 0);
    pthread_create(&second, 0, b, 0);
#if CASE == 10
    if (get() > 2) abort();
#endif
    pthread_join(first, 0);
    pthread_join(second, 0);
#if CASE == 25
    add();
#elif CASE == 13
    assert(get() == 2);
#elif CASE == 14
    assert(get() == 1);
#elif CASE == 16
    assert(atomic_load(&number) == 2);
#endif
    return 0;
}
