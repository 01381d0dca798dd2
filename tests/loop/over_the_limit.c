// bug: near the limit two orders may both fit: each is asked for and taken in two critical sections
// shows: failure atomicity-violation
// Three workers take orders from a queue. Each asks under the lock whether an order fits the limit, and takes it in another
// critical section: near the limit two may both fit. What the queue counts, and what is counted of orders, is interleaved just
// the same, and does no harm.
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 3, ORDERS = 12, LIMIT = 50 };

static struct {
    pthread_mutex_t lock;
    int next, busy;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    int used;
} limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock;
    int accepted, asked;
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int available(void) {
    pthread_mutex_lock(&limit.lock);
    int left = LIMIT - limit.used;
    pthread_mutex_unlock(&limit.lock);
    return left;
}

static int take(int quantity) {
    pthread_mutex_lock(&limit.lock);
#ifdef FIXED
    int fits = limit.used + quantity <= LIMIT;
#else
    int fits = 1;
#endif
    if (fits)
        limit.used += quantity;
    pthread_mutex_unlock(&limit.lock);
    return fits;
}

static void process(int order) {
    int quantity = 3 + order % 5;
    pthread_mutex_lock(&counts.lock);
    counts.asked++;
    pthread_mutex_unlock(&counts.lock);
    if (available() < quantity || !take(quantity))
        return;
    pthread_mutex_lock(&counts.lock);
    counts.accepted++;
    pthread_mutex_unlock(&counts.lock);
}

static void *work(void *unused) {
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        int order = queue.next < ORDERS ? queue.next++ : -1;
        queue.busy += order >= 0;
        pthread_mutex_unlock(&queue.lock);
        if (order < 0)
            return unused;
        process(order);
        pthread_mutex_lock(&queue.lock);
        queue.busy--;
        pthread_mutex_unlock(&queue.lock);
    }
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return limit.used > LIMIT;
}
