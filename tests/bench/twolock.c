// Locks and allocation: the queue with one lock for its head and one for its tail (Michael and Scott, PODC 1996). Every
// thread puts an item in and takes one out, over and over; each item is a heap node that another thread may free.
// Usage: twolock [ROUNDS [THREADS]]
// Check: what was taken out sums up to what was put in, and the queue ends empty.
// Race-free: `first` is used under one lock and `last` under the other; where both meet, at the dummy node, the link is atomic.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct node {
    _Atomic(struct node *) next;
    uint64_t item;
};

static struct node *first, *last; // `first` is a dummy: its item was taken already
static pthread_mutex_t head = PTHREAD_MUTEX_INITIALIZER, tail = PTHREAD_MUTEX_INITIALIZER;
static size_t rounds = 250000, threads = 4;

static struct node *node_of(uint64_t item) {
    struct node *node = malloc(sizeof *node);
    if (node == NULL)
        abort();
    atomic_init(&node->next, NULL);
    node->item = item;
    return node;
}

static void put(uint64_t item) {
    struct node *node = node_of(item);
    pthread_mutex_lock(&tail);
    atomic_store_explicit(&last->next, node, memory_order_release);
    last = node;
    pthread_mutex_unlock(&tail);
}

// Every thread puts in before it takes out: there always is one.
static uint64_t take(void) {
    pthread_mutex_lock(&head);
    struct node *dummy = first, *next = atomic_load_explicit(&dummy->next, memory_order_acquire);
    if (next == NULL)
        abort();
    uint64_t item = next->item;
    first = next;
    pthread_mutex_unlock(&head);
    free(dummy);
    return item;
}

struct worker {
    pthread_t handle;
    uint64_t number, put, taken;
};

static void *run(void *argument) {
    struct worker *self = argument;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t item = round * threads + self->number;
        put(item);
        self->put += item;
        self->taken += take();
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        rounds = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (threads == 0 || threads > MOST_THREADS)
        return 2;
    first = last = node_of(0);
    struct worker workers[MOST_THREADS] = {0};
    for (size_t i = 0; i < threads; i++) {
        workers[i].number = i;
        if (pthread_create(&workers[i].handle, NULL, run, &workers[i]) != 0)
            return 2;
    }
    uint64_t put_in = 0, taken = 0;
    for (size_t i = 0; i < threads; i++) {
        pthread_join(workers[i].handle, NULL);
        put_in += workers[i].put;
        taken += workers[i].taken;
    }
    int right = put_in == taken && first == last;
    printf("twolock of %zu items with %zu threads, sum %llu: %s\n", rounds * threads, threads, (unsigned long long)taken,
           right ? "right" : "WRONG");
    free(first);
    return !right;
}
