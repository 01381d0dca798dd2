// Producers and consumers that print who got what.
// Shows: condition variables with several waiters; the output tells the schedule.
// True:  everything shared is used with the lock held.
// expect: none
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 3, ITEMS = 12 };
static int buffer[CAPACITY], used, taken;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *produce(void *argument) {
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&m);
        while (used == CAPACITY)
            pthread_cond_wait(&changed, &m);
        buffer[used++] = *(int *)argument * 100 + i;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

static void *consume(void *argument) {
    for (;;) {
        pthread_mutex_lock(&m);
        while (used == 0 && taken < 2 * ITEMS)
            pthread_cond_wait(&changed, &m);
        if (used == 0) {
            pthread_mutex_unlock(&m);
            return NULL;
        }
        int item = buffer[--used];
        if (++taken == 2 * ITEMS)
            pthread_cond_broadcast(&changed);
        printf("%d took %d\n", *(int *)argument, item);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&m);
    }
}

int main(void) {
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? produce : consume, &numbers[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return taken == 2 * ITEMS ? 0 : 1;
}
