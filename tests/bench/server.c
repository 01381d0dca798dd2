// Mixed: threads serve requests against a hash map with striped locks; each request also digests a small document of its own.
// Usage: server [REQUESTS [THREADS]]
// Check: the visits counted in the map are the requests served, and digests sampled by the threads sum up to those of a
//        serial computation.
// Race-free: buckets are used with the lock of their stripe held; documents are private to their thread.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, STRIPES = 32, KEYS = 20000, DOCUMENT = 256, MOST_THREADS = 64 };

struct entry {
    struct entry *next;
    uint64_t key, visits, digest;
};

static struct entry *buckets[BUCKETS];
static pthread_mutex_t stripes[STRIPES];
static size_t requests = 1500000, threads = 4;

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 29;
    return x;
}

// Fills the document of a request, then digests it.
static uint64_t digest_of(uint64_t request, unsigned char *document) {
    uint64_t state = request + 1;
    for (size_t i = 0; i < DOCUMENT; i += sizeof state) {
        state = mix(state + i);
        memcpy(document + i, &state, sizeof state);
    }
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < DOCUMENT; i++) {
        low += document[i];
        high += low;
    }
    return ((uint64_t)high << 32) | low;
}

static int serve(uint64_t request, unsigned char *document) {
    uint64_t key = mix(request) % KEYS, digest = digest_of(request, document);
    size_t bucket = mix(key + 1) % BUCKETS;
    pthread_mutex_t *lock = &stripes[bucket % STRIPES];
    pthread_mutex_lock(lock);
    struct entry *entry = buckets[bucket];
    while (entry != NULL && entry->key != key)
        entry = entry->next;
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL) {
            pthread_mutex_unlock(lock);
            return 0;
        }
        entry->key = key;
        entry->next = buckets[bucket];
        buckets[bucket] = entry;
    }
    entry->visits++;
    entry->digest += digest;
    pthread_mutex_unlock(lock);
    return 1;
}

struct worker {
    pthread_t handle;
    size_t first, end, served;
    uint64_t digest;
};

static void *work(void *argument) {
    struct worker *self = argument;
    unsigned char document[DOCUMENT];
    for (size_t request = self->first; request < self->end; request++)
        self->served += serve(request, document);
    // A second look at some documents, for the check.
    for (size_t request = self->first; request < self->end; request += 16)
        self->digest += digest_of(request, document);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        requests = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (threads == 0 || threads > MOST_THREADS)
        return 2;
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&stripes[i], NULL);
    struct worker workers[MOST_THREADS] = {0};
    for (size_t i = 0; i < threads; i++) {
        // Bands start at multiples of 16 so that the sample does not depend on the number of threads.
        workers[i].first = requests / 16 * i / threads * 16;
        workers[i].end = i + 1 == threads ? requests : requests / 16 * (i + 1) / threads * 16;
        if (pthread_create(&workers[i].handle, NULL, work, &workers[i]) != 0)
            return 2;
    }
    uint64_t sampled = 0, expected = 0;
    size_t served = 0;
    for (size_t i = 0; i < threads; i++) {
        pthread_join(workers[i].handle, NULL);
        served += workers[i].served;
        sampled += workers[i].digest;
    }
    unsigned char document[DOCUMENT];
    for (size_t request = 0; request < requests; request += 16)
        expected += digest_of(request, document);
    uint64_t visits = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        while (buckets[i] != NULL) {
            struct entry *entry = buckets[i];
            buckets[i] = entry->next;
            visits += entry->visits;
            free(entry);
        }
    int right = served == requests && visits == requests && sampled == expected;
    printf("server of %zu requests with %zu threads: %s\n", requests, threads, right ? "right" : "WRONG");
    return !right;
}
