// libuv's mutex guards one variable and not the other.
// package: libuv
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <uv.h>

static uv_mutex_t lock;
int guarded;
int plain;

static void *first(void *unused) {
    uv_mutex_lock(&lock);
    guarded = 1; // @1
    uv_mutex_unlock(&lock);
    plain = 1; // @3
    return unused;
}

static void *second(void *unused) {
    plain = 2; // @4
    uv_mutex_lock(&lock);
    guarded = 2; // @2
    uv_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t one, other;
    uv_mutex_init(&lock);
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    uv_mutex_destroy(&lock);
    return 0;
}
