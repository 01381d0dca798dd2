// A bounded buffer with two producers and two consumers.
// Seeded race: the last item of a producer is noted behind its section.
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 4, EACH = 50 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int items[CAPACITY], first, length, last;
static long taken;

static void put(int item) {
    pthread_mutex_lock(&lock);
    while (length == CAPACITY) pthread_cond_wait(&not_full, &lock);
    items[(first + length++) % CAPACITY] = item;
    pthread_cond_signal(&not_empty);
#ifndef SEEDED
    last = item;
#endif
    pthread_mutex_unlock(&lock);
#ifdef SEEDED
    last = item;
#endif
}

static int take(void) {
    pthread_mutex_lock(&lock);
    while (length == 0) pthread_cond_wait(&not_empty, &lock);
    int item = items[first];
    first = (first + 1) % CAPACITY;
    length--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    return item;
}

static void *produce(void *unused) {
    for (int i = 1; i <= EACH; i++) put(i);
    return unused;
}

static void *consume(void *unused) {
    long sum = 0;
    for (int i = 0; i < EACH; i++) sum += take();
    pthread_mutex_lock(&lock);
    taken += sum;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i < 2 ? produce : consume, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%ld taken, %d put last\n", taken, last);
    return taken == EACH * (EACH + 1) ? 0 : 1;
}
