// bug: whoever sees the block frees it, and looks before it takes it away
// shows: failure race
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(void *) block;

static void *end(void *unused) {
#ifdef FIXED
    free(atomic_exchange(&block, NULL));
#else
    void *mine = atomic_load(&block);
    if (mine) {
        free(mine);
        atomic_store(&block, NULL);
    }
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    atomic_store(&block, malloc(40));
    pthread_create(&thread, NULL, end, NULL);
    end(NULL);
    pthread_join(thread, NULL);
    return 0;
}
