// bug: a thread that finds the work done does not come to the barrier
// shows: deadlock stuck
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_barrier_t barrier;
static atomic_int done;

static void *task(void *unused) {
#ifdef FIXED
    atomic_store(&done, 1);
#else
    if (atomic_exchange(&done, 1) == 2) return unused;
#endif
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, task, NULL);
    atomic_store(&done, 2);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
