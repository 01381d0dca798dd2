// What calls return that are given something which is not what it claims to be, or that must not wait. Each function is a case,
// which prints what came of its calls. None waits for ever.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call) show(#call, (call))
#define SHOW_ERRNO(call) (errno = 0, show(#call, (call) < 0 ? -errno : 0))

static const struct timespec past = {1, 0}, invalid = {1, 2000000000}, negative = {-5, 0};
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready, finish;

static void show(const char *call, long result) { printf("  %s = %ld\n", call, result); }

static void *waits(void *unused) {
    sem_wait(&finish);
    return 0;
}

static void *locks_gate(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return 0;
}

static pthread_t start(void *(*routine)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, 0, routine, argument);
    return thread;
}

static void end(pthread_t thread) {
    sem_post(&finish);
    pthread_join(thread, 0);
}

static pthread_mutex_t *mutex(int type, int robust, int protocol) {
    static pthread_mutex_t mutexes[32];
    static int count;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&mutexes[count], &attributes);
    return &mutexes[count++];
}

// Joins.

static pthread_t zero;

static void join_of_zero(void) {
    // The mutex is held, as it is by whoever deadlocks.
    pthread_mutex_lock(&gate);
    pthread_t thread = start(locks_gate, 0);
    SHOW(pthread_join(zero, 0));
    SHOW(pthread_timedjoin_np(zero, 0, &past));
    pthread_mutex_unlock(&gate);
    pthread_join(thread, 0);
}

static void join_of_self(void) {
    SHOW(pthread_join(pthread_self(), 0));
    SHOW(pthread_tryjoin_np(pthread_self(), 0));
    SHOW(pthread_timedjoin_np(pthread_self(), 0, &past));
}

static void join_of_detached(void) {
    pthread_mutex_lock(&gate);
    pthread_t thread = start(locks_gate, 0);
    SHOW(pthread_detach(thread));
    SHOW(pthread_join(thread, 0));
    SHOW(pthread_tryjoin_np(thread, 0));
    SHOW(pthread_timedjoin_np(thread, 0, &past));
    SHOW(pthread_detach(thread));
    pthread_mutex_unlock(&gate);
}

static void join_of_born_detached(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    pthread_mutex_lock(&gate);
    pthread_create(&thread, &attributes, locks_gate, 0);
    SHOW(pthread_join(thread, 0));
    pthread_mutex_unlock(&gate);
}

static void join_of_running(void) {
    pthread_t thread = start(waits, 0);
    SHOW(pthread_tryjoin_np(thread, 0));
    SHOW(pthread_timedjoin_np(thread, 0, &past));
    SHOW(pthread_timedjoin_np(thread, 0, &negative));
    SHOW(pthread_clockjoin_np(thread, 0, CLOCK_MONOTONIC, &past));
    SHOW(pthread_clockjoin_np(thread, 0, CLOCK_PROCESS_CPUTIME_ID, &past));
    sem_post(&finish);
    SHOW(pthread_join(thread, 0));
}

static void *joins(void *thread) {
    void *value = 0;
    SHOW(pthread_join(*(pthread_t *)thread, &value));
    printf("  value %ld\n", (long)value);
    exit(0);
}

static void join_of_the_initial_thread(void) {
    static pthread_t self;
    self = pthread_self();
    start(joins, &self);
    fflush(stdout);
    pthread_exit((void *)7);
}

static void *cancelled(void *unused) {
    for (;;) pause();
}

static void join_of_cancelled(void) {
    pthread_t thread = start(cancelled, 0);
    void *value = 0;
    SHOW(pthread_cancel(thread));
    SHOW(pthread_join(thread, &value));
    printf("  cancelled %d\n", value == PTHREAD_CANCELED);
}

// Mutexes.

static void *gives_back(void *other) {
    SHOW(pthread_mutex_unlock(other));
    SHOW(pthread_mutex_trylock(other));
    SHOW(pthread_mutex_timedlock(other, &past));
    SHOW(pthread_mutex_timedlock(other, &negative));
    SHOW(pthread_mutex_timedlock(other, &invalid));
    SHOW(pthread_mutex_clocklock(other, CLOCK_MONOTONIC, &past));
    SHOW(pthread_mutex_clocklock(other, CLOCK_PROCESS_CPUTIME_ID, &past));
    return 0;
}

static void again(pthread_mutex_t *lock) {
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_trylock(lock));
    SHOW(pthread_mutex_timedlock(lock, &past));
    SHOW(pthread_mutex_timedlock(lock, &invalid));
    SHOW(pthread_mutex_destroy(lock));
    pthread_join(start(gives_back, lock), 0);
    SHOW(pthread_mutex_unlock(lock));
    SHOW(pthread_mutex_unlock(lock));
}

