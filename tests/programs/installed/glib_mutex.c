// GLib's mutex guards one variable and not the other.
// package: glib-2.0
// race: 3 4
// ordered: 1 2
#include <glib.h>
#include <pthread.h>

static GMutex lock;
int guarded;
int plain;

static void *first(void *unused) {
    g_mutex_lock(&lock);
    guarded = 1; // @1
    g_mutex_unlock(&lock);
    plain = 1; // @3
    return unused;
}

static void *second(void *unused) {
    plain = 2; // @4
    g_mutex_lock(&lock);
    guarded = 2; // @2
    g_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
