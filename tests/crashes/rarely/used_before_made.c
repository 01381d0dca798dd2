// crashes: the table is announced before it is there
// story: the last pointer that the thread read before is global table
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int is_announced;
static _Atomic(long *) table;

static void *worker(void *unused) {
    if (atomic_load(&is_announced)) {
        long *own = atomic_load(&table);
        own[3] += 1;
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    atomic_store(&is_announced, 1);
    atomic_store(&table, calloc(8, sizeof(long)));
    pthread_join(thread, NULL);
    return 0;
}