static void checking_mutex(void) { again(mutex(PTHREAD_MUTEX_ERRORCHECK, 0, 0)); }
static void checking_inheriting_mutex(void) { again(mutex(PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_INHERIT)); }
static void checking_robust_mutex(void) { again(mutex(PTHREAD_MUTEX_ERRORCHECK, 1, 0)); }
static void recursive_mutex(void) { again(mutex(PTHREAD_MUTEX_RECURSIVE, 0, 0)); }
static void recursive_robust_mutex(void) { again(mutex(PTHREAD_MUTEX_RECURSIVE, 1, 0)); }

static void normal_mutex(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_NORMAL, 0, 0);
    SHOW(pthread_mutex_timedlock(lock, &invalid));
    SHOW(pthread_mutex_trylock(lock));
    SHOW(pthread_mutex_timedlock(lock, &past));
    SHOW(pthread_mutex_timedlock(lock, &invalid));
    SHOW(pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &past));
    SHOW(pthread_mutex_clocklock(lock, 99, &past));
    SHOW(pthread_mutex_destroy(lock));
    SHOW(pthread_mutex_unlock(lock));
    SHOW(pthread_mutex_destroy(lock));
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_trylock(lock));
}

static void zeroed_mutex(void) {
    pthread_mutex_t *lock = calloc(1, sizeof *lock);
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_trylock(lock));
    SHOW(pthread_mutex_unlock(lock));
}

static void filled_mutex(void) {
    pthread_mutex_t *lock = malloc(sizeof *lock);
    memset(lock, 0x5e, sizeof *lock);
    SHOW(pthread_mutex_trylock(lock));
    SHOW(pthread_mutex_lock(lock));
}

static void *takes_and_ends(void *lock) {
    pthread_mutex_lock(lock);
    sem_post(&ready);
    sem_wait(&finish);
    return 0;
}

static void owner_dead_before(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_NORMAL, 1, 0), *other = mutex(PTHREAD_MUTEX_ERRORCHECK, 1, 0);
    end(start(takes_and_ends, lock));
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_consistent(lock));
    SHOW(pthread_mutex_unlock(lock));
    SHOW(pthread_mutex_lock(lock));
    end(start(takes_and_ends, other));
    SHOW(pthread_mutex_trylock(other));
    SHOW(pthread_mutex_unlock(other));
    SHOW(pthread_mutex_lock(other));
    SHOW(pthread_mutex_timedlock(other, &past));
}

static void owner_dies_meanwhile(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_NORMAL, 1, 0);
    pthread_t thread = start(takes_and_ends, lock);
    sem_wait(&ready);
    sem_post(&finish);
    SHOW(pthread_mutex_lock(lock));
    SHOW(pthread_mutex_consistent(lock));
    SHOW(pthread_mutex_unlock(lock));
    pthread_join(thread, 0);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void *gives_up_by_waiting(void *lock) {
    pthread_mutex_lock(lock);
    sem_post(&ready);
    pthread_exit(0);
}

static void owner_dies_during_a_wait(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_NORMAL, 1, 0);
    pthread_mutex_lock(lock);
    pthread_t thread = start(gives_up_by_waiting, lock);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 100000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    SHOW(pthread_cond_timedwait(&condition, lock, &soon));
    pthread_join(thread, 0);
    SHOW(pthread_mutex_consistent(lock));
    SHOW(pthread_mutex_unlock(lock));
}

static void condition_waits(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    SHOW(pthread_cond_wait(&condition, lock));
    SHOW(pthread_cond_timedwait(&condition, lock, &past));
    pthread_mutex_lock(lock);
    SHOW(pthread_cond_timedwait(&condition, lock, &past));
    SHOW(pthread_cond_timedwait(&condition, lock, &negative));
    SHOW(pthread_cond_timedwait(&condition, lock, &invalid));
    SHOW(pthread_cond_clockwait(&condition, lock, CLOCK_MONOTONIC, &past));
    SHOW(pthread_cond_clockwait(&condition, lock, 99, &past));
    SHOW(pthread_mutex_unlock(lock));
}

// Other locks.

static void *tries_shared(void *lock) {
    SHOW(pthread_rwlock_tryrdlock(lock));
    SHOW(pthread_rwlock_trywrlock(lock));
    SHOW(pthread_rwlock_timedrdlock(lock, &past));
    SHOW(pthread_rwlock_timedwrlock(lock, &past));
    SHOW(pthread_rwlock_timedwrlock(lock, &invalid));
    SHOW(pthread_rwlock_clockrdlock(lock, 99, &past));
    return 0;
}

