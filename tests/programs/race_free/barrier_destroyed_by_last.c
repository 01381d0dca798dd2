// A barrier that is destroyed by whoever is told to, without waiting for the others.
// Shows: destruction beside threads that still leave the barrier, once for each of many barriers.
// True:  nobody stands at it any more when the first one is told to go on, and the destruction itself waits for those who leave.
// expect: none
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 8 };
static pthread_barrier_t barriers[ROUNDS];

static void *work(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++)
        if (pthread_barrier_wait(&barriers[round]) == PTHREAD_BARRIER_SERIAL_THREAD)
            pthread_barrier_destroy(&barriers[round]);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int round = 0; round < ROUNDS; round++)
        pthread_barrier_init(&barriers[round], NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
