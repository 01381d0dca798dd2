// What locks return when they are not acquired.
// Shows: timed and tried read-write locks and semaphores on either clock, invalid times, locks held already, and a barrier's
//        serial thread.
// True:  main holds the lock until it has joined the thread that fails to get it; phases are written and read on two sides of a
//        barrier.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 5 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static atomic_int serial;
static int phase[THREADS];

static struct timespec soon(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 5000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *fail_to_lock(void *unused) {
    struct timespec time = soon(CLOCK_REALTIME);
    if (pthread_rwlock_timedrdlock(&lock, &time) != ETIMEDOUT)
        return (void *)1;
    time = soon(CLOCK_MONOTONIC);
    if (pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &time) != ETIMEDOUT)
        return (void *)2;
    if (pthread_rwlock_tryrdlock(&lock) != EBUSY || pthread_rwlock_trywrlock(&lock) != EBUSY)
        return (void *)3;
    time = soon(CLOCK_REALTIME);
    if (sem_timedwait(&semaphore, &time) != -1 || errno != ETIMEDOUT)
        return (void *)4;
    time = soon(CLOCK_MONOTONIC);
    if (sem_clockwait(&semaphore, CLOCK_MONOTONIC, &time) != -1 || errno != ETIMEDOUT)
        return (void *)5;
    if (sem_trywait(&semaphore) != -1 || errno != EAGAIN)
        return (void *)6;
    time.tv_nsec = -1;
    if (sem_timedwait(&semaphore, &time) != -1 || errno != EINVAL)
        return (void *)7;
    return pthread_rwlock_timedwrlock(&lock, &time) == EINVAL ? NULL : (void *)8;
}

static int meet(void) {
    int result = pthread_barrier_wait(&barrier);
    if (result == PTHREAD_BARRIER_SERIAL_THREAD)
        atomic_fetch_add(&serial, 1);
    return result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD;
}

static void *take_part(void *argument) {
    int *mine = argument;
    for (int round = 0; round < ROUNDS; round++) {
        *mine = round;
        if (!meet())
            return (void *)1;
        for (int i = 0; i < THREADS; i++)
            if (phase[i] != round)
                return (void *)2;
        if (!meet())
            return (void *)3;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    void *result;
    int count;
    sem_init(&semaphore, 0, 0);
    if (pthread_rwlock_wrlock(&lock) != 0 || pthread_rwlock_wrlock(&lock) != EDEADLK || pthread_rwlock_rdlock(&lock) != EDEADLK)
        return 11;
    pthread_create(&threads[0], NULL, fail_to_lock, NULL);
    pthread_join(threads[0], &result);
    if (result != NULL)
        return (int)(long)result;
    if (pthread_rwlock_unlock(&lock) != 0)
        return 12;
    for (int i = 0; i < 3; i++)
        sem_post(&semaphore);
    if (sem_getvalue(&semaphore, &count) != 0 || count != 3)
        return 13;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_part, &phase[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        if (result != NULL)
            return 14;
    }
    pthread_barrier_destroy(&barrier);
    return atomic_load(&serial) == 2 * ROUNDS ? 0 : 15;
}