static void shared_lock_written(void) {
    pthread_rwlock_t *lock = calloc(1, sizeof *lock);
    SHOW(pthread_rwlock_wrlock(lock));
    SHOW(pthread_rwlock_wrlock(lock));
    SHOW(pthread_rwlock_rdlock(lock));
    SHOW(pthread_rwlock_tryrdlock(lock));
    SHOW(pthread_rwlock_timedwrlock(lock, &past));
    pthread_join(start(tries_shared, lock), 0);
    SHOW(pthread_rwlock_unlock(lock));
    SHOW(pthread_rwlock_timedrdlock(lock, &invalid));
}

static void shared_lock_read(void) {
    pthread_rwlock_t *lock = calloc(1, sizeof *lock);
    SHOW(pthread_rwlock_rdlock(lock));
    SHOW(pthread_rwlock_rdlock(lock));
    SHOW(pthread_rwlock_trywrlock(lock));
    SHOW(pthread_rwlock_timedwrlock(lock, &past));
    SHOW(pthread_rwlock_timedwrlock(lock, &negative));
    SHOW(pthread_rwlock_unlock(lock));
    SHOW(pthread_rwlock_unlock(lock));
    SHOW(pthread_rwlock_trywrlock(lock));
    SHOW(pthread_rwlock_destroy(lock));
}

static void spin_lock(void) {
    pthread_spinlock_t lock;
    SHOW(pthread_spin_init(&lock, 0));
    SHOW(pthread_spin_lock(&lock));
    SHOW(pthread_spin_trylock(&lock));
    SHOW(pthread_spin_unlock(&lock));
    SHOW(pthread_spin_destroy(&lock));
}

static void *unlocks(void *lock) { return (void *)(long)pthread_mutex_unlock(lock); }

static void mutex_as_semaphore(void) {
    pthread_mutex_t *lock = mutex(PTHREAD_MUTEX_NORMAL, 0, 0);
    void *result;
    SHOW(pthread_mutex_lock(lock));
    pthread_t thread = start(unlocks, lock);
    SHOW(pthread_mutex_lock(lock));
    pthread_join(thread, &result);
    SHOW((long)result);
}

// Semaphores and barriers.

static void semaphores(void) {
    sem_t semaphore;
    int value;
    SHOW_ERRNO(sem_init(&semaphore, 0, SEM_VALUE_MAX + 1u));
    SHOW_ERRNO(sem_init(&semaphore, 0, SEM_VALUE_MAX));
    SHOW_ERRNO(sem_post(&semaphore));
    SHOW_ERRNO(sem_init(&semaphore, 0, 1));
    SHOW_ERRNO(sem_timedwait(&semaphore, &invalid));
    SHOW_ERRNO(sem_trywait(&semaphore));
    SHOW_ERRNO(sem_trywait(&semaphore));
    SHOW_ERRNO(sem_timedwait(&semaphore, &past));
    SHOW_ERRNO(sem_timedwait(&semaphore, &negative));
    SHOW_ERRNO(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past));
    SHOW_ERRNO(sem_clockwait(&semaphore, 99, &past));
    sem_getvalue(&semaphore, &value);
    printf("  value %d\n", value);
    SHOW_ERRNO(sem_destroy(&semaphore));
    memset(&semaphore, 0, sizeof semaphore);
    SHOW_ERRNO(sem_trywait(&semaphore));
    SHOW_ERRNO(sem_post(&semaphore));
    SHOW_ERRNO(sem_wait(&semaphore));
}

static void *passes(void *barrier) {
    pthread_barrier_wait(barrier);
    return 0;
}

