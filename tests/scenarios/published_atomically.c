// shows: a pointer is released and acquired
// bugs: none
#include <pthread.h>
#include <stdatomic.h>

static int storage;
static _Atomic(int *) published;

static void *produce(void *unused) {
    storage = 1;
    atomic_store_explicit(&published, &storage, memory_order_release);
    return unused;
}

static void *consume(void *unused) {
    int *found = atomic_load_explicit(&published, memory_order_acquire);
    if (found) ++*found;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
