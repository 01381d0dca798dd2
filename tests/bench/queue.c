// Lock-bound: many small items through one bounded queue, a mutex and two condition variables.
// Usage: queue [ITEMS [PRODUCERS [CONSUMERS]]]
// Check: number and sum of the items taken are those of the items put.
// Race-free: the queue is used with its mutex held; results are read after the joins.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 256, MOST_THREADS = 32 };

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    uint64_t items[CAPACITY];
    size_t first, length, producers_left;
};

static struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .not_empty = PTHREAD_COND_INITIALIZER,
                             .not_full = PTHREAD_COND_INITIALIZER};
static uint64_t items = 600000;

static void put(struct queue *q, uint64_t item) {
    pthread_mutex_lock(&q->lock);
    while (q->length == CAPACITY)
        pthread_cond_wait(&q->not_full, &q->lock);
    q->items[(q->first + q->length++) % CAPACITY] = item;
    pthread_cond_signal(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}

// 0: there will be no more.
static int take(struct queue *q, uint64_t *item) {
    pthread_mutex_lock(&q->lock);
    while (q->length == 0 && q->producers_left > 0)
        pthread_cond_wait(&q->not_empty, &q->lock);
    int taken = q->length > 0;
    if (taken) {
        *item = q->items[q->first];
        q->first = (q->first + 1) % CAPACITY;
        q->length--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

struct worker {
    pthread_t handle;
    uint64_t first, end; // producers
    uint64_t count, sum; // consumers
};

static void *produce(void *argument) {
    struct worker *self = argument;
    for (uint64_t item = self->first; item < self->end; item++)
        put(&queue, item);
    pthread_mutex_lock(&queue.lock);
    queue.producers_left--;
    pthread_cond_broadcast(&queue.not_empty);
    pthread_mutex_unlock(&queue.lock);
    return NULL;
}

static void *consume(void *argument) {
    struct worker *self = argument;
    uint64_t item;
    while (take(&queue, &item)) {
        self->count++;
        self->sum += item;
    }
    return NULL;
}

int main(int count, char **arguments) {
    size_t producers = 2, consumers = 2;
    if (count > 1)
        items = strtoull(arguments[1], NULL, 10);
    if (count > 2)
        producers = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        consumers = strtoul(arguments[3], NULL, 10);
    if (producers == 0 || producers > MOST_THREADS || consumers == 0 || consumers > MOST_THREADS)
        return 2;
    queue.producers_left = producers;
    struct worker makers[MOST_THREADS] = {0}, takers[MOST_THREADS] = {0};
    for (size_t i = 0; i < consumers; i++)
        if (pthread_create(&takers[i].handle, NULL, consume, &takers[i]) != 0)
            return 2;
    for (size_t i = 0; i < producers; i++) {
        makers[i].first = items * i / producers;
        makers[i].end = items * (i + 1) / producers;
        if (pthread_create(&makers[i].handle, NULL, produce, &makers[i]) != 0)
            return 2;
    }
    for (size_t i = 0; i < producers; i++)
        pthread_join(makers[i].handle, NULL);
    uint64_t taken = 0, sum = 0;
    for (size_t i = 0; i < consumers; i++) {
        pthread_join(takers[i].handle, NULL);
        taken += takers[i].count;
        sum += takers[i].sum;
    }
    int right = taken == items && sum == (items % 2 ? items * ((items - 1) / 2) : items / 2 * (items - 1));
    printf("queue of %llu items: %s\n", (unsigned long long)items, right ? "right" : "WRONG");
    return !right;
}