static void barriers(void) {
    pthread_barrier_t barrier;
    SHOW(pthread_barrier_init(&barrier, 0, 0));
    SHOW(pthread_barrier_init(&barrier, 0, UINT_MAX));
    SHOW(pthread_barrier_init(&barrier, 0, 1));
    SHOW(pthread_barrier_wait(&barrier));
    SHOW(pthread_barrier_wait(&barrier));
    SHOW(pthread_barrier_destroy(&barrier));
    SHOW(pthread_barrier_init(&barrier, 0, 2));
    pthread_t thread = start(passes, &barrier);
    int result = pthread_barrier_wait(&barrier);
    printf("  passed %d\n", result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    pthread_join(thread, 0);
    SHOW(pthread_barrier_destroy(&barrier));
}

// Futexes by number, and descriptors.

static long futex(void *word, int operation, unsigned value, const struct timespec *time, unsigned mask) {
    long result = syscall(SYS_futex, word, operation, value, time, 0, mask);
    return result < 0 ? -errno : result;
}

static void futexes(void) {
    static unsigned word = 1;
    static const struct timespec now = {0, 0};
    SHOW(futex(&word, FUTEX_WAIT_PRIVATE, 2, 0, 0));
    SHOW(futex(&word, FUTEX_WAIT_PRIVATE, 1, &now, 0));
    SHOW(futex(&word, FUTEX_WAIT_PRIVATE, 1, &invalid, 0));
    SHOW(futex(&word, FUTEX_WAIT_PRIVATE, 1, &negative, 0));
    SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 1, &past, 1));
    SHOW(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 1, 0, 0));
    SHOW(futex((char *)&word + 1, FUTEX_WAIT_PRIVATE, 1, 0, 0));
    SHOW(futex(0, FUTEX_WAIT_PRIVATE, 1, 0, 0));
    SHOW(futex((void *)4096, FUTEX_WAIT_PRIVATE, 1, 0, 0));
    SHOW(futex(&word, FUTEX_WAKE_PRIVATE, 1, 0, 0));
}

static void *writes(void *file) { return (void *)write(*(int *)file, "x", 1); }

static void descriptors(void) {
    char byte;
    int ends[2], other[2];
    SHOW_ERRNO(read(-1, &byte, 1));
    SHOW_ERRNO(pipe(ends));
    SHOW_ERRNO(read(ends[1], &byte, 1));
    SHOW_ERRNO(write(ends[0], &byte, 1));
    close(ends[1]);
    SHOW(read(ends[0], &byte, 1));
    close(ends[0]);
    SHOW_ERRNO(read(ends[0], &byte, 1));
    SHOW_ERRNO(pipe(other));
    // The same numbers, another pipe.
    pthread_t thread = start(writes, &other[1]);
    SHOW(read(ends[0], &byte, 1));
    void *written;
    pthread_join(thread, &written);
    SHOW((long)written);
    int event = eventfd(0, EFD_NONBLOCK);
    SHOW_ERRNO(read(event, &byte, 1));
    unsigned long long count;
    SHOW_ERRNO(read(event, &count, 8));
    struct pollfd polled = {99, POLLIN, 0};
    SHOW(poll(&polled, 1, -1));
    SHOW(polled.revents);
}

static void shared_between_processes(void) {
    struct { pthread_mutex_t mutex; sem_t semaphore; } *shared;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&shared->mutex, &attributes);
    sem_init(&shared->semaphore, 1, 0);
    SHOW(pthread_mutex_lock(&shared->mutex));
    SHOW(pthread_mutex_lock(&shared->mutex));
    SHOW(pthread_mutex_timedlock(&shared->mutex, &past));
    SHOW(pthread_mutex_unlock(&shared->mutex));
    SHOW_ERRNO(sem_trywait(&shared->semaphore));
    SHOW_ERRNO(sem_timedwait(&shared->semaphore, &past));
}

#define CASE(name) {#name, name}
static const struct { const char *name; void (*run)(void); } cases[] = {
    CASE(join_of_zero), CASE(join_of_self), CASE(join_of_detached), CASE(join_of_born_detached), CASE(join_of_running),
    CASE(join_of_the_initial_thread), CASE(join_of_cancelled), CASE(checking_mutex), CASE(checking_inheriting_mutex),
    CASE(checking_robust_mutex), CASE(recursive_mutex), CASE(recursive_robust_mutex), CASE(normal_mutex), CASE(zeroed_mutex),
    CASE(filled_mutex), CASE(owner_dead_before), CASE(owner_dies_meanwhile), CASE(owner_dies_during_a_wait),
    CASE(condition_waits), CASE(shared_lock_written), CASE(shared_lock_read), CASE(spin_lock), CASE(mutex_as_semaphore),
    CASE(semaphores), CASE(barriers), CASE(futexes), CASE(descriptors), CASE(shared_between_processes),
};

int main(int count, char **arguments) {
    sem_init(&ready, 0, 0);
    sem_init(&finish, 0, 0);
    for (unsigned at = 0; at < sizeof cases / sizeof *cases; at++) {
        if (count < 2) {
            puts(cases[at].name);
        } else if (!strcmp(cases[at].name, arguments[1])) {
            cases[at].run();
            return 0;
        }
    }
    return count < 2 ? 0 : 1;
}
