// bug: a name and its hash are set in two critical sections, and a lookup between them trusts the old hash
// shows: atomicity-violation
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
    pthread_mutex_t lock;
    char text[32];
    uint32_t hash;
};

static uint32_t hash_of(const char *text) {
    uint32_t hash = 2166136261u;
    while (*text) hash = (hash ^ (unsigned char)*text++) * 16777619u;
    return hash;
}

static struct name host = {.lock = PTHREAD_MUTEX_INITIALIZER, .text = "alpha"};

static void rename_to(struct name *name, const char *text) {
    pthread_mutex_lock(&name->lock);
    for (size_t i = 0; i <= strlen(text); i++) name->text[i] = text[i];
    uint32_t hash = hash_of(name->text);
#ifndef FIXED
    pthread_mutex_unlock(&name->lock);
    pthread_mutex_lock(&name->lock);
#endif
    name->hash = hash;
    pthread_mutex_unlock(&name->lock);
}

static int is_sound(struct name *name) {
    pthread_mutex_lock(&name->lock);
    int sound = hash_of(name->text) == name->hash;
    pthread_mutex_unlock(&name->lock);
    return sound;
}

static void *administrator(void *unused) {
    rename_to(&host, "omega");
    return unused;
}

static void *resolver(void *unused) {
    if (!is_sound(&host)) exit(3);
    return unused;
}

int main(void) {
    host.hash = hash_of(host.text);
    pthread_t one, other;
    pthread_create(&one, NULL, administrator, NULL);
    pthread_create(&other, NULL, resolver, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
