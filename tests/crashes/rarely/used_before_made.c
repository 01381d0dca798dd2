// crashes: the worker is told to begin before its table is there
// story: the last pointer that the thread read before is global table
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(long *) table;
static atomic_int stop;

static void *worker(void *unused) {
    for (volatile int prepared = 0; prepared < 20000; prepared++) {
    }
    if (!atomic_load(&stop)) {
        long *own = atomic_load(&table);
        own[3] += 1;
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    atomic_store(&table, calloc(8, sizeof(long)));
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    return 0;
}
