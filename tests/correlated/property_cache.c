// bug: an entry is put into the cache in one critical section and the cache marked as not empty in the next; a flush between
// them leaves an old entry behind
// shows: atomicity-violation
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

// After the property cache of a browser's script engine: table and empty flag belong together.
enum { SIZE = 16 };
static struct {
    int shape;
    int slot;
} table[SIZE];
static bool is_empty = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(int shape, int slot) {
    pthread_mutex_lock(&lock);
    table[shape % SIZE].shape = shape;
    table[shape % SIZE].slot = slot;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    is_empty = false;
    pthread_mutex_unlock(&lock);
}

static void flush(void) {
    pthread_mutex_lock(&lock);
    if (!is_empty) {
        memset(table, 0, sizeof table);
        is_empty = true;
    }
    pthread_mutex_unlock(&lock);
}

static int lookup(int shape) {
    pthread_mutex_lock(&lock);
    int slot = table[shape % SIZE].shape == shape ? table[shape % SIZE].slot : 0;
    pthread_mutex_unlock(&lock);
    return slot;
}

static bool collected;

static void *script(void *unused) {
    fill(7, 1);
    return unused;
}

// The collector moves what the entries point at.
static void *collector(void *unused) {
    flush();
    pthread_mutex_lock(&lock);
    collected = true;
    bool stale = is_empty && table[7].slot != 0;
    pthread_mutex_unlock(&lock);
    return stale ? &collected : unused;
}

int main(void) {
    pthread_t one, other;
    void *stale;
    pthread_create(&one, NULL, script, NULL);
    pthread_create(&other, NULL, collector, NULL);
    pthread_join(one, NULL);
    pthread_join(other, &stale);
    return stale != NULL || lookup(7) > 1;
}
