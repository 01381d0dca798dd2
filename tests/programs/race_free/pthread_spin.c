// POSIX spin locks.
// Shows: pthread_spin_lock and pthread_spin_trylock as exclusion.
// True:  the counter is used with the spin lock held only.
// expect: none
#include <pthread.h>
#include <sched.h>

static pthread_spinlock_t lock;
static long counter;

static void *blocking(void *unused) {
    for (int i = 0; i < 50; i++) {
        pthread_spin_lock(&lock);
        counter++;
        pthread_spin_unlock(&lock);
    }
    return NULL;
}

static void *trying(void *unused) {
    for (int i = 0; i < 50; i++) {
        while (pthread_spin_trylock(&lock) != 0)
            sched_yield();
        counter++;
        pthread_spin_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    pthread_create(&one, NULL, blocking, NULL);
    pthread_create(&two, NULL, trying, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    pthread_spin_destroy(&lock);
    return counter == 100 ? 0 : 1;
}
