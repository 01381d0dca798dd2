// bug: an item's value is read under the lock of its bucket, and written under it later
// shows: atomicity-violation
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// After the increment command of a cache server: two of them counted once.
enum { BUCKETS = 8 };
struct item {
    struct item *next;
    char key[16];
    char value[24];
};
static struct item *buckets[BUCKETS];
static pthread_mutex_t locks[BUCKETS];

static unsigned hash(const char *key) {
    unsigned h = 5381;
    while (*key) h = h * 33 + (unsigned char)*key++;
    return h % BUCKETS;
}

static struct item *find(const char *key) {
    for (struct item *it = buckets[hash(key)]; it; it = it->next) {
        if (strcmp(it->key, key) == 0) return it;
    }
    return NULL;
}

static void store(const char *key, const char *value) {
    pthread_mutex_lock(&locks[hash(key)]);
    struct item *it = find(key);
    if (!it) {
        it = calloc(1, sizeof *it);
        snprintf(it->key, sizeof it->key, "%s", key);
        it->next = buckets[hash(key)];
        buckets[hash(key)] = it;
    }
    for (size_t i = 0; i <= strlen(value); i++) it->value[i] = value[i];
    pthread_mutex_unlock(&locks[hash(key)]);
}

static void add(const char *key, long delta) {
    pthread_mutex_lock(&locks[hash(key)]);
    struct item *it = find(key);
    long value = it ? atol(it->value) : 0;
    char text[24];
    snprintf(text, sizeof text, "%ld", value + delta);
#ifdef FIXED
    for (size_t i = 0; it && i <= strlen(text); i++) it->value[i] = text[i];
    pthread_mutex_unlock(&locks[hash(key)]);
#else
    pthread_mutex_unlock(&locks[hash(key)]);
    store(key, text);
#endif
}

static void *client(void *unused) {
    add("hits", 1);
    return unused;
}

int main(void) {
    for (int i = 0; i < BUCKETS; i++) pthread_mutex_init(&locks[i], NULL);
    store("hits", "10");
    pthread_t one, other;
    pthread_create(&one, NULL, client, NULL);
    pthread_create(&other, NULL, client, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("hits %s\n", find("hits")->value);
    return 0;
}
