// A hash map with striped locks.
// Shows: several locks of one array, chains of heap nodes, and an output that tells the order of insertions.
// True:  a bucket is used with the lock of its stripe held.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 16, STRIPES = 4, THREADS = 4, KEYS = 32 };

struct entry {
    struct entry *next;
    unsigned key, owner;
};

static struct entry *buckets[BUCKETS];
static pthread_mutex_t stripes[STRIPES];

static int insert(unsigned key, unsigned owner) {
    unsigned bucket = key * 2654435761u % BUCKETS;
    pthread_mutex_t *lock = &stripes[bucket % STRIPES];
    pthread_mutex_lock(lock);
    struct entry *entry = buckets[bucket];
    while (entry != NULL && entry->key != key)
        entry = entry->next;
    int is_new = entry == NULL;
    if (is_new) {
        entry = malloc(sizeof *entry);
        entry->key = key;
        entry->owner = owner;
        entry->next = buckets[bucket];
        buckets[bucket] = entry;
    }
    pthread_mutex_unlock(lock);
    return is_new;
}

struct worker {
    unsigned number;
    int inserted;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    for (unsigned i = 0; i < KEYS; i++)
        worker->inserted += insert((i * 7 + worker->number * 8) % KEYS, worker->number);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&stripes[i], NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].inserted = 0;
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    int inserted = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        inserted += workers[i].inserted;
    }
    for (int i = 0; i < BUCKETS; i++)
        while (buckets[i] != NULL) {
            struct entry *entry = buckets[i];
            printf("%u:%u ", entry->key, entry->owner);
            buckets[i] = entry->next;
            free(entry);
        }
    printf("\n");
    return inserted == KEYS ? 0 : 1;
}
