// bug: those that leave are counted under a lock, and the count is read without it, once by each thread
// Sixty-four threads that share tasks of one queue, entries of a map with a lock for each bucket, and an atomic counter.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 64
#define TASKS 8000
#define BUCKETS 32
#define KEYS 512

struct entry {
    struct entry *next;
    unsigned key, count;
};

static struct {
    pthread_mutex_t lock;
    struct entry *first;
} map[BUCKETS];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    unsigned next, ready;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static pthread_mutex_t leaving = PTHREAD_MUTEX_INITIALIZER;
static unsigned left;
static unsigned last_ones;
static atomic_uint counted;

static void count(unsigned key) {
    unsigned bucket = key % BUCKETS;
    pthread_mutex_lock(&map[bucket].lock);
    struct entry *entry = map[bucket].first;
    while (entry && entry->key != key) entry = entry->next;
    if (!entry) {
        entry = malloc(sizeof *entry);
        *entry = (struct entry){map[bucket].first, key, 0};
        map[bucket].first = entry;
    }
    entry->count++;
    pthread_mutex_unlock(&map[bucket].lock);
    atomic_fetch_add(&counted, 1);
}

static int take(unsigned *task) {
    pthread_mutex_lock(&queue.lock);
    while (queue.next == queue.ready && queue.ready < TASKS) pthread_cond_wait(&queue.filled, &queue.lock);
    int there = queue.next < queue.ready;
    if (there) *task = queue.next++;
    pthread_mutex_unlock(&queue.lock);
    return there;
}

static void leave(void) {
    pthread_mutex_lock(&leaving);
    left++;
    pthread_mutex_unlock(&leaving);
}

static unsigned still_there(void) { return THREADS - left; }

static void *work(void *unused) {
    unsigned task;
    while (take(&task)) count(task * 2654435761u % KEYS);
    leave();
    if (still_there() == 0) atomic_fetch_add(&counted, last_ones);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int bucket = 0; bucket < BUCKETS; bucket++) pthread_mutex_init(&map[bucket].lock, NULL);
    for (int nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], NULL, work, NULL);
    for (unsigned task = 0; task < TASKS; task += 100) {
        pthread_mutex_lock(&queue.lock);
        queue.ready += 100;
        pthread_cond_broadcast(&queue.filled);
        pthread_mutex_unlock(&queue.lock);
    }
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], NULL);
    return counted != TASKS;
}
