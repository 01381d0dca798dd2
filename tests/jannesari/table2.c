/* Tests 0-13 of Table 2 (Jannesari 2014); TEST says which. What the paper calls signal and wait are a semaphore's. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t one, two;
static int x;

static __attribute__((noinline)) void inc(void) { x++; }
static __attribute__((noinline)) void *get(void) { return (void *)(intptr_t)x; }
static __attribute__((noinline)) void set(int value) { x = value; }

#define LOCKED(lock, what) (pthread_mutex_lock(lock), what, pthread_mutex_unlock(lock))

static void *a(void *result) {
#if TEST == 0
    inc();
#elif TEST == 1 || TEST == 2
    result = get();
#elif TEST == 3
    LOCKED(&m, inc());
#elif TEST == 4
    set(1);
#elif TEST == 5
    LOCKED(&m, inc());
    LOCKED(&m, inc());
#elif TEST == 6
    pthread_mutex_lock(&n);
    LOCKED(&m, inc());
    pthread_mutex_unlock(&n);
#elif TEST == 7
    LOCKED(&m, inc());
#elif TEST == 8
    LOCKED(&m, inc());
    LOCKED(&n, inc());
#elif TEST == 9
    inc();
    sem_post(&one);
#elif TEST == 10
    LOCKED(&m, inc());
    sem_post(&one);
#elif TEST == 11
    LOCKED(&m, inc());
    sem_post(&one);
    result = get();
#elif TEST == 12
    LOCKED(&m, inc());
    sem_post(&one);
    sem_wait(&two);
    result = get();
#elif TEST == 13
    LOCKED(&m, inc());
    pthread_barrier_wait(&barrier);
    result = get();
#endif
    return result;
}

static void *b(void *result) {
#if TEST == 0 || TEST == 1
    inc();
#elif TEST == 2
    result = get();
#elif TEST == 4
    set(2);
#elif TEST == 3 || TEST == 5 || TEST == 6 || TEST == 8
    LOCKED(&m, inc());
#elif TEST == 7
    LOCKED(&n, inc());
#elif TEST == 9
    sem_wait(&one);
    inc();
#elif TEST == 10
    LOCKED(&m, inc());
    sem_wait(&one);
    inc();
#elif TEST == 11
    LOCKED(&m, inc());
    sem_wait(&one);
    result = get();
#elif TEST == 12
    LOCKED(&m, inc());
    sem_post(&two);
    sem_wait(&one);
    result = get();
#elif TEST == 13
    LOCKED(&m, inc());
    pthread_barrier_wait(&barrier);
    result = get();
#endif
    return result;
}

int main(void) {
    pthread_t first, second;
    x = 0;
    sem_init(&one, 0, 0);
    sem_init(&two, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&first, 0, a, 0);
    pthread_create(&second, 0, b, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return 0;
}
