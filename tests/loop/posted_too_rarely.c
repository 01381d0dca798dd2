// bug: whoever finds the counter at its end posts, and nobody does if two threads count at once
// shows: deadlock stuck
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>

static sem_t all_here;
static atomic_int here;

static void *come(void *unused) {
#ifdef FIXED
    int number = atomic_fetch_add(&here, 1) + 1;
#else
    int number = atomic_load(&here) + 1;
    atomic_store(&here, number);
#endif
    if (number == 2) sem_post(&all_here);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&all_here, 0, 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, come, NULL);
    sem_wait(&all_here);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
