// bug: two semaphores are taken in opposite orders
// shows: deadlock stuck
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

static sem_t one, other;

static void both(sem_t *first, sem_t *second) {
    sem_wait(first);
    sem_wait(second);
    sem_post(second);
    sem_post(first);
}

static void *task(void *unused) {
#ifdef FIXED
    both(&one, &other);
#else
    both(&other, &one);
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    sem_init(&one, 0, 1);
    sem_init(&other, 0, 1);
    pthread_create(&thread, NULL, task, NULL);
    both(&one, &other);
    pthread_join(thread, NULL);
    return 0;
}
