// A bounded buffer with two conditions.
// Shows: producers and consumers that hand over through condition variables.
// True:  buffer, indices and sums are used with the lock held only, or after the joins.
// expect: none
#include <pthread.h>

enum { CAPACITY = 4, ITEMS = 50 };
static int buffer[CAPACITY], used, first;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;

static void *produce(void *unused) {
    for (int i = 1; i <= ITEMS; i++) {
        pthread_mutex_lock(&m);
        while (used == CAPACITY)
            pthread_cond_wait(&not_full, &m);
        buffer[(first + used++) % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

static void *consume(void *argument) {
    long *sum = argument;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&m);
        while (used == 0)
            pthread_cond_wait(&not_empty, &m);
        *sum += buffer[first];
        first = (first + 1) % CAPACITY;
        used--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    pthread_t producers[2], consumers[2];
    long sums[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        pthread_create(&producers[i], NULL, produce, NULL);
        pthread_create(&consumers[i], NULL, consume, &sums[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(producers[i], NULL);
        pthread_join(consumers[i], NULL);
    }
    return sums[0] + sums[1] == ITEMS * (ITEMS + 1) ? 0 : 1;
}
