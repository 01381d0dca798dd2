// Each thread takes another lock of the library.
// race: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct lock;
struct lock *lock_new(void);
void lock_take(struct lock *lock);
void lock_give(struct lock *lock);

#ifdef LIBRARY
struct lock {
    int taken;
};
struct lock *lock_new(void) {
    return calloc(1, sizeof(struct lock));
}
void lock_take(struct lock *lock) {
    while (__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE)) sched_yield();
}
void lock_give(struct lock *lock) {
    __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}
#else
static struct lock *here, *there;
int data;

static void *first(void *unused) {
    lock_take(here);
    data = 1; // @1
    lock_give(here);
    return unused;
}

static void *second(void *unused) {
    lock_take(there);
    data = 2; // @2
    lock_give(there);
    return unused;
}

int main(void) {
    pthread_t one, other;
    here = lock_new();
    there = lock_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
